/*
 * hist_count.c
 *	  Everything that is counted.
 */
#include "hist_count.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "hist.h"

#define REASONS 24

static _Atomic int64_t counts[HIST_COUNT_KINDS];
static _Atomic int64_t replica_counts[HIST_MAX_REPLICAS][HIST_REPLICA_COUNT_KINDS];

#define TEXTS(name, text) {#name, text},
static const struct
{
	const char *name;
	const char *text;
}			labels[] = {HIST_COUNTS(TEXTS)};

#define REPLICA_TEXT(name) #name,
static const char *const replica_labels[] = {HIST_REPLICA_COUNTS(REPLICA_TEXT)};

static pthread_mutex_t reasons_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct
{
	char		name[32];
	int64_t		count;
}			reasons[REASONS];

void
hist_count(HistCount kind)
{
	atomic_fetch_add_explicit(&counts[kind], 1, memory_order_relaxed);
}

void
hist_count_of(int replica, HistReplicaCount kind)
{
	atomic_fetch_add_explicit(&replica_counts[replica][kind], 1, memory_order_relaxed);
}

int64_t
hist_counted(HistCount kind)
{
	return atomic_load(&counts[kind]);
}

int64_t
hist_counted_of(int replica, HistReplicaCount kind)
{
	return atomic_load(&replica_counts[replica][kind]);
}

void
hist_count_reason(const char *reason)
{
	pthread_mutex_lock(&reasons_mutex);
	for (int i = 0; i < REASONS; i++)
	{
		if (reasons[i].count == 0)
			snprintf(reasons[i].name, sizeof(reasons[i].name), "%s", reason);
		if (strcmp(reasons[i].name, reason) == 0)
		{
			reasons[i].count++;
			break;
		}
	}
	pthread_mutex_unlock(&reasons_mutex);
}

void
hist_count_json(FILE *file)
{
	fprintf(file, "  \"counts\": {");
	for (int i = 0; i < HIST_COUNT_KINDS; i++)
		fprintf(file, "%s\n    \"%s\": %lld", i ? "," : "", labels[i].name,
				(long long) counts[i]);
	fprintf(file, "\n  },\n  \"reasons\": {");
	for (int i = 0; i < REASONS && reasons[i].count > 0; i++)
		fprintf(file, "%s\"%s\": %lld", i ? ", " : "", reasons[i].name,
				(long long) reasons[i].count);
	fprintf(file, "},\n  \"replicas\": {");
	for (int r = 0; r < hist_options.replica_count; r++)
	{
		fprintf(file, "%s\n    \"%s\": {", r ? "," : "", hist_options.replicas[r].name);
		for (int i = 0; i < HIST_REPLICA_COUNT_KINDS; i++)
			fprintf(file, "%s\"%s\": %lld", i ? ", " : "", replica_labels[i],
					(long long) replica_counts[r][i]);
		fprintf(file, "}");
	}
	fprintf(file, "\n  },\n");
}

void
hist_count_table(FILE *file)
{
	for (int i = 0; i < HIST_COUNT_KINDS; i++)
	{
		if (counts[i] > 0)
			fprintf(file, "%10lld  %s\n", (long long) counts[i], labels[i].text);
	}
	for (int i = 0; i < REASONS && reasons[i].count > 0; i++)
		fprintf(file, "%10lld  reason %s\n", (long long) reasons[i].count, reasons[i].name);
	fprintf(file, "%-10s", "replica");
	for (int i = 0; i < HIST_REPLICA_COUNT_KINDS; i++)
		fprintf(file, " %13s", replica_labels[i]);
	for (int r = 0; r < hist_options.replica_count; r++)
	{
		fprintf(file, "\n%-10s", hist_options.replicas[r].name);
		for (int i = 0; i < HIST_REPLICA_COUNT_KINDS; i++)
			fprintf(file, " %13lld", (long long) replica_counts[r][i]);
	}
	fprintf(file, "\n");
}
