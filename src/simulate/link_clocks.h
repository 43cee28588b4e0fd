/* Clocks of links, and what else their files share. */
#ifndef BLINK_SIMULATE_LINK_CLOCKS_H
#define BLINK_SIMULATE_LINK_CLOCKS_H

#include "simulate/run.h"

/* The level of a link that bounds no step: above all others. */
#define UNBOUND ((Wide)1 << 104)

static inline Wide
work_of_link(const struct run *run, int l)
{
	return (Wide)run->net->rate[l] << (2 * RATE_BITS + LEVEL_BITS);
}

/* A level is rounded down, and so less than one too low; where links share in chains, those of lower links make the
 * ones above differ by more, as often as the weights of their flows are times those bounded. So levels have LEVEL_BITS
 * more than a clock counts; half of one unit of the clock, and one, are added, so that it is seldom behind. */
static inline Wide
speed_at(Wide level)
{
	return ((level + (1 << (LEVEL_BITS - 1))) >> LEVEL_BITS) + 1;
}

/* What the clock of a link shows now. */
static inline Wide
read_clock(const struct run *run, struct link_run *link)
{
	if (link->n_ends > 0)
		link->clock += speed_at(link->level) * (run->now - link->read);
	link->read = run->now;
	return link->clock;
}

static inline void
stale_link(struct run *run, int l)
{
	if (!run->link[l].stale)
		run->stale.link[run->stale.n++] = l;
	run->link[l].stale = true;
}

static inline void
stale_flow(struct run *run, int f)
{
	if (!run->flow[f].stale)
		run->stale_flow[run->n_stale_flows++] = f;
	run->flow[f].stale = true;
}

/* The next end of a flow, by the clock of its link: it is there no longer, is another one. */
void remove_end(struct run *run, int f);
void change_end(struct run *run, int f);

/* The first of the times is exact. */
void find_first(struct run *run);

/* For flows and links in the lists of stale ones. */
void set_clock(struct run *run, int f);
void set_time(struct run *run, int l);

#endif
