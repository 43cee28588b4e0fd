/* MIAD: the size of chunks, found by trying: multiplicative increase, additive decrease (Blink, section 4.2.1). */
#ifndef BLINK_MIAD_H
#define BLINK_MIAD_H

#include <stdbool.h>
#include <stdint.h>

/* From a small chunk on, the size is doubled while throughput grows. Once it does not, it is lowered from there in
 * equal steps, of a quarter of the best size so far, while that helps; then the best size of all stays. Throughput that
 * differs by less than a fiftieth counts as the same, so that noise does not drive the search. */
enum { MIAD_LEAST = 16 << 10, MIAD_MOST = 16 << 20 };

struct miad {
	int64_t chunk;			/* bytes to be tried next, or, once settled, to be used */
	int64_t most;			/* no chunk is larger than a message */
	int64_t best, step;
	double best_seconds;
	int trials;
	bool lowers, settled;
};

/* most: bytes of the message. A message that is not larger than two least chunks needs no search. */
void miad_start(struct miad *m, int64_t most);

/* What the current chunk took: the least of some calls, of the slowest rank. */
void miad_report(struct miad *m, double seconds);

#endif
