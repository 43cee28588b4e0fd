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

Status
run_fill(struct run *run, int64_t n_cells)
{
	const Msccl *algo = run->algo;
	int n = msccl_expected_chunks(algo, MSCCL_INPUT);
	run->values = (Values){ .coll = algo->coll, .n_ranks = algo->n_gpus, .fine = 1,
		.block = msccl_block_chunks(algo) };
	TRY(values_make(run->ctx, run->label, &run->values, n_cells));
	TRY(cells_make(run->ctx, &run->cells, n_cells));
	for (int g = 0; g < algo->n_gpus; g++) {
		if ((algo->coll == SCATTER) && algo->gpu[g].chunks[MSCCL_INPUT] == 0)
			continue;
		for (int c = 0; c < n; c++)
			values_give(&run->values, run->base[g * N_MSCCL_BUFFERS + MSCCL_INPUT] + c, g, c);
	}
	return OK;
}
