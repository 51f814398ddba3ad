/*-------------------------------------------------------------------------
 *
 * test_list.c
 *	  The list of replicas: every form, every error with its place.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_test.h"

#include "rpin_list.h"

#define MOST 8

static const char TOO_MANY[] = "there are more replicas than replica_pin.max_replicas allows";
static const char EMPTY_ENTRY[] = "the entry is empty";
static const char EMPTY_HOST[] = "the host is empty";
static const char EMPTY_NAME[] = "the name before the equal sign is empty";
static const char BAD_HOST[] = "a host may have only printable ASCII characters, no blanks, quotes, backslashes or equal signs";
static const char BAD_NAME[] = "a name may have only printable ASCII characters, no blanks, quotes, backslashes or equal signs";
static const char LONG_HOST[] = "the host is longer than 255 bytes";
static const char LONG_NAME[] = "the name is longer than 127 bytes";
static const char BAD_PORT[] = "the port must be a number from 1 to 65535";
static const char OPEN_BRACKET[] = "the bracket of an IPv6 address is not closed";
static const char AFTER_BRACKET[] = "only a port may follow the bracket of an IPv6 address";
static const char NO_BRACKET[] = "an IPv6 address must stand in brackets";
static const char TWICE[] = "the name is used twice";

/* Parses from and into memory of exactly the size that is needed. */
static int
parse(const char *text, int size, RpinAddress *address, RpinListError *error)
{
	char	   *copy = rpin_test_copy(text, strlen(text) + 1);
	size_t		bytes = (size_t) size * sizeof(RpinAddress);
	RpinAddress *exact = malloc(bytes > 0 ? bytes : 1);
	int			count;

	assert_non_null(exact);
	memset(exact, 0xEE, bytes);
	count = rpin_list_parse(copy, exact, size, error);
	assert_uint_in_range(count + 1, 0, size + 1);
	if (count > 0)
		memcpy(address, exact, (size_t) count * sizeof(RpinAddress));
	free(exact);
	free(copy);
	return count;
}

static void
assert_one(const char *text, const char *name, const char *host, int port)
{
	RpinAddress address[MOST];
	RpinListError error;
	int			count = parse(text, MOST, address, &error);

	if (count != 1)
		fail_msg("\"%s\" gave %d: %s", text, count,
				 count < 0 ? error.message : "");
	assert_string_equal(address[0].name, name);
	assert_string_equal(address[0].host, host);
	assert_int_equal(address[0].port, port);
}

static void
assert_error(const char *text, int size, const char *message, size_t entry,
			 size_t offset)
{
	RpinAddress address[MOST];
	RpinListError error;
	int			count = parse(text, size, address, &error);

	if (count != -1)
		fail_msg("\"%s\" gave %d", text, count);
	assert_string_equal(error.message, message);
	if (error.entry != entry || error.offset != offset)
		fail_msg("\"%s\": entry %zu at %zu, not %zu at %zu", text,
				 error.entry, error.offset, entry, offset);
}

static void
test_hosts(void **state)
{
	assert_one("db2", "db2", "db2", 5432);
	assert_one("db2:5433", "db2:5433", "db2", 5433);
	assert_one("east=db2.example.com", "east", "db2.example.com", 5432);
	assert_one("east=db2.example.com:1", "east", "db2.example.com", 1);
	assert_one("10.0.0.2", "10.0.0.2", "10.0.0.2", 5432);
	assert_one("a=10.0.0.2:65535", "a", "10.0.0.2", 65535);
	assert_one("db2:05432", "db2:05432", "db2", 5432);

	assert_one("[::1]", "[::1]", "::1", 5432);
	assert_one("[fe80::1%eth0]:6000", "[fe80::1%eth0]:6000", "fe80::1%eth0", 6000);
	assert_one("six=[2001:db8::2]:5433", "six", "2001:db8::2", 5433);

	assert_one("/var/run/postgresql", "/var/run/postgresql",
			   "/var/run/postgresql", 5432);
	assert_one("local=/tmp:5433", "local", "/tmp", 5433);
	assert_one("l=/tmp/a:b:5433", "l", "/tmp/a:b", 5433);
	assert_one("/", "/", "/", 5432);
}

static void
test_blanks_mean_nothing(void **state)
{
	static const char *const blank[] = {"", " ", "\t\r\n  \n"};

	for (size_t i = 0; i < lengthof(blank); i++)
	{
		RpinAddress address[MOST];
		RpinListError error;

		assert_int_equal(parse(blank[i], MOST, address, &error), 0);
		assert_int_equal(parse(blank[i], 0, address, &error), 0);
	}
	assert_one("  east \t=\n db2:5433 \r\n", "east", "db2", 5433);
}

