/* Parameters of the twins that tests of the virtual GPUs launch. */
#include "../twin.h"

#include <stdbool.h>

/* "fill": to[0..n-1] = value, by all threads of all blocks. */
struct fill {
	uint32_t *to;
	uint64_t n;
	uint32_t value;
};

/* "wait": until *flag >= value; then *to = 1. */
struct wait {
	const uint64_t *flag;
	uint64_t value;
	uint64_t *to;
};

/* "token": of two, number `me` sends every second number of 1 to `turns` when it has got the one before. */
struct token {
	uint64_t *mine, *theirs;
	uint64_t me, turns;
};

/* "send": `rounds` messages to another device, each 16 numbers and then a flag, with a fence between or not. "receive":
 * counts those that are not whole. */
enum { MESSAGE_WORDS = 16 };
struct message {
	uint64_t data[MESSAGE_WORDS], flag;
};

struct send {
	struct message *to;
	const uint64_t *done;		/* in this device's memory: rounds that the receiver has read */
	uint64_t rounds, fences;
};

struct receive {
	const struct message *from;
	uint64_t *done;			/* in the sender's memory */
	uint64_t rounds;
	uint64_t *bad;
	uint64_t fences;
};

/* "own": stores to another device, and loads what it stored; counts what differs in *bad. */
struct own {
	uint64_t *far, *bad;
};

/* "barrier": `turns` times, each thread writes its place of the block's memory, and looks at all of them. *bad counts
 * those that were not written. */
struct barrier {
	uint64_t *bad;
	uint32_t turns;
};

/* "crowd": how many blocks run at once, at most: in *most, by *now. */
struct crowd {
	uint64_t *now, *most;
	uint64_t ns;
};

/* "step": *at += 1, in two accesses with others between. */
struct step {
	uint64_t *at;
};

/* "touch": one access of `bytes` bytes; "add": one of virtual_gpu_add. */
struct touch {
	void *at;
	uint32_t bytes, writes;
};
