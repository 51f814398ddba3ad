/*-------------------------------------------------------------------------
 *
 * rpin_setup.c
 *	  check_setup(): what is wrong with the set-up, and what to do.
 *
 * An error keeps reads on the primary or lets them be stale; a warning will do
 * so one day; a notice is worth knowing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "parser/scansup.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/spin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "../shmem/rpin_clock.h"
#include "../shmem/rpin_keys.h"
#include "../shmem/rpin_shmem.h"
#include "../shmem/rpin_stats.h"
#include "../worker/rpin_conninfo.h"
#include "../worker/rpin_worker.h"
#include "rpin_decision.h"
#include "rpin_findings.h"
#include "rpin_views.h"

/* So many commits without a key are no longer somebody's psql. */
#define RPIN_MANY_UNKEYED_COMMITS 1000

/* So much of the table, in per mille, may pin keys for the sake of others. */
#define RPIN_MANY_FLOORS 10

PG_FUNCTION_INFO_V1(rpin_check_setup);

/* What to do about a replica that is not sampled, by its state. */
static const char *const state_hint[RPIN_STATE_COUNT] = {
	[RPIN_STATE_CONNECTING] = "Wait for the first attempt to end, at most replica_pin.sample_timeout.",
	[RPIN_STATE_AHEAD] = "Rebuild the replica from this server.",
	[RPIN_STATE_OTHER_CLUSTER] = "Correct its address in replica_pin.replicas, or rebuild it from this server.",
	[RPIN_STATE_OTHER_TIMELINE] = "Wait until it follows this server; if it does not, rewind or rebuild it.",
	[RPIN_STATE_NOT_A_REPLICA] = "Make sure that it takes no writes; correct its address, or rebuild it as a replica.",
	[RPIN_STATE_NO_POSITION] = "Wait until it has begun to replay.",
	[RPIN_STATE_UNREACHABLE] = "Check address, port, listen_addresses and firewall; take it out of replica_pin.replicas if it is gone for good.",
	[RPIN_STATE_REFUSED] = "Check max_connections there, and the database in replica_pin.conninfo.",
	[RPIN_STATE_AUTHENTICATION] = "Check pg_hba.conf there, the role and its password, and the password file of this server's operating system user; the log there says more.",
	[RPIN_STATE_STARTING_UP] = "Wait; if it stays so, set hot_standby = on there.",
	[RPIN_STATE_EXTENSION_MISSING] = "CREATE EXTENSION replica_pin on the primary in the database of replica_pin.conninfo, and install the library there.",
	[RPIN_STATE_NO_PRIVILEGE] = "GRANT USAGE ON SCHEMA replica_pin and EXECUTE ON FUNCTION replica_pin.node_status() to the role of the sampler.",
	[RPIN_STATE_QUERY_FAILED] = "See the log of that server.",
	[RPIN_STATE_CONNECTION_LOST] = "It is tried again by itself; if it stays so, see the log of that server.",
	[RPIN_STATE_TIMED_OUT] = "Check that server and the network to it; raise replica_pin.sample_timeout if it is far away.",
	[RPIN_STATE_NONSENSE] = "Find out what listens at that address: nothing but a PostgreSQL server may stand there.",
};

static void
check_replica(RpinFindings *findings, const RpinBoardRow *entry)
{
	const RpinReplica *replica = &entry->replica;
	const char *name = entry->address.name;

	if (replica->state == RPIN_STATE_SELF)
		return;
	if (replica->state != RPIN_STATE_SAMPLED)
		rpin_findings_add(findings, RPIN_ERROR, rpin_state_name(replica->state),
						  name, state_hint[replica->state], "%s%s%s",
						  rpin_state_meaning(replica->state),
						  entry->error[0] != '\0' ? ": " : "", entry->error);
	else if (!rpin_board_eligible(entry))
		rpin_findings_add(findings, RPIN_ERROR, "sample_too_old", name,
						  "See status.sampler_heartbeat_age; a resolver that does not answer stops the sampler.",
						  "its last sample is older than replica_pin.sample_lifetime");
	else if (replica->replay_paused)
		rpin_findings_add(findings, RPIN_WARNING, "replay_paused", name,
						  "SELECT pg_wal_replay_resume() there.",
						  "replay is paused, so keys that are written now stay pinned");
	if (entry->library_version[0] != '\0' &&
		strcmp(entry->library_version, RPIN_VERSION) != 0)
		rpin_findings_add(findings, RPIN_WARNING, "library_version", name,
						  "Install the same version on all servers.",
						  "its library is version %s, that of this server %s",
						  entry->library_version, RPIN_VERSION);
	if (entry->address.host[0] != '/' &&
		!rpin_conninfo_is_address(entry->address.host))
		rpin_findings_add(findings, RPIN_WARNING, "host_is_a_name", name,
						  "Write an address: a resolver that does not answer stops the sampler.",
						  "\"%s\" has to be resolved at each connection",
						  entry->address.host);
}

