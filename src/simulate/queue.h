/* Queues of the simulator. */
#ifndef BLINK_SIMULATE_QUEUE_H
#define BLINK_SIMULATE_QUEUE_H

#include "base/status.h"

/* A clock of each of n ids, set to one time or to none: a binary heap, in which equal times are in the order of ids. */
typedef struct {
	int64_t time;
	int id;
} Clock;

typedef struct {
	int n;			/* that are set */
	Clock *heap;
	int *place;		/* where each id is in `heap`; -1: not set */
	int64_t *time;		/* of each id */
} Clocks;

Status clocks_new(Ctx *ctx, int n, Clocks *out);	/* in the scratch arena */
void clocks_set(Clocks *q, int id, int64_t time);	/* whether it was set or not */
int clocks_pop(Clocks *q);				/* the first; n > 0 */
void clocks_unset(Clocks *q, int id);			/* whether it was set or not */

/* What happens, each once. */
typedef struct {
	int64_t time;
	int id, step;
} Event;

/* Events that wait equally long come in the order in which they were added, so that each length of a wait has a line
 * of its own, and few lines are compared. Equal times: the line that was first made, first. */
typedef struct {
	int64_t wait;
	int first, n, room;	/* a ring; room is 0 or a power of two */
	Event *ring;
} Line;

typedef struct {
	int n_lines, room;
	Line *line;
	int n_keys;		/* a power of two, at least twice n_lines, or 0 */
	int *key;		/* lines by the hash of their waits, + 1; 0: free */
	Clocks heads;		/* of lines that are not empty */
} Events;

/* now: not before that of the event that was added last. Grows in the scratch arena. */
Status events_add(Ctx *ctx, Events *q, int64_t now, int64_t wait, int id, int step);
Event events_pop(Events *q);				/* the first; one is left */

static inline bool
events_left(const Events *q)
{
	return q->heads.n > 0;
}

static inline int64_t
events_time(const Events *q)
{
	return q->heads.heap[0].time;
}

/* Keys of 64 bits, in room that the caller has. */
typedef struct {
	int n;
	int64_t *heap;
} Keys;

void keys_add(Keys *q, int64_t key);
int64_t keys_pop(Keys *q);				/* the least; n > 0 */

#endif
