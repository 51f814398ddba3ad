/*-------------------------------------------------------------------------
 *
 * rpin_settings.c
 *	  The settings replica_pin.*, in the order of the README.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/memutils.h"

#include "../core/rpin_list.h"
#include "../shmem/rpin_board.h"
#include "../shmem/rpin_keys.h"
#include "../worker/rpin_conninfo.h"
#include "../worker/rpin_worker.h"
#include "rpin_capture.h"
#include "rpin_decision.h"
#include "rpin_envelope.h"
#include "rpin_push.h"
#include "rpin_settings.h"

/*
 * A refused value leaves the old one in force; a refused one at start leaves
 * the default, which is the empty list: every read then goes to the primary.
 */
static bool
check_replicas(char **newval, void **extra, GucSource source)
{
	RpinListError error;
	RpinAddress *address = malloc(rpin_max_replicas * sizeof(RpinAddress));
	int			count;

	if (address == NULL)
	{
		GUC_check_errcode(ERRCODE_OUT_OF_MEMORY);
		GUC_check_errmsg("out of memory");
		return false;
	}
	count = rpin_list_parse(*newval, address, rpin_max_replicas, &error);
	free(address);
	if (count >= 0)
		return true;
	GUC_check_errdetail("Entry %zu, at character %zu: %s.",
						error.entry, error.offset + 1, error.message);
	GUC_check_errhint("Write replicas as [name=]host[:port], separated by commas.");
	return false;
}

static bool
check_conninfo(char **newval, void **extra, GucSource source)
{
	RpinConninfoError error;

	if (rpin_conninfo_check(*newval, &error))
		return true;

	/* The usual message would quote the value, which can hold a password. */
	GUC_check_errmsg("invalid value for parameter \"replica_pin.conninfo\"");
	GUC_check_errdetail("%s", error.detail);
	GUC_check_errhint("%s", error.hint);
	return false;
}

/* Hashed at every commit, where nothing may take long (P5). */
#define RPIN_SESSION_KEY_LIMIT 8192

static bool
check_session_key(char **newval, void **extra, GucSource source)
{
	size_t		length = strlen(*newval);

	if (length > RPIN_SESSION_KEY_LIMIT)
	{
		GUC_check_errmsg("invalid value for parameter \"replica_pin.session_key\"");
		GUC_check_errdetail("It is longer than %d bytes.", RPIN_SESSION_KEY_LIMIT);
		return false;
	}
	if (length > 0 && !rpin_keys_is_key(*newval, length))
	{
		GUC_check_errdetail("It is an array, and the setting is one session key.");
		GUC_check_errhint("Call replica_pin.pin_all() in the transaction for several session keys.");
		return false;
	}
	return true;
}

static bool
check_location_names(char **newval, void **extra, GucSource source)
{
	const char *detail;

	if (rpin_envelope_check_names(*newval, &detail))
		return true;
	GUC_check_errdetail("%s", detail);
	GUC_check_errhint("Write names separated by commas, such as 'main, ci'.");
	return false;
}

static void
define_addresses(void)
{
	DefineCustomStringVariable("replica_pin.replicas",
							   "The streaming replicas of this server.",
							   "A list of [name=]host[:port].",
							   &rpin_replicas, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							   check_replicas, NULL, NULL);
	DefineCustomStringVariable("replica_pin.conninfo",
							   "How the sampler connects to every replica.",
							   "libpq options: user, dbname, passfile, sslmode and so on.",
							   &rpin_conninfo, "dbname=postgres",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							   check_conninfo, NULL, NULL);
}

static void
define_times(void)
{
	DefineCustomIntVariable("replica_pin.sample_interval",
							"Time between two samples of a replica that nobody waits for.",
							NULL,
							&rpin_sample_interval, 250, 10, 60000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("replica_pin.min_sample_interval",
							"Shortest time between two samples of a replica that a pin waits for.",
							NULL,
							&rpin_min_sample_interval, 2, 1, 10000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("replica_pin.sample_timeout",
							"Deadline of one connection attempt and of one reply.",
							NULL,
							&rpin_sample_timeout, 1000, 10, 60000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("replica_pin.sample_lifetime",
							"Age from which a sample is not believed any more.",
							"It counts from when the sample was requested.",
							&rpin_sample_lifetime, 5000, 100, 600000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
}

static void
define_sizes(void)
{
	DefineCustomIntVariable("replica_pin.max_session_keys",
							"Number of session keys that are remembered one by one.",
							"Beyond it old keys share a position, which costs reads on the primary.",
							&rpin_max_session_keys, 262144, 3, 1000000000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("replica_pin.max_replicas",
							"Greatest number of replicas in replica_pin.replicas.",
							NULL,
							&rpin_max_replicas, 32, 1, RPIN_REPLICAS_LIMIT,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
}

static void
define_capture(void)
{
	DefineCustomStringVariable("replica_pin.session_key",
							   "The session key that commits of this session pin.",
							   "The value in force at commit counts; empty for none.",
							   &rpin_session_key, "",
							   PGC_USERSET, 0, check_session_key, NULL, NULL);
	DefineCustomBoolVariable("replica_pin.capture",
							 "Whether commits pin replica_pin.session_key.",
							 "Keys that pin() or pin_row() armed are pinned in any case.",
							 &rpin_capture, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("replica_pin.report_commit_token",
							 "Whether the client is told the token of each of its commits.",
							 "As a ParameterStatus message named replica_pin.commit_token.",
							 &rpin_report_commit_token, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);
}

static void
define_messages(void)
{
	DefineCustomStringVariable("replica_pin.correlation_id",
							   "Identifier of the request at hand, for messages and the log.",
							   NULL,
							   &rpin_correlation_id, "",
							   PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("replica_pin.location_names",
							   "This cluster's names inside wal_locations of messages.",
							   "Several, separated by commas, if several logical databases share it.",
							   &rpin_location_names, RPIN_LOCATION_DEFAULT,
							   PGC_SIGHUP, 0, check_location_names, NULL, NULL);
	DefineCustomIntVariable("replica_pin.max_envelope_size",
							"Greatest size of a message that is read.",
							NULL,
							&rpin_max_envelope_size, 1024 * 1024, 64, MaxAllocSize - 1,
							PGC_SUSET, GUC_UNIT_BYTE, NULL, NULL, NULL);
}

static void
define_rollout(void)
{
	static const struct config_enum_entry log_decisions[] = {
		{"none", RPIN_LOG_NONE, false},
		{"fallbacks", RPIN_LOG_FALLBACKS, false},
		{"all", RPIN_LOG_ALL, false},
		{NULL, 0, false}
	};

	DefineCustomIntVariable("replica_pin.enforce_percent",
							"Percentage of session keys whose decisions are enforced.",
							"The rest is decided and counted, and may be read from any replica.",
							&rpin_enforce_percent, 100, 0, 100,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("replica_pin.log_decisions",
							 "Which decisions are logged.",
							 NULL,
							 &rpin_log_decisions, RPIN_LOG_FALLBACKS, log_decisions,
							 PGC_SUSET, 0, NULL, NULL, NULL);
}

void
rpin_settings_define(void)
{
	/* The check of the list needs the size that it may have. */
	define_sizes();
	define_addresses();
	define_times();
	define_capture();
	define_messages();
	define_rollout();
	MarkGUCPrefixReserved("replica_pin");
}
