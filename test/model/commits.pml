/*
 * commits.pml
 *
 * Does every decision demand enough?  Concurrent commits, eviction, a restart of
 * the primary, and a decision by the fast path or by the bucket.
 *
 * No replica is needed: one that has replayed just what is demanded would be
 * named, and a read there would see just that.  So the read is stale exactly if
 * less is demanded than it must see.
 */

#ifndef LAST
#define LAST 3
#endif

#include "table.inc"

active proctype postmaster()
{
	d_step { restart_primary() }
}

active proctype reader()
{
	byte must;		/* what the read has to see */
	byte required;		/* what is demanded */
	bit waits;
	bit born;

again:
	{
		/* rpin_demand_begin() */
		d_step { floor != 0 -> must = visible; born = restarted };

		/* route() goes to the bucket, is_pinned() looks here first */
		if
		:: goto bucket
		:: quiet(required)
		fi;
		/* the replicas that are in sync with that, or else the bucket */
		if
		:: goto decide
		:: required = 0
		fi;
bucket:
		lookup(waits, required);
decide:
		atomic {
			assert(waits || required >= must);
			required = 0;
			waits = 0;
			must = 0;
			goto again
		}
	} unless {
		restarted != born
	};
	d_step {
		must = 0;
		required = 0;
		waits = 0;
		born = restarted
	};
	goto again
}

init
{
	atomic {
#ifndef ONE_WRITER
		run writer();
#endif
		run writer()
	}
}
