/* Clocks of links, and the next end of each: links.c. */
#include "simulate/link_clocks.h"
#include "base/heap.h"

/* Times of ends are found again when a level rises by more than one part in 2^SLACK_BITS. */
enum { SLACK_BITS = 4 };

#define ENDS_BEFORE(run, a, b) ((a).end < (b).end)
#define END_MOVED(run, moved, place) (run)->flow[(moved).flow].at = (place)

HEAP(put_end, const struct run, struct end, ENDS_BEFORE, END_MOVED)

/* The next end of a flow, by the clock of its link, is there. */
static void
add_end(struct run *run, int f)
{
	struct flow_run *flow = &run->flow[f];
	struct link_run *link = &run->link[flow->clock];
	struct end end = { run->active[flow->head].end - flow->ahead, f };
	link->n_ends++;
	put_end(run, &run->end[link->first], link->n_ends, link->n_ends - 1, end);
	if (flow->at == 0)
		stale_link(run, flow->clock);
}

void
remove_end(struct run *run, int f)
{
	const struct flow_run *flow = &run->flow[f];
	struct link_run *link = &run->link[flow->clock];
	struct end *heap = &run->end[link->first], last = heap[--link->n_ends];
	int at = flow->at;
	if (at == 0)
		stale_link(run, flow->clock);
	if (at < link->n_ends)
		put_end(run, heap, link->n_ends, at, last);
}

/* Its first step is another one. */
void
change_end(struct run *run, int f)
{
	struct flow_run *flow = &run->flow[f];
	const struct link_run *link = &run->link[flow->clock];
	struct end end = { run->active[flow->head].end - flow->ahead, f };
	bool first = flow->at == 0;
	put_end(run, &run->end[link->first], link->n_ends, flow->at, end);
	if (first || flow->at == 0)
		stale_link(run, flow->clock);
}

/* When the next step that goes by the clock of a link ends, if it has that level until then. */
static int64_t
time_of_end(const struct run *run, struct link_run *link, Wide level)
{
	Wide left = run->end[link->first].end - read_clock(run, link);
	Wide wait = left > 0 ? (left - 1) / speed_at(level) + 1 : 0;
	return wait < SIM_TIME_MOST - run->now ? run->now + (int64_t)wait : SIM_TIME_MOST;
}

void
find_first(struct run *run)
{
	for (int l; clocks_any(&run->clocks) && run->link[l = clocks_first(&run->clocks)].early;) {
		struct link_run *link = &run->link[l];
		link->early = false;
		link->fastest = link->level;
		clocks_set(&run->clocks, l, time_of_end(run, link, link->level));
	}
}

void
set_clock(struct run *run, int f)
{
	struct flow_run *flow = &run->flow[f];
	flow->stale = false;
	if (flow->head == NO_SLOT || flow->clock == flow->bound)
		return;
	if (flow->clock != NO_LINK) {
		flow->ahead += read_clock(run, &run->link[flow->clock]);
		remove_end(run, f);
	}
	flow->clock = flow->bound;
	flow->ahead -= read_clock(run, &run->link[flow->clock]);
	add_end(run, f);
}

/* A lower bound of the time of its next end, so that it need not be found again whenever the level changes. */
void
set_time(struct run *run, int l)
{
	struct link_run *link = &run->link[l];
	link->stale = false;
	if (link->n_ends == 0) {
		link->clock = 0;
		link->fastest = UNBOUND;
		clocks_unset(&run->clocks, l);
		return;
	}
	link->early = link->n > 1;
	link->fastest = link->level + (link->early ? link->level >> SLACK_BITS : 0);
	clocks_set(&run->clocks, l, time_of_end(run, link, link->fastest));
}
