/* Queues of the simulator. */
#ifndef BLINK_SIMULATE_QUEUE_H
#define BLINK_SIMULATE_QUEUE_H

#include "base/status.h"

/* A clock of each of n ids, set to one time or to none: a tournament. Ids are leaves, those without a time have
 * INT64_MAX; of two nodes next to each other the sooner one is in the node above, of equal times that of the first id.
 * A time that is set changes the nodes above it, up to the first that stays as it is. */
typedef struct {
	int64_t time;
	int id;
} Clock;

typedef struct {
	int first_leaf;		/* a power of two: that of id 0 */
	Clock *node;		/* those below node i are 2 i and 2 i + 1; 1 is on top */
} Clocks;

Status clocks_new(Ctx *ctx, int n, Clocks *out);	/* in the scratch arena */

/* Whether it was set or not; time: not INT64_MAX. */
static inline void
clocks_set(Clocks *q, int id, int64_t time)
{
	int at = q->first_leaf + id;
	Clock clock = { time, id };
	q->node[at].time = time;
	while (at > 1) {
		Clock other = q->node[at ^ 1], before;
		bool loses = (other.time < clock.time) | ((other.time == clock.time) & at & 1);
		clock.time = loses ? other.time : clock.time;
		clock.id = loses ? other.id : clock.id;
		at /= 2;
		before = q->node[at];
		if (before.time == clock.time && before.id == clock.id)
			return;
		q->node[at] = clock;
	}
}

/* Whether it was set or not. */
static inline void
clocks_unset(Clocks *q, int id)
{
	clocks_set(q, id, INT64_MAX);
}

static inline bool
clocks_any(const Clocks *q)
{
	return q->node[1].time < INT64_MAX;
}

/* INT64_MAX: none is set. */
static inline int64_t
clocks_time(const Clocks *q)
{
	return q->node[1].time;
}

/* The first; one is set. */
static inline int
clocks_first(const Clocks *q)
{
	return q->node[1].id;
}

/* INT64_MAX: it is not set. */
static inline int64_t
clocks_time_of(const Clocks *q, int id)
{
	return q->node[q->first_leaf + id].time;
}

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

/* Of the first; INT64_MAX: none is left. */
static inline int64_t
events_time(const Events *q)
{
	return q->n_lines ? clocks_time(&q->heads) : INT64_MAX;
}

/* Keys of 64 bits, in room that the caller has. */
typedef struct {
	int n;
	int64_t *heap;
} Keys;

void keys_add(Keys *q, int64_t key);
int64_t keys_pop(Keys *q);				/* the least; n > 0 */

#endif
