/*-------------------------------------------------------------------------
 *
 * sim_product.h
 *	  The product under test: src/core as it is, and what src/shmem, src/worker
 *	  and src/sql do with it, without a server.
 *
 * Each function here stands for the one that its comment names, and keeps the
 * order of its steps where safety rests on it.  Where the server has a lock, a
 * latch, a socket or a setting, there is a field or a call of SimHost.  Nothing
 * here knows what is true: only what the host tells it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_PRODUCT_H
#define SIM_PRODUCT_H

#include "rpin_decide.h"
#include "rpin_history.h"
#include "rpin_keyset.h"
#include "rpin_lag.h"
#include "rpin_list.h"
#include "rpin_replica.h"
#include "rpin_table.h"
#include "rpin_token.h"

#define SIM_REPLICAS 8
#define SIM_LIST_SIZE 1024

/* What a connection hands up; a connection is a number that is used once. */
typedef enum SimProgress
{
	SIM_PROGRESS_CONNECTED,
	SIM_PROGRESS_PREPARED,
	SIM_PROGRESS_REPORT,
	SIM_PROGRESS_FAILED
} SimProgress;

typedef struct SimReply
{
	uint64_t	link;
	const char *host;			/* whom the connection leads to */
	SimProgress progress;
	RpinReport	report;			/* REPORT */
	RpinState	failure;		/* FAILED */
} SimReply;

/* The server that the product is part of. */
typedef struct SimHost
{
	int64_t		now;
	bool		in_recovery;
	uint64_t	system_identifier;
	uint64_t	node_id;
	uint32_t	timeline;
	uint64_t	wal_end;
	uint64_t	flushed;
	uint32_t	random;			/* for one jitter */
	char		replicas[SIM_LIST_SIZE];	/* the settings */
	RpinPace	pace;
	char		history[65536]; /* the file */
	size_t		history_length;

	void	   *world;
	uint64_t	(*open) (void *world, const RpinAddress *address);
	void		(*close) (void *world, uint64_t link);
	void		(*prepare) (void *world, uint64_t link);
	void		(*request) (void *world, uint64_t link);
	void		(*wake) (void *world);	/* sets the sampler's latch */
} SimHost;

/* RpinBoardRow and RpinBoard */
typedef struct SimRow
{
	RpinAddress address;
	RpinReplica replica;
} SimRow;

typedef struct SimBoard
{
	RpinHistory history;
	int			clamped;
	int			count;
	SimRow		row[SIM_REPLICAS];
} SimBoard;

/* The sampler process. */
typedef struct SimSampler
{
	bool		running;
	RpinPace	pace;			/* clamped */
	RpinLag		waited;
	bool		changed;
	uint64_t	link[SIM_REPLICAS]; /* 0: no connection */
	SimBoard	board;
	SimBoard	spare;
} SimSampler;

/* What is in shared memory, and the sampler. */
typedef struct SimProduct
{
	SimHost    *host;
	int64_t		lifetime;		/* the setting sample_lifetime */
	uint64_t	seed;
	RpinTable  *table;
	uint64_t	evictions;
	uint64_t	edition;
	SimBoard	published;
	bool		asleep;
	SimSampler	sampler;
} SimProduct;

/* A transaction of a session (rpin_capture.c). */
typedef struct SimTransaction
{
	RpinKeyset	keys;
	bool		has_prepared;
	uint32_t	marked;
	bool		marked_all;
	uint32_t	recorded;		/* how far a commit has come */
} SimTransaction;

/* RpinDemand */
typedef struct SimDemand
{
	RpinReason	fault;
	bool		given;
	bool		pending;
	uint64_t	required;
	bool		quiet;			/* answered by the fast path, if in sync */
} SimDemand;

/* RpinChoice; the names are places on the board. */
typedef struct SimChoice
{
	RpinReason	reason;
	RpinReason	found;
	uint64_t	named;
} SimChoice;

/* A server starts with an empty table, and no sampler yet. */
extern void sim_product_start(SimProduct *product, SimHost *host,
							  uint64_t keys, uint64_t seed);
extern void sim_product_stop(SimProduct *product);
extern uint64_t sim_product_fingerprint(const SimProduct *product, int key);

/* Recording: pin(), pin(token), and the callbacks of a transaction. */
extern void sim_product_ensure_floor(SimProduct *product);
extern uint64_t sim_product_pin(SimProduct *product,
								SimTransaction *transaction, int key);
extern void sim_product_record(SimProduct *product, uint64_t fingerprint,
							   uint64_t lsn);
extern void sim_product_before_commit(SimProduct *product,
									  SimTransaction *transaction);
extern bool sim_product_commit(SimProduct *product,
							   SimTransaction *transaction, uint64_t lsn);
extern void sim_product_abort(SimProduct *product,
							  SimTransaction *transaction);

/* Deciding.  Between the demand and the decision others may do anything. */
extern void sim_demand_begin(SimProduct *product, SimDemand *demand,
							 bool has_written);
extern void sim_demand_add_key(SimProduct *product, SimDemand *demand,
							   int key);
extern void sim_demand_add_no_key(SimDemand *demand);
extern void sim_demand_add_token(SimProduct *product, SimDemand *demand,
								 const char *token, size_t length);
extern bool sim_demand_quiet(SimProduct *product, SimDemand *demand);
extern void sim_product_decide(const SimProduct *product,
							   const SimDemand *demand, bool enforced,
							   SimChoice *choice);
extern RpinReason sim_product_resolve(const SimProduct *product,
									  const RpinPosition *position,
									  uint64_t *lsn);

/* A replica is asked about a token: has_replayed() and require(). */
extern RpinReason sim_node_compare(uint64_t system_identifier,
								   uint32_t timeline, uint64_t lsn,
								   const RpinPosition *position);

/* The sampler process. */
extern void sim_sampler_create(SimProduct *product);
extern void sim_sampler_configure(SimProduct *product);
extern int64_t sim_sampler_run(SimProduct *product);
extern int64_t sim_sampler_rest(SimProduct *product, int64_t deadline);
extern int	sim_sampler_ready(SimProduct *product, const SimReply *reply);
extern void sim_sampler_destroy(SimProduct *product);

#endif							/* SIM_PRODUCT_H */
