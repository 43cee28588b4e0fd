/* What tests/bench/peers.c measures, of libblink and of others: the same calls, and how often. */
#ifndef PEERS_H
#define PEERS_H

#include <stdlib.h>
#include <string.h>

/* A pingpong is between ranks 0 and 1, there and back. Sizes are of the whole message: of an allgather, a gather and an
 * alltoall what a rank receives, of a scatter and a reducescatter what one gives. Blocks of an alltoallv are equal. */
enum { ALLREDUCE, ALLGATHER, BROADCAST, REDUCE, REDUCESCATTER, ALLTOALL, ALLTOALLV, GATHER, SCATTER, PINGPONG,
	N_COLLS };
enum { ROUNDS = 5, N_SIZES = 12 };

static const char *const coll_names[] = { "allreduce", "allgather", "broadcast", "reduce", "reducescatter", "alltoall",
	"alltoallv", "gather", "scatter", "pingpong" };
static const size_t sizes[N_SIZES] = { 8, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20,
	16 << 20, 64 << 20, 256 << 20 };

static inline int
coll_of(const char *name)
{
	int c = 0;
	while (c < N_COLLS && strcmp(coll_names[c], name) != 0)
		c++;
	return c;
}

/* A float for each rank, where they are added. */
static inline int
has_blocks(int coll, size_t bytes, int n)
{
	return coll != REDUCESCATTER || bytes / (size_t)n >= sizeof(float);
}

/* Calls of a round. */
static inline int
repeats(size_t bytes)
{
	size_t n = ((size_t)16 << 20) / (bytes + (32 << 10));
	return n < 1 ? 1 : n > 500 ? 500 : (int)n;
}

static inline int
ascending(const void *a, const void *b)
{
	const double *x = (const double *)a, *y = (const double *)b;
	return (*x > *y) - (*x < *y);
}

/* Sorts them. */
static inline double
median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof *values, ascending);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

#endif
