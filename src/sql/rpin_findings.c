/*-------------------------------------------------------------------------
 *
 * rpin_findings.c
 *	  The rows of check_setup(), and those about settings.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/guc.h"
#include "utils/rel.h"

#include "rpin_findings.h"

static bool
is_empty(const char *value)
{
	return value[0] == '\0';
}

static bool
is_on(const char *value)
{
	bool		on;

	return parse_bool(value, &on) && on;
}

static bool
is_hundred(const char *value)
{
	int			percent;

	return parse_int(value, &percent, 0, NULL) && percent == 100;
}

/* A setting that is a finding unless its value, as it was written, is harmless. */
typedef struct RpinWatched
{
	const char *setting;
	bool		(*is_harmless) (const char *value);
	RpinSeverity severity;
	const char *problem;
	const char *detail;
	const char *hint;
} RpinWatched;

static const RpinWatched watched[] = {
	{"replica_pin.session_key", is_empty, RPIN_ERROR, "session_key_for_all",
		"every commit pins one and the same key, and nothing protects what users write",
	"Set it in the transaction that writes, with SET LOCAL."},
	{"replica_pin.capture", is_on, RPIN_WARNING, "capture_off",
		"commits do not pin replica_pin.session_key",
	"Set it for sessions that only keep books."},
	{"replica_pin.enforce_percent", is_hundred, RPIN_WARNING, "not_enforced",
		"decisions are not enforced for a share of the keys: their reads can be stale",
	"Raise it to 100 when view stat_decisions shows what that costs."},
};

void
rpin_findings_add(RpinFindings *findings, RpinSeverity severity,
				  const char *problem, const char *subject, const char *hint,
				  const char *detail,...)
{
	static const char *const severities[] = {"error", "warning", "notice"};
	char		sentence[1024];
	va_list		args;
	RpinRow		row;

	va_start(args, detail);
	vsnprintf(sentence, sizeof(sentence), detail, args);
	va_end(args);

	rpin_row_begin_of_set(&row, findings->fcinfo);
	rpin_row_set_text(&row, "severity", severities[severity]);
	rpin_row_set_text(&row, "problem", problem);
	rpin_row_set_text(&row, "subject", subject);
	rpin_row_set_text(&row, "detail", sentence);
	rpin_row_set_text(&row, "hint", hint);
	rpin_row_store(&row, findings->fcinfo);
}

/* `where` is whom the setting holds for. */
static void
check_value(RpinFindings *findings, const RpinWatched *entry,
			const char *value, const char *where)
{
	if (!entry->is_harmless(value))
		rpin_findings_add(findings, entry->severity, entry->problem,
						  psprintf("%s of %s", entry->setting, where),
						  entry->hint, "%s", entry->detail);
}

/* For whom a row of pg_db_role_setting holds. */
static const char *
holder(Oid database, Oid role)
{
	const char *database_name = OidIsValid(database) ?
		get_database_name(database) : NULL;
	const char *role_name = OidIsValid(role) ?
		GetUserNameFromId(role, true) : NULL;

	if (database_name != NULL && role_name != NULL)
		return psprintf("role \"%s\" in database \"%s\"", role_name, database_name);
	if (database_name != NULL)
		return psprintf("database \"%s\"", database_name);
	return role_name != NULL ? psprintf("role \"%s\"", role_name) : "all roles";
}

/* Elements are name=value. */
static void
check_elements(RpinFindings *findings, ArrayType *settings, const char *where)
{
	Datum	   *element;
	int			count;

	deconstruct_array(settings, TEXTOID, -1, false, TYPALIGN_INT,
					  &element, NULL, &count);
	for (int i = 0; i < count; i++)
	{
		char	   *setting = TextDatumGetCString(element[i]);
		char	   *value = strchr(setting, '=');

		if (value == NULL)
			continue;
		*value++ = '\0';
		for (int j = 0; j < (int) lengthof(watched); j++)
			if (pg_strcasecmp(setting, watched[j].setting) == 0)
				check_value(findings, &watched[j], value, where);
	}
}

static void
check_catalog(RpinFindings *findings)
{
	Relation	relation = table_open(DbRoleSettingRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, NULL, 0,
										  NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_db_role_setting row = (Form_pg_db_role_setting) GETSTRUCT(tuple);
		bool		null;
		Datum		settings = heap_getattr(tuple, Anum_pg_db_role_setting_setconfig,
											RelationGetDescr(relation), &null);

		if (!null)
			check_elements(findings, DatumGetArrayTypeP(settings),
						   holder(row->setdatabase, row->setrole));
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
}

/*
 * The server's own value is what a session begins with that nothing else is set
 * for.  There is no way to ask for it beneath what the catalog or the client set
 * for this session; so it is called by what it is.
 */
void
rpin_findings_check_settings(RpinFindings *findings)
{
	check_catalog(findings);
	for (int i = 0; i < (int) lengthof(watched); i++)
		check_value(findings, &watched[i],
					GetConfigOptionResetString(watched[i].setting),
					"sessions that begin as this one");
}
