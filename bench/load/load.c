/*-------------------------------------------------------------------------
 *
 * load.c
 *	  Closed-loop clients for what pgbench cannot do: a transaction that talks
 *	  to Redis and to several servers.
 *
 *	load [-c clients] [-T seconds] [-k keys] [-r redis socket] script conninfo...
 *
 * Every client is a thread with a connection of its own to each server and to
 * Redis, and repeats the script.  A line of it is one round trip:
 *
 *	0 sql ...			on the first server, prepared once
 *	2:lk sql ...		on the third, with parameters $1 = the last answer and
 *						$2 = the key; `n` is a random number up to 100000
 *	get					Redis GET of the key; the answer becomes the last answer
 *	set					Redis SET of the key to the last answer, for 600 s
 *	seed 0/0			no round trip: the last answer before the run
 *
 * Prints transactions a second, and of their latency in microseconds the mean,
 * the median and the 99th percentile.
 *
 *-------------------------------------------------------------------------
 */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_STEPS 32
#define MAX_SERVERS 16
#define VALUE_SIZE 128
#define PARAMETERS 4

typedef enum StepKind
{
	STEP_SQL,
	STEP_GET,
	STEP_SET
} StepKind;

typedef struct Step
{
	StepKind	kind;
	int			server;
	char		parameters[PARAMETERS + 1];
	char		sql[1024];
} Step;

typedef struct Client
{
	pthread_t	thread;
	unsigned int seed;
	PGconn	   *server[MAX_SERVERS];
	int			redis;
	char		key[VALUE_SIZE];
	char		number[VALUE_SIZE];
	char		last[VALUE_SIZE];
	uint32_t   *latency;		/* microseconds */
	size_t		done;
	size_t		room;
} Client;

static Step step[MAX_STEPS];
static int	steps = 0;
static const char *conninfo[MAX_SERVERS];
static int	servers = 0;
static const char *redis_path = NULL;
static int	keys = 1000;
static char seed_value[VALUE_SIZE] = "";
static volatile bool over = false;

