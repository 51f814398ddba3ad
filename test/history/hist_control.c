/*
 * hist_control.c
 *	  What the checker is told while it runs.
 */
#define _GNU_SOURCE
#include "hist_control.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hist.h"
#include "hist_count.h"
#include "hist_model.h"

#define MARKS 1024
#define LONG_AGO INT64_C(-1000000000000)
#define NEVER INT64_MAX

/* How long a new primary may take. */
#define FAILOVER_PATIENCE INT64_C(60000000)

typedef struct Mark
{
	char		name[64];
	int64_t		at;
} Mark;

/* Written by the thread here alone; one that is counted does not change. */
static Mark marks[MARKS];
static _Atomic int mark_count;
static _Atomic int64_t last_mark = LONG_AGO;
static _Atomic int64_t failover_at = NEVER;

int64_t
hist_control_last_mark(void)
{
	return atomic_load(&last_mark);
}

int64_t
hist_control_failover_at(void)
{
	return atomic_load(&failover_at);
}

int
hist_control_marks(const char *name)
{
	int			count = 0;

	for (int i = 0; i < mark_count; i++)
		count += strcmp(marks[i].name, name) == 0;
	return count;
}

static void
mark(const char *name)
{
	atomic_store(&last_mark, hist_now());
	if (mark_count == MARKS)
		return;
	snprintf(marks[mark_count].name, sizeof(marks[mark_count].name), "%s", name);
	marks[mark_count].at = hist_now();
	atomic_fetch_add(&mark_count, 1);
}

/* Waits until it is a primary, and asks what it has. */
static void
new_primary(const char *conninfo)
{
	HistConn	conn;
	int64_t		give_up = hist_now() + FAILOVER_PATIENCE;

	hist_count(HIST_failovers);
	hist_primary_set(conninfo);
	hist_conn_init(&conn, hist_primary(NULL), true);
	while (!hist_stopping() && hist_now() < give_up)
	{
		HistCall	call = hist_call_text("SELECT pg_is_in_recovery()");
		PGresult   *result;
		bool		promoted;

		if (!hist_conn_wait(&conn, 100000) || !hist_conn_run(&conn, &call, 1, &result))
			continue;
		promoted = strcmp(hist_result_text(result, 0), "f") == 0;
		PQclear(result);
		if (promoted && hist_model_survivors(&conn) >= 0)
			break;
		hist_pause(20000);
	}
	hist_conn_close(&conn);
	atomic_store(&failover_at, hist_now());
	printf("there is a new primary\n");
	fflush(stdout);
}

static void
obey(char *line)
{
	char	   *argument = strchr(line, ' ');

	if (argument != NULL)
		*argument++ = '\0';
	if (strcmp(line, "stop") == 0)
		hist_stop();
	else if (strcmp(line, "mark") == 0 && argument != NULL)
		mark(argument);
	else if (strcmp(line, "primary") == 0 && argument != NULL)
		new_primary(argument);
	else if (line[0] != '\0')
		fprintf(stderr, "history: control: not understood: %s\n", line);
}

static void
obey_lines(char *buffer, size_t *length)
{
	char	   *end;

	while ((end = memchr(buffer, '\n', *length)) != NULL)
	{
		size_t		used = (size_t) (end + 1 - buffer);

		*end = '\0';
		obey(buffer);
		memmove(buffer, buffer + used, *length - used);
		*length -= used;
	}
}

/* Opened for writing too, so that it does not end with each of its writers. */
void *
hist_control_main(void *unused)
{
	struct pollfd fifo = {.fd = open(hist_options.control, O_RDWR | O_NONBLOCK), .events = POLLIN};
	char		buffer[4096];
	size_t		length = 0;

	(void) unused;
	if (fifo.fd < 0)
	{
		perror(hist_options.control);
		exit(2);
	}
	while (!hist_stopping())
	{
		ssize_t		got;

		if (poll(&fifo, 1, 100) <= 0)
			continue;
		got = read(fifo.fd, buffer + length, sizeof(buffer) - length);
		if (got > 0)
			length += (size_t) got;
		obey_lines(buffer, &length);
		if (length == sizeof(buffer))
			length = 0;
	}
	close(fifo.fd);
	return NULL;
}

void
hist_control_json(FILE *file)
{
	fprintf(file, "  \"marks\": [");
	for (int i = 0; i < mark_count; i++)
	{
		fprintf(file, "%s\n    {\"at\": %.3f, \"name\": \"", i ? "," : "",
				(double) (marks[i].at - hist_began_at()) / 1e6);
		for (const char *c = marks[i].name; *c != '\0'; c++)
			fputc(*c < ' ' || *c == '"' || *c == '\\' ? '?' : *c, file);
		fprintf(file, "\"}");
	}
	fprintf(file, "],\n");
}
