/* The memory of a run: cells of buffers, which in place are the same. */
#include "base/limits.h"
#include "msccl/state.h"

static int
most(int a, int b)
{
	return a > b ? a : b;
}

/* In place: at which chunk of the output does the input begin; below 0: the output begins that far inside the input. */
static int
input_inside_output(const struct run *run, int gpu)
{
	int block = msccl_block_chunks(run->algo);
	switch (run->algo->coll) {
	case ALLGATHER:
	case GATHER:
		return gpu * block;
	case REDUCESCATTER:
	case SCATTER:
		return -gpu * block;
	default:
		return 0;
	}
}

/* A rank that is not the root has only the small buffer of a gather or scatter. */
static bool
buffers_are_one(const struct run *run, const MscclGpu *gpu)
{
	if (!run->in_place)
		return false;
	return (run->algo->coll != GATHER || gpu->chunks[MSCCL_OUTPUT] > 0)
	    && (run->algo->coll != SCATTER || gpu->chunks[MSCCL_INPUT] > 0);
}

Status
run_lay_out(struct run *run, int64_t *n_cells)
{
	const Msccl *algo = run->algo;
	*n_cells = 0;
	TRY(TEMP(run->ctx, run->base, algo->n_gpus * N_MSCCL_BUFFERS));
	for (int g = 0; g < algo->n_gpus; g++) {
		const MscclGpu *gpu = &algo->gpu[g];
		int64_t *base = &run->base[g * N_MSCCL_BUFFERS];
		int input = most(gpu->chunks[MSCCL_INPUT], msccl_expected_chunks(algo, MSCCL_INPUT));
		int output = most(gpu->chunks[MSCCL_OUTPUT], msccl_expected_chunks(algo, MSCCL_OUTPUT));
		int inside = input_inside_output(run, g);
		bool one = buffers_are_one(run, gpu);
		base[MSCCL_INPUT] = *n_cells + (one && inside > 0 ? inside : 0);
		base[MSCCL_OUTPUT] = *n_cells + (one ? inside < 0 ? -inside : 0 : input);
		base[MSCCL_SCRATCH] = *n_cells + input + output + (one ? most(inside, -inside) : 0);
		*n_cells = base[MSCCL_SCRATCH] + gpu->chunks[MSCCL_SCRATCH];
		if (*n_cells > LIMIT_MSCCL_CELLS)
			return fail(run->ctx, LIMIT, "%s: more than %d chunks in all buffers", run->label,
			    LIMIT_MSCCL_CELLS);
	}
	return OK;
}

/* What rank g's input holds at chunk c: a place of the whole message, unless each rank has its own. */
static int
input_place(const Msccl *algo, int g, int c)
{
	return algo->coll == ALLGATHER || algo->coll == GATHER ? g * msccl_block_chunks(algo) + c : c;
}

Status
run_fill(struct run *run, int64_t n_cells)
{
	const Msccl *algo = run->algo;
	int n = msccl_expected_chunks(algo, MSCCL_INPUT);
	run->words = (algo->n_gpus + 63) / 64;
	run->value_size = sizeof(Value) + (size_t)run->words * sizeof(uint64_t);
	if (n_cells * (int64_t)run->value_size > LIMIT_MSCCL_BYTES)
		return fail(run->ctx, LIMIT, "%s: %lld chunks in all buffers, of %d GPUs", run->label,
		    (long long)n_cells, algo->n_gpus);
	TRY(TEMP(run->ctx, run->value, (size_t)n_cells * run->value_size));
	TRY(TEMP(run->ctx, run->cell, n_cells));
	for (int64_t c = 0; c < n_cells; c++) {
		value_of(run, c)->place = PLACE_NONE;
		value_of(run, c)->twice = NOT_TWICE;
		run->cell[c].wrote.block = -1;
	}
	for (int g = 0; g < algo->n_gpus; g++) {
		if ((algo->coll == SCATTER) && algo->gpu[g].chunks[MSCCL_INPUT] == 0)
			continue;
		for (int c = 0; c < n; c++) {
			Value *value = value_of(run, run->base[g * N_MSCCL_BUFFERS + MSCCL_INPUT] + c);
			value->place = input_place(algo, g, c);
			value->ranks[g / 64] |= UINT64_C(1) << g % 64;
		}
	}
	return OK;
}

/* to = to op from */
void
run_reduce(const struct run *run, Value *to, const Value *from)
{
	if (to->place == PLACE_NONE || from->place == PLACE_NONE)
		to->place = PLACE_NONE;
	else if (to->place != from->place)
		to->place = PLACE_MIXED;
	if (from->twice != NOT_TWICE)
		to->twice = from->twice;
	for (int w = 0; w < run->words; w++) {
		uint64_t both = to->ranks[w] & from->ranks[w];
		if (both && to->twice == NOT_TWICE)
			to->twice = w * 64 + __builtin_ctzll(both);
		to->ranks[w] |= from->ranks[w];
	}
}
