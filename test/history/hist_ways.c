/*
 * hist_ways.c
 *	  The ways to read: those that must not be stale, and the controls.
 */
#include <string.h>

#include "hist_count.h"
#include "hist_reader.h"

/* Once in so many times. */
#define IS_PINNED_ONE_IN 5
#define BOARD_ONE_IN 8
#define FRESH_ONE_IN 50
#define BLIND_ONE_IN 4

#define WINDOW INT64_C(2000000)

/* Who does not find a row asks again, so many times at most. */
#define RELOADS 40

static bool
one_in(HistReader *reader, uint64_t times)
{
	return hist_random(&reader->random) % times == 0;
}

/* A replica of a set at random; -1 if it is empty. */
static int
any_of(HistReader *reader, unsigned set)
{
	int			left = __builtin_popcount(set);

	if (left == 0)
		return -1;
	left = (int) (hist_random(&reader->random) % (uint64_t) left);
	for (int i = 0;; i++)
	{
		if (set & 1u << i && left-- == 0)
			return i;
	}
}

static unsigned
all_replicas(void)
{
	unsigned	set = 0;

	for (int i = 0; i < hist_options.replica_count; i++)
	{
		if (!hist_options.replicas[i].spare)
			set |= 1u << i;
	}
	return set;
}

static void
finish(HistReader *reader, HistOutcome outcome)
{
	if (outcome == HIST_SERVED)
		hist_judge_read(&reader->read);
	else
		hist_count(HIST_reads_failed);
}

static void
read_on_primary(HistReader *reader)
{
	finish(reader, hist_ask_primary(reader));
}

/* Nobody has decided: what is read now must see what is acknowledged now. */
static void
ask_nobody(HistReader *reader)
{
	reader->read.asked_at = reader->read.answered_at = hist_now();
	reader->read.named = 0;
	reader->read.reason[0] = '\0';
	reader->read.required[0] = '\0';
}

/* --- by decisions of the primary --------------------------------------------------- */

static bool
decide(HistReader *reader, bool only_route)
{
	bool		decided = only_route || !one_in(reader, IS_PINNED_ONE_IN) ?
		hist_ask_route(reader) : hist_ask_is_pinned(reader);
	unsigned	refused;

	if (!decided)
	{
		hist_count(HIST_decisions_failed);
		return false;
	}
	if (hist_judge_decision(&reader->read) &&
		(reader->read.route || hist_ask_eligible(reader)))
		hist_judge_false_pin(&reader->read);
	refused = all_replicas() & ~reader->read.named;
	if (refused == 0)
		reader->again = 0;
	else if (reader->again == 0)
		reader->again = RELOADS;
	if (refused != 0 && reader->read.route)
	{
		int			replica = any_of(reader, refused);

		hist_judge_refusal(&reader->read, replica, hist_ask_position(reader, replica));
	}
	if (reader->read.named != 0 && one_in(reader, BOARD_ONE_IN))
		hist_ask_board(reader, any_of(reader, reader->read.named));
	return true;
}

/* The named replicas to which a connection was old enough when the question was asked. */
static unsigned
covered(HistReader *reader)
{
	unsigned	set = 0;

	for (int i = 0; i < hist_options.replica_count; i++)
	{
		HistConn   *conn = &reader->direct[i];

		if (reader->read.named & 1u << i && hist_conn_ready(conn) &&
			conn->opened_at + hist_options.lifetime < reader->read.asked_at)
			set |= 1u << i;
	}
	return set;
}

static void
read_direct_on(HistReader *reader, int replica)
{
	HistOutcome outcome = hist_ask_replica(reader, &reader->direct[replica], replica, "", false);

	if (outcome == HIST_SERVED)
		hist_count(HIST_reads_direct);
	finish(reader, outcome);
}

/* Rule (a) of P1. */
void
hist_read_direct(HistReader *reader)
{
	unsigned	usable;

	if (!decide(reader, false))
		return;
	usable = covered(reader);
	if (reader->read.named != 0 && usable == 0)
		hist_count(HIST_too_young);
	if (usable == 0)
		read_on_primary(reader);
	else
		read_direct_on(reader, any_of(reader, usable));
}

/* --- behind require() ---------------------------------------------------------------- */

/* Any connection will do: of the pooler, opened for this read, or any other. */
static HistOutcome
read_behind(HistReader *reader, int replica, const char *token, bool carry)
{
	HistConn   *conn = &reader->direct[replica];
	HistCount	kind = HIST_reads_direct;
	HistOutcome outcome = HIST_FAILED;

	if (one_in(reader, FRESH_ONE_IN))
	{
		conn = &reader->fresh;
		hist_conn_init(conn, hist_options.replicas[replica].conninfo, false);
		kind = HIST_reads_fresh;
	}
	else if (hist_options.replicas[replica].pooler != NULL && !one_in(reader, 3))
	{
		conn = &reader->pooled[replica];
		kind = HIST_reads_pooled;
	}
	if (hist_conn_wait(conn, kind == HIST_reads_fresh ? HIST_PATIENCE : 0))
		outcome = hist_ask_replica(reader, conn, replica, token, carry);
	if (outcome == HIST_SERVED)
		hist_count(kind);
	else if (outcome == HIST_BEHIND)
	{
		hist_count(HIST_refusals_lsn);
		hist_count_of(replica, HIST_REPLICA_short_refused);
	}
	else if (outcome == HIST_NOT_COMPARABLE)
		hist_count(HIST_refusals_identity);
	if (kind == HIST_reads_fresh)
		hist_conn_close(conn);
	return outcome;
}

