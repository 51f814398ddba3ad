/*-------------------------------------------------------------------------
 *
 * rpin_wal.c
 *	  This server's positions in the WAL, and its timeline history.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "storage/fd.h"

#include "rpin_wal.h"

/* A history file has a line of a few dozen bytes for each promotion. */
#define RPIN_HISTORY_FILE_LIMIT 65536

/*
 * The insert pointer stands behind a page header exactly when the last record
 * ended the page before (XLogBytePosToRecPtr against XLogBytePosToEndRecPtr).
 */
XLogRecPtr
rpin_wal_end_of(XLogRecPtr insert)
{
	if (XLogSegmentOffset(insert, wal_segment_size) == SizeOfXLogLongPHD)
		return insert - SizeOfXLogLongPHD;
	if (insert % XLOG_BLCKSZ == SizeOfXLogShortPHD)
		return insert - SizeOfXLogShortPHD;
	return insert;
}

XLogRecPtr
rpin_wal_end(void)
{
	return rpin_wal_end_of(GetXLogInsertRecPtr());
}

XLogRecPtr
rpin_wal_end_flushed_soon(void)
{
	XLogRecPtr	end = rpin_wal_end();

	if (GetFlushRecPtr(NULL) < end)
		XLogSetAsyncXactLSN(end);
	return end;
}

RpinPosition
rpin_wal_position(XLogRecPtr lsn)
{
	RpinPosition position = {
		.system_identifier = GetSystemIdentifier(),
		.lsn = lsn
	};

	if (RecoveryInProgress())
		(void) GetXLogReplayRecPtr(&position.timeline);
	else
		position.timeline = GetWALInsertionTimeLine();
	return position;
}

/* Reads a whole small file; -1 when it is missing, unreadable or too large. */
static ssize_t
read_small_file(const char *path, char *buffer, size_t size)
{
	size_t		length = 0;
	ssize_t		got = 1;
	int			fd = BasicOpenFile(path, O_RDONLY | PG_BINARY);

	if (fd < 0)
		return -1;
	while (length < size && got > 0)
	{
		got = read(fd, buffer + length, size - length);
		if (got > 0)
			length += got;
	}
	close(fd);
	return got == 0 ? (ssize_t) length : -1;
}

void
rpin_wal_read_history(TimeLineID timeline, RpinHistory *history)
{
	char		path[MAXPGPATH];
	char		buffer[RPIN_HISTORY_FILE_LIMIT];
	ssize_t		length = -1;

	if (timeline > 1)
	{
		TLHistoryFilePath(path, timeline);
		length = read_small_file(path, buffer, sizeof(buffer));
	}
	(void) rpin_history_parse(buffer, length > 0 ? length : 0, timeline,
							  history);
}
