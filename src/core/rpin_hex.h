/*-------------------------------------------------------------------------
 *
 * rpin_hex.h
 *	  Hexadecimal digits, of which tokens, JSON escapes and history files have
 *	  some.  ASCII alone, whatever the locale, unlike isxdigit().
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_HEX_H
#define RPIN_HEX_H

/* The value of a digit in either case, or -1. */
static inline int
rpin_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

#endif							/* RPIN_HEX_H */
