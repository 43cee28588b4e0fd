/* One collective call of a test: what each rank sends, and what it should receive, computed apart from libblink. */
#ifndef CALL_H
#define CALL_H

#include "blink.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	CALL_PRE_MUL_SUM = blinkOpNext,
	CALL_OPS,
	CALL_TYPES = blinkFloat8e5m2 + 1,
	CALL_COLLECTIVES = blinkCollAlltoAll + 1
};

/* Values of floating-point types: small, so that every order of a reduction gives the same; with many digits, so that
 * each step rounds; any bits, NaN and infinities too, for what does not add or multiply. Integers are any bits. */
enum fill { FILL_EXACT, FILL_ROUNDED, FILL_BITS };

struct call {
	blinkCollective_t coll;
	blinkDataType_t type;
	int op;				/* blinkSum to blinkAvg, or CALL_PRE_MUL_SUM */
	int root;
	size_t count;
	enum fill fill;
	bool in_place;
	int shift;			/* elements by which the buffers are off 64 bytes */
	uint64_t seed;
};

struct buffers {
	char *memory;			/* guards and both buffers */
	size_t bytes;
	void *send, *recv;
	size_t n_send, n_recv;		/* elements */
	size_t size;			/* of an element */
	char *device;			/* where `memory` is on the rank's GPU; NULL: calls are on the host */
	void *stream;			/* of calls */
};

/* Number of combinations of collective, type and operation, and one of them. */
int call_combinations(void);
void call_combination(int i, struct call *c);

/* "allreduce float32 sum" */
void call_kind(const struct call *c, char text[80]);

/* Root, fill, place, shift and a count of at most `most` by chance. */
void call_random(struct call *c, int n, size_t most, uint64_t *state);

/* Buffers of this rank in `memory`, of call_need bytes and aligned to 64; what it sends is there, the rest is 0xa5. */
size_t call_need(const struct call *c, int n, int rank);
void call_place(const struct call *c, int n, int rank, char *memory, struct buffers *b);

/* Make the call; on a GPU its input is copied there first. An operation with a scalar is made before and destroyed
 * after it. */
blinkResult_t call_start(const struct call *c, int rank, const struct buffers *b, blinkComm_t comm);

/* On a GPU: what it has made of the memory. After the wait. */
blinkResult_t call_fetch(int rank, const struct buffers *b, blinkComm_t comm);

/* Is what was received right, and all around it as before? Of many elements a part is looked at. */
bool call_right(const struct call *c, int n, int rank, const struct buffers *b, char why[256]);

uint64_t call_digest(const struct call *c, const struct buffers *b);	/* of what was received; any NaN is one */
const char *call_text(const struct call *c, char text[160]);
bool call_reduces(blinkCollective_t coll);
bool call_has_root(blinkCollective_t coll);
const char *call_name(blinkCollective_t coll);

#endif
