/*-------------------------------------------------------------------------
 *
 * rpin_json.c
 *	  What has to be known of a JSON text before and beside a real parser.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_json.h"

#include <string.h>

#include "rpin_hex.h"

/* The end of a string that begins behind its opening quote, or NULL. */
static const char *
find_end_of_string(const char *text, const char *end)
{
	for (; text < end; text++)
	{
		if (*text == '"')
			return text;
		if (*text == '\\')
			text++;
	}
	return NULL;
}

static bool
holds_zero(const char *text, const char *end)
{
	for (; text + 6 <= end; text++)
	{
		if (*text != '\\')
			continue;
		if (memcmp(text, "\\u0000", 6) == 0)
			return true;
		text++;
	}
	return false;
}

bool
rpin_json_is_harmless(const char *text, size_t length)
{
	const char *end = text + length;
	int			depth = 0;

	for (; text < end; text++)
	{
		if (*text == '{' || *text == '[')
		{
			if (++depth > RPIN_JSON_DEPTH)
				return false;
		}
		else if (*text == '}' || *text == ']')
			depth--;
		else if (*text == '"')
		{
			const char *close = find_end_of_string(text + 1, end);

			if (close == NULL || holds_zero(text + 1, close))
				return false;
			text = close;
		}
	}
	return true;
}

RpinJsonString
rpin_json_next_string(const char *text, const char *end)
{
	RpinJsonString string = {NULL, 0};
	const char *open = text < end ? memchr(text, '"', (size_t) (end - text)) : NULL;
	const char *close = open != NULL ? find_end_of_string(open + 1, end) : NULL;

	if (close != NULL)
	{
		string.start = open + 1;
		string.length = (size_t) (close - open - 1);
	}
	return string;
}

/* The four digits of \uXXXX, or -1. */
static int
read_code(const char *text, const char *end)
{
	int			code = 0;

	if (end - text < 4)
		return -1;
	for (int i = 0; i < 4; i++)
	{
		int			digit = rpin_hex_digit(text[i]);

		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code;
}

/* The character of an escape behind its backslash; -1: not ASCII, or wrong. */
static int
read_escape(const char **text, const char *end)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char meanings[] = "\"\\/\b\f\n\r\t";
	char		letter = **text;
	const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
	int			code;

	(*text)++;
	if (found != NULL)
		return meanings[found - letters];
	if (letter != 'u')
		return -1;
	code = read_code(*text, end);
	*text += 4;
	return code;
}

bool
rpin_json_resolve(RpinJsonString string, char *to, size_t size)
{
	const char *text = string.start;
	const char *end = text + string.length;
	size_t		used = 0;

	while (text < end)
	{
		int			c = (unsigned char) *text++;

		if (c == '\\')
			c = text < end ? read_escape(&text, end) : -1;
		if (c <= 0 || c > 127 || used + 1 >= size)
			return false;
		to[used++] = (char) c;
	}
	if (size == 0)
		return false;
	to[used] = '\0';
	return true;
}
