#include "msccl/values.h"
#include "base/limits.h"

#include <stdio.h>

Status
values_make(Ctx *ctx, const char *label, Values *v, int64_t n_cells)
{
	v->words = (v->n_ranks + 63) / 64;
	v->size = sizeof(Value) + (size_t)v->words * sizeof(uint64_t);
	if (n_cells * (int64_t)v->size > LIMIT_MSCCL_BYTES)
		return fail(ctx, LIMIT, "%s: %lld chunks in all buffers, of %d GPUs", label, (long long)n_cells,
		    v->n_ranks);
	TRY(TEMP(ctx, v->value, (size_t)n_cells * v->size));
	for (int64_t c = 0; c < n_cells; c++) {
		values_at(v, c)->place = PLACE_NONE;
		values_at(v, c)->twice = NOT_TWICE;
	}
	return OK;
}

/* A place of the whole message, unless each rank has its own. */
void
values_give(const Values *v, int64_t cell, int rank, int c)
{
	Value *value = values_at(v, cell);
	value->place = v->coll == ALLGATHER || v->coll == GATHER ? rank * v->block + c : c;
	value->ranks[rank / 64] |= UINT64_C(1) << rank % 64;
}

void
values_reduce(const Values *v, Value *to, const Value *from)
{
	if (to->place == PLACE_NONE || from->place == PLACE_NONE)
		to->place = PLACE_NONE;
	else if (to->place != from->place)
		to->place = PLACE_MIXED;
	if (from->twice != NOT_TWICE)
		to->twice = from->twice;
	for (int w = 0; w < v->words; w++) {
		uint64_t both = to->ranks[w] & from->ranks[w];
		if (both && to->twice == NOT_TWICE)
			to->twice = w * 64 + __builtin_ctzll(both);
		to->ranks[w] |= from->ranks[w];
	}
}

/* What chunk c of rank g's output has to hold: `place`, of one rank or of all; false: anything. */
static bool
wanted(const Values *v, int root, int g, int c, int *place, int *rank)
{
	int block = v->block;
	*place = c;
	*rank = EVERY_RANK;
	switch (v->coll) {
	case BROADCAST:
		*rank = root;
		return true;
	case REDUCE:
		return g == root;
	case ALLREDUCE:
		return true;
	case GATHER:
		*rank = c / block;
		return g == root;
	case ALLGATHER:
		*rank = c / block;
		return true;
	case SCATTER:
		*rank = root;
		*place = g * block + c;
		return true;
	case REDUCESCATTER:
		*place = g * block + c;
		return true;
	default:
		*rank = c / block;
		*place = g * block + c % block;
		return true;
	}
}

static bool
has_rank(const Value *value, int r)
{
	return value->ranks[r / 64] >> r % 64 & 1;
}

/* The first rank that is missing, or is in it and must not be; -1: none. */
static int
odd_rank(const Values *v, const Value *value, int rank)
{
	for (int r = 0; r < v->n_ranks; r++)
		if (has_rank(value, r) != (rank == EVERY_RANK || rank == r))
			return r;
	return -1;
}

static bool
is_right(const Values *v, const Value *value, int place, int rank)
{
	return value->place == place && value->twice == NOT_TWICE && odd_rank(v, value, rank) < 0;
}

static void
describe(const Values *v, const Value *value, int place, int rank, char text[200])
{
	int odd = odd_rank(v, value, rank);
	if (value->place == PLACE_NONE)
		snprintf(text, 200, "nothing that was ever set");
	else if (value->place == PLACE_MIXED)
		snprintf(text, 200, "a sum of different chunks");
	else if (value->twice != NOT_TWICE)
		snprintf(text, 200, "what rank %d has, twice", value->twice);
	else if (odd >= 0 && rank == EVERY_RANK)
		snprintf(text, 200, "a sum without rank %d", odd);
	else if (odd >= 0)
		snprintf(text, 200, "what %s rank %d has", has_rank(value, rank) ? "also" : "not the right",
		    has_rank(value, rank) ? odd : rank);
	else
		snprintf(text, 200, "chunk %d of the message where chunk %d belongs", value->place / v->fine,
		    place / v->fine);
}

/* How many cells are wrong if this is the root; the first of them. */
static int
count_wrong(const Values *v, const int64_t *output, int stride, int n_cells, int root, int *gpu, int *chunk)
{
	int wrong = 0, place, rank;
	for (int g = v->n_ranks - 1; g >= 0; g--)
		for (int c = n_cells - 1; c >= 0; c--)
			if (wanted(v, root, g, c, &place, &rank)
			    && !is_right(v, values_at(v, output[g * stride] + c), place, rank)) {
				wrong++;
				*gpu = g;
				*chunk = c;
			}
	return wrong;
}

Wrong
values_wrong(const Values *v, const int64_t *output, int stride, int n_cells)
{
	Wrong out = { .root = -1 };
	int least = 0, place, rank;
	for (int r = 0; collective_rooted(v->coll) && r < v->n_ranks; r++) {
		int wrong = count_wrong(v, output, stride, n_cells, r, &out.rank, &out.cell);
		if (out.root < 0 || wrong < least) {
			out.root = r;
			least = wrong;
		}
	}
	out.n = count_wrong(v, output, stride, n_cells, out.root, &out.rank, &out.cell);
	if (out.n == 0)
		return out;
	wanted(v, out.root, out.rank, out.cell, &place, &rank);
	describe(v, values_at(v, output[out.rank * stride] + out.cell), place, rank, out.holds);
	snprintf(out.want, sizeof out.want, rank == EVERY_RANK ? "every rank once" : "chunk %d of rank %d",
	    place / v->fine, rank);
	return out;
}
