/*-------------------------------------------------------------------------
 *
 * test_json.c
 *	  What is known of a JSON text without parsing it.  Texts stand on the heap
 *	  in exactly their size, for the sanitizer to see what is read behind them.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_json.h"

static bool
is_harmless(const char *text, size_t length)
{
	char	   *copy = rpin_test_copy(text, length);
	bool		harmless = rpin_json_is_harmless(copy, length);

	free(copy);
	return harmless;
}

static void
assert_harmless(const char *text, bool expected)
{
	if (is_harmless(text, strlen(text)) != expected)
		fail_msg("%s: %s", text, expected ? "is harmless" : "is not harmless");
}

/* `count` times `open`, something, and all closed. */
static bool
is_nested_harmless(const char *open, const char *close, int count)
{
	char		text[4096] = "";

	for (int i = 0; i < count; i++)
		strcat(text, open);
	strcat(text, "1");
	for (int i = 0; i < count; i++)
		strcat(text, close);
	return is_harmless(text, strlen(text));
}

static void
test_nesting(void **state)
{
	static const char *const pairs[][2] = {
		{"[", "]"}, {"{\"a\":", "}"}, {"[ ", " ]"}, {"[{\"]\":", "}]"},
		{"[[],{},", "]"}, {"[\"[[[[{{{{\",", "]"}, {"[\"\\\"[\",", "]"},
	};

	for (size_t i = 0; i < lengthof(pairs); i++)
	{
		const char *open = pairs[i][0];
		const char *close = pairs[i][1];
		int			levels = strlen(close) == 2 && close[0] == '}' ? 2 : 1;
		int			inner = i == 4 ? 1 : 0;
		int			most = (RPIN_JSON_DEPTH - inner) / levels;

		assert_true(is_nested_harmless(open, close, 1));
		assert_true(is_nested_harmless(open, close, most));
		assert_false(is_nested_harmless(open, close, most + 1));
		assert_false(is_nested_harmless(open, close, 2 * most));
	}
}

static void
test_harmless(void **state)
{
	assert_harmless("", true);
	assert_harmless("{\"wal_locations\": {\"main\": \"0/16B3748\"}}", true);
	assert_harmless("no JSON at all }}}}", true);
	assert_true(is_harmless("\0[\0]", 4));

	/* Strings that do not end. */
	assert_harmless("\"", false);
	assert_harmless("{\"a", false);
	assert_harmless("\"a\\\"", false);
	assert_harmless("\"a\\", false);
	assert_harmless("\"a\\\\\"", true);
	assert_harmless("\"\" \"", false);
}

static void
test_zero_escape(void **state)
{
	assert_harmless("\"\\u0000\"", false);
	assert_harmless("[\"a\", \"b\\u0000c\"]", false);
	assert_harmless("{\"b\\u0000\": 1}", false);
	assert_harmless("\"\\\\\\u0000\"", false);
	assert_harmless("\"\\u0001\\u0000\"", false);
	assert_harmless("\"\\\"\\u0000\"", false);

	/* It only looks like one. */
	assert_harmless("\"\\\\u0000\"", true);
	assert_harmless("\"\\\\\\\\u0000\"", true);
	assert_harmless("\"u0000\"", true);
	assert_harmless("\"\\u0001\"", true);
	assert_harmless("\"\\u000\"", true);
	assert_harmless("\"\\u00\", \"00\"", true);
	assert_harmless("\\u0000", true);
}

/* The same, one byte after another. */
static bool
naive_harmless(const char *text, size_t length)
{
	bool		in_string = false;
	size_t		depth = 0;

	for (size_t i = 0; i < length; i++)
	{
		if (in_string && text[i] == '\\')
		{
			if (length - i >= 6 && strncmp(text + i, "\\u0000", 6) == 0)
				return false;
			i++;
		}
		else if (text[i] == '"')
			in_string = !in_string;
		else if (!in_string && (text[i] == '[' || text[i] == '{'))
		{
			if (++depth > RPIN_JSON_DEPTH)
				return false;
		}
		else if (!in_string && (text[i] == ']' || text[i] == '}'))
			depth--;
	}
	return !in_string;
}

/* Text in which everything that matters occurs often.  Its length. */
static size_t
random_text(char *text, size_t size)
{
	static const char *const pieces[] = {
		"\"", "\"", "\\", "\\u0000", "\\\"", "[", "[", "{", "]", "}", "a",
		"\\u0041", "[[[[[[[[[[[[[[[[", ",", "\377",
	};
	size_t		length = 0;

	for (uint64_t n = rpin_test_below(20); n > 0; n--)
	{
		const char *piece = pieces[rpin_test_below(lengthof(pieces))];

		if (length + strlen(piece) > size)
			break;
		memcpy(text + length, piece, strlen(piece));
		length += strlen(piece);
	}
	return length;
}

/* A text that closes more than it opened is wrong there, and not looked at. */
static bool
closes_too_much(const char *text, size_t length)
{
	int			depth = 0;
	bool		in_string = false;

	for (size_t i = 0; i < length && depth >= 0; i++)
	{
		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
		else if (!in_string)
			depth += (text[i] == '[' || text[i] == '{') -
				(text[i] == ']' || text[i] == '}');
	}
	return depth < 0;
}

static void
test_random_texts(void **state)
{
	for (uint64_t i = rpin_test_rounds(200000); i > 0; i--)
	{
		char		text[400];
		size_t		length = random_text(text, sizeof(text));

		if (!closes_too_much(text, length))
			assert_int_equal(is_harmless(text, length),
							 naive_harmless(text, length));
		else
			(void) is_harmless(text, length);
	}
}

