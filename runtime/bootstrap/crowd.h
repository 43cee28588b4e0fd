/* Strangers: connections to a port of this process that have not proved yet that they belong to its job.
 *
 * The ports of a process, of hubs and of nets, share one budget: at most a quarter of the descriptors that it may have,
 * and CROWD_MOST. Each has an equal share of it. When another stranger comes, the oldest goes that has said nothing (a
 * rank speaks at once), else the oldest that has been there for CROWD_PATIENCE. So whoever floods a port can make ranks
 * wait a moment or try again, which they do, but neither fill the memory nor use up the descriptors. */
#ifndef BLINK_BOOTSTRAP_CROWD_H
#define BLINK_BOOTSTRAP_CROWD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CROWD_MOST = 1024 };
#define CROWD_TIME INT64_C(1000000000)		/* that a stranger has to prove itself, ns */
#define CROWD_PATIENCE (CROWD_TIME / 10)

struct stranger {
	struct stranger *next, **back;		/* by age */
	int64_t since;				/* ns of CLOCK_MONOTONIC */
	bool spoke;
};

/* Of one port; one thread's. */
struct crowd {
	struct stranger *first, **last;
	int n;
	pid_t process;				/* that counts the port; 0: it is not counted */
	uint64_t n_evicted;
	int64_t evicted_at;			/* the last; 0: none has been */
};

/* The port has its share until crowd_close, when no stranger is left. In a forked child crowd_close does nothing. */
void crowd_open(struct crowd *c);
void crowd_close(struct crowd *c);

void crowd_enter(struct crowd *c, struct stranger *s, int64_t now);
void crowd_leave(struct crowd *c, struct stranger *s);		/* no stranger any more, or gone */

/* Another may enter only when one has left. */
bool crowd_full(const struct crowd *c);
/* Who is to leave for another; NULL: all are too young, until crowd_room_at. */
struct stranger *crowd_evict(struct crowd *c, int64_t now);
int64_t crowd_room_at(const struct crowd *c);

/* Have strangers been evicted of late? Then they are many, and may be why ranks come late. */
bool crowd_presses(const struct crowd *c, int64_t now);

#endif
