/*-------------------------------------------------------------------------
 *
 * product.h
 *	  The extension in virtual time: its table, its sampler, its decision.
 *
 * The objects are those of src/core; here is only what src/shmem and src/worker
 * do around them, without processes: the loop of the sampler, and that a commit
 * wakes it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PRODUCT_H
#define PRODUCT_H

#include <stdint.h>

#define REPLICAS 3

/* A message takes so many microseconds, one way. */
#define PRODUCT_TRAVEL INT64_C(200)

typedef struct Product Product;

/* `ask` sends the sampler's question to a replica. */
extern Product *product_create(uint64_t keys, void (*ask) (int replica, int64_t now));

extern void product_commit(Product *product, int64_t now, uint64_t fingerprint,
						   uint64_t lsn);

/* The set of replicas that a read of the key may go to. */
extern uint64_t product_route(const Product *product, int64_t now,
							  uint64_t fingerprint);

/* The sampler: when it wants to run, its turn, and an answer. */
extern int64_t product_wake(const Product *product);
extern void product_run(Product *product, int64_t now);
extern void product_answer(Product *product, int64_t now, int replica,
						   uint64_t replay_lsn);

#endif							/* PRODUCT_H */
