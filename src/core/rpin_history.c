/*-------------------------------------------------------------------------
 *
 * rpin_history.c
 *	  Timeline history: reading the file, resolving a position.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_history.h"

#include <string.h>

#include "rpin_hex.h"

/* The unread part of a text. */
typedef struct RpinCursor
{
	const char *next;
	const char *end;
} RpinCursor;

static bool
at(const RpinCursor *cursor, char c)
{
	return cursor->next < cursor->end && *cursor->next == c;
}

static void
skip_blanks(RpinCursor *cursor)
{
	while (at(cursor, ' ') || at(cursor, '\t') || at(cursor, '\r'))
		cursor->next++;
}

static void
skip_line(RpinCursor *cursor)
{
	while (cursor->next < cursor->end && *cursor->next++ != '\n')
		;
}

/* One number of at most 32 bits. */
static bool
read_number(RpinCursor *cursor, int base, uint32_t *value)
{
	uint64_t	sum = 0;
	const char *start = cursor->next;

	for (; cursor->next < cursor->end; cursor->next++)
	{
		int			digit = rpin_hex_digit(*cursor->next);

		if (digit < 0 || digit >= base)
			break;
		sum = sum * (uint64_t) base + (uint64_t) digit;
		if (sum > UINT32_MAX)
			return false;
	}
	*value = (uint32_t) sum;
	return cursor->next > start;
}

/* "timeline TAB high/low", whatever follows on the line. */
static bool
read_ancestor(RpinCursor *cursor, RpinAncestor *ancestor)
{
	uint32_t	high;
	uint32_t	low;

	if (!read_number(cursor, 10, &ancestor->timeline))
		return false;
	skip_blanks(cursor);
	if (!read_number(cursor, 16, &high) || !at(cursor, '/'))
		return false;
	cursor->next++;
	if (!read_number(cursor, 16, &low))
		return false;
	ancestor->switch_lsn = ((uint64_t) high << 32) | low;
	return ancestor->timeline != 0 && ancestor->switch_lsn != 0;
}

/* Adds a younger ancestor; the oldest goes when there is no room. */
static void
add_ancestor(RpinHistory *history, RpinAncestor ancestor)
{
	if (history->count == RPIN_HISTORY_ANCESTORS)
	{
		history->count--;
		memmove(&history->ancestor[0], &history->ancestor[1],
				history->count * sizeof(RpinAncestor));
	}
	history->ancestor[history->count++] = ancestor;
}

/* Are the timelines in order, all of them older than the current one? */
static bool
is_younger(const RpinHistory *history, const RpinAncestor *ancestor)
{
	uint32_t	last = history->count == 0 ? 0 :
		history->ancestor[history->count - 1].timeline;

	return ancestor->timeline > last && ancestor->timeline < history->timeline;
}

bool
rpin_history_parse(const char *text, size_t length, uint32_t timeline,
				   RpinHistory *history)
{
	RpinCursor	cursor = {text, text + length};

	memset(history, 0, sizeof(*history));
	history->timeline = timeline;

	while (cursor.next < cursor.end)
	{
		RpinAncestor ancestor;

		skip_blanks(&cursor);
		if (cursor.next < cursor.end && !at(&cursor, '#') && !at(&cursor, '\n'))
		{
			if (!read_ancestor(&cursor, &ancestor) ||
				!is_younger(history, &ancestor))
			{
				history->count = 0;
				return false;
			}
			add_ancestor(history, ancestor);
		}
		skip_line(&cursor);
	}
	return true;
}

uint64_t
rpin_history_begin(const RpinHistory *history)
{
	if (history->count == 0)
		return 0;
	return history->ancestor[history->count - 1].switch_lsn;
}

bool
rpin_history_same(const RpinHistory *history, uint32_t timeline,
				  uint64_t begin)
{
	if (timeline == 0 || timeline != history->timeline)
		return false;
	if (timeline > 1 && begin == 0)
		return false;
	return begin == rpin_history_begin(history);
}

RpinReason
rpin_history_resolve(const RpinHistory *history, uint64_t system_identifier,
					 uint64_t end, const RpinPosition *position, uint64_t *lsn)
{
	uint64_t	kept = UINT64_MAX;	/* so much of the timeline is still ours */

	if (position->system_identifier != system_identifier)
		return RPIN_REASON_WRONG_CLUSTER;

	if (position->timeline == history->timeline)
	{
		if (position->lsn > end)
			return RPIN_REASON_POSITION_IN_FUTURE;
		*lsn = position->lsn;
		return RPIN_REASON_NONE;
	}

	/*
	 * From the youngest on: a recovery to a target can leave a timeline
	 * before it began, and then cuts off the end of its ancestors as well.
	 */
	for (uint32_t i = history->count; i-- > 0;)
	{
		if (kept > history->ancestor[i].switch_lsn)
			kept = history->ancestor[i].switch_lsn;
		if (history->ancestor[i].timeline != position->timeline)
			continue;
		if (position->lsn > kept)
			return RPIN_REASON_WRITE_LOST;
		*lsn = position->lsn;
		return RPIN_REASON_NONE;
	}
	return RPIN_REASON_UNKNOWN_TIMELINE;
}
