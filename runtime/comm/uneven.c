/* An alltoall whose blocks differ in length: its arguments, as a call. On the host it goes by the paths of a schedule
 * for alltoall, once all ranks know what each sends to each (engine/uneven.c); on a device cuda/uneven.c says how. */
#include "comm/uneven.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

/* Of a buffer: bytes from `at` up to, not including, `end`. */
struct piece {
	uintptr_t at, end;
	bool received;
	int rank;
};

static int
by_place(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->end > y->end) - (x->end < y->end);
}

static int
overlap(const struct piece *x, const struct piece *y, struct blink_error *err)
{
	return set_error(err, blinkInvalidArgument, "%s of rank %d overlaps %s of rank %d",
	    x->received ? "recv" : "send", x->rank, y->received ? "recv" : "send", y->rank);
}

/* What is received overlaps nothing; what is sent may be sent to several. */
static int
check_overlaps(struct piece *piece, int n, struct blink_error *err)
{
	const struct piece *last[2] = { NULL, NULL };	/* of what is sent, and received: that which ends last */
	qsort(piece, (size_t)n, sizeof *piece, by_place);
	for (int i = 0; i < n; i++) {
		const struct piece *p = &piece[i];
		for (int received = 0; received < 2; received++)
			if (last[received] && (received || p->received) && p->at < last[received]->end)
				return overlap(last[received], p, err);
		if (!last[p->received] || p->end > last[p->received]->end)
			last[p->received] = p;
	}
	return blinkSuccess;
}

static int
check_block(const struct side *side, int rank, size_t size, int64_t most, struct blink_error *err)
{
	size_t count = side->counts[rank];
	if (count > (uint64_t)most)
		return set_error(err, blinkInvalidArgument, "%s: count of rank %d: %zu: too large", side->name, rank,
		    count);
	if (count == 0)
		return blinkSuccess;
	if (!side->buffer)
		return set_error(err, blinkInvalidArgument, "%s: NULL: want %zu elements of rank %d", side->name, count,
		    rank);
	if ((uintptr_t)side->buffer % size)
		return set_error(err, blinkInvalidArgument, "%s: not aligned to its elements of %zu bytes", side->name,
		    size);
	if (side->displs[rank] > (UINTPTR_MAX - (uintptr_t)side->buffer) / size - count)
		return set_error(err, blinkInvalidArgument, "%s: displacement of rank %d: %zu: too large", side->name,
		    rank, side->displs[rank]);
	return blinkSuccess;
}

static int
check_sides(const struct rank_state *self, const struct side side[2], size_t size, struct blink_error *err)
{
	int n = 0;
	int64_t most = INT64_MAX / 4 / self->n_ranks / (int64_t)size;
	struct piece *piece = calloc(2 * (size_t)self->n_ranks, sizeof *piece);
	if (!piece)
		return set_error_memory(err);
	for (int s = 0; s < 2 && err->code == blinkSuccess; s++) {
		if (!side[s].counts || !side[s].displs)
			set_error(err, blinkInvalidArgument, "%s: no counts or displacements: want one of each rank",
			    side[s].name);
		for (int r = 0; r < self->n_ranks && err->code == blinkSuccess; r++) {
			check_block(&side[s], r, size, most, err);
			if (err->code != blinkSuccess || side[s].counts[r] == 0)
				continue;
			uintptr_t at = (uintptr_t)side[s].buffer + side[s].displs[r] * size;
			piece[n++] = (struct piece){ at, at + side[s].counts[r] * size, s, r };
		}
	}
	if (err->code == blinkSuccess)
		check_overlaps(piece, n, err);
	free(piece);
	return err->code;
}

static void
take_side(const struct side *side, int n, int64_t *count, int64_t *at)
{
	for (int r = 0; r < n; r++) {
		count[r] = (int64_t)side->counts[r];
		at[r] = side->counts[r] ? (int64_t)side->displs[r] : 0;
	}
}

static struct uneven *
take_sides(const struct rank_state *self, const struct side side[2])
{
	size_t n = (size_t)self->n_ranks;
	struct uneven *u = calloc(1, sizeof *u + (4 * n + n * n) * sizeof u->data[0]);
	if (!u)
		return NULL;
	u->send_at = u->data;
	u->recv_at = u->send_at + n;
	u->expected = u->recv_at + n;
	u->before = u->expected + n;
	u->count = u->before + n;
	take_side(&side[0], self->n_ranks, u->count + (size_t)self->rank * n, u->send_at);
	take_side(&side[1], self->n_ranks, u->expected, u->recv_at);
	return u;
}

struct call *
uneven_call(const struct rank_state *self, const struct side side[2], const struct reduction *reduction,
    struct blink_error *err)
{
	if (check_sides(self, side, reduction->size, err) != blinkSuccess)
		return NULL;
	struct call *call = calloc(1, sizeof *call);
	struct uneven *u = take_sides(self, side);
	if (!call || !u) {
		free(call);
		free(u);
		set_error_memory(err);
		return NULL;
	}
	*call = (struct call){ .coll = ALLTOALL, .root = -1, .send = side[0].buffer, .recv = (void *)side[1].buffer,
	    .reduction = *reduction, .uneven = u };
	return call;
}