static void
test_several(void **state)
{
	RpinAddress address[MOST];
	RpinListError error;

	assert_int_equal(parse("db2, east=[::1]:6000 ,\n/tmp:5433,db2:5432",
						   4, address, &error), 4);
	assert_string_equal(address[0].name, "db2");
	assert_string_equal(address[1].name, "east");
	assert_string_equal(address[1].host, "::1");
	assert_int_equal(address[1].port, 6000);
	assert_string_equal(address[2].name, "/tmp:5433");
	assert_string_equal(address[2].host, "/tmp");

	/* A name is as written, so the same address may stand there twice. */
	assert_string_equal(address[3].name, "db2:5432");
	assert_string_equal(address[3].host, "db2");
	assert_int_equal(address[3].port, address[0].port);
}

static void
test_errors(void **state)
{
	static const struct
	{
		const char *text;
		int			size;
		const char *message;
		size_t		entry;
		size_t		offset;
	}			cases[] =
	{
		{"a", 0, TOO_MANY, 1, 0},
		{"a,b, c,d", 2, TOO_MANY, 3, 5},
		{",", MOST, EMPTY_ENTRY, 1, 0},
		{"a,", MOST, EMPTY_ENTRY, 2, 2},
		{"a, \n", MOST, EMPTY_ENTRY, 2, 4},
		{" ,a", MOST, EMPTY_ENTRY, 1, 1},
		{"a,,b", MOST, EMPTY_ENTRY, 2, 2},
		{"=", MOST, EMPTY_HOST, 1, 0},
		{"a, b=", MOST, EMPTY_HOST, 2, 3},
		{"b= ,c", MOST, EMPTY_HOST, 1, 0},
		{":5432", MOST, EMPTY_HOST, 1, 0},
		{"a=:5432", MOST, EMPTY_HOST, 1, 0},
		{"[]", MOST, EMPTY_HOST, 1, 0},
		{"[]:5432", MOST, EMPTY_HOST, 1, 0},
		{"=db2", MOST, EMPTY_NAME, 1, 0},
		{"a,b, =db2", MOST, EMPTY_NAME, 3, 5},
		{"db 2", MOST, BAD_HOST, 1, 0},
		{"a,b,db\t2", MOST, BAD_HOST, 3, 4},
		{"a=b=c", MOST, BAD_HOST, 1, 0},
		{"a==b", MOST, BAD_HOST, 1, 0},
		{"'a'", MOST, BAD_HOST, 1, 0},
		{"a\nb", MOST, BAD_HOST, 1, 0},
		{"d\303\274=db2", MOST, BAD_NAME, 1, 0},
		{"a, b c=db2", MOST, BAD_NAME, 2, 3},
		{"\"a\"=db2", MOST, BAD_NAME, 1, 0},
		{"db2:", MOST, BAD_PORT, 1, 0},
		{"db2:0", MOST, BAD_PORT, 1, 0},
		{"db2:00000", MOST, BAD_PORT, 1, 0},
		{"db2:65536", MOST, BAD_PORT, 1, 0},
		{"db2:99999", MOST, BAD_PORT, 1, 0},
		{"db2:005432", MOST, BAD_PORT, 1, 0},
		{"db2:4294972728", MOST, BAD_PORT, 1, 0},
		{"a,db2:-1", MOST, BAD_PORT, 2, 2},
		{"db2:+1", MOST, BAD_PORT, 1, 0},
		{"db2:54x2", MOST, BAD_PORT, 1, 0},
		{"db2:0x10", MOST, BAD_PORT, 1, 0},
		{"[::1]:", MOST, BAD_PORT, 1, 0},
		{"[::1]:x", MOST, BAD_PORT, 1, 0},
		{"/tmp:", MOST, BAD_PORT, 1, 0},
		{"/tmp/a:b", MOST, BAD_PORT, 1, 0},
		{"[::1", MOST, OPEN_BRACKET, 1, 0},
		{"a,x=[", MOST, OPEN_BRACKET, 2, 2},
		{"[::1]5432", MOST, AFTER_BRACKET, 1, 0},
		{"a , [::1]x:5432", MOST, AFTER_BRACKET, 2, 4},
		{"::1", MOST, NO_BRACKET, 1, 0},
		{"a,2001:db8::2", MOST, NO_BRACKET, 2, 2},
		{"a:b:5432", MOST, NO_BRACKET, 1, 0},
		{"a,a", MOST, TWICE, 2, 2},
		{"a,b,c, b=d", MOST, TWICE, 4, 7},
		{"db2:5433=a,db2:5433", MOST, TWICE, 2, 11},
	};

	for (size_t i = 0; i < lengthof(cases); i++)
		assert_error(cases[i].text, cases[i].size, cases[i].message,
					 cases[i].entry, cases[i].offset);
}

