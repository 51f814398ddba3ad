/*
 * hist_reader.c
 *	  The thread that reads.
 */
#include "hist_reader.h"

#include <stdlib.h>

static void
init(HistReader *reader, uint64_t number)
{
	reader->random = hist_options.seed * 1000 + 500 + number;
	reader->high = calloc((size_t) hist_options.keys, sizeof(HistHigh));
	if (reader->high == NULL)
		abort();
	hist_conn_init(&reader->primary, hist_primary(&reader->primary_number), true);
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		const HistReplica *replica = &hist_options.replicas[i];

		hist_conn_init(&reader->direct[i], replica->conninfo, true);
		if (replica->pooler != NULL)
			hist_conn_init(&reader->pooled[i], replica->pooler, false);
	}
}

/* Connections are opened ahead, so that they are old when they are needed. */
static void
keep_open(HistReader *reader)
{
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		hist_conn_ready(&reader->direct[i]);
		if (hist_options.replicas[i].pooler != NULL)
			hist_conn_ready(&reader->pooled[i]);
	}
}

static void
close_all(HistReader *reader)
{
	hist_conn_close(&reader->primary);
	for (int i = 0; i < hist_options.replica_count; i++)
	{
		hist_conn_close(&reader->direct[i]);
		hist_conn_close(&reader->pooled[i]);
	}
	free(reader->high);
	free(reader);
}

void *
hist_reader_main(void *number)
{
	HistReader *reader = calloc(1, sizeof(HistReader));

	if (reader == NULL)
		abort();
	init(reader, (uint64_t) (intptr_t) number);
	while (!hist_stopping())
	{
		keep_open(reader);
		hist_primary_follow(&reader->primary, &reader->primary_number);
		/* a carried token needs no primary */
		if (hist_options.mode->read != hist_read_token && hist_options.mode->read != hist_read_anywhere &&
			!hist_conn_wait(&reader->primary, 50000))
			continue;
		hist_model_demand(reader->again > 1 ? reader->read.demand.slot :
						  hist_model_pick(hist_random(&reader->random)), &reader->read.demand);
		reader->again -= reader->again > 0;
		if (hist_warm() && reader->read.demand.commit.version != 0)
			hist_options.mode->read(reader);
		else
			hist_pause(1000);
	}
	close_all(reader);
	return NULL;
}
