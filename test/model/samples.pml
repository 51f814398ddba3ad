/*
 * samples.pml
 *
 * Does a read see what its decision demanded?  A replica, a crash, samples, a
 * reader.  What is demanded is simply all that is committed when it asks:
 * commits.pml shows that a decision never demands less than it must.
 */

#ifndef LAST
#define LAST 3
#endif

#define SAMPLER_READY true

byte end = 1;

#include "replica.inc"

active proctype commits()
{
	do
	:: end < LAST -> end++
	od
}

active proctype reader()
{
	byte must;		/* what the read has to see */
	byte required;		/* what it is told that it has to see */
	bit proven;

	do
	/* It connects when it likes, and asks when it likes. */
	:: connect()
	:: d_step { must = end; required = end; proven = IS_PROOF };
		if
		/* is_pinned(), behind one endpoint; route() names it: P1 (a) */
		:: d_step { IN_SYNC || SAFE -> skip };
			if
			:: d_step { proven && connected -> proven = 0 };
				read()
			:: proven = 0
			fi
		/* P1 (b), with the answer's `required` or the commit's own token */
		:: proven = 0;
			read_behind_require()
		/* the primary */
		:: proven = 0
		fi;
		d_step { must = 0; required = 0 }
	od
}
