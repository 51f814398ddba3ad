/*
 * together.pml
 *
 * commits.pml and samples.pml in one: a commit, an eviction, a restart of the
 * primary and a crash of the replica, in every order.  Coarser than they are: one
 * session writes, a decision and an answer take one step each, and who reads
 * keeps to P1 (a).
 */

#ifndef LAST
#define LAST 3
#endif

#define NO_ALL
#define ANSWERS_AT_ONCE
#define SAMPLER_READY (floor != 0)

#include "table.inc"
#include "replica.inc"

active proctype postmaster()
{
	d_step {
		restart_primary();
		leave();
		valid = 0;
		sample_old = 0;
		lsn = 0
	}
}

active proctype reader()
{
	byte must;		/* what the read has to see */
	byte required;		/* what it is told that it has to see */
	bit waits;

	do
	/* It connects when it likes, and asks when it likes. */
	:: connect()
	:: atomic {
		floor != 0 && IS_PROOF ->
		must = visible;
		if
		:: goto bucket				/* route() */
		:: quiet(required)			/* is_pinned() */
		fi;
		if
		:: IN_SYNC -> goto named
		:: else -> required = 0
		fi;
bucket:
		lookup(waits, required);
		if
		:: !waits && SAFE -> skip
		:: else -> goto done
		fi;
named:
		required = 0
	   };
		read();
done:
		atomic { must = 0; required = 0; waits = 0 }
	od
}

init
{
	run writer()
}
