/*-------------------------------------------------------------------------
 *
 * sim_world.h
 *	  The world: servers, WAL, networks, clients, and what befalls them.
 *
 * An event is one indivisible step of one of them.  Two steps of one actor are
 * two events wherever others can run in between: demanding and deciding, each
 * table lock of a commit, a reply's arrival and its reading, what the sampler
 * does and what it publishes.
 *
 * The world calls the product (sim_product.h) and tells the checks (sim_check.h)
 * what happened; the product sees nothing of it but its SimHost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "sim_base.h"
#include "sim_count.h"
#include "sim_product.h"
#include "sim_truth.h"

#define SIM_SERVERS 7			/* at most, the primary and a stranger
								 * included */
#define SIM_CLIENTS 256
#define SIM_LINKS 512
#define SIM_TRACE 4096
#define SIM_NAME_SIZE 32

typedef struct SimConfig
{
	uint64_t	seed;
	int			servers;		/* of the cluster; one is the primary */
	int			clients;
	int			keys;
	int			table_keys;
	int			write_percent;	/* of what clients do */
	int			enforce_percent;
	int64_t		think;			/* mean time between what a client does */
	int64_t		trip;			/* half a round trip to a replica */
	int64_t		storm;			/* mean time between disturbances; 0: none */
	RpinPace	pace;
} SimConfig;

/* How a replica replays: how often it does, and how much of what it has. */
typedef enum SimReplay
{
	SIM_REPLAY_PROMPT,
	SIM_REPLAY_LAGGING,
	SIM_REPLAY_TRICKLING,
	SIM_REPLAY_BURSTS,
	SIM_REPLAY_PAUSED,
	SIM_REPLAY_COUNT
} SimReplay;

typedef struct SimServer
{
	bool		up;
	bool		streaming;		/* from the primary; else up to `received` */
	bool		stranger;		/* of another cluster */
	bool		ghost;			/* its WAL is not the primary's, by the same
								 * number */
	bool		seen_ahead;		/* the product was told, since the primary
								 * started */
	int			line;
	uint64_t	replay;
	uint64_t	received;
	uint64_t	node_id;
	uint32_t	life;
	int64_t		life_start;
	SimReplay	replays;
	int64_t		silent_until;
	int64_t		slow_until;
	int			false_replies;	/* that many are to come */
	int64_t		disturbed;		/* the last time */
	char		name[SIM_NAME_SIZE];	/* in the setting */
	char		configured_name[SIM_NAME_SIZE]; /* as the sampler read it */
	char		published_name[SIM_NAME_SIZE];	/* as the board has it */
	SimPast		past;			/* of replay, in this life */
} SimServer;

/* What a sample was, really. */
typedef struct SimEvidence
{
	bool		open;			/* the connection that brought it is */
	bool		is_false;
	uint64_t	link;
	int64_t		asked_at;
	uint64_t	replay_asked;	/* where the replica was when it was asked */
	int64_t		taken_at;
	SimSpot		taken;
} SimEvidence;

/* A connection of the sampler. */
typedef struct SimLink
{
	uint64_t	id;
	int			server;
	uint32_t	life;
	bool		closed;			/* by the sampler */
	bool		broken;			/* by anything else */
	int64_t		stuck_until;	/* nothing arrives over it meanwhile */
	int64_t		last_arrival;
	bool		twice;
	RpinState	failure;
	RpinReport	report;
	SimEvidence evidence;
	char		host[RPIN_HOST_SIZE];

	/* for the pace: the request before */
	int64_t		asked_before;
	int64_t		answered_before;
	uint64_t	position_before;
} SimLink;

typedef enum SimStage
{
	SIM_STAGE_THINK,
	SIM_STAGE_PRE_COMMIT,
	SIM_STAGE_INSERT,
	SIM_STAGE_FLUSH,
	SIM_STAGE_VISIBLE,
	SIM_STAGE_CALLBACK,
	SIM_STAGE_ABORT,
	SIM_STAGE_DECIDE,
	SIM_STAGE_READ
} SimStage;

