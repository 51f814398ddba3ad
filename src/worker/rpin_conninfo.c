/*-------------------------------------------------------------------------
 *
 * rpin_conninfo.c
 *	  The libpq options of the samplers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <arpa/inet.h>

#include "libpq-fe.h"

#include "rpin_conninfo.h"

/* What an operator may choose. */
static const char *const allowed_options[] = {
	"application_name", "channel_binding", "dbname", "gssdelegation",
	"gssencmode", "gsslib", "keepalives", "keepalives_count",
	"keepalives_idle", "keepalives_interval", "krbsrvname",
	"max_protocol_version", "min_protocol_version", "passfile", "require_auth",
	"requirepeer", "ssl_max_protocol_version", "ssl_min_protocol_version",
	"sslcert", "sslcertmode", "sslcompression", "sslcrl", "sslcrldir",
	"sslkey", "sslmode", "sslnegotiation", "sslrootcert", "sslsni",
	"tcp_user_timeout", "user"
};

static bool
is_allowed(const char *keyword)
{
	for (int i = 0; i < (int) lengthof(allowed_options); i++)
		if (strcmp(allowed_options[i], keyword) == 0)
			return true;
	return false;
}

/* libpq marks what it would not display; a password is one. */
static bool
is_secret(const PQconninfoOption *option)
{
	return strchr(option->dispchar, '*') != NULL;
}

static bool
refuse(RpinConninfoError *error, const char *hint, const char *format,
	   const char *keyword)
{
	snprintf(error->detail, sizeof(error->detail), format, keyword);
	error->hint = hint;
	return false;
}

static bool
check_option(const PQconninfoOption *option, RpinConninfoError *error)
{
	if (option->val == NULL || is_allowed(option->keyword))
		return true;
	if (is_secret(option))
		return refuse(error,
					  "Put the secret into a password file that only the server's operating system user can read, and name it with passfile.",
					  "Option \"%s\" would put a secret into a setting, which the server logs when it changes.",
					  option->keyword);
	return refuse(error,
				  "Put addresses into replica_pin.replicas, and the time limit into replica_pin.sample_timeout.",
				  "Option \"%s\" is not allowed in replica_pin.conninfo.",
				  option->keyword);
}

bool
rpin_conninfo_check(const char *conninfo, RpinConninfoError *error)
{
	char	   *message = NULL;
	PQconninfoOption *options = PQconninfoParse(conninfo, &message);
	bool		good = true;

	if (options == NULL)
	{
		/* The message can quote a password: it goes nowhere. */
		PQfreemem(message);
		return refuse(error,
					  "Write it as keyword=value pairs, separated by blanks.",
					  "It is not a valid libpq connection string%s.", "");
	}
	for (PQconninfoOption *option = options; good && option->keyword; option++)
		good = check_option(option, error);
	PQconninfoFree(options);
	return good;
}

bool
rpin_conninfo_get(const char *conninfo, const char *keyword, char *value,
				  size_t size)
{
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
	bool		found = false;

	if (options == NULL)
		return false;
	for (PQconninfoOption *option = options; option->keyword; option++)
		if (strcmp(option->keyword, keyword) == 0 && option->val != NULL)
			found = strlcpy(value, option->val, size) < size;
	PQconninfoFree(options);
	return found;
}

void
rpin_conninfo_clear_environment(void)
{
	PQconninfoOption *options = PQconninfoParse("", NULL);

	if (options == NULL)
		return;
	for (PQconninfoOption *option = options; option->keyword; option++)
		if (option->envvar != NULL)
			unsetenv(option->envvar);
	PQconninfoFree(options);
}

bool
rpin_conninfo_is_address(const char *host)
{
	unsigned char binary[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, binary) == 1 ||
		inet_pton(AF_INET6, host, binary) == 1;
}

/* Sets or replaces an option; false when there is no memory. */
static bool
add_param(RpinConnectParams *params, int size, const char *keyword,
		  const char *value)
{
	int			i = 0;

	while (params->keyword[i] != NULL && strcmp(params->keyword[i], keyword) != 0)
		i++;
	if (i + 1 >= size)
		return false;
	free((char *) params->value[i]);
	params->value[i] = strdup(value);
	if (params->keyword[i] == NULL)
		params->keyword[i] = strdup(keyword);
	return params->keyword[i] != NULL && params->value[i] != NULL;
}

/*
 * What an operator may override comes first, then his options, then what is
 * ours.  A host that is an address is given as hostaddr too, so that the C
 * library is not asked to resolve it, which could stop the sampler.  The replica
 * ends a connection on which nothing was asked for two lifetimes of a sample:
 * the sampler that opened it is gone, and its farewell may have been lost.
 */
static bool
add_all(RpinConnectParams *params, int size, const PQconninfoOption *options,
		const RpinAddress *address, const RpinPace *pace)
{
	int			timeout = (int) (pace->sample_timeout / 1000);
	int			silence = (int) (2 * pace->sample_lifetime / 1000);
	char		port[8];
	char		milliseconds[16];
	char		settings[96];
	bool		good;

	snprintf(port, sizeof(port), "%u", address->port);
	snprintf(milliseconds, sizeof(milliseconds), "%d", timeout);
	snprintf(settings, sizeof(settings),
			 "-c statement_timeout=%d -c idle_session_timeout=%d", timeout,
			 silence);

	good = add_param(params, size, "application_name", "replica_pin sampler") &&
		add_param(params, size, "dbname", "postgres") &&
		add_param(params, size, "gssencmode", "disable") &&
		add_param(params, size, "tcp_user_timeout", milliseconds);
	for (; good && options->keyword != NULL; options++)
		if (options->val != NULL)
			good = add_param(params, size, options->keyword, options->val);
	good = good &&
		add_param(params, size, "host", address->host) &&
		add_param(params, size, "port", port) &&
		add_param(params, size, "options", settings) &&
		add_param(params, size, "client_encoding", "SQL_ASCII");
	if (good && rpin_conninfo_is_address(address->host))
		good = add_param(params, size, "hostaddr", address->host);
	return good;
}

static int
count_options(const PQconninfoOption *options)
{
	int			count = 0;

	while (options[count].keyword != NULL)
		count++;
	return count;
}

bool
rpin_conninfo_build(const char *conninfo, const RpinAddress *address,
					const RpinPace *pace, RpinConnectParams *params)
{
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
	bool		good = false;

	memset(params, 0, sizeof(*params));
	if (options != NULL)
	{
		int			size = count_options(options) + 1;

		params->keyword = calloc(size, sizeof(char *));
		params->value = calloc(size, sizeof(char *));
		good = params->keyword != NULL && params->value != NULL &&
			add_all(params, size, options, address, pace);
		PQconninfoFree(options);
	}
	if (!good)
		rpin_conninfo_free(params);
	return good;
}

void
rpin_conninfo_free(RpinConnectParams *params)
{
	for (int i = 0; params->keyword != NULL && params->value != NULL &&
		 params->keyword[i] != NULL; i++)
	{
		free((char *) params->keyword[i]);
		free((char *) params->value[i]);
	}
	free(params->keyword);
	free(params->value);
	memset(params, 0, sizeof(*params));
}