static void
check_sampler(RpinFindings *findings)
{
	RpinWorkerInfo worker;

	rpin_board_worker_info(&worker);
	if (worker.pid == 0)
		rpin_findings_add(findings, RPIN_ERROR, "sampler_not_running",
						  "replica_pin sampler",
						  "If it does not start within seconds, raise max_worker_processes and restart; see the log.",
						  "no sampler is running");
	else if (rpin_clock_now() - worker.heartbeat >
			 (int64) rpin_sample_lifetime * 1000)
		rpin_findings_add(findings, RPIN_ERROR, "sampler_stuck",
						  "replica_pin sampler",
						  "Look at that process; usually it waits for a name to be resolved.",
						  "process %d has not gone round for longer than replica_pin.sample_lifetime",
						  worker.pid);
}

/* The least position that an eligible replica has replayed. */
static XLogRecPtr
least_replayed(const RpinBoard *board)
{
	XLogRecPtr	least = InvalidXLogRecPtr;

	for (int i = 0; i < board->count; i++)
	{
		const RpinReplica *replica = &board->row[i].replica;

		if (!rpin_board_eligible(&board->row[i]))
			continue;
		if (XLogRecPtrIsInvalid(least) || replica->replay_lsn < least)
			least = replica->replay_lsn;
	}
	return least;
}

static void
check_table(RpinFindings *findings, const RpinBoard *board)
{
	XLogRecPtr	least = least_replayed(board);
	int			floors;

	if (XLogRecPtrIsInvalid(least))
		return;
	floors = rpin_keys_floors_beyond(least);
	if (floors >= RPIN_MANY_FLOORS)
		rpin_findings_add(findings, RPIN_WARNING, "table_too_small",
						  "replica_pin.max_session_keys",
						  "Raise it to four times the number of keys that are pinned during the longest lag.",
						  "%d.%d %% of the table stand for evicted keys that a replica has not replayed yet: other keys are pinned for their sake",
						  floors / 10, floors % 10);
}

static void
check_clamped(RpinFindings *findings, const RpinBoard *board)
{
	const char *name[RPIN_CLAMPED_COUNT];
	int			count = rpin_views_clamped(board->clamped, name);

	for (int i = 0; i < count; i++)
		rpin_findings_add(findings, RPIN_WARNING, "setting_clamped", name[i],
						  "Lower it, or raise replica_pin.sample_lifetime.",
						  "the sampler uses a lower value, or a replica that answers in time could not be sampled again before its sample is too old");
}

static void
check_list(RpinFindings *findings, bool is_empty)
{
	if (is_empty)
		rpin_findings_add(findings, RPIN_ERROR, "no_replicas",
						  "replica_pin.replicas",
						  "List every replica that readers use; the same list on all servers.",
						  "the list is empty or has only this server, so every decision is the primary");
}

/*
 * Of a physical standby: who only keeps WAL, as pg_receivewal does, never says
 * that it has replayed any; and a subscriber's process is in a database.
 */
static bool
is_standby(WalSnd *sender)
{
	bool		replays;
	pid_t		pid;
	PGPROC	   *process;

	SpinLockAcquire(&sender->mutex);
	pid = sender->pid;
	replays = sender->state == WALSNDSTATE_STREAMING &&
		!XLogRecPtrIsInvalid(sender->apply);
	SpinLockRelease(&sender->mutex);
	if (pid == 0 || !replays)
		return false;
	process = BackendPidGetProc(pid);
	return process != NULL && !OidIsValid(process->databaseId);
}

/* Which of them is not listed cannot be told: it may have more than one address. */
static void
check_standbys(RpinFindings *findings, int listed)
{
	int			standbys = 0;

	for (int i = 0; i < max_wal_senders; i++)
		standbys += is_standby(&WalSndCtl->walsnds[i]);
	if (standbys > listed && listed > 0)
		rpin_findings_add(findings, RPIN_NOTICE, "standby_not_listed",
						  "replica_pin.replicas",
						  "Compare it with pg_stat_replication, and add every replica that readers use.",
						  "%d standbys stream from this server and the list has %d: reads on one that is not listed are not protected",
						  standbys, listed);
}

static int
count_others(const RpinBoard *board)
{
	int			count = 0;

	for (int i = 0; i < board->count; i++)
		if (board->row[i].replica.state != RPIN_STATE_SELF)
			count++;
	return count;
}

