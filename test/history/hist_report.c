/*
 * hist_report.c
 *	  The verdict.
 *
 * A run that showed too little says nothing, and its verdict is `unknown`.  The
 * least counts are for runs of a minute or longer; shorter ones need their part.
 */
#include "hist_report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>

#include "hist.h"
#include "hist_control.h"
#include "hist_count.h"
#include "hist_judge.h"

#define FULL_SECONDS 60
#define FULL_COUNT 1000
#define REASONS 32

/* One in so many of the decisions on replicas. */
#define REPLICA_SHARE 20
#define FALSE_PIN_SHARE 1000

static char reasons[REASONS][160];
static int	reason_count;

static void missing(const char *format,...) __attribute__((format(printf, 1, 2)));

static void
missing(const char *format,...)
{
	va_list		arguments;

	if (reason_count == REASONS)
		return;
	va_start(arguments, format);
	vsnprintf(reasons[reason_count++], sizeof(reasons[0]), format, arguments);
	va_end(arguments);
}

static void
at_least(const char *what, int64_t have, int64_t need)
{
	if (have < need)
		missing("%s: %lld, needed %lld", what, (long long) have, (long long) need);
}

/* The least count, for a run of this length. */
static int64_t
scaled(void)
{
	int64_t		seconds = hist_options.seconds < FULL_SECONDS ? hist_options.seconds : FULL_SECONDS;

	return FULL_COUNT * seconds / FULL_SECONDS;
}

static void
check_not_vacuous(void)
{
	int64_t		served = hist_counted(HIST_decisions_replica);

	at_least("decisions served by replicas", served, (hist_counted(HIST_decisions) + 3) / 4);
	at_least("reads soon after the replica was there", hist_counted(HIST_near), scaled());
	at_least("refusals of a replica that was short",
			 hist_counted(HIST_refusals_short) + hist_counted(HIST_refusals_lsn), scaled());
	at_least("reads on replicas", hist_counted(HIST_reads_replica), 10 * scaled());
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		if (!hist_options.replicas[i].spare)
			at_least(hist_options.replicas[i].name, hist_counted_of(i, HIST_REPLICA_named),
					 (served + REPLICA_SHARE - 1) / REPLICA_SHARE);
	}
}

static void
check_faults(void)
{
	for (int i = 0; i < hist_options.expected_count; i++)
		at_least(hist_options.expected[i].name,
				 hist_control_marks(hist_options.expected[i].name),
				 hist_options.expected[i].times);
}

/* A control has to show what it is for. */
static void
check_control(void)
{
	int			last = hist_options.replica_count - 1;

	at_least("reads", hist_counted(HIST_reads), scaled());
	for (int kind = 0; kind < HIST_VIOLATION_KINDS; kind++)
	{
		if (hist_options.mode->shows & 1u << kind)
			at_least(hist_violation_names[kind], hist_judge_raw((HistViolation) kind), 1);
	}
	if (hist_options.mode->where == HIST_EVERYWHERE)
	{
		for (int i = 0; i <= last; i++)
		{
			if (!hist_options.replicas[i].spare)
				at_least("stale reads on each replica", hist_counted_of(i, HIST_REPLICA_stale),
						 scaled() / 10);
		}
	}
	else if (hist_options.mode->where == HIST_DELAYED)
	{
		at_least("reads of fresh rows on the delayed replica",
				 hist_counted_of(last, HIST_REPLICA_fresh), scaled() / 10);
		at_least("... and stale", hist_counted_of(last, HIST_REPLICA_fresh_stale),
				 hist_counted_of(last, HIST_REPLICA_fresh));
	}
}

/* --- the verdict ------------------------------------------------------------------ */

/* An answer that is late is no wrong answer, if it is rare. */
static int64_t
tolerated(HistViolation kind)
{
	return kind == HIST_FALSE_PIN ? hist_counted(HIST_passed) / FALSE_PIN_SHARE : 0;
}

static const char *
verdict_of(int64_t lost)
{
	if (hist_options.mode->shows == 0)
	{
		for (int kind = 0; kind < HIST_VIOLATION_KINDS; kind++)
		{
			if (hist_judge_final((HistViolation) kind) > tolerated((HistViolation) kind))
				return hist_violation_names[kind];
		}
		if (lost > 0 && hist_counted(HIST_failovers) == 0)
			return "lost_commit";
	}
	if (lost < 0)
		missing("the primary could not be asked what it has");
	return reason_count > 0 ? "unknown" : "ok";
}

