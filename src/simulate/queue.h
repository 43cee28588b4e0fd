/* Queues of the simulator: binary heaps, in which equal times are in the order of their ids. */
#ifndef BLINK_SIMULATE_QUEUE_H
#define BLINK_SIMULATE_QUEUE_H

#include "base/status.h"

/* A clock of each of n ids, set to one time or to none. */
typedef struct {
	int n;			/* that are set */
	int *heap, *place;	/* ids; where each is in `heap`, -1: not set */
	int64_t *time;		/* of each id */
} Clocks;

Status clocks_new(Ctx *ctx, int n, Clocks *out);	/* in the scratch arena */
void clocks_set(Clocks *q, int id, int64_t time);	/* whether it was set or not */
int clocks_pop(Clocks *q);				/* the first; n > 0 */

/* What happens, each once. */
typedef struct {
	int64_t time;
	int id, step;
} Event;

typedef struct {
	int n, room;
	Event *heap;
} Events;

Status events_add(Ctx *ctx, Events *q, Event event);	/* grows in the scratch arena */
Event events_pop(Events *q);				/* n > 0 */

/* Keys of 64 bits, in room that the caller has. */
typedef struct {
	int n;
	int64_t *heap;
} Keys;

void keys_add(Keys *q, int64_t key);
int64_t keys_pop(Keys *q);				/* the least; n > 0 */

#endif
