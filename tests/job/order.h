/* What the files of this program share. order.c has the list of scenarios; the others what a rank does in them. */
#ifndef ORDER_H
#define ORDER_H

#include "device.h"
#include "flight.h"

struct order {
	job_body *body;
	int n_calls, servers;
	bool threads;
	uint64_t seed;
};

/* ---- order_calls.c ---- */

job_body stream, alone, tested, ahead, ahead_large, waited, same_bits, huge;

/* blinkCommWait in a thread, which is given the waiter. */
struct waiter {
	struct rank *me;
	blinkComm_t comm;
	uint64_t call;
	blinkResult_t result;
	int64_t took;
};

void *wait_in_thread(void *waiter);

/* ---- order_comms.c ---- */

job_body several, in_turn, one_by_one, leaving, forked, splits, split_outlives;

/* ---- order_messages.c ---- */

job_body groups, messages;

/* blinkGroupStart, or blinkGroupEnd: a fault where it fails. */
bool group(struct rank *me, bool start);

/* ---- order_uneven.c ---- */

job_body uneven, uneven_differs, uneven_refused;

/* ---- order_ends.c ---- */

job_body aborted, taken_back, refused, messages_differ, calls_differ, groups_fail;

#endif