/*
 * The rate that a true rate must be below, with 95 % confidence: 3 / n if none
 * was seen.  Negative if some were.
 */
static double
upper_bound(void)
{
	int64_t		reads = hist_counted(HIST_reads_replica);

	if (reads == 0)
		return 1;
	return hist_judge_final(HIST_STALE) > 0 ? -1 : fmin(1, 3.0 / (double) reads);
}

static void
write_violations(FILE *file)
{
	fprintf(file, "  \"violations\": {");
	for (int i = 0; i < HIST_VIOLATION_KINDS; i++)
		fprintf(file, "%s\n    \"%s\": {\"at_first_sight\": %lld, \"surviving\": %lld}",
				i ? "," : "", hist_violation_names[i],
				(long long) hist_judge_raw((HistViolation) i),
				(long long) hist_judge_final((HistViolation) i));
	fprintf(file, "\n  },\n");
}

static void
write_json(FILE *file, const char *verdict, int64_t lost)
{
	double		bound = upper_bound();

	fprintf(file, "{\n  \"verdict\": \"%s\",\n  \"mode\": \"%s\",\n  \"seed\": %llu,\n"
			"  \"seconds\": %.1f,\n  \"near_ms\": %d,\n", verdict, hist_options.mode->name,
			(unsigned long long) hist_options.seed,
			(double) (hist_now() - hist_began_at()) / 1e6, hist_options.near_ms);
	fprintf(file, "  \"why_unknown\": [");
	for (int i = 0; i < reason_count; i++)
		fprintf(file, "%s\"%s\"", i ? ", " : "", reasons[i]);
	fprintf(file, "],\n");
	write_violations(file);
	fprintf(file, "  \"lost_commits\": %lld,\n", (long long) lost);
	if (bound < 0)
		fprintf(file, "  \"stale_rate_below\": null,\n");
	else
		fprintf(file, "  \"stale_rate_below\": %.3g,\n", bound);
	hist_count_json(file);
	hist_control_json(file);
	fprintf(file, "  \"least_count\": %lld\n}\n", (long long) scaled());
}

/* Processor time of the checker itself, in seconds. */
static double
processor_time(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		(double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void
write_table(FILE *file, const char *verdict, int64_t lost)
{
	double		bound = upper_bound();

	fprintf(file, "mode %s: %s; %.1f s, of them %.1f s of a processor for the checker\n",
			hist_options.mode->name, hist_options.mode->text,
			(double) (hist_now() - hist_began_at()) / 1e6, processor_time());
	hist_count_table(file);
	for (int i = 0; i < HIST_VIOLATION_KINDS; i++)
		fprintf(file, "%10lld  %s (%lld at first sight)\n",
				(long long) hist_judge_final((HistViolation) i), hist_violation_names[i],
				(long long) hist_judge_raw((HistViolation) i));
	fprintf(file, "%10lld  acknowledged commits that the primary lacks\n", (long long) lost);
	if (bound >= 0)
		fprintf(file, "none of %lld reads on replicas was stale: with 95 %% confidence fewer than"
				" %.2g of all are\n", (long long) hist_counted(HIST_reads_replica), bound);
	for (int i = 0; i < reason_count; i++)
		fprintf(file, "too little: %s\n", reasons[i]);
	fprintf(file, "verdict: %s\n", verdict);
}

static void
check_all(void)
{
	reason_count = 0;
	if (hist_options.mode->full)
		check_not_vacuous();
	else
		check_control();
	check_faults();
}

bool
hist_report_enough(void)
{
	check_all();
	return reason_count == 0;
}

bool
hist_report(int64_t lost)
{
	const char *verdict;

	check_all();
	verdict = verdict_of(lost);

	write_table(stdout, verdict, lost);
	if (hist_options.mode->shows == 0)
		hist_judge_show(stdout, 10);
	if (hist_options.report != NULL)
	{
		FILE	   *file = fopen(hist_options.report, "w");

		if (file == NULL)
		{
			perror(hist_options.report);
			return false;
		}
		write_json(file, verdict, lost);
		fclose(file);
	}
	return strcmp(verdict, "ok") == 0;
}
