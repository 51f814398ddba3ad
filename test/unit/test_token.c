/*-------------------------------------------------------------------------
 *
 * test_token.c
 *	  Tokens: what is written is read again, nothing else is read, and the
 *	  order of the texts is the order of the positions.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include <ctype.h>
#include <strings.h>

#include "rpin_token.h"

static const RpinPosition untouched = {0xABAD1DEA, 7, 0xDEFACED};

static bool
same(const RpinPosition *a, const RpinPosition *b)
{
	return a->system_identifier == b->system_identifier &&
		a->timeline == b->timeline && a->lsn == b->lsn;
}

/* Small, large and extreme values, and such as differ in one bit. */
static uint64_t
random_word(void)
{
	switch (rpin_test_below(5))
	{
		case 0:
			return rpin_test_below(4);
		case 1:
			return UINT64_MAX - rpin_test_below(4);
		case 2:
			return UINT64_C(1) << rpin_test_below(64);
		case 3:
			return rpin_test_random() >> rpin_test_below(64);
		default:
			return rpin_test_random();
	}
}

static RpinPosition
random_position(void)
{
	RpinPosition position;

	position.system_identifier = random_word();
	position.timeline = (uint32_t) random_word();
	position.lsn = random_word();
	if (position.timeline == 0)
		position.timeline = 1;
	if (position.lsn == 0)
		position.lsn = 1;
	return position;
}

static void
assert_refused(const char *text, size_t length)
{
	char	   *copy = rpin_test_copy(text, length);
	RpinPosition position = untouched;
	bool		accepted = rpin_token_parse(copy, length, &position);

	free(copy);
	if (accepted)
		fail_msg("accepted \"%.*s\"", (int) length, text);
	assert_true(same(&position, &untouched));
}

static void
assert_read(const char *text, const RpinPosition *expected)
{
	char	   *copy = rpin_test_copy(text, RPIN_TOKEN_LENGTH);
	RpinPosition position = untouched;
	bool		accepted = rpin_token_parse(copy, RPIN_TOKEN_LENGTH, &position);

	free(copy);
	if (!accepted || !same(&position, expected))
		fail_msg("misread \"%s\"", text);
}

/* The text form is a contract with cookies and headers that are out there. */
static void
test_known_texts(void **state)
{
	static const struct
	{
		RpinPosition position;
		const char *text;
	}			known[] =
	{
		{{1, 1, 1}, "0000000000000001-00000001-0000000000000001"},
		{{0, 1, 1}, "0000000000000000-00000001-0000000000000001"},
		{{0x6A5B4C3D2E1F0987, 0x1C, 0x16B3748},
		"6A5B4C3D2E1F0987-0000001C-00000000016B3748"},
		{{UINT64_C(0xABCDEF0123456789), 0xFEDCBA98, UINT64_C(0x9876543210FEDCBA)},
		"ABCDEF0123456789-FEDCBA98-9876543210FEDCBA"},
		{{UINT64_MAX, UINT32_MAX, UINT64_MAX},
		"FFFFFFFFFFFFFFFF-FFFFFFFF-FFFFFFFFFFFFFFFF"},
	};

	for (size_t i = 0; i < lengthof(known); i++)
	{
		char		text[RPIN_TOKEN_LENGTH + 1];

		rpin_token_format(&known[i].position, text);
		assert_string_equal(text, known[i].text);
		assert_read(known[i].text, &known[i].position);
	}
}

static void
test_round_trip(void **state)
{
	for (uint64_t i = rpin_test_rounds(200000); i > 0; i--)
	{
		RpinPosition position = random_position();
		char		text[RPIN_TOKEN_LENGTH + 1];

		memset(text, 'x', sizeof(text));
		rpin_token_format(&position, text);
		assert_int_equal(strlen(text), RPIN_TOKEN_LENGTH);
		assert_int_equal(strspn(text, "0123456789ABCDEF-"), RPIN_TOKEN_LENGTH);
		assert_read(text, &position);

		for (int c = 0; c < RPIN_TOKEN_LENGTH; c++)
			if (i % 2 == 0 || rpin_test_one_in(2))
				text[c] = (char) tolower(text[c]);
		assert_read(text, &position);
	}
}

/* -1, 0 or 1 */
static int
sign(int order)
{
	return (order > 0) - (order < 0);
}