/* What is left out of decisions, once at most: see rpin_decide(). */
static void
check_selves(RpinFindings *findings, const RpinBoard *board)
{
	int			selves = board->count - count_others(board);

	for (int i = 0; i < board->count && selves > 1; i++)
		if (board->row[i].replica.state == RPIN_STATE_SELF)
			rpin_findings_add(findings, RPIN_ERROR, "self_twice",
							  board->row[i].address.name,
							  "Correct the address of the other one.",
							  "%d entries of replica_pin.replicas lead to this server: which of them it is cannot be told, so none is left out",
							  selves);
}

/* What holds on a primary only: there the sampler runs. */
static void
check_primary(RpinFindings *findings)
{
	RpinBoard  *board = rpin_views_board();
	int			listed = count_others(board);

	check_sampler(findings);
	check_list(findings, listed == 0);
	check_standbys(findings, listed);
	for (int i = 0; i < board->count; i++)
		check_replica(findings, &board->row[i]);
	check_selves(findings, board);
	check_clamped(findings, board);
	check_table(findings, board);
	if (rpin_stats_unkeyed() >= RPIN_MANY_UNKEYED_COMMITS)
		rpin_findings_add(findings, RPIN_NOTICE, "unkeyed_commits",
						  "replica_pin.session_key",
						  "Set the key in every transaction that writes, or use pin_row; set replica_pin.capture = off for bookkeeping.",
						  UINT64_FORMAT " commits wrote and pinned no key since the counts began",
						  rpin_stats_unkeyed());
}

static void
check_role(RpinFindings *findings)
{
	char		user[MAXPGPATH];
	HeapTuple	tuple;
	Form_pg_authid role;

	if (!rpin_conninfo_get(rpin_conninfo, "user", user, sizeof(user)))
	{
		rpin_findings_add(findings, RPIN_NOTICE, "no_sampler_role",
						  "replica_pin.conninfo",
						  "CREATE ROLE sampler LOGIN, and add user=sampler.",
						  "without user the sampler connects as the server's operating system user, usually a superuser");
		return;
	}
	truncate_identifier(user, strlen(user), false); /* as the server does */
	tuple = SearchSysCache1(AUTHNAME, CStringGetDatum(user));
	if (!HeapTupleIsValid(tuple))
	{
		rpin_findings_add(findings, RPIN_ERROR, "role_missing", user,
						  "CREATE ROLE with LOGIN on the primary.",
						  "the role of the sampler does not exist");
		return;
	}
	role = (Form_pg_authid) GETSTRUCT(tuple);
	if (!role->rolcanlogin)
		rpin_findings_add(findings, RPIN_ERROR, "role_cannot_login", user,
						  "ALTER ROLE with LOGIN on the primary.",
						  "the role of the sampler may not log in");
	if (role->rolsuper)
		rpin_findings_add(findings, RPIN_NOTICE, "role_is_superuser", user,
						  "Give the sampler a role of its own; LOGIN is all that it needs.",
						  "the role of the sampler is a superuser");
	ReleaseSysCache(tuple);
}

static void
check_passfile(RpinFindings *findings)
{
	char		path[MAXPGPATH];
	struct stat file;

	if (!rpin_conninfo_get(rpin_conninfo, "passfile", path, sizeof(path)))
		return;
	if (stat(path, &file) != 0)
		rpin_findings_add(findings, RPIN_WARNING, "passfile_missing", path,
						  "Create it, with mode 0600, for the operating system user of the server.",
						  "the password file cannot be found: %m");
	else if (file.st_mode & (S_IRWXG | S_IRWXO))
		rpin_findings_add(findings, RPIN_ERROR, "passfile_open", path,
						  "chmod 0600.",
						  "others may read the password file, so libpq does not use it");
	else if (access(path, R_OK) != 0)
		rpin_findings_add(findings, RPIN_ERROR, "passfile_unreadable", path,
						  "chown it to the operating system user of the server.",
						  "the server may not read the password file: %m");
}

Datum
rpin_check_setup(PG_FUNCTION_ARGS)
{
	RpinFindings findings = {.fcinfo = fcinfo};

	rpin_row_begin_set(fcinfo);
	if (!rpin_shmem_available())
	{
		rpin_findings_add(&findings, RPIN_ERROR, "not_preloaded",
						  "shared_preload_libraries",
						  "Add replica_pin to shared_preload_libraries and restart the server.",
						  "the library is not preloaded, so every decision is the primary");
		return (Datum) 0;
	}
	if (RecoveryInProgress())
		check_list(&findings, rpin_replicas[0] == '\0');
	else
		check_primary(&findings);
	check_role(&findings);
	check_passfile(&findings);
	rpin_findings_check_settings(&findings);
	return (Datum) 0;
}
