# shellcheck shell=bash
#
# Faults of one line in the product, and the test that finds each: a name of
# sql/ or a file of test/t. To be sourced; calls mutant KILLER FILE FAULT SCRIPT,
# the script being perl's, over the whole file.
#
# Faults in src/core alone are in test/unit/mutants, with the unit tests that
# find them; those here that touch the core are found on real clusters.

# --- capture -------------------------------------------------------------------------

mutant 70_capture src/sql/rpin_capture.c 'the position is taken before the commit record' \
  's/record\(XactLastCommitEnd\)/record(transaction.begun)/;
   s/(\tarm_session_key\(\);\n)(\tmark_pending\(\);\n\}\n\n\/\*\n \* Records)/$1\ttransaction.begun = rpin_wal_end();\n$2/;
   s/(\tbool\s+has_prepared;)/\tXLogRecPtr begun;\n$1/'
mutant 70_capture src/sql/rpin_capture.c 'what has written is told by XactLastCommitEnd being set' \
  's/rpin_capture_has_written\(\);\n\}\n\n\/\* Marks/XactLastCommitEnd != 0;\n}\n\n\/* Marks/'
mutant 70_capture src/sql/rpin_capture.c 'COMMIT PREPARED is ignored' \
  's/\ttransaction\.has_prepared = true;//'
mutant test/t/020_commit_window.pl src/sql/rpin_capture.c 'pending is not set' \
  's/rpin_keys_pending_up\((.*)\);/(void) $1;/; s/rpin_keys_pending_down\((.*)\);/(void) $1;/'
mutant test/t/023_faults_at_commit.pl src/sql/rpin_capture.c 'pending is not dropped on abort' \
  's/(record\(rpin_wal_end_flushed_soon\(\)\);\n)\tunmark_pending\(\);/$1\ttransaction.marked = 0;/'
mutant 70_capture src/sql/rpin_capture.c 'the pin goes when a transaction aborts in part' \
  's/(\tRegisterXactCallback)/\tRegisterSubXactCallback(forget_at_subabort, NULL);\n$1/;
   s/(\nvoid\nrpin_capture_install)/\nstatic void\nforget_at_subabort(SubXactEvent event, SubTransactionId id, SubTransactionId parent, void *arg)\n{\n\tif (event == SUBXACT_EVENT_ABORT_SUB)\n\t\trpin_keyset_clear(&transaction.keys);\n}\n$1/'
mutant 70_capture src/sql/rpin_capture.c 'what rolls back pins' \
  's/if \(transaction\.has_prepared\)\n\t\trecord\(rpin_wal_end_flushed_soon\(\)\)/record(rpin_wal_end_flushed_soon())/'
mutant test/t/023_faults_at_commit.pl src/sql/rpin_capture.c 'beside pin() the session key is forgotten' \
  's/if \(transaction\.has_session_key \|\| !has_session_key\(\)\)/if (transaction.has_session_key || !has_session_key() || !rpin_keyset_is_empty(&transaction.keys))/'
mutant test/t/024_pin_row.pl src/sql/rpin_pin_row.c 'an UPDATE pins the old row only' \
  's/TRIGGER_FIRED_BY_UPDATE\(data->tg_event\)/false/'

# --- the table -------------------------------------------------------------------------

mutant test/t/002_nothing_forgotten.pl src/core/rpin_table.c 'an eviction does not raise the floor' \
  's/\tif \(bucket->floor < slot->lsn\)\n\t\tbucket->floor = slot->lsn;//'
mutant test/t/002_nothing_forgotten.pl src/shmem/rpin_keys.c 'the floor is not at the end of WAL at start' \
  's/raise_floor\(&keys->table, rpin_wal_end_flushed_soon\(\)\)/raise_floor(&keys->table, 1)/'
mutant test/t/003_page_boundary.pl src/shmem/rpin_wal.c 'the end of WAL is the insert position' \
  's/(XLogRecPtr\nrpin_wal_end_of\(XLogRecPtr insert\)\n\{)/$1\n\tif (insert > 0)\n\t\treturn insert;/'