static int
order_of(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static void
test_text_order(void **state)
{
	for (uint64_t i = rpin_test_rounds(200000); i > 0; i--)
	{
		RpinPosition a = random_position();
		RpinPosition b = random_position();
		char		text_a[RPIN_TOKEN_LENGTH + 1];
		char		text_b[RPIN_TOKEN_LENGTH + 1];
		int			order;

		/* Mostly of one cluster, often of one timeline, sometimes neighbours. */
		if (!rpin_test_one_in(4))
			b.system_identifier = a.system_identifier;
		if (rpin_test_one_in(2))
			b.timeline = a.timeline;
		if (rpin_test_one_in(4))
			b.lsn = a.lsn ^ (UINT64_C(1) << rpin_test_below(64));

		order = order_of(a.system_identifier, b.system_identifier);
		if (order == 0)
			order = order_of(a.timeline, b.timeline);
		if (order == 0)
			order = order_of(a.lsn, b.lsn);

		rpin_token_format(&a, text_a);
		rpin_token_format(&b, text_b);
		assert_int_equal(sign(strcmp(text_a, text_b)), order);
	}
}

/* The value of a field, by the C library; the caller knows it is hexadecimal. */
static uint64_t
field(const char *text, int start, int digits)
{
	char		copy[17];

	memcpy(copy, text + start, (size_t) digits);
	copy[digits] = '\0';
	return strtoull(copy, NULL, 16);
}

/* Every byte in every place: another token, or none. */
static void
test_every_corruption(void **state)
{
	static const char good[] = "6a5B4C3D2E1F0987-0000001C-00000000016B3748";

	for (int place = 0; place < RPIN_TOKEN_LENGTH; place++)
	{
		bool		dash = good[place] == '-';

		for (int byte = 0; byte < 256; byte++)
		{
			char		text[sizeof(good)];
			RpinPosition expected;

			memcpy(text, good, sizeof(good));
			text[place] = (char) byte;
			if (dash ? byte != '-' : !isxdigit(byte))
			{
				assert_refused(text, RPIN_TOKEN_LENGTH);
				continue;
			}
			expected.system_identifier = field(text, 0, 16);
			expected.timeline = (uint32_t) field(text, 17, 8);
			expected.lsn = field(text, 26, 16);
			assert_read(text, &expected);
		}
	}
}

static void
test_wrong_length(void **state)
{
	static const char long_text[] =
		"6A5B4C3D2E1F0987-0000001C-00000000016B374800000000-00000001";

	for (size_t length = 0; length < sizeof(long_text); length++)
		if (length != RPIN_TOKEN_LENGTH)
			assert_refused(long_text, length);

	/* With its own zero byte it is a byte too long. */
	assert_refused("6A5B4C3D2E1F0987-0000001C-00000000016B3748",
				   RPIN_TOKEN_LENGTH + 1);
}

/* Of the right length, and what a lenient reader of numbers would take. */
static void
test_look_alikes(void **state)
{
	static const char *const texts[] =
	{
		"                                          ",
		"0x5B4C3D2E1F0987-0000001C-00000000016B3748",
		"+A5B4C3D2E1F0987-0000001C-00000000016B3748",
		"-A5B4C3D2E1F0987-0000001C-00000000016B3748",
		" 6A5B4C3D2E1F098-0000001C-00000000016B3748",
		"6A5B4C3D2E1F0987-0000001C-0000000001-B3748",
		"6A5B4C3D2E1F0987-       1-00000000016B3748",
		"6A5B4C3D2E1F0987-0000001C-0000000/016B3748",
		"6A5B4C3D2E1F0987-0000001C-00000000016B374 ",
		"6A5B4C3D2E1F0987-0000001C-00000000016B374\n",
		"6A5B4C3D2E1F0987_0000001C_00000000016B3748",
		"6A5B4C3D2E1F09870000001C00000000016B374800",
		"6A5B4C3D2E1F098-00000001C-00000000016B3748",
		"6A5B4C3D2E1F0987-0000001C-G000000000000001",
	};

	for (size_t i = 0; i < lengthof(texts); i++)
	{
		assert_int_equal(strlen(texts[i]), RPIN_TOKEN_LENGTH);
		assert_refused(texts[i], RPIN_TOKEN_LENGTH);
	}
	assert_refused("6A5B4C3D2E1F0987-0000001C-0000000\000016B3748",
				   RPIN_TOKEN_LENGTH);
}

static void
test_zero_is_no_token(void **state)
{
	assert_refused("6A5B4C3D2E1F0987-00000000-00000000016B3748",
				   RPIN_TOKEN_LENGTH);
	assert_refused("6A5B4C3D2E1F0987-0000001C-0000000000000000",
				   RPIN_TOKEN_LENGTH);
	assert_refused("0000000000000000-00000000-0000000000000000",
				   RPIN_TOKEN_LENGTH);
}

static void
test_random_bytes(void **state)
{
	static const char alphabet[] = "0123456789abcdefABCDEFg-- \0/";

	for (uint64_t i = rpin_test_rounds(200000); i > 0; i--)
	{
		char		text[RPIN_TOKEN_LENGTH];
		RpinPosition position = untouched;

		for (int c = 0; c < RPIN_TOKEN_LENGTH; c++)
			text[c] = alphabet[rpin_test_below(22)];
		text[16] = text[25] = '-';
		if (!rpin_test_one_in(2))
			text[rpin_test_below(RPIN_TOKEN_LENGTH)] =
				alphabet[rpin_test_below(sizeof(alphabet))];

		if (rpin_token_parse(text, RPIN_TOKEN_LENGTH, &position))
		{
			char		again[RPIN_TOKEN_LENGTH + 1];

			rpin_token_format(&position, again);
			assert_int_equal(strncasecmp(again, text, RPIN_TOKEN_LENGTH), 0);
		}
		else
			assert_true(same(&position, &untouched));
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_texts),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_text_order),
		cmocka_unit_test(test_every_corruption),
		cmocka_unit_test(test_wrong_length),
		cmocka_unit_test(test_look_alikes),
		cmocka_unit_test(test_zero_is_no_token),
		cmocka_unit_test(test_random_bytes),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
