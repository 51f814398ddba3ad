/*-------------------------------------------------------------------------
 *
 * rpin_token.c
 *	  Reading and writing tokens.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_token.h"

#include "rpin_hex.h"

/* Where each field starts, and how many hexadecimal digits it has. */
typedef struct RpinTokenField
{
	int			start;
	int			digits;
} RpinTokenField;

static const RpinTokenField system_identifier_field = {0, 16};
static const RpinTokenField timeline_field = {17, 8};
static const RpinTokenField lsn_field = {26, 16};

static void
write_field(char *text, RpinTokenField field, uint64_t value)
{
	for (int i = field.digits - 1; i >= 0; i--)
	{
		text[field.start + i] = "0123456789ABCDEF"[value & 0xF];
		value >>= 4;
	}
}

static bool
read_field(const char *text, RpinTokenField field, uint64_t *value)
{
	*value = 0;
	for (int i = 0; i < field.digits; i++)
	{
		int			digit = rpin_hex_digit(text[field.start + i]);

		if (digit < 0)
			return false;
		*value = (*value << 4) | (uint64_t) digit;
	}
	return true;
}

void
rpin_token_format(const RpinPosition *position,
				  char text[RPIN_TOKEN_LENGTH + 1])
{
	write_field(text, system_identifier_field, position->system_identifier);
	text[timeline_field.start - 1] = '-';
	write_field(text, timeline_field, position->timeline);
	text[lsn_field.start - 1] = '-';
	write_field(text, lsn_field, position->lsn);
	text[RPIN_TOKEN_LENGTH] = '\0';
}

bool
rpin_token_parse(const char *text, size_t length, RpinPosition *position)
{
	uint64_t	system_identifier;
	uint64_t	timeline;
	uint64_t	lsn;

	if (length != RPIN_TOKEN_LENGTH ||
		text[timeline_field.start - 1] != '-' ||
		text[lsn_field.start - 1] != '-')
		return false;
	if (!read_field(text, system_identifier_field, &system_identifier) ||
		!read_field(text, timeline_field, &timeline) ||
		!read_field(text, lsn_field, &lsn))
		return false;
	if (timeline == 0 || lsn == 0)
		return false;

	position->system_identifier = system_identifier;
	position->timeline = (uint32_t) timeline;
	position->lsn = lsn;
	return true;
}
