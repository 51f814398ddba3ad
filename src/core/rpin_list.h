/*-------------------------------------------------------------------------
 *
 * rpin_list.h
 *	  The list of replicas as an operator writes it.
 *
 *		[name=]host[:port], ...
 *
 * A host is a name, an IPv4 address, an IPv6 address in brackets, or a path
 * (it starts with '/'): the directory of a Unix-domain socket.  The name
 * defaults to host[:port] as written.  Blanks around names, hosts and commas
 * mean nothing.  Only printable ASCII, no quotes: names go into query results
 * of databases of every encoding.
 *
 * Nothing here throws, allocates or keeps state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_LIST_H
#define RPIN_LIST_H

#include <stddef.h>
#include <stdint.h>

/* With the terminating zero byte. */
#define RPIN_NAME_SIZE 128
#define RPIN_HOST_SIZE 256

#define RPIN_DEFAULT_PORT 5432

typedef struct RpinAddress
{
	char		name[RPIN_NAME_SIZE];
	char		host[RPIN_HOST_SIZE];	/* without brackets */
	uint16_t	port;
} RpinAddress;

typedef struct RpinListError
{
	const char *message;		/* a sentence without its final period */
	size_t		entry;			/* which entry of the list, from 1 */
	size_t		offset;			/* where it starts in the text, in bytes */
} RpinListError;

/*
 * Reads a list of at most `size` entries.  Answers how many there are, 0 for a
 * blank text; or -1 with *error filled.
 */
extern int	rpin_list_parse(const char *text, RpinAddress *address, int size,
							RpinListError *error);

#endif							/* RPIN_LIST_H */