static void
die(const char *what, const char *detail)
{
	fprintf(stderr, "load: %s: %s\n", what, detail);
	exit(1);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

/* --- the script --------------------------------------------------------- */

static void
add_step(char *line)
{
	Step	   *s = &step[steps];
	char	   *space = strchr(line, ' ');
	char	   *colon;

	if (sscanf(line, "seed %127s", seed_value) == 1)
		return;
	if (steps++ == MAX_STEPS)
		die("script", "too long");
	if (strcmp(line, "get") == 0)
		s->kind = STEP_GET;
	else if (strcmp(line, "set") == 0)
		s->kind = STEP_SET;
	else
	{
		if (space == NULL)
			die("script", line);
		*space = '\0';
		s->kind = STEP_SQL;
		s->server = atoi(line);
		colon = strchr(line, ':');
		snprintf(s->parameters, sizeof(s->parameters), "%s",
				 colon == NULL ? "" : colon + 1);
		snprintf(s->sql, sizeof(s->sql), "%s", space + 1);
	}
}

static void
read_script(const char *path)
{
	char		line[1100];
	FILE	   *file = fopen(path, "r");

	if (file == NULL)
		die("script", path);
	while (fgets(line, sizeof(line), file) != NULL)
	{
		line[strcspn(line, "\n")] = '\0';
		if (line[0] != '\0')
			add_step(line);
	}
	fclose(file);
}

/* --- one client --------------------------------------------------------- */

static int
open_redis(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int			fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", redis_path);
	if (connect(fd, (struct sockaddr *) &address, sizeof(address)) != 0)
		die("redis", redis_path);
	return fd;
}

/*
 * One request, one reply, which for such short ones comes in one piece; a bulk
 * reply goes into `last`, a missing key leaves it alone.
 */
static void
ask_redis(Client *client, const char *request, size_t length)
{
	char		reply[512];
	ssize_t		n = 0;
	char	   *body;

	if (write(client->redis, request, length) != (ssize_t) length)
		die("redis", "write");
	while (n < 5 || reply[n - 1] != '\n')
	{
		ssize_t		more = read(client->redis, reply + n, sizeof(reply) - 1 - n);

		if (more <= 0)
			die("redis", "read");
		n += more;
	}
	reply[n] = '\0';
	if (reply[0] == '-')
		die("redis", reply);
	if (reply[0] != '$' || reply[1] == '-')
		return;
	body = strchr(reply, '\n') + 1;
	snprintf(client->last, sizeof(client->last), "%.*s",
			 (int) strcspn(body, "\r"), body);
}

static void
redis_step(Client *client, StepKind kind)
{
	char		request[512];
	int			length;

	if (kind == STEP_GET)
		length = snprintf(request, sizeof(request),
						  "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n",
						  strlen(client->key), client->key);
	else
		length = snprintf(request, sizeof(request),
						  "*5\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n$2\r\nEX\r\n$3\r\n600\r\n",
						  strlen(client->key), client->key,
						  strlen(client->last), client->last);
	ask_redis(client, request, (size_t) length);
}

static void
check(PGconn *connection, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		die("server", PQerrorMessage(connection));
}

static const char *
parameter(const Client *client, char kind)
{
	return kind == 'k' ? client->key : kind == 'l' ? client->last :
		client->number;
}

static void
sql_step(Client *client, int number)
{
	const Step *s = &step[number];
	PGconn	   *connection = client->server[s->server];
	const char *values[PARAMETERS];
	int			count = (int) strlen(s->parameters);
	char		name[16];
	PGresult   *result;

	for (int i = 0; i < count; i++)
		values[i] = parameter(client, s->parameters[i]);
	snprintf(name, sizeof(name), "s%d", number);
	result = PQexecPrepared(connection, name, count, values, NULL, NULL, 0);
	check(connection, result);
	if (PQntuples(result) > 0 && PQftype(result, 0) == 3220)	/* pg_lsn */
		snprintf(client->last, sizeof(client->last), "%s",
				 PQgetvalue(result, 0, 0));
	PQclear(result);
}

static void
transaction(Client *client)
{
	snprintf(client->key, sizeof(client->key), "user:%d",
			 rand_r(&client->seed) % keys);
	snprintf(client->number, sizeof(client->number), "%d",
			 rand_r(&client->seed) % 100000 + 1);
	for (int i = 0; i < steps; i++)
	{
		if (step[i].kind == STEP_SQL)
			sql_step(client, i);
		else
			redis_step(client, step[i].kind);
	}
}

static void
prepare(Client *client)
{
	for (int i = 0; i < servers; i++)
	{
		client->server[i] = PQconnectdb(conninfo[i]);
		if (PQstatus(client->server[i]) != CONNECTION_OK)
			die("connect", PQerrorMessage(client->server[i]));
	}
	for (int i = 0; i < steps; i++)
	{
		char		name[16];
		PGconn	   *connection;
		PGresult   *result;

		if (step[i].kind != STEP_SQL)
			continue;
		if (step[i].server >= servers)
			die("script", "names a server that was not given");
		connection = client->server[step[i].server];
		snprintf(name, sizeof(name), "s%d", i);
		result = PQprepare(connection, name, step[i].sql, 0, NULL);
		check(connection, result);
		PQclear(result);
	}
	if (redis_path != NULL)
		client->redis = open_redis();
	snprintf(client->last, sizeof(client->last), "%s", seed_value);
}

static void *
work(void *argument)
{
	Client	   *client = argument;

	while (!over)
	{
		double		begin = now();

		transaction(client);
		if (client->done == client->room)
		{
			client->room = client->room * 2 + 4096;
			client->latency = realloc(client->latency,
									  client->room * sizeof(uint32_t));
			if (client->latency == NULL)
				die("memory", "none left");
		}
		client->latency[client->done++] = (uint32_t) (now() - begin);
	}
	return NULL;
}

/* --- all of them -------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	uint32_t	x = *(const uint32_t *) a;
	uint32_t	y = *(const uint32_t *) b;

	return (x > y) - (x < y);
}

static void
report(const Client *client, int clients, double seconds)
{
	size_t		total = 0;
	uint32_t   *all;
	double		sum = 0;

	for (int i = 0; i < clients; i++)
		total += client[i].done;
	all = malloc((total + 1) * sizeof(uint32_t));
	if (all == NULL || total == 0)
		die("run", "nothing was done");
	total = 0;
	for (int i = 0; i < clients; i++)
		for (size_t j = 0; j < client[i].done; j++)
			sum += all[total++] = client[i].latency[j];
	qsort(all, total, sizeof(uint32_t), compare);
	printf("%.1f %.1f %u %u\n", (double) total / seconds, sum / (double) total,
		   all[total / 2], all[total - 1 - total / 100]);
	free(all);
}

int
main(int argc, char **argv)
{
	int			clients = 1;
	double		seconds = 1;
	double		begin;
	Client	   *client;
	int			option;

	while ((option = getopt(argc, argv, "c:T:k:r:")) != -1)
	{
		if (option == 'c')
			clients = atoi(optarg);
		else if (option == 'T')
			seconds = atof(optarg);
		else if (option == 'k')
			keys = atoi(optarg);
		else if (option == 'r')
			redis_path = optarg;
		else
			return 2;
	}
	if (argc - optind < 1 || argc - optind - 1 > MAX_SERVERS)
		die("usage", "load [options] script conninfo...");
	read_script(argv[optind]);
	for (int i = optind + 1; i < argc; i++)
		conninfo[servers++] = argv[i];
	client = calloc((size_t) clients, sizeof(Client));
	for (int i = 0; i < clients; i++)
	{
		client[i].seed = (unsigned int) (i * 7919 + 1) ^ (unsigned int) getpid();
		prepare(&client[i]);
	}
	begin = now();
	for (int i = 0; i < clients; i++)
		if (pthread_create(&client[i].thread, NULL, work, &client[i]) != 0)
			die("thread", "cannot start");
	usleep((useconds_t) (seconds * 1e6));
	over = true;
	for (int i = 0; i < clients; i++)
		pthread_join(client[i].thread, NULL);
	report(client, clients, (now() - begin) / 1e6);
	return 0;
}
