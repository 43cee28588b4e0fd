/* Places of calls: when what was published in earlier ones may be written over. Rings lie in the small place of the
 * arena that the call has, or in half of it, and readers of trees say by lanes how far they are; a slot is read by
 * whoever the call says, and they say once for all slots how far they are. */
#include "engine/engine.h"
#include "support/error.h"

#include <stdlib.h>

/* What readers have still to do before the call may publish: of the call that had its small place before; for a large
 * call of all but the one before, which has the other half. NULL: nothing that is remembered, or nothing is
 * published. */
static const struct pending *
pending_of(const struct engine *e)
{
	uint64_t k = e->collective;
	if (e->is_flat ? !e->flat.gives : e->lanes->n_to == 0)
		return NULL;
	for (uint64_t ago = CALLS; ago > (e->small ? CALLS - 1 : 1); ago--) {
		int n = e->n_pending[(k - ago) % CALLS];
		if (n > 0)
			return &e->pending[(k - ago) % CALLS][n - 1];
	}
	return NULL;
}

/* A rank that has still to read what this rank's slot of the call holds; -1: none has, or the call writes nothing there
 * any more. */
static int
slot_reader(struct engine *e)
{
	struct flat *f = &e->flat;
	const struct given *given = &f->given[e->collective % CALLS];
	int of = given->readers, end = of == OF_ALL ? e->self->n_ranks : of + 1;
	uint64_t least = UINT64_MAX;
	if (given->call <= f->all_done || of == OF_NONE || (e->is_flat ? !f->gives : e->announced))
		return -1;
	for (int r = of == OF_ALL ? 0 : of; r < end; r++) {
		if (r == e->self->rank)
			continue;
		uint64_t done = atomic_load_explicit(&e->peer[r].slots->done, memory_order_acquire);
		if (done < given->call)
			return r;
		least = done < least ? done : least;
	}
	if (of == OF_ALL)
		f->all_done = least;
	return -1;
}

bool
place_is_free(struct engine *e)
{
	const struct pending *p;
	while ((p = pending_of(e))) {
		if (!flag_reached(p->done, p->value))
			return false;
		e->n_pending[(p->value >> 24) % CALLS]--;
	}
	return slot_reader(e) < 0;
}

bool
place_awaits(struct engine *e, int *peer, uint32_t *flag)
{
	const struct pending *p = pending_of(e);
	int reader = p ? -1 : slot_reader(e);
	if (p)
		*flag = flag_number(p->peer, FLAG_DONE + p->lane);
	else if (reader >= 0)
		*flag = flag_number(reader, FLAG_SLOT_DONE);
	else
		return false;
	*peer = p ? p->peer : reader;
	return true;
}

void
place_announce(struct engine *e)
{
	struct flat_slot *own = &e->region->slots.slot[e->collective % CALLS];
	e->flat.given[e->collective % CALLS] = (struct given){ e->collective, e->is_flat ? e->flat.readers : OF_NONE };
	atomic_store_explicit(&own->signature, e->signature, memory_order_release);
	atomic_store_explicit(&own->number, e->collective, memory_order_release);
	e->announced = true;
}

bool
place_differs(const struct engine *e, int peer)
{
	const struct flat_slots *slots = e->peer[peer].slots;
	const struct flat_slot *slot = slots ? &slots->slot[e->collective % CALLS] : NULL;
	return slot && atomic_load_explicit(&slot->number, memory_order_acquire) == e->collective
	    && atomic_load_explicit(&slot->signature, memory_order_acquire) != e->signature;
}

int
place_remember(struct engine *e, const RankProgram *prog, struct blink_error *err)
{
	int at = (int)(e->collective % CALLS), n = e->n_pending[at] + e->lanes->n_to;
	if (n > e->pending_capacity[at]) {
		struct pending *pending = realloc(e->pending[at], (size_t)n * sizeof *pending);
		if (!pending)
			return set_error_memory(err);
		e->pending[at] = pending;
		e->pending_capacity[at] = n;
	}
	for (int t = 0; t < prog->n_tasks; t++) {
		const struct plan_task *task = &e->lanes->task[t];
		for (int i = 0; i < task->task->n_to && task->n_chunks > 0; i++)
			e->pending[at][e->n_pending[at]++] = (struct pending){ task->to[i].done,
			    FLAG(e->collective, task->n_chunks), task->to[i].peer, task->to[i].lane };
	}
	return blinkSuccess;
}
