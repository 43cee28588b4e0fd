/* The memory of a run. A chunk is `units` times `parts` cells, so that what an operation accesses, in one unit of a
 * pipeline or as its share of a range, is whole cells. In place, input and output are the same cells. A plan with
 * packets has nothing else in scratch. */
#include "base/limits.h"
#include "mscclpp/state.h"

static int
most(int a, int b)
{
	return a > b ? a : b;
}

static void
set_grid(struct run *run)
{
	int64_t parts = 1, unit = 0, chunks = 1;
	for (int g = 0; g < run->plan->n_gpus; g++) {
		const MscclppGpu *gpu = &run->plan->gpu[g];
		chunks = most((int)chunks, gpu->chunks[MSCCLPP_SCRATCH]);
		for (int t = 0; t < gpu->n_blocks; t++)
			for (int i = 0; i < gpu->block[t].n_ops; i++) {
				const MscclppOp *op = &gpu->block[t].op[i];
				unit = op->kind == MSCCLPP_PIPELINE ? op->unit : unit;
				int64_t a = parts, b = op->n_shares;
				while (b) {
					int64_t rest = a % b;
					a = b;
					b = rest;
				}
				parts = parts / a * op->n_shares;
				if (parts > LIMIT_MSCCL_CELLS)
					parts = LIMIT_MSCCL_CELLS;
			}
	}
	run->parts = (int)parts;
	run->units = run->scratch_units = unit ? 2 : 1;
	if (unit && run->plan->reuse_scratch) {
		int64_t room = MSCCLPP_SCRATCH_BYTES / chunks / unit;
		run->scratch_units = room < 1 ? 1 : room < LIMIT_MSCCL_CHUNKS ? (int)room : LIMIT_MSCCL_CHUNKS;
		run->units = run->scratch_units + 1;
	}
}

/* In place: at which chunk of the output does the input begin; below 0: the output begins that far inside the input. */
static int
input_inside_output(const struct run *run, int gpu)
{
	int block = mscclpp_block_chunks(run->plan);
	Collective coll = run->plan->coll;
	return coll == ALLGATHER || coll == GATHER ? gpu * block
	    : coll == REDUCESCATTER || coll == SCATTER ? -gpu * block : 0;
}

Status
mscclpp_lay_out(struct run *run, int64_t *n_cells)
{
	const Mscclpp *plan = run->plan;
	int64_t chunk, scratch;
	set_grid(run);
	chunk = (int64_t)run->units * run->parts;
	scratch = (int64_t)run->scratch_units * run->parts;
	*n_cells = 0;
	TRY(TEMP(run->ctx, run->base, plan->n_gpus * N_MSCCLPP_BUFFERS));
	for (int g = 0; g < plan->n_gpus; g++) {
		const MscclppGpu *gpu = &plan->gpu[g];
		int64_t *base = &run->base[g * N_MSCCLPP_BUFFERS];
		int input = most(gpu->chunks[MSCCLPP_INPUT], mscclpp_expected_chunks(plan, MSCCLPP_INPUT));
		int output = most(gpu->chunks[MSCCLPP_OUTPUT], mscclpp_expected_chunks(plan, MSCCLPP_OUTPUT));
		int inside = plan->in_place ? input_inside_output(run, g) : 0;
		base[MSCCLPP_INPUT] = *n_cells + (inside > 0 ? inside * chunk : 0);
		base[MSCCLPP_OUTPUT] = *n_cells + (plan->in_place ? inside < 0 ? -inside * chunk : 0 : input * chunk);
		base[MSCCLPP_SCRATCH] = *n_cells + (input + output + most(inside, -inside)) * chunk;
		*n_cells = base[MSCCLPP_SCRATCH] + gpu->chunks[MSCCLPP_SCRATCH] * (mscclpp_has_packets(plan) ? chunk
		    : scratch);
		if (*n_cells > LIMIT_MSCCL_CELLS)
			return fail(run->ctx, LIMIT, "%s: more than %d chunks, or units of them, in all buffers",
			    run->label, LIMIT_MSCCL_CELLS);
	}
	return OK;
}

Status
mscclpp_fill(struct run *run, int64_t n_cells)
{
	const Mscclpp *plan = run->plan;
	int fine = run->units * run->parts, n = mscclpp_expected_chunks(plan, MSCCLPP_INPUT) * fine;
	run->values = (Values){ .coll = plan->coll, .n_ranks = plan->n_gpus, .fine = fine,
		.block = mscclpp_block_chunks(plan) * fine };
	TRY(values_make(run->ctx, run->label, &run->values, n_cells));
	TRY(cells_make(run->ctx, &run->cells, n_cells));
	TRY(TEMP(run->ctx, run->packet_clock, n_cells));
	for (int g = 0; g < plan->n_gpus; g++)
		for (int c = 0; c < n; c++)
			values_give(&run->values, run->base[g * N_MSCCLPP_BUFFERS + MSCCLPP_INPUT] + c, g, c);
	return OK;
}

int
mscclpp_iterations(const struct run *run, const MscclppOp *loop)
{
	return run->plan->reuse_scratch ? loop->n_chunks * run->units : run->units;
}

int64_t
mscclpp_cells(const struct run *run, const struct block *b, const MscclppOp *op, const MscclppRange *range,
    int gpu, MscclppBuffer buffer, bool packets, int *n)
{
	bool ring = buffer == MSCCLPP_SCRATCH && !packets;
	int64_t chunk = (int64_t)(ring ? run->scratch_units : run->units) * run->parts;
	int64_t at = run->base[gpu * N_MSCCLPP_BUFFERS + buffer] + range->index * chunk;
	if (b->pipeline >= 0) {
		const MscclppOp *loop = &b->block->op[b->pipeline];
		int64_t unit = b->iteration;
		*n = run->parts * (loop->n_chunks * run->units / mscclpp_iterations(run, loop));
		if (ring && run->plan->reuse_scratch)
			unit %= run->scratch_units;
		return at + unit * *n;
	}
	int64_t all = range->size * chunk / op->n_shares;
	*n = (int)all;
	return at + op->share * all;
}
