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
	.writers = 4, .readers = 8, .keys = 64, .seconds = 30, .lifetime = 1000000, .seed = 1
};

const HistMode hist_modes[] = {
	{"direct", "by route() and is_pinned(), over connections older than sample_lifetime",
	hist_read_direct, HIST_CLAIM_NONE, HIST_EXPECT_NONE_STALE, true},
	{"require", "by route(), over any connection behind CALL require()",
	hist_read_require, HIST_CLAIM_NONE, HIST_EXPECT_NONE_STALE, true},
	{"token", "by a token that is carried from replica to replica",
	hist_read_token, HIST_CLAIM_NONE, HIST_EXPECT_NONE_STALE, true},
	{"control-none", "no pinning", hist_read_anywhere,
	HIST_CLAIM_NONE, HIST_EXPECT_STALE_EVERYWHERE, false},
	{"control-delayed", "no pinning, and the last replica replays two seconds late",
	hist_read_anywhere, HIST_CLAIM_NONE, HIST_EXPECT_STALE_DELAYED, false},
	{"control-one", "the pin is cleared when one replica is there", hist_read_one,
	HIST_CLAIM_NONE, HIST_EXPECT_STALE, false},
	{"control-inside", "the position is taken in the transaction", hist_read_claim,
	HIST_CLAIM_INSIDE, HIST_EXPECT_STALE, false},
	{"control-elsewhere", "the position is taken on another connection before COMMIT",
	hist_read_claim, HIST_CLAIM_ELSEWHERE, HIST_EXPECT_STALE, false},
	{"control-last", "the position is what the session's last commit left behind",
	hist_read_claim, HIST_CLAIM_LAST, HIST_EXPECT_STALE, false},
	{"control-right", "the position is that of the commit: none may be stale",
	hist_read_claim, HIST_CLAIM_COMMIT, HIST_EXPECT_NONE_STALE, false},
	{NULL, NULL, NULL, HIST_CLAIM_NONE, HIST_EXPECT_NONE_STALE, false}
};

static const struct option long_options[] = {
	{"primary", required_argument, NULL, 'p'},
	{"replica", required_argument, NULL, 'r'},
	{"spare", required_argument, NULL, 'x'},
	{"pooler", required_argument, NULL, 'b'},
	{"mode", required_argument, NULL, 'm'},
	{"writers", required_argument, NULL, 'w'},
	{"readers", required_argument, NULL, 'n'},
	{"keys", required_argument, NULL, 'k'},
	{"seconds", required_argument, NULL, 's'},
	{"sample-lifetime", required_argument, NULL, 'l'},
	{"seed", required_argument, NULL, 'd'},
	{"report", required_argument, NULL, 'o'},
	{"control", required_argument, NULL, 'c'},
	{"expect", required_argument, NULL, 'e'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0}
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

	if (hist_options.replica_count == HIST_MAX_REPLICAS)
		refuse("too many replicas");
	hist_options.replicas[hist_options.replica_count++] =
		(HistReplica) {.name = argument, .conninfo = conninfo, .spare = spare};
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

	if (hist_options.expected_count == HIST_MAX_EXPECTED)
		refuse("too many faults are expected");
	hist_options.expected[hist_options.expected_count++] =
		(HistExpected) {argument, atoi(times)};
}

static int
positive(const char *argument)
{
	int			number = atoi(argument);

	if (number <= 0)
		refuse("expected a number above 0");
	return number;
}

static void
take(int option, char *argument)
{
	switch (option)
	{
		case 'p': hist_primary_set(argument); break;
		case 'r': add_replica(argument, false); break;
		case 'x': add_replica(argument, true); break;
		case 'b': add_pooler(argument); break;
		case 'm': hist_options.mode = hist_mode_find(argument); break;
		case 'w': hist_options.writers = positive(argument); break;
		case 'n': hist_options.readers = positive(argument); break;
		case 'k': hist_options.keys = positive(argument); break;
		case 's': hist_options.seconds = positive(argument); break;
		case 'l': hist_options.lifetime = INT64_C(1000) * positive(argument); break;
		case 'd': hist_options.seed = strtoull(argument, NULL, 10); break;
		case 'o': hist_options.report = argument; break;
		case 'c': hist_options.control = argument; break;
		case 'e': add_expected(argument); break;
		case 'v': hist_options.verbose = true; break;
		case 'h': usage(stdout); exit(0);
		default: refuse("no such option");
	}
}

void
hist_options_read(int argc, char **argv)
{
	int			option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		take(option, optarg);
	if (optind < argc || hist_primary(NULL) == NULL || hist_options.mode == NULL)
		refuse("a primary and a mode are needed");
	if (hist_options.replica_count == 0)
		refuse("a replica is needed");
}
