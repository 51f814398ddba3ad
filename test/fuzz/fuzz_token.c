/*-------------------------------------------------------------------------
 *
 * fuzz_token.c
 *	  Any bytes as a token, and as two positions.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_fuzz.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "rpin_token.h"

static const RpinPosition untouched = {0xABAD1DEA, 7, 0xDEFACED};

static bool
same(const RpinPosition *a, const RpinPosition *b)
{
	return a->system_identifier == b->system_identifier &&
		a->timeline == b->timeline && a->lsn == b->lsn;
}

/* Does something other than 0 stand in these places? */
static bool
is_not_zero(const char *text, int from, int digits)
{
	for (int i = from; i < from + digits; i++)
		if (text[i] != '0')
			return true;
	return false;
}

/* What a token looks like, told once more. */
static bool
looks_like_a_token(const char *text, size_t size)
{
	static const char form[] = "hhhhhhhhhhhhhhhh-hhhhhhhh-hhhhhhhhhhhhhhhh";

	if (size != sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < size; i++)
		if (form[i] == '-' ? text[i] != '-' : !isxdigit((unsigned char) text[i]))
			return false;
	return is_not_zero(text, 17, 8) && is_not_zero(text, 26, 16);
}

static void
check_text(const char *text, size_t size)
{
	RpinPosition position = untouched;
	RpinPosition again = untouched;
	char		written[RPIN_TOKEN_LENGTH + 1];
	bool		accepted;

	rpin_fuzz_memory_begin();
	accepted = rpin_token_parse(text, size, &position);
	rpin_fuzz_check(rpin_fuzz_memory_end().count == 0);
	rpin_fuzz_check(accepted == looks_like_a_token(text, size));
	rpin_fuzz_check(accepted == rpin_token_parse(text, size, &again));
	rpin_fuzz_check(same(&position, &again));
	if (!accepted)
	{
		rpin_fuzz_check(same(&position, &untouched));
		return;
	}
	rpin_fuzz_check(position.timeline != 0 && position.lsn != 0);
	rpin_token_format(&position, written);
	rpin_fuzz_check(strncasecmp(written, text, RPIN_TOKEN_LENGTH) == 0);
}

/* Written, it is read again. */
static void
write_and_read(const RpinPosition *position, char text[RPIN_TOKEN_LENGTH + 1])
{
	RpinPosition again = untouched;
	bool		accepted;

	memset(text, 'x', RPIN_TOKEN_LENGTH + 1);
	rpin_token_format(position, text);
	rpin_fuzz_check(strlen(text) == RPIN_TOKEN_LENGTH);
	rpin_fuzz_check(strspn(text, "0123456789ABCDEF-") == RPIN_TOKEN_LENGTH);
	accepted = rpin_token_parse(text, RPIN_TOKEN_LENGTH, &again);
	rpin_fuzz_check(accepted == (position->timeline != 0 && position->lsn != 0));
	rpin_fuzz_check(same(&again, accepted ? position : &untouched));
}

static int
order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static void
check_positions(const uint8_t *data)
{
	RpinPosition position[2];
	char		text[2][RPIN_TOKEN_LENGTH + 1];
	int			expected;
	int			found;

	memcpy(position, data, sizeof(position));
	write_and_read(&position[0], text[0]);
	write_and_read(&position[1], text[1]);

	expected = order(position[0].system_identifier, position[1].system_identifier);
	if (expected == 0)
		expected = order(position[0].timeline, position[1].timeline);
	if (expected == 0)
		expected = order(position[0].lsn, position[1].lsn);
	found = strcmp(text[0], text[1]);
	rpin_fuzz_check(order((uint64_t) (found > 0), (uint64_t) (found < 0)) == expected);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > RPIN_FUZZ_LIMIT)
		return 0;
	check_text(rpin_fuzz_fence("", (const char *) data, size, ""), size);
	if (size >= 2 * sizeof(RpinPosition))
		check_positions(data);
	return 0;
}