/* A question, and what the truth was when it was asked. */
typedef struct SimQuestion
{
	bool		by_name;		/* route(), else is_pinned() */
	bool		enforced;
	bool		has_token;
	int			key_count;
	int			key[3];
	int64_t		asked_at;
	SimSpot		required;		/* really; lsn 0: nothing */
	RpinReason	expected;		/* the fault; NONE: the truth decides */
	uint32_t	balanced;		/* servers behind the one endpoint */
	SimDemand	demand;
} SimQuestion;

typedef struct SimConnection
{
	bool		open;
	uint32_t	life;
	int64_t		opened_at;
} SimConnection;

typedef struct SimClient
{
	SimStage	stage;
	SimTransaction transaction;
	int			key[2];
	int			key_count;
	bool		flushes;
	SimSpot		commit;
	int			last_key;		/* -1: none */
	SimSpot		token_spot;
	RpinPosition token;			/* of the last commit; lsn 0: none */
	SimSpot		old_spot;
	RpinPosition old_token;		/* of a commit long ago */
	SimQuestion question;
	int			target;
	SimConnection connection[SIM_SERVERS];
} SimClient;

typedef struct SimTrace
{
	uint64_t	step;
	int64_t		now;
	const char *what;
	int			who;
	uint64_t	a;
	uint64_t	b;
} SimTrace;

typedef struct SimWorld
{
	SimConfig	config;
	SimRandom	random;
	SimQueue	queue;
	SimTruth   *truth;
	SimHost		host;
	SimProduct	product;
	SimCounts  *counts;

	int			server_count;	/* the last one is the stranger */
	SimServer	server[SIM_SERVERS];
	int			primary;
	uint32_t	epoch;			/* of the primary's life */
	uint32_t	youngest;		/* timeline number */
	SimPast		greatest;		/* of the product's table */
	bool		stormy;

	uint64_t	link_count;
	SimLink		link[SIM_LINKS];
	uint64_t	link_of[SIM_SERVERS];	/* the one that is open; 0: none */
	SimEvidence evidence[SIM_SERVERS];
	SimEvidence published[SIM_SERVERS]; /* as of the published board */
	uint32_t	published_mask;
	uint32_t	listed_mask;

	uint64_t	worker_version; /* of the only valid event of the sampler */
	int64_t		worker_at;
	bool		worker_sleeps;
	bool		reload;
	int64_t		stalled_until;
	int64_t		worker_disturbed;
	int			inbox_count;
	SimReply	inbox[SIM_LINKS];

	SimClient  *client;

	/* of a failed check */
	const char *failure;
	uint64_t	trace_count;
	SimTrace	trace[SIM_TRACE];
} SimWorld;

extern SimWorld *sim_world_create(const SimConfig *config, SimCounts *counts);
extern void sim_world_free(SimWorld *world);

/* A configuration, drawn by its seed. */
extern void sim_config_draw(SimConfig *config, uint64_t seed);

/* Handles the next event.  False when a check failed. */
extern bool sim_world_step(SimWorld *world);

/* The last events, oldest first. */
extern void sim_world_print_trace(const SimWorld *world, uint64_t count);

/* --- among the files of the world --- */

typedef enum SimEventKind
{
	SIM_EVENT_CLIENT,			/* who; what: epoch */
	SIM_EVENT_REPLAY,			/* who; what: life */
	SIM_EVENT_REPLAYS,			/* who: another way to replay */
	SIM_EVENT_TAKE,				/* what: link.  The replica answers */
	SIM_EVENT_ARRIVE,			/* who: progress, what: link */
	SIM_EVENT_WORKER_READ,		/* what: version */
	SIM_EVENT_WORKER_RUN,		/* what: version */
	SIM_EVENT_WORKER_START,		/* what: epoch */
	SIM_EVENT_FLUSH,
	SIM_EVENT_WEATHER,
	SIM_EVENT_DISTURB,
	SIM_EVENT_STALL,
	SIM_EVENT_REOPEN,			/* who; what: life */
	SIM_EVENT_FOLLOW,			/* who; what: life */
	SIM_EVENT_REBUILD,			/* who; what: life */
	SIM_EVENT_SWEEP,
	SIM_EVENT_COUNT
} SimEventKind;

