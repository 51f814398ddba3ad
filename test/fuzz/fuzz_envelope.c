/*-------------------------------------------------------------------------
 *
 * fuzz_envelope.c
 *	  Any bytes as a message, in several encodings, with several names.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "mb/pg_wchar.h"

#include "reference_envelope.h"

/* What reading a message may allocate: the parser's state. */
#define MEMORY 1024

/* An encoding; names as in the setting, and what that means. */
typedef struct Case
{
	int			encoding;
	const char *setting;
	const char *names[RPIN_LOCATION_NAMES + 1];
} Case;

static const Case cases[] =
{
	{PG_UTF8, "main", {"main"}},
	{PG_SQL_ASCII, "main", {"main"}},
	{PG_LATIN1, "main", {"main"}},
	{PG_EUC_JP, " sec,ci , main,", {"sec", "ci", "main"}},
	{PG_UTF8, "n1,n2,n3,n4,n5,n6,n7,n8,n9,n10,n11,n12,n13,n14,n15,main",
		{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11",
	"n12", "n13", "n14", "n15", "main"}},
};

typedef struct Reading
{
	RpinReason	reason;
	RpinEnvelope envelope;
	ptrdiff_t	correlation_at; /* in the text; 0: none */
} Reading;

static Reading
read_text(const char *text, size_t size, int encoding, const char *names)
{
	Reading		reading;
	RpinFuzzMemory memory;

	memset(&reading, 0x5A, sizeof(reading));
	rpin_fuzz_memory_begin();
	reading.reason = rpin_envelope_parse(text, size, encoding, names, &reading.envelope);
	memory = rpin_fuzz_memory_end();
	rpin_fuzz_check(memory.kept == 0);
	rpin_fuzz_check(memory.count <= 1 && memory.bytes <= MEMORY);
	rpin_fuzz_check(reading.envelope.count >= 0 &&
					reading.envelope.count <= RPIN_LOCATION_NAMES);
	reading.correlation_at = reading.envelope.correlation_id.start == NULL ? 0 :
		reading.envelope.correlation_id.start - text;
	return reading;
}

static bool
same_positions(const RpinPosition *a, const RpinPosition *b, int count)
{
	for (int i = 0; i < count; i++)
		if (a[i].system_identifier != b[i].system_identifier ||
			a[i].timeline != b[i].timeline || a[i].lsn != b[i].lsn)
			return false;
	return true;
}

/* Is `b` of a text that has so many more bytes before it? */
static void
check_same(const Reading *a, const Reading *b, size_t before)
{
	rpin_fuzz_check(a->reason == b->reason);
	rpin_fuzz_check(a->envelope.count == b->envelope.count);
	rpin_fuzz_check(same_positions(a->envelope.position, b->envelope.position,
								   a->envelope.count));
	rpin_fuzz_check(a->envelope.correlation_id.length == b->envelope.correlation_id.length);
	rpin_fuzz_check(b->correlation_at ==
					(a->correlation_at == 0 ? 0 : a->correlation_at + (ptrdiff_t) before));
}

static void
check_reference(const Reading *reading, const ReferenceReading *reference)
{
	rpin_fuzz_check(reading->reason == reference->reason);
	rpin_fuzz_check(reading->envelope.correlation_id.start == reference->correlation_id);
	rpin_fuzz_check(reading->envelope.correlation_id.length ==
					reference->correlation_id_length);
	if (reading->reason != RPIN_REASON_NONE)
		return;
	rpin_fuzz_check(reading->envelope.count > 0);
	rpin_fuzz_check(reading->envelope.count == reference->count);
	rpin_fuzz_check(same_positions(reading->envelope.position, reference->position,
								   reference->count));
}

static void
check(const char *data, size_t size, const Case *c)
{
	static const char blanks[] = " \t\r\n";
	const char *text = rpin_fuzz_fence("", data, size, "");
	Reading		reading = read_text(text, size, c->encoding, c->setting);
	Reading		again = read_text(text, size, c->encoding, c->setting);
	ReferenceReading reference;

	check_same(&reading, &again, 0);
	reference_read(text, size, c->encoding, c->names, &reference);
	check_reference(&reading, &reference);

	text = rpin_fuzz_fence(blanks, data, size, blanks);
	again = read_text(text, size + 2 * strlen(blanks), c->encoding, c->setting);
	check_same(&reading, &again, strlen(blanks));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > RPIN_FUZZ_LIMIT)
		return 0;
	for (size_t i = 0; i < lengthof(cases); i++)
		check((const char *) data, size, &cases[i]);
	return 0;
}
