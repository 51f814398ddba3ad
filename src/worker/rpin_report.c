/*-------------------------------------------------------------------------
 *
 * rpin_report.c
 *	  Reading a replica's answer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "rpin_report.h"

enum
{
	COLUMN_SYSTEM_IDENTIFIER,
	COLUMN_NODE_ID,
	COLUMN_IN_RECOVERY,
	COLUMN_REPLAY_PAUSED,
	COLUMN_TIMELINE,
	COLUMN_TIMELINE_BEGIN,
	COLUMN_REPLAY_LSN,
	COLUMN_LIBRARY_VERSION,
	COLUMN_COUNT
};

/* A decimal number of a bigint or integer column. */
static bool
read_integer(const char *string, uint64 *value)
{
	char	   *end;

	if (*string == '\0')
		return false;
	errno = 0;
	*value = (uint64) strtoll(string, &end, 10);
	return errno == 0 && *end == '\0';
}

/* Sixteen hexadecimal digits, as node_id is written. */
static bool
read_node_id(const char *string, uint64 *value)
{
	char	   *end;

	if (strspn(string, "0123456789ABCDEF") != 16 || string[16] != '\0')
		return false;
	*value = strtoull(string, &end, 16);
	return true;
}

static bool
read_lsn(const char *string, uint64 *value)
{
	unsigned	high;
	unsigned	low;
	int			length = -1;

	if (strspn(string, "0123456789ABCDEF/") != strlen(string) || strlen(string) > 17)
		return false;
	if (sscanf(string, "%8X/%8X%n", &high, &low, &length) != 2 ||
		string[length] != '\0')
		return false;
	*value = ((uint64) high << 32) | low;
	return true;
}

static bool
read_boolean(const char *string, bool *value)
{
	*value = string[0] == 't';
	return (string[0] == 't' || string[0] == 'f') && string[1] == '\0';
}

/* Shown to users, so nothing but what a version is made of. */
static bool
read_version(const char *string, char version[RPIN_VERSION_SIZE])
{
	size_t		length = strlen(string);

	if (length == 0 || length >= RPIN_VERSION_SIZE ||
		strspn(string, "0123456789abcdefghijklmnopqrstuvwxyz.-") != length)
		return false;
	memcpy(version, string, length + 1);
	return true;
}

/* Those that may be NULL read as 0. */
static bool
read_optional(const PGresult *result, int column,
			  bool (*read) (const char *, uint64 *), uint64 *value)
{
	*value = 0;
	return PQgetisnull(result, 0, column) ||
		read(PQgetvalue(result, 0, column), value);
}

bool
rpin_report_read(const PGresult *result, RpinReport *report)
{
	uint64		timeline;

	memset(report, 0, sizeof(*report));
	if (PQresultStatus(result) != PGRES_TUPLES_OK ||
		PQntuples(result) != 1 || PQnfields(result) != COLUMN_COUNT)
		return false;
	for (int i = 0; i < COLUMN_COUNT; i++)
		if (PQfformat(result, i) != 0)
			return false;
	if (!read_integer(PQgetvalue(result, 0, COLUMN_SYSTEM_IDENTIFIER),
					  &report->system_identifier) ||
		!read_integer(PQgetvalue(result, 0, COLUMN_TIMELINE), &timeline) ||
		!read_boolean(PQgetvalue(result, 0, COLUMN_IN_RECOVERY),
					  &report->in_recovery) ||
		!read_boolean(PQgetvalue(result, 0, COLUMN_REPLAY_PAUSED),
					  &report->replay_paused) ||
		!read_version(PQgetvalue(result, 0, COLUMN_LIBRARY_VERSION),
					  report->library_version))
		return false;
	report->timeline = (uint32) timeline;
	return read_optional(result, COLUMN_NODE_ID, read_node_id,
						 &report->node_id) &&
		read_optional(result, COLUMN_TIMELINE_BEGIN, read_lsn,
					  &report->timeline_begin) &&
		read_optional(result, COLUMN_REPLAY_LSN, read_lsn,
					  &report->replay_lsn);
}
