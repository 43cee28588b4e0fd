/* Small collectives among the ranks of one server: no trees, no chunks, no rings. Who has something to give writes it
 * down once, for all; who needs it reads it there. That is one hop, and one cache line where a message is short: its
 * number, its signature and what is given are in the line that readers look at. A sum is added up by each rank that
 * wants it, in the order of the ranks, so that all get the same bits.
 *
 * The slot of call k is k % CALLS. It is written again once those who read it in call k - CALLS have said so (`done`).
 * Where all ranks read from all, they have: whoever has given in call k - 1 has done with k - 2. So nobody looks at
 * `done` there more than once in a while, and nobody else writes to a line that others look at. */
#include "engine/engine.h"

#include <string.h>

/* Who reads what this rank gives. */
static int
readers(const struct engine *e, const struct call *call)
{
	bool at_root = call->root == e->self->rank;
	if (call->coll == BROADCAST || call->coll == SCATTER)
		return at_root ? OF_ALL : OF_NONE;
	if (call->coll == REDUCE || call->coll == GATHER)
		return at_root ? OF_NONE : call->root;
	return OF_ALL;
}

/* What a rank gives: the same number of bytes for all that give. */
size_t
flat_bytes(Collective coll, int n_ranks, size_t block)
{
	bool each = coll == SCATTER || coll == REDUCESCATTER || coll == ALLTOALL;
	return each ? (size_t)n_ranks * block : block;
}

void
flat_begin(struct engine *e, const struct call *call)
{
	struct flat *f = &e->flat;
	bool from_root = call->coll == BROADCAST || call->coll == SCATTER, at_root = call->root == e->self->rank;
	f->readers = readers(e, call);
	/* A root that scales what it adds up does so in its own slot. */
	f->gives = f->bytes > 0 && (f->readers != OF_NONE || (call->coll == REDUCE && call->reduction.scales));
	f->next = from_root && !at_root ? call->root : 0;
	f->end = from_root ? (at_root ? 0 : call->root + 1) : call->root < 0 || at_root ? e->self->n_ranks : 0;
	f->reads = f->next < f->end;
	e->n_left = f->bytes > 0;
	if (e->own_left > 0)
		memcpy(e->own_to, e->own_from, e->own_left);
	e->own_left = 0;
}

/* ---- slots ---- */

static struct flat_slot *
slot_of(const struct engine *e, int rank)
{
	return &e->peer[rank].slots->slot[e->collective % CALLS];
}

static char *
data_of(const struct engine *e, int rank)
{
	if (e->flat.bytes <= FLAT_SHORT)
		return slot_of(e, rank)->data;
	return (char *)e->peer[rank].arena + (e->rings - e->arena);
}

/* One after the other, wherever they lie in the caller's memory. */
static void
give_blocks(const struct engine *e, const struct uneven *u, char *to)
{
	for (int r = 0; r < e->self->n_ranks; r++) {
		size_t bytes = (size_t)u->count[e->self->rank * e->self->n_ranks + r] * e->size;
		if (bytes > 0)
			memcpy(to, e->input + (size_t)u->send_at[r] * e->size, bytes);
		to += bytes;
	}
}

static void
give(struct engine *e, const struct call *call)
{
	char *to = data_of(e, e->self->rank);
	if (call->reduction.scales)
		reduction_run(&call->reduction, to, NULL, e->input, NULL, 0, e->flat.bytes / e->size, false, false);
	else if (call->uneven)
		give_blocks(e, call->uneven, to);
	else
		memcpy(to, e->input, e->flat.bytes);
	place_announce(e);
	e->flat.gives = false;
}

/* Wake who waits for this rank: for what it has given, or to give again where it has read. */
static void
ring(struct engine *e)
{
	int me = e->self->rank;
	full_fence();
	for (int r = 0; r < e->self->n_ranks; r++) {
		if (r == me || bell_is_awake(e->peer[r].bell))
			continue;
		bell_ring(e->peer[r].bell, flag_number(me, FLAG_SLOT));
		bell_ring(e->peer[r].bell, flag_number(me, FLAG_SLOT_DONE));
	}
}

/* ---- what others give ---- */

static void
add_up(const struct engine *e, const struct call *call)
{
	struct reduction r = call->reduction;
	size_t at = call->coll == REDUCESCATTER ? (size_t)e->self->rank * (size_t)call->count * e->size : 0;
	const void **operand = e->flat.operand;
	for (int i = 0; i < e->self->n_ranks; i++)
		operand[i] = (i == e->self->rank && !r.scales ? e->input : data_of(e, i)) + at;
	r.scales = false;
	reduction_run(&r, e->output, NULL, operand[0], operand + 1, e->self->n_ranks - 1, (size_t)call->count, true,
	    false);
}

static void
copy_from(const struct engine *e, const struct call *call, int rank)
{
	const struct uneven *u = call->uneven;
	if (u) {
		if (u->expected[rank] > 0)
			memcpy(e->output + (size_t)u->recv_at[rank] * e->size,
			    data_of(e, rank) + (size_t)u->before[rank] * e->size, (size_t)u->expected[rank] * e->size);
		return;
	}
	size_t block = (size_t)call->count * e->size;
	int from = call->coll == SCATTER || call->coll == ALLTOALL ? e->self->rank : 0;
	int to = call->coll == BROADCAST || call->coll == SCATTER ? 0 : rank;
	memcpy(e->output + (size_t)to * block, data_of(e, rank) + (size_t)from * block, block);
}

int
flat_awaits(const struct engine *e)
{
	for (int r = e->flat.next; r < e->flat.end; r++)
		if (r != e->self->rank && !flag_reached(&slot_of(e, r)->number, e->collective))
			return r;
	return e->flat.next;
}

/* From all of whom it reads, as far as they have given. The hub is asked which rank is in another call when all have
 * come, so that it can tell the one from the many. */
static bool
take(struct engine *e, const struct call *call)
{
	struct flat *f = &e->flat;
	int before = f->next;
	for (; f->next < f->end; f->next++) {
		const struct flat_slot *slot = slot_of(e, f->next);
		if (f->next == e->self->rank)
			continue;
		/* A rank that is ahead has given in the next call, too; the line of one that is not is here. */
		__builtin_prefetch(&e->peer[f->next].slots->slot[(e->collective + 1) % CALLS]);
		if (!flag_reached(&slot->number, e->collective))
			return f->next > before;
		if (atomic_load_explicit(&slot->signature, memory_order_relaxed) != e->signature) {
			e->suspects = flat_awaits(e) == f->next;
			return false;
		}
		if (!collective_reduces(call->coll))
			copy_from(e, call, f->next);
	}
	if (f->reads && collective_reduces(call->coll))
		add_up(e, call);
	if (f->reads)
		atomic_store_explicit(&e->region->slots.done, e->collective, memory_order_release);
	e->n_left = 0;
	return true;
}

bool
flat_progress(struct engine *e, struct call *call)
{
	bool gave = e->flat.gives, took;
	if (e->n_left == 0)
		return false;
	if (gave && !place_is_free(e))
		return false;
	if (gave)
		give(e, call);
	/* Who looks in vain first has what it gave seen meanwhile, so that the fence of `ring` is cheap. */
	took = take(e, call);
	if (gave || e->n_left == 0)
		ring(e);
	return gave || took;
}
