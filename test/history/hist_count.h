/*
 * hist_count.h
 *	  Everything that is counted, by name.
 */
#ifndef HIST_COUNT_H
#define HIST_COUNT_H

#include <stdint.h>
#include <stdio.h>

/* Of the whole run: name, what it is. */
#define HIST_COUNTS(X) \
	X(commits, "commits acknowledged") \
	X(commits_unknown, "commits without an answer") \
	X(writes_failed, "writes that failed before COMMIT") \
	X(decisions, "decisions") \
	X(decisions_replica, "decisions that named a replica") \
	X(decisions_primary, "decisions that named the primary") \
	X(decisions_failed, "decisions without an answer") \
	X(refusals_short, "refusals of a replica that was short, proven") \
	X(refusals_lsn, "require() refused: behind (RP001)") \
	X(refusals_identity, "require() refused: not comparable (RP002)") \
	X(too_young, "no connection was old enough") \
	X(unnamed, "a replica was named that is not known here") \
	X(reads, "reads") \
	X(reads_replica, "reads on a replica") \
	X(reads_direct, "... over a direct connection") \
	X(reads_pooled, "... over a pooled one") \
	X(reads_fresh, "... over one opened for the read") \
	X(reads_primary, "reads on the primary") \
	X(reads_failed, "reads without an answer") \
	X(near, "reads soon after the replica was there") \
	X(audits, "decisions whose sample was looked up") \
	X(ahead, "reads that saw a version before its commit was answered") \
	X(passed, "decisions when every replica had been there for long") \
	X(false_pins, "... and the answer was the primary") \
	X(unsampled, "decisions for want of samples (samples_stale, no_replicas)") \
	X(hops, "reads with a token after a read elsewhere") \
	X(back_on_primary, "reads on the primary older than one on a replica") \
	X(failovers, "failovers") \
	X(events_dropped, "violations beyond those that are kept")

/* Of each replica. */
#define HIST_REPLICA_COUNTS(X) \
	X(named) X(reads) X(short_refused) X(near) X(fresh) X(fresh_stale) X(stale)

#define HIST_NAME(name, ...) HIST_##name,
typedef enum HistCount
{
	HIST_COUNTS(HIST_NAME)
	HIST_COUNT_KINDS
} HistCount;

#define HIST_REPLICA_NAME(name) HIST_REPLICA_##name,
typedef enum HistReplicaCount
{
	HIST_REPLICA_COUNTS(HIST_REPLICA_NAME)
	HIST_REPLICA_COUNT_KINDS
} HistReplicaCount;

extern void hist_count(HistCount kind);
extern void hist_count_of(int replica, HistReplicaCount kind);
extern int64_t hist_counted(HistCount kind);
extern int64_t hist_counted_of(int replica, HistReplicaCount kind);

/* Reasons of decisions, as they come. */
extern void hist_count_reason(const char *reason);

/* "name": number, ... */
extern void hist_count_json(FILE *file);
extern void hist_count_table(FILE *file);

#endif							/* HIST_COUNT_H */