/*
 * Rule (b) of P1.  Once in a while without a decision, by the token of the
 * commit alone.
 */
void
hist_read_require(HistReader *reader)
{
	char		token[HIST_TOKEN_SIZE];
	int			replica;
	HistOutcome outcome;
	bool		blind = false;

	if (one_in(reader, BLIND_ONE_IN) && reader->read.demand.commit.token[0] != '\0')
	{
		ask_nobody(reader);
		blind = true;
		memcpy(token, reader->read.demand.commit.token, sizeof(token));
		replica = any_of(reader, all_replicas());
	}
	else
	{
		if (!decide(reader, true))
			return;
		memcpy(token, reader->read.required, sizeof(token));
		replica = any_of(reader, reader->read.named);
	}
	if (replica < 0 || token[0] == '\0')
	{
		read_on_primary(reader);
		return;
	}
	outcome = read_behind(reader, replica, token, false);
	if (blind && outcome != HIST_FAILED)
		hist_judge_token(&reader->read, outcome == HIST_SERVED);
	if (outcome == HIST_BEHIND || outcome == HIST_NOT_COMPARABLE)
		read_on_primary(reader);
	else
		finish(reader, outcome);
}

/* --- a token that is carried ----------------------------------------------------------- */

/* A read of one who must not see less than before. */
static void
finish_monotonic(HistReader *reader, HistOutcome outcome)
{
	HistHigh   *high = &reader->high[reader->read.demand.slot];

	finish(reader, outcome);
	if (outcome != HIST_SERVED)
		return;
	if (high->key != reader->read.demand.key)
	{
		high->key = reader->read.demand.key;
		high->version = 0;
	}
	hist_judge_monotonic(&reader->read, high->version, high->on_replica);
	if (reader->read.version >= high->version)
	{
		high->version = reader->read.version;
		high->on_replica = reader->read.replica != HIST_PRIMARY;
	}
}

static void
judge_carrying(HistReader *reader, HistOutcome outcome)
{
	finish_monotonic(reader, outcome);
	if (outcome == HIST_SERVED)
		hist_judge_token(&reader->read, reader->read.replica != HIST_PRIMARY);
}

/* A token that no replica can have is dropped, and what was seen with it. */
static bool
renew(HistReader *reader)
{
	if (!hist_ask_renew(reader, reader->carried))
		return false;
	if (reader->carried[0] != '\0')
		return true;
	memset(reader->high, 0, sizeof(HistHigh) * (size_t) hist_options.keys);
	return false;
}

/*
 * What is carried is the greatest of all tokens: of what was read, and of the
 * commit that this read is about.  Replicas are asked in any order; the primary
 * serves only if all refuse.
 */
void
hist_read_token(HistReader *reader)
{
	unsigned	untried = all_replicas();
	bool		renewed = false;
	const char *own = reader->read.demand.commit.token;

	ask_nobody(reader);
	if (own[0] != '\0' && strcmp(own, reader->carried) > 0)
		memcpy(reader->carried, own, sizeof(reader->carried));
	while (untried != 0 && reader->carried[0] != '\0')
	{
		int			replica = any_of(reader, untried);
		HistOutcome outcome = read_behind(reader, replica, reader->carried, true);

		if (outcome == HIST_SERVED)
		{
			judge_carrying(reader, outcome);
			return;
		}
		if (outcome == HIST_NOT_COMPARABLE && !renewed)
		{
			renewed = true;
			if (!renew(reader))
				break;
			continue;
		}
		untried &= ~(1u << replica);
	}
	judge_carrying(reader, hist_ask_primary(reader));
}

/* --- controls -------------------------------------------------------------------------- */

static HistOutcome
ask_control(HistReader *reader, int replica)
{
	HistConn   *conn = &reader->direct[replica];

	if (!hist_conn_wait(conn, 20000))
		return HIST_FAILED;
	return hist_ask_replica(reader, conn, replica, "", false);
}

/* No pinning. */
void
hist_read_anywhere(HistReader *reader)
{
	ask_nobody(reader);
	finish_monotonic(reader, ask_control(reader, any_of(reader, all_replicas())));
}

/* By a position that a writer took as it thought best, asked of the replica itself. */
void
hist_read_claim(HistReader *reader)
{
	int			replica = any_of(reader, all_replicas());

	ask_nobody(reader);
	if (hist_ask_position(reader, replica) >= reader->read.demand.claim)
		finish(reader, ask_control(reader, replica));
	else
	{
		hist_count(HIST_refusals_short);
		read_on_primary(reader);
	}
}

/* The pin is cleared as soon as one replica is there. */
void
hist_read_one(HistReader *reader)
{
	if (!decide(reader, true))
		return;
	if (reader->read.named == 0)
		read_on_primary(reader);
	else
		finish(reader, ask_control(reader, any_of(reader, all_replicas())));
}

/* By the clock, whatever the replicas have. */
void
hist_read_window(HistReader *reader)
{
	if (!hist_ask_route(reader))
		return;
	if (reader->read.asked_at - reader->read.demand.acked_at < WINDOW)
		reader->read.named = 0;
	if (hist_judge_decision(&reader->read))
		hist_judge_false_pin(&reader->read);
	read_on_primary(reader);
}
