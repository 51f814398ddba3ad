/*
 * hist_options.c
 *	  The command line, and the modes.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "hist_reader.h"

HistOptions hist_options = {
	.writers = 4, .readers = 8, .keys = 64, .seconds = 30, .near_ms = 5, .lifetime_ms = 1000, .seed_text = "1"
};

#define STALE (1u << HIST_STALE)
#define LOST_PIN (1u << HIST_LOST_PIN)
#define MONOTONIC (1u << HIST_MONOTONIC)
#define FALSE_PIN (1u << HIST_FALSE_PIN)

const HistMode hist_modes[] = {
	{.name = "direct",
		.text = "by route() and is_pinned(), over connections older than sample_lifetime",
	.read = hist_read_direct, .full = true},
	{.name = "require", .text = "by route(), over any connection behind CALL require()",
	.read = hist_read_require, .full = true},
	{.name = "token", .text = "by a token that is carried from replica to replica",
	.read = hist_read_token, .full = true},
	{.name = "control-none", .text = "no pinning", .read = hist_read_anywhere,
	.shows = STALE | LOST_PIN | MONOTONIC, .where = HIST_EVERYWHERE},
	{.name = "control-delayed", .text = "no pinning, and the last replica replays two seconds late",
	.read = hist_read_anywhere, .shows = STALE | LOST_PIN | MONOTONIC, .where = HIST_DELAYED},
	{.name = "control-one", .text = "the pin is cleared when one replica is there",
	.read = hist_read_one, .shows = STALE | LOST_PIN},
	{.name = "control-inside", .text = "the position is taken in the transaction",
	.read = hist_read_claim, .claim = HIST_CLAIM_INSIDE, .shows = STALE | LOST_PIN},
	{.name = "control-elsewhere", .text = "the position is taken on another connection before COMMIT",
	.read = hist_read_claim, .claim = HIST_CLAIM_ELSEWHERE, .shows = STALE | LOST_PIN},
	{.name = "control-last", .text = "the position is what the session's last commit left behind",
	.read = hist_read_claim, .claim = HIST_CLAIM_LAST, .shows = STALE | LOST_PIN},
	{.name = "control-right", .text = "the position is that of the commit: none may be stale",
	.read = hist_read_claim, .claim = HIST_CLAIM_COMMIT},
	{.name = "control-window", .text = "a write keeps its key on the primary for two seconds",
	.read = hist_read_window, .shows = FALSE_PIN},
	{.name = NULL}
};

static void
usage(FILE *file)
{
	fprintf(file,
			"usage: history --primary CONNINFO --replica NAME=CONNINFO ... --mode MODE ...\n\n"
			"  --replica NAME=CONNINFO  as replica_pin.replicas names it; it has to serve\n"
			"  --spare NAME=CONNINFO    the same, but it need not serve\n"
			"  --pooler NAME=CONNINFO   a pooler in front of that replica\n"
			"  --writers N, --readers N, --keys N, --seconds S, --seed N\n"
			"  --patience S             seconds more, if too little was seen by then\n"
			"  --near MS                what is soon after a replica was there, 5\n"
			"  --sample-lifetime MS     of the primary's setting, or longer\n"
			"  --report FILE            the report as JSON\n"
			"  --control FIFO           commands: mark NAME, primary CONNINFO, stop\n"
			"  --expect NAME=N          the mark NAME must come N times\n"
			"  --verbose                counts once a second\n\n"
			"Modes:\n");
	for (const HistMode *mode = hist_modes; mode->name != NULL; mode++)
		fprintf(file, "  %-18s %s\n", mode->name, mode->text);
	fprintf(file, "\nExit status 0 if the verdict is ok.\n");
}

static void
refuse(const char *what)
{
	fprintf(stderr, "history: %s; see --help\n", what);
	exit(2);
}

const HistMode *
hist_mode_find(const char *name)
{
	for (const HistMode *mode = hist_modes; mode->name != NULL; mode++)
	{
		if (strcmp(mode->name, name) == 0)
			return mode;
	}
	refuse("there is no such mode");
	return NULL;
}

static int
positive(const char *argument)
{
	int			number = atoi(argument);

	if (number <= 0)
		refuse("expected a number above 0");
	return number;
}

/* NAME=REST; returns REST. */
static char *
split(char *argument)
{
	char	   *rest = strchr(argument, '=');

	if (rest == NULL)
		refuse("expected NAME=...");
	*rest = '\0';
	return rest + 1;
}