extern void sim_trace(SimWorld *world, const char *what, int who, uint64_t a,
					  uint64_t b);
extern void sim_at(SimWorld *world, int64_t delay, SimEventKind kind, int who,
				   uint64_t what);
extern void sim_count(SimWorld *world, SimCount count);

/* sim_client.c */
extern void sim_client_start(SimWorld *world, int who);
extern bool sim_client_step(SimWorld *world, int who, uint64_t epoch);
extern void sim_client_next(SimWorld *world, int who, SimStage stage,
							int64_t shortest, int64_t longest);
extern void sim_client_rest(SimWorld *world, int who);
extern int	sim_client_choose_key(SimWorld *world, const SimClient *client);
extern bool sim_client_choose_token(SimWorld *world, RpinPosition *token,
									SimSpot *spot);

/* sim_writer.c: the stages of a client that writes */
extern void sim_writer_begin(SimWorld *world, int who);
extern void sim_writer_pre_commit(SimWorld *world, int who);
extern void sim_writer_insert(SimWorld *world, int who);
extern void sim_writer_flush(SimWorld *world, int who);
extern void sim_writer_become_visible(SimWorld *world, int who);
extern void sim_writer_callback(SimWorld *world, int who);
extern void sim_writer_abort(SimWorld *world, int who);
extern void sim_writer_pin_token(SimWorld *world, int who);

/* A position of the primary. */
extern SimSpot sim_primary_spot(const SimWorld *world, uint64_t lsn);

/* Where a replica is, really. */
extern SimSpot sim_server_spot(const SimWorld *world, int server);
extern bool sim_server_holds(const SimWorld *world, int server, SimSpot spot);
extern bool sim_primary_holds(const SimWorld *world, SimSpot spot);

/* Whom do users read from who are told the name of that row? */
extern int	sim_server_named(const SimWorld *world, const SimRow *row);
extern void sim_server_disturb(SimWorld *world, int server);

/* sim_network.c: the sampler's connections */
extern void sim_network_install(SimWorld *world);
extern void sim_network_take(SimWorld *world, uint64_t link);
extern bool sim_network_arrive(SimWorld *world, int progress, uint64_t link);
extern void sim_network_break(SimWorld *world, int server);
extern SimLink *sim_network_find(SimWorld *world, uint64_t link);

/* sim_worker.c: when the sampler's process gets to run */
extern void sim_worker_wake(SimWorld *world);
extern void sim_worker_start(SimWorld *world, int64_t delay);
extern void sim_worker_kill(SimWorld *world);
extern void sim_worker_disturb(SimWorld *world, int64_t until);
extern bool sim_worker_read(SimWorld *world, uint64_t version);
extern bool sim_worker_run(SimWorld *world, uint64_t version);

/* sim_cluster.c: the cluster's servers, and their failures */
extern void sim_cluster_start(SimWorld *world);
extern bool sim_cluster_replay(SimWorld *world, int server, uint64_t life);
extern void sim_cluster_replays(SimWorld *world, int server);
extern void sim_cluster_flush(SimWorld *world);
extern bool sim_cluster_reopen(SimWorld *world, int server, uint64_t life);
extern bool sim_cluster_follow(SimWorld *world, int server, uint64_t life);
extern bool sim_cluster_rebuild(SimWorld *world, int server, uint64_t life);
extern void sim_cluster_crash(SimWorld *world, int server);
extern void sim_cluster_crash_primary(SimWorld *world);
extern void sim_cluster_restore(SimWorld *world);
extern void sim_cluster_promote(SimWorld *world);

/* sim_weather.c */
extern void sim_weather_change(SimWorld *world);
extern void sim_weather_disturb(SimWorld *world);
extern void sim_weather_stall(SimWorld *world);
extern void sim_weather_reload(SimWorld *world);

#endif							/* SIM_WORLD_H */
