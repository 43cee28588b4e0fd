/* Execute a Program without compiling it: make the calls that format/cu_tree.c writes, step by step. */
#include "reduce/reduce.h"

#define BLINK_OWN_REDUCTIONS
static void blink_combine(int type, int op, void *to, const void *from, const void *other, size_t n);
static void blink_average(int type, int n_ranks, void *to, const void *from, size_t n);
#include "blink_device.h"
#include "all_ranks/exec.h"
#include "choose/parts.h"
#include "schedule/schedule.h"

_Static_assert((int)BLINK_RING == (int)PROGRAM_RING, "lowering and backends agree on the slots of a ring");
_Static_assert((int)N_LINK_CLASSES <= (int)BLINK_PARTS_MAX, "each part has a link class of its own");
_Static_assert((int)blinkCollBroadcast == BROADCAST && (int)blinkCollReduce == REDUCE &&
    (int)blinkCollAllReduce == ALLREDUCE && (int)blinkCollGather == GATHER && (int)blinkCollScatter == SCATTER &&
    (int)blinkCollAllGather == ALLGATHER && (int)blinkCollReduceScatter == REDUCESCATTER &&
    (int)blinkCollAlltoAll == ALLTOALL, "blink.h and model.h agree");

static void
blink_combine(int type, int op, void *to, const void *from, const void *other, size_t n)
{
	struct reduction r;
	if (reduction_make(type, op, 1, &r))
		reduction_run(&r, to, NULL, from, &other, 1, n, false, false);
}

static void
blink_average(int type, int n_ranks, void *to, const void *from, size_t n)
{
	struct reduction r;
	if (reduction_make(type, blinkAvg, n_ranks, &r))
		reduction_run(&r, to, NULL, from, NULL, 0, n, true, false);
}

static struct blink_place
place(const struct blink_chunk *k, const Place *p)
{
	return p->kind == PLACE_INPUT ? blink_input(k, p->rank) : p->kind == PLACE_OUTPUT ? blink_output(k, p->rank)
	    : blink_scratch(k, p->ring);
}

static void
issue(const struct blink_run *run, const Program *prog, int s, int64_t c)
{
	struct blink_chunk k;
	if (!blink_chunk(run, s, c, &k))
		return;
	for (int i = prog->first_step[s]; i < prog->first_step[s + 1]; i++) {
		const Step *step = &prog->step[i];
		for (int j = 0; j < step->n_before; j++)
			blink_wait_slot(&k, step->stream, prog->step[step->before[j]].event);
		if (step->after >= 0)
			blink_wait(&k, step->stream, prog->step[step->after].event);
		if (step->op == STEP_COPY)
			blink_copy(&k, step->stream, place(&k, &step->to), place(&k, &step->from));
		else
			blink_reduce(&k, step->stream, place(&k, &step->to), place(&k, &step->from),
			    place(&k, &step->with));
		if (step->event >= 0)
			blink_record(&k, step->stream, step->event);
	}
}

static int
run_program(void *device, const struct blink_call *call, struct blink_error *err)
{
	const Program *prog = ((struct blink_device *)device)->program->plan;
	struct blink_run run;
	if (blink_begin(&run, device, call, err) == blinkSuccess)
		for (int64_t c = 0; c < run.n_chunks; c++)
			for (int s = 0; s < prog->sched->n_segments; s++)
				issue(&run, prog, s, c);
	return blink_end(&run);
}

Status
exec_describe(Ctx *ctx, const Schedule *sched, const char *digest, struct blink_program *out)
{
	PartEnd *end = NULL;
	struct blink_part_end *part_end;
	int n_parts = sched->n_parts ? sched->n_parts : 1;
	if (sched->n_parts)
		TRY(sched_split(ctx, sched->topo->name, sched, &end));
	TRY(part_ends(ctx, end, n_parts, &part_end));
	*out = (struct blink_program){
		.abi = BLINK_PROGRAM_ABI,
		.backend = BLINK_BACKEND,
		.digest = digest,
		.topology = sched->topo->name,
		.algorithm = sched->algorithm,
		.collective = (int)sched->coll,
		.root = sched->root,
		.n_ranks = sched->topo->n_ranks,
		.n_parts = n_parts,
		.n_trees = (int)sched_trees(sched),
		.part_end = part_end,
		.open = blink_open,
		.close = blink_close,
		.memory_new = blink_memory_new,
		.memory_free = blink_memory_free,
		.memory_copy = blink_memory_copy,
		.run = run_program,
	};
	return OK;
}

Status
exec_program(Ctx *ctx, const Program *prog, const char *digest, struct blink_program *out)
{
	const Schedule *sched = prog->sched;
	struct blink_tree *tree;
	struct blink_ring *ring;
	int *stream_rank;
	TRY(NEW(ctx, tree, sched->n_segments));
	TRY(NEW(ctx, ring, prog->n_rings));
	TRY(NEW(ctx, stream_rank, prog->n_streams));
	for (int s = 0; s < sched->n_segments; s++) {
		const Extent *e = &prog->extent[s];
		tree[s] = (struct blink_tree){ e->send_block, e->recv_block, e->part, e->begin.num, e->begin.den,
		    e->end.num,
			e->end.den };
	}
	for (int i = 0; i < prog->n_rings; i++)
		ring[i] = (struct blink_ring){ prog->ring[i].rank, prog->ring[i].segment };
	for (int i = 0; i < prog->n_streams; i++)
		stream_rank[i] = prog->stream[i].rank;
	TRY(exec_describe(ctx, sched, digest, out));
	out->keep_input = prog->keep_input;
	out->n_streams = prog->n_streams;
	out->n_rings = prog->n_rings;
	out->n_events = prog->n_events;
	out->tree = tree;
	out->stream_rank = stream_rank;
	out->ring = ring;
	out->plan = prog;
	return OK;
}