static void
add_replica(char *argument, bool spare)
{
	char	   *conninfo = split(argument);
	HistReplica *replica;

	if (hist_options.replica_count == HIST_MAX_REPLICAS)
		refuse("too many replicas");
	replica = &hist_options.replicas[hist_options.replica_count++];
	replica->name = argument;
	replica->conninfo = conninfo;
	replica->spare = spare;
}

static void
add_pooler(char *argument)
{
	char	   *conninfo = split(argument);

	for (int i = 0; i < hist_options.replica_count; i++)
	{
		if (strcmp(hist_options.replicas[i].name, argument) == 0)
		{
			hist_options.replicas[i].pooler = conninfo;
			return;
		}
	}
	refuse("a pooler of a replica that was not named before");
}

static void
add_expected(char *argument)
{
	char	   *times = split(argument);
	HistExpected *expected;

	if (hist_options.expected_count == HIST_MAX_EXPECTED)
		refuse("too many faults are expected");
	expected = &hist_options.expected[hist_options.expected_count++];
	expected->name = argument;
	expected->times = positive(times);
}

static void
take_mode(char *name)
{
	hist_options.mode = hist_mode_find(name);
}

static void
take_primary(char *conninfo)
{
	hist_primary_set(conninfo);
}

static void
take_replica(char *argument)
{
	add_replica(argument, false);
}

static void
take_spare(char *argument)
{
	add_replica(argument, true);
}

static void
help(char *unused)
{
	(void) unused;
	usage(stdout);
	exit(0);
}

/* Each has a number, a word or a function to take its argument, or nothing. */
static const struct
{
	const char *name;
	int		   *number;
	const char **word;
	void		(*take) (char *argument);
}			options[] = {
	{"primary", NULL, NULL, take_primary},
	{"replica", NULL, NULL, take_replica},
	{"spare", NULL, NULL, take_spare},
	{"pooler", NULL, NULL, add_pooler},
	{"mode", NULL, NULL, take_mode},
	{"writers", &hist_options.writers, NULL, NULL},
	{"readers", &hist_options.readers, NULL, NULL},
	{"keys", &hist_options.keys, NULL, NULL},
	{"seconds", &hist_options.seconds, NULL, NULL},
	{"patience", &hist_options.patience, NULL, NULL},
	{"near", &hist_options.near_ms, NULL, NULL},
	{"sample-lifetime", &hist_options.lifetime_ms, NULL, NULL},
	{"seed", NULL, &hist_options.seed_text, NULL},
	{"report", NULL, &hist_options.report, NULL},
	{"control", NULL, &hist_options.control, NULL},
	{"expect", NULL, NULL, add_expected},
	{"verbose", NULL, NULL, NULL},
	{"help", NULL, NULL, help}
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

static void
take(size_t option, char *argument)
{
	if (options[option].number != NULL)
		*options[option].number = positive(argument);
	else if (options[option].word != NULL)
		*options[option].word = argument;
	else if (options[option].take != NULL)
		options[option].take(argument);
	else
		hist_options.verbose = true;
}

void
hist_options_read(int argc, char **argv)
{
	struct option long_options[OPTIONS + 1];
	int			option;

	memset(long_options, 0, sizeof(long_options));
	for (size_t i = 0; i < OPTIONS; i++)
	{
		bool		bare = strcmp(options[i].name, "verbose") == 0 || options[i].take == help;

		long_options[i].name = options[i].name;
		long_options[i].has_arg = bare ? no_argument : required_argument;
		long_options[i].val = (int) i;
	}
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
	{
		if (option == '?')
			refuse("no such option");
		take((size_t) option, optarg);
	}
	if (optind < argc || hist_primary(NULL) == NULL || hist_options.mode == NULL)
		refuse("a primary and a mode are needed");
	if (hist_options.replica_count == 0)
		refuse("a replica is needed");
	hist_options.lifetime = INT64_C(1000) * hist_options.lifetime_ms;
	hist_options.seed = strtoull(hist_options.seed_text, NULL, 10);
}
