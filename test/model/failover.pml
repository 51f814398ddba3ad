/*
 * failover.pml
 *
 * What positions mean when WAL forks.  A is the primary, B its replica, and is
 * promoted; the replica that is read follows A, and B if it can.  A is not
 * stopped: it goes on committing, and deciding about its own history.
 *
 * With RESTORED there is no promotion: A itself is set back to an earlier
 * position, as by a disk snapshot, and goes on under the same timeline number.
 *
 * branch is which history a node's WAL really is of; a node itself knows only the
 * number of its timeline.
 */

#ifndef LAST
#define LAST 4			/* the greatest position */
#endif

#define FIRST 1			/* branches */
#define SECOND 2

#ifdef RESTORED
#define TIMELINE(branch) 1
#define IS_THERE(primary) (primary == FIRST -> fork == 0 : fork != 0)
#else
#define TIMELINE(branch) (branch)
#define IS_THERE(primary) (primary == FIRST || fork != 0)
#endif

/* The end of a primary's WAL. */
#define END(primary) (primary == FIRST -> a_end : b_end)

byte fork;			/* where SECOND left FIRST; 0: it has not */
byte a_end = 1;			/* of A's WAL, all of it FIRST */
byte b_replay;			/* B before the promotion */
byte b_end;			/* B after it, or A after it was set back: SECOND */

/* The replica that is read. */
byte branch = FIRST;
byte replay;
bit crashed;

/* What the primary of each branch knows of it: RpinBoardRow. */
bit valid[3];
byte lsn[3];
bit ahead[3];			/* ahead_timeline */

/* Does a node at this position of that branch hold this commit? */
#define HOLDS(node_branch, node_lsn, home, position) \
	((node_branch == home && position <= node_lsn) || \
	 (node_branch == SECOND && home == FIRST && position <= fork && position <= node_lsn))

/* Once ahead, ahead: take_report() in rpin_replica.c. */
#ifdef AHEAD_IS_FORGOTTEN
#define AHEAD(is) 0
#else
#define AHEAD(is) (is)
#endif

/* --- the two primaries --------------------------------------------------- */

active proctype primaries()
{
	do
	:: d_step { a_end < LAST && IS_THERE(FIRST) -> a_end++ }
	:: d_step { b_end < LAST && IS_THERE(SECOND) -> b_end++ }
#ifndef RESTORED
	:: d_step { fork == 0 && b_replay < a_end -> b_replay++ }
	/* the table is empty: the floor is the end of WAL (rpin_keys_ensure_floor) */
	:: d_step { fork == 0 && b_replay > 0 -> fork = b_replay; b_end = fork }
#else
	/* shared memory begins anew; the sampler meets the replica, or does later */
	:: atomic {
		fork == 0 && a_end > 1 ->
		fork = a_end - 1;
		do
		:: fork > 1 -> fork--
		:: break
		od;
		b_end = fork;
#ifdef SEEN_AHEAD
		ahead[SECOND] = AHEAD(replay > fork);
#endif
		valid[FIRST] = 0;
		lsn[FIRST] = 0
	   }
#endif
	od
}

/* --- the replica --------------------------------------------------------- */

/*
 * It replays what it follows.  One that has replayed more of FIRST than SECOND
 * kept cannot follow SECOND: it stands still, connected or not.
 */
active proctype replica()
{
	do
	:: d_step { branch == FIRST && IS_THERE(FIRST) && replay < a_end -> replay++ }
	:: d_step {
		branch == FIRST && fork != 0 && replay <= fork && replay < b_end ->
		branch = (replay == fork -> SECOND : FIRST);
		replay++
	   }
	:: d_step { branch == SECOND && replay < b_end -> replay++ }
	/* the connections of the samplers and of the reader break */
	:: atomic {
		!crashed && replay > 0 ->
		crashed = 1;
		replay--;
		do
		:: replay > 0 -> replay--
		:: break
		od;
		branch = (replay <= fork -> FIRST : branch);
		valid[FIRST] = 0;
		lsn[FIRST] = 0;
		valid[SECOND] = 0;
		lsn[SECOND] = 0
	   }
	od
}

/* --- the samplers -------------------------------------------------------- */

/* rpin_sample_judge(): OTHER_TIMELINE, AHEAD */
#ifdef ANY_TIMELINE
#define SAME_TIMELINE true
#else
#define SAME_TIMELINE (TIMELINE(branch) == TIMELINE(by))
#endif

proctype sampler(byte by)
{
	byte own;

	do
	:: d_step {
		IS_THERE(by) ->
		own = END(by);
		if
		:: !SAME_TIMELINE -> valid[by] = 0; lsn[by] = 0; ahead[by] = 0
		:: SAME_TIMELINE && (replay > own || ahead[by]) ->
			valid[by] = 0;
			lsn[by] = 0;
			ahead[by] = AHEAD(true)
		:: else -> valid[by] = 1; lsn[by] = replay
		fi;
		own = 0
	   }
	od
}

/* --- who reads ----------------------------------------------------------- */

/* A commit (branch, position); the token that its client has names its timeline. */
inline any_commit()
{
	if
	:: home = FIRST; must = a_end
	:: home = FIRST; must = 1
	:: home = FIRST; must = (a_end > 2 -> 2 : 1)
	:: home = FIRST; must = (a_end > 3 -> 3 : 1)
	:: fork != 0 && b_end > fork -> home = SECOND; must = b_end
	:: fork != 0 && b_end > fork -> home = SECOND; must = fork + 1
	fi
}

/* The read sees the commit. */
#define SEEN HOLDS(branch, replay, home, must)

#ifdef TOKEN_WITHOUT_TIMELINE
#define IS_ANCESTOR true
#define SAME true
#else
#define IS_ANCESTOR (TIMELINE(home) == TIMELINE(by) || must <= fork)
#define SAME (TIMELINE(branch) == TIMELINE(home))
#endif

active proctype reader()
{
	byte home, must, by, required;

	do
	:: atomic {
		any_commit();
		if
		:: IS_THERE(FIRST) -> by = FIRST
		:: IS_THERE(SECOND) -> by = SECOND
		fi;
		if
		/*
		 * key mode, on a primary that has the commit: its table has the
		 * position, or its floor, which is where the promotion found its WAL
		 */
		:: HOLDS(by, END(by), home, must) ->
#ifdef NO_FLOOR_AT_PROMOTION
			required = (home == by -> must : 0);
#else
			required = (home == by -> must : fork);
#endif
			if
			:: valid[by] && lsn[by] >= required -> assert(SEEN)
			:: else
			fi
#ifndef SEEN_AHEAD
		/* token mode: rpin_history_resolve() on a primary; older ones are cut */
		:: TIMELINE(home) <= TIMELINE(by) && IS_ANCESTOR &&
			must <= END(by) ->
			required = must;
			if
			:: valid[by] && lsn[by] >= required -> assert(SEEN)
			/* require() of it, restated on the timeline of that primary */
			:: TIMELINE(branch) == TIMELINE(by) && replay >= required -> assert(SEEN)
			:: else
			fi
		/* rpin_node_compare(), behind require() on the replica */
		:: SAME && replay >= must -> assert(SEEN)
#endif
		:: else
		fi;
		home = 0;
		must = 0;
		by = 0;
		required = 0
	   }
	od
}

init
{
	atomic {
		run sampler(FIRST);
		run sampler(SECOND)
	}
}
