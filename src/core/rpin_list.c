/*-------------------------------------------------------------------------
 *
 * rpin_list.c
 *	  Reading the list of replicas.
 *
 *-------------------------------------------------------------------------
 */
#include "rpin_list.h"

#include <stdbool.h>
#include <string.h>

/* A stretch of the text. */
typedef struct RpinSpan
{
	const char *start;
	size_t		length;
} RpinSpan;

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static RpinSpan
trim(RpinSpan span)
{
	while (span.length > 0 && is_blank(span.start[0]))
	{
		span.start++;
		span.length--;
	}
	while (span.length > 0 && is_blank(span.start[span.length - 1]))
		span.length--;
	return span;
}

static RpinSpan
head(RpinSpan span, size_t length)
{
	return (RpinSpan)
	{
		span.start, length
	};
}

static RpinSpan
tail(RpinSpan span, size_t skip)
{
	return (RpinSpan)
	{
		span.start + skip, span.length - skip
	};
}

/* Position of the last c, or -1. */
static long
last_index(RpinSpan span, char c)
{
	for (long i = (long) span.length - 1; i >= 0; i--)
		if (span.start[i] == c)
			return i;
	return -1;
}

static bool
is_plain(RpinSpan span)
{
	for (size_t i = 0; i < span.length; i++)
	{
		char		c = span.start[i];

		if (c <= ' ' || c > '~' || c == '\'' || c == '"' || c == '\\' ||
			c == '=')
			return false;
	}
	return true;
}

static void
copy(char *to, RpinSpan from)
{
	memcpy(to, from.start, from.length);
	to[from.length] = '\0';
}

static const char *
parse_port(RpinSpan text, uint16_t *port)
{
	uint32_t	value = 0;

	if (text.length == 0 || text.length > 5)
		return "the port must be a number from 1 to 65535";
	for (size_t i = 0; i < text.length; i++)
	{
		if (text.start[i] < '0' || text.start[i] > '9')
			return "the port must be a number from 1 to 65535";
		value = value * 10 + (uint32_t) (text.start[i] - '0');
	}
	if (value == 0 || value > 65535)
		return "the port must be a number from 1 to 65535";
	*port = (uint16_t) value;
	return NULL;
}

/* Splits host[:port]; *port is left empty where there is none. */
static const char *
split_host(RpinSpan text, RpinSpan *host, RpinSpan *port, bool *has_port)
{
	long		colon = last_index(text, ':');

	if (text.start[0] == '[')
	{
		long		bracket = last_index(text, ']');

		if (bracket < 0)
			return "the bracket of an IPv6 address is not closed";
		*host = head(tail(text, 1), (size_t) bracket - 1);
		*port = tail(text, (size_t) bracket + 1);
		if (port->length > 0 && port->start[0] != ':')
			return "only a port may follow the bracket of an IPv6 address";
		*has_port = port->length > 0;
		if (*has_port)
			*port = tail(*port, 1);
		return NULL;
	}

	*has_port = colon >= 0;
	*host = *has_port ? head(text, (size_t) colon) : text;
	*port = tail(text, *has_port ? (size_t) colon + 1 : text.length);
	if (text.start[0] != '/' && last_index(*host, ':') >= 0)
		return "an IPv6 address must stand in brackets";
	return NULL;
}

static const char *
parse_address(RpinSpan text, RpinAddress *address)
{
	RpinSpan	host;
	RpinSpan	port;
	bool		has_port;
	const char *message;

	if (text.length == 0)
		return "the host is empty";
	if (!is_plain(text))
		return "a host may have only printable ASCII characters, no blanks, quotes, backslashes or equal signs";
	message = split_host(text, &host, &port, &has_port);
	if (message != NULL)
		return message;
	if (host.length == 0)
		return "the host is empty";
	if (host.length >= RPIN_HOST_SIZE)
		return "the host is longer than 255 bytes";
	copy(address->host, host);
	address->port = RPIN_DEFAULT_PORT;
	return has_port ? parse_port(port, &address->port) : NULL;
}

static const char *
parse_name(RpinSpan text, RpinAddress *address)
{
	if (text.length == 0)
		return "the name before the equal sign is empty";
	if (!is_plain(text))
		return "a name may have only printable ASCII characters, no blanks, quotes, backslashes or equal signs";
	if (text.length >= RPIN_NAME_SIZE)
		return "the name is longer than 127 bytes";
	copy(address->name, text);
	return NULL;
}

static const char *
parse_entry(RpinSpan text, RpinAddress *address)
{
	const char *equal;
	RpinSpan	name;
	const char *message;

	if (text.length == 0)
		return "the entry is empty";
	equal = memchr(text.start, '=', text.length);
	name = text;
	if (equal != NULL)
	{
		size_t		length = (size_t) (equal - text.start);

		name = trim(head(text, length));
		text = trim(tail(text, length + 1));
	}
	message = parse_address(text, address);
	return message != NULL ? message : parse_name(name, address);
}

static bool
is_taken(const char *name, const RpinAddress *address, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(address[i].name, name) == 0)
			return true;
	return false;
}

int
rpin_list_parse(const char *text, RpinAddress *address, int size,
				RpinListError *error)
{
	RpinSpan	rest = {text, strlen(text)};
	int			count = 0;

	if (trim(rest).length == 0)
		return 0;

	for (;;)
	{
		const char *comma = memchr(rest.start, ',', rest.length);
		size_t		length = comma != NULL ? (size_t) (comma - rest.start) : rest.length;
		RpinSpan	entry = trim(head(rest, length));

		error->entry = (size_t) count + 1;
		error->offset = (size_t) (entry.start - text);
		error->message = count == size
			? "there are more replicas than replica_pin.max_replicas allows"
			: parse_entry(entry, &address[count]);
		if (error->message == NULL &&
			is_taken(address[count].name, address, count))
			error->message = "the name is used twice";
		if (error->message != NULL)
			return -1;
		count++;
		if (comma == NULL)
			return count;
		rest = tail(rest, length + 1);
	}
}
