/* Who knows what: clocks of threadblocks and their lanes, and of signals. */
#include "base/limits.h"
#include "mscclpp/state.h"

#include <string.h>

Status
clock_make(struct run *run, Clock *clock)
{
	TRY(TEMP(run->ctx, clock->visible, 2 * run->n_known));
	clock->causal = clock->visible + run->n_known;
	return OK;
}

static void
join_ints(int *to, const int *from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = to[i] > from[i] ? to[i] : from[i];
}

void
clock_join(const struct run *run, const Clock *to, const Clock *from)
{
	join_ints(to->visible, from->visible, run->n_known);
	join_ints(to->causal, from->causal, run->n_known);
}

void
clock_copy(const struct run *run, const Clock *to, const Clock *from)
{
	memcpy(to->visible, from->visible, (size_t)run->n_known * sizeof(int));
	memcpy(to->causal, from->causal, (size_t)run->n_known * sizeof(int));
}

Status
lane_get(struct run *run, struct block *b, int lane, Clock **out)
{
	*out = &b->lane[lane];
	if (b->own[lane])
		return OK;
	if (!b->lane[lane].visible)
		TRY(clock_make(run, &b->lane[lane]));
	clock_copy(run, &b->lane[lane], &b->base);
	b->own[lane] = true;
	return OK;
}

/* All threads have done all operations before, and know what each of them knew. */
void
block_synchronise(const struct run *run, struct block *b, int self)
{
	for (int i = 0; i < MSCCLPP_MAX_CHANNELS; i++) {
		if (b->own[i])
			clock_join(run, &b->base, &b->lane[i]);
		b->own[i] = false;
	}
	b->base.visible[self] = b->base.causal[self] = b->serial;
}

Status
queue_put(struct run *run, struct queue *queue, const Clock *clock, bool relaxed)
{
	struct signal *signal = run->unused;
	if (signal) {
		run->unused = signal->next;
	} else {
		TRY(TEMP(run->ctx, signal, 1));
		TRY(clock_make(run, &signal->clock));
	}
	clock_copy(run, &signal->clock, clock);
	if (relaxed)
		memset(signal->clock.visible, 0, (size_t)run->n_known * sizeof(int));
	signal->next = NULL;
	if (queue->first)
		queue->last->next = signal;
	else
		queue->first = signal;
	queue->last = signal;
	return OK;
}

void
queue_take(struct run *run, struct queue *queue, const Clock *into, bool relaxed)
{
	struct signal *signal = queue->first;
	if (queue->n_free > 0) {
		queue->n_free--;
		return;
	}
	if (!relaxed)
		join_ints(into->visible, signal->clock.visible, run->n_known);
	join_ints(into->causal, signal->clock.causal, run->n_known);
	queue->first = signal->next;
	signal->next = run->unused;
	run->unused = signal;
}

bool
proxy_is_known(const struct run *run, const struct block *b, int lane, const Clock *known, const struct proxy *proxy)
{
	return proxy->time == 0 || (proxy->lane == lane && proxy->block == b - run->block)
	    || known->causal[proxy->block] >= proxy->time;
}

void
proxy_tell(const struct run *run, struct block *b, int lane, const Clock *known, struct proxy *proxy)
{
	proxy->lane = proxy_is_known(run, b, lane, known, proxy) ? lane : -1;
	proxy->block = (int)(b - run->block);
	proxy->time = b->serial;
	clock_join(run, &proxy->base, known);
}