/* The next string of a text begins at `start` and has this length; -1: none. */
static void
assert_next(const char *text, long start, size_t length)
{
	char	   *copy = rpin_test_copy(text, strlen(text));
	RpinJsonString string = rpin_json_next_string(copy, copy + strlen(text));

	if (start < 0)
		assert_null(string.start);
	else
		assert_ptr_equal(string.start, copy + start);
	assert_int_equal(string.length, length);
	free(copy);
}

static void
test_next_string(void **state)
{
	assert_next("", -1, 0);
	assert_next("abc", -1, 0);
	assert_next("\"", -1, 0);
	assert_next("\"abc", -1, 0);
	assert_next("\"abc\\\"", -1, 0);
	assert_next("\"abc\\", -1, 0);
	assert_next("\"\"", 1, 0);
	assert_next("\"abc\"", 1, 3);
	assert_next(" : \"abc\", \"d\"", 4, 3);
	assert_next("\"a\\\"b\\\\\" \"", 1, 6);
}

/* Resolves into exactly `size` bytes. */
static bool
resolve(const char *text, size_t length, char *to, size_t size)
{
	char	   *copy = rpin_test_copy(text, length);
	char	   *exact = malloc(size > 0 ? size : 1);
	RpinJsonString string = {copy, length};
	bool		resolved;

	assert_non_null(exact);
	resolved = rpin_json_resolve(string, exact, size);
	if (resolved)
		memcpy(to, exact, size);
	free(exact);
	free(copy);
	return resolved;
}

static void
assert_resolved(const char *text, const char *expected)
{
	char		to[64];
	bool		resolved = resolve(text, strlen(text), to, sizeof(to));

	if (resolved != (expected != NULL))
		fail_msg("%s: resolved %d", text, resolved);
	if (resolved)
		assert_string_equal(to, expected);
}

static void
test_resolve(void **state)
{
	char		to[8];

	assert_resolved("", "");
	assert_resolved("wal_locations", "wal_locations");
	assert_resolved("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t");
	assert_resolved("\\u0077al\\u005Flocations", "wal_locations");
	assert_resolved("\\u005f\\u005F", "__");
	assert_resolved("a\\\\u0041", "a\\u0041");

	/* Wrong, cut off, or not ASCII. */
	assert_resolved("\\", NULL);
	assert_resolved("a\\", NULL);
	assert_resolved("\\u", NULL);
	assert_resolved("\\u004", NULL);
	assert_resolved("\\u004g", NULL);
	assert_resolved("\\u-041", NULL);
	assert_resolved("\\u 041", NULL);
	assert_resolved("\\U0041", NULL);
	assert_resolved("\\x41", NULL);
	assert_resolved("\\ud83d\\ude00", NULL);
	assert_resolved("caf\303\251", NULL);
	assert_false(resolve("a\0b", 3, to, sizeof(to)));
	assert_false(resolve("a\\\0b", 4, to, sizeof(to)));
}

static void
test_every_escape(void **state)
{
	char		to[8];

	for (int byte = 0; byte < 256; byte++)
	{
		const char	text[] = {'\\', (char) byte};

		assert_int_equal(resolve(text, 2, to, sizeof(to)),
						 byte != '\0' && strchr("\"\\/bfnrt", byte) != NULL);
	}
	for (int code = 0; code < 0x10000; code++)
	{
		char		text[8];

		snprintf(text, sizeof(text), code % 2 ? "\\u%04x" : "\\u%04X", code);
		assert_int_equal(resolve(text, 6, to, sizeof(to)),
						 code > 0 && code < 128);
		if (code > 0 && code < 128)
			assert_true(to[0] == code && to[1] == '\0');
	}
}

static void
test_resolve_needs_room(void **state)
{
	char		to[8];

	assert_false(resolve("", 0, to, 0));
	assert_true(resolve("", 0, to, 1));
	assert_false(resolve("abc", 3, to, 0));
	assert_false(resolve("abc", 3, to, 1));
	assert_false(resolve("abc", 3, to, 3));
	assert_true(resolve("abc", 3, to, 4));
	assert_string_equal(to, "abc");
	assert_true(resolve("\\u0061\\n", 8, to, 3));
	assert_string_equal(to, "a\n");
}

/* Any ASCII text, written with escapes and without, comes back. */
static void
test_round_trip(void **state)
{
	for (uint64_t i = rpin_test_rounds(100000); i > 0; i--)
	{
		char		expected[32];
		char		text[6 * sizeof(expected) + 1];
		char		to[sizeof(expected)];
		size_t		length = 0;
		size_t		count = rpin_test_below(sizeof(expected));

		for (size_t c = 0; c < count; c++)
		{
			expected[c] = (char) (1 + rpin_test_below(127));
			if (rpin_test_one_in(3) || strchr("\"\\", expected[c]) != NULL)
				length += (size_t) sprintf(text + length, "\\u%04x", expected[c]);
			else
				text[length++] = expected[c];
		}
		expected[count] = '\0';
		assert_true(resolve(text, length, to, count + 1));
		assert_string_equal(to, expected);
		assert_false(resolve(text, length, to, count));
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_harmless),
		cmocka_unit_test(test_zero_escape),
		cmocka_unit_test(test_random_texts),
		cmocka_unit_test(test_next_string),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_every_escape),
		cmocka_unit_test(test_resolve_needs_room),
		cmocka_unit_test(test_round_trip),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