/* A text of `length` bytes behind `prefix`.  The caller frees it. */
static char *
long_text(const char *prefix, size_t length, const char *suffix)
{
	char	   *text = malloc(strlen(prefix) + length + strlen(suffix) + 1);

	assert_non_null(text);
	strcpy(text, prefix);
	memset(text + strlen(prefix), 'x', length);
	strcpy(text + strlen(prefix) + length, suffix);
	return text;
}

static void
assert_length(const char *prefix, size_t length, const char *suffix,
			  const char *message)
{
	char	   *text = long_text(prefix, length, suffix);
	RpinAddress address[MOST];
	RpinListError error;

	assert_int_equal(parse(text, MOST, address, &error),
					 message == NULL ? 1 : -1);
	if (message == NULL)
		assert_true(strlen(address[0].name) == RPIN_NAME_SIZE - 1 ||
					strlen(address[0].host) == RPIN_HOST_SIZE - 1);
	else
		assert_string_equal(error.message, message);
	free(text);
}

static void
test_lengths(void **state)
{
	assert_length("", 127, "", NULL);
	assert_length("", 128, "", LONG_NAME);
	assert_length("", 127, "=db2", NULL);
	assert_length("", 128, "=db2", LONG_NAME);
	assert_length("", 100000, "=db2", LONG_NAME);
	assert_length("a=", 255, "", NULL);
	assert_length("a=", 256, "", LONG_HOST);
	assert_length("a=", 255, ":5432", NULL);
	assert_length("a=", 256, ":5432", LONG_HOST);
	assert_length("a=[", 255, "]:5432", NULL);
	assert_length("a=[", 256, "]:5432", LONG_HOST);
	assert_length("a=/", 254, "", NULL);
	assert_length("a=/", 255, "", LONG_HOST);
	assert_length("a=", 100000, "", LONG_HOST);
	assert_length("a=db2:", 100000, "", BAD_PORT);
}

/* Each byte inside a host and inside a name. */
static void
test_every_byte(void **state)
{
	for (int byte = 1; byte < 256; byte++)
	{
		bool		plain = byte > ' ' && byte < 127 &&
			strchr("'\"\\=,", byte) == NULL;
		char		host[] = {'n', '=', 'a', (char) byte, 'b', '\0'};
		char		name[] = {'a', (char) byte, 'b', '=', 'h', '\0'};

		if (byte == ':')
			assert_error(host, MOST, BAD_PORT, 1, 0);
		else if (byte == ',')
			assert_error(host, 1, TOO_MANY, 2, 4);
		else if (plain)
			assert_one(host, "n", host + 2, 5432);
		else
			assert_error(host, MOST, BAD_HOST, 1, 0);

		if (byte == '=' || byte == ',')
			continue;
		if (plain)
		{
			char		expected[] = {'a', (char) byte, 'b', '\0'};

			assert_one(name, expected, "h", 5432);
		}
		else
			assert_error(name, MOST, BAD_NAME, 1, 0);
	}
}

static void
assert_plain(const char *text)
{
	assert_true(*text != '\0');
	for (; *text != '\0'; text++)
		assert_true(*text > ' ' && *text <= '~' &&
					strchr("'\"\\=", *text) == NULL);
}

/* What was read, written in full, is read as the same. */
static void
assert_reads_again(const RpinAddress *address)
{
	char		text[1024];

	snprintf(text, sizeof(text), "%.127s=[%.255s]:%u", address->name, address->host,
			 address->port);
	assert_one(text, address->name, address->host, address->port);
}

static void
test_random_lists(void **state)
{
	static const char *const pieces[] =
	{
		"a", "b", "db2", "::1", "[", "]", "[::1]", ":", ":5433", "=", "=", ",",
		",", ", ", " ", "\t", "/", "/tmp", "5", "65536", "'", "\\", "\377", "%",
		"\v", ".",
	};

	for (uint64_t i = rpin_test_rounds(200000); i > 0; i--)
	{
		char		text[128] = "";
		RpinAddress address[MOST];
		RpinListError error = {NULL, 0, 0};
		int			size = (int) rpin_test_below(MOST + 1);
		int			count;

		for (uint64_t n = rpin_test_below(12); n > 0; n--)
			strcat(text, pieces[rpin_test_below(lengthof(pieces))]);
		count = parse(text, size, address, &error);
		if (count < 0)
		{
			assert_non_null(error.message);
			assert_uint_in_range(error.entry, 1, size + 1);
			assert_true(error.offset <= strlen(text));
		}
		for (int a = 0; a < count; a++)
		{
			assert_plain(address[a].name);
			assert_plain(address[a].host);
			assert_true(address[a].port > 0);
			assert_reads_again(&address[a]);
			for (int other = 0; other < a; other++)
				assert_string_not_equal(address[a].name, address[other].name);
		}
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_blanks_mean_nothing),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_random_lists),
	};

	rpin_test_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