mutant test/t/001_main_job.pl src/core/rpin_decide.c 'a replica that lacks one byte is safe' \
  's/replay_lsn >= required/replay_lsn + 1 >= required/;
   s/(candidate\[i\]\.replay_lsn \+ 1) >= required/candidate[i].replay_lsn + 4096 >= required/'
mutant test/t/001_main_job.pl src/core/rpin_decide.c 'a replica must have more than is required' \
  's/replay_lsn >= required/replay_lsn > required/'
mutant test/t/001_main_job.pl src/core/rpin_decide.c 'a pin goes when the first replica has caught up' \
  's/decision\.safe == configured/decision.safe != 0/'

# --- samples ---------------------------------------------------------------------------

mutant test/t/010_crash_behind.pl src/core/rpin_replica.h 'a sample is believed after its connection died' \
  's/replica->sample_valid && replica->state == RPIN_STATE_SAMPLED &&/replica->sample_requested_at > 0 \&\&/'
mutant test/t/005_sampler.pl src/core/rpin_replica.h 'the last sample of a dead sampler is believed for ever' \
  's/now - replica->sample_requested_at < lifetime/(now > 0 || lifetime > 0)/'
mutant test/t/007_identity.pl src/core/rpin_sample.c 'the timeline of a replica is not checked' \
  's/return RPIN_STATE_OTHER_TIMELINE;/return RPIN_STATE_SAMPLED;/'
mutant test/t/006_bad_replicas.pl src/core/rpin_sample.c 'the system identifier of a replica is not checked' \
  's/return RPIN_STATE_OTHER_CLUSTER;/return RPIN_STATE_SAMPLED;/'
mutant test/t/007_identity.pl src/core/rpin_sample.c 'a replica that is ahead is believed' \
  's/return RPIN_STATE_AHEAD;/return RPIN_STATE_SAMPLED;/'
mutant test/t/001_main_job.pl src/sql/rpin_node.c 'what was received counts as replayed' \
  's/node->lsn = GetXLogReplayRecPtr\(&node->timeline\);/{ node->lsn = GetXLogReplayRecPtr(&node->timeline); node->lsn = Max(node->lsn, GetWalRcvFlushRecPtr(NULL, NULL)); }/;
   s/(#include "fmgr.h")/$1\n#include "replication\/walreceiver.h"/'
mutant test/t/006_bad_replicas.pl src/worker/rpin_report.c 'NULL counts as caught up' \
  's/\*value = 0;\n\treturn PQgetisnull/*value = UINT64CONST(0x3000000);\n\treturn PQgetisnull/'

# --- tokens and messages ------------------------------------------------------------------

mutant 30_route src/core/rpin_history.c 'the cluster of a token is not checked' \
  's/return RPIN_REASON_WRONG_CLUSTER;/position->lsn > 0 ? (void) 0 : (void) 1;/'
mutant test/t/007_identity.pl src/core/rpin_history.c 'a token beyond the switch point is good' \
  's/if \(position->lsn > kept\)\n\t\t\treturn RPIN_REASON_WRITE_LOST;//'
mutant 75_messages src/sql/rpin_envelope_reader.c 'a message that cannot be read demands nothing' \
  's/RPIN_REASON_ENVELOPE_UNREADABLE/RPIN_REASON_NONE/g'
mutant 15_require src/sql/rpin_require.c 'a snapshot that is held is no hindrance' \
  's/if \(HaveRegisteredOrActiveSnapshot\(\)\)/if (false)/'
mutant test/t/011_require.pl src/sql/rpin_require.c 'what is behind passes' \
  's/\trefuse_behind\(&node, &position\);/\t\tPG_RETURN_VOID();/'
mutant test/t/031_rollout.pl src/core/rpin_decide.c 'the share is that of the rest' \
  's/\(share >> 32\) \* 100 < /(share >> 32) * 100 >= /'
