/* A schedule as kernels of libblink's CUDA backend: what libblink otherwise interprets, as code.
 *
 * The file is complete: the sources of the interpreter (runtime/cuda/kernels), which share the protocols with it, and
 * the tasks of every rank as constants. nvcc or clang makes a module of it, for one type of elements, which libblink
 * takes by BLINK_KERNELS in place of its own kernels; the parameters are the same, and a rank's peers cannot tell.
 *
 * Passes over data are compiled for shapes: own input and output or not, so many sources and readers. A schedule has
 * few of them, however many tasks it has; the most frequent ones get code of their own, which bounds its size. Tasks
 * are cases of a switch, a run of tasks in equal steps (cu_runs.c) as one. Where even so there are more cases than a
 * compiler takes in good time, tasks are rows of a table, in which they are found as fast. */
#include "base/array.h"
#include "base/digest.h"
#include "format/cu_runs.h"
#include "format/cu_writer.h"
#include "kernel_text.h"
#include "schedule/schedule.h"

#include <inttypes.h>
#include <string.h>

enum {
	SHAPES = 12,			/* with code of their own */
	SHAPE_LANES = 16,		/* sources and readers of one of them, at most */
	CASES_MOST = 1024		/* of all ranks: about 4 s of a compiler, and 8 s of ptxas */
};

struct shape {
	bool own, output;
	int n_from, n_to;
	int uses;
};

struct rank_tasks {
	struct kernel_task *task;	/* as many as the rank's program has */
	struct task_run *run;
	int n_runs;
};

struct kernel_writer {
	const Schedule *sched;
	RankProgram **prog;		/* of each rank */
	struct rank_tasks *of_rank;
	int n_cases;
	bool has_steps;			/* there is a case of several tasks */
	struct shape shape[SHAPES];	/* the most frequent first */
	int n_shapes;
	Text *out;
};

/* ---- shapes ---- */

static bool
has_shape(const struct shape *s, const RankTask *task)
{
	return s->own == task->own && s->output == task->output && s->n_from == task->n_from && s->n_to == task->n_to;
}

static Status
count_task(Ctx *ctx, const RankTask *task, struct shape **list, int *n, int *capacity)
{
	int i = 0;
	if (task->n_from + task->n_to > SHAPE_LANES)
		return OK;
	while (i < *n && !has_shape(&(*list)[i], task))
		i++;
	if (i == *n) {
		TRY(GROW_TEMP(ctx, *list, *n, *capacity));
		(*list)[(*n)++] = (struct shape){ task->own, task->output, task->n_from, task->n_to, 0 };
	}
	(*list)[i].uses++;
	return OK;
}

/* Of those used alike the one that comes first. */
static Status
choose_shapes(Ctx *ctx, struct kernel_writer *w)
{
	struct shape *list = NULL;
	int n = 0, capacity = 0;
	for (int r = 0; r < w->sched->topo->n_ranks; r++)
		for (int t = 0; t < w->prog[r]->n_tasks; t++)
			TRY(count_task(ctx, &w->prog[r]->task[t], &list, &n, &capacity));
	while (w->n_shapes < SHAPES && w->n_shapes < n) {
		int best = 0;
		for (int i = 1; i < n; i++)
			best = list[i].uses > list[best].uses ? i : best;
		w->shape[w->n_shapes++] = list[best];
		list[best].uses = 0;
	}
	return OK;
}

/* 0: none. */
static int
shape_of(const struct kernel_writer *w, const RankTask *task)
{
	for (int i = 0; i < w->n_shapes; i++)
		if (has_shape(&w->shape[i], task))
			return i + 1;
	return 0;
}

/* ---- the file ---- */

static void
put_lanes(Text *out, const RankLane *lane, int n, const char *before, bool *first)
{
	for (int i = 0; i < n; i++) {
		text_printf(out, "%s%d", *first ? before : ", ", lane[i].rank);
		*first = false;
	}
}

/* "own + 1 + 2, output, to 3" */
static void
put_meaning(Text *out, const RankTask *task)
{
	bool first = true;
	text_put(out, task->own ? "own" : "");
	for (int i = 0; i < task->n_from; i++)
		text_printf(out, "%s%d", task->own || i > 0 ? " + " : "", task->from[i].rank);
	text_put(out, task->output ? ", output" : "");
	put_lanes(out, task->to, task->n_to, ", to ", &first);
}

/* "tree 3: own, to 1", "trees 3 to 9: own, to 1 ... own, to 4" */
static void
put_comment(Text *out, const struct kernel_task *first, const struct kernel_task *last)
{
	if (first == last)
		text_printf(out, "/* tree %d: ", first->task->segment);
	else
		text_printf(out, "/* trees %d to %d: ", first->task->segment, last->task->segment);
	put_meaning(out, first->task);
	if (first != last) {
		text_put(out, " ... ");
		put_meaning(out, last->task);
	}
	text_put(out, " */\n");
}

static void
put_case(Text *out, const struct kernel_task *task, const struct task_run *run)
{
	int first = run->first, period = run->period, last = run->times * period + first - 1;
	const char *tabs = period > 1 ? "\t\t\t" : "\t\t";
	if (period > 1)
		text_printf(out, "\t\tcase %d ... %d: i = (number - %d) / %d; switch ((number - %d) %% %d) {\n", first,
		    last, first, period, first, period);
	for (int k = 0; k < period; k++) {
		text_put(out, tabs);
		put_comment(out, &task[first + k], &task[last - (period - 1 - k)]);
		if (period > 1)
			text_printf(out, k < period - 1 ? "\t\t\tcase %d: TASK(" : "\t\t\tdefault: TASK(", k);
		else if (run->times > 1)
			text_printf(out, "\t\tcase %d ... %d: i = number - %d; TASK(", first, last, first);
		else
			text_printf(out, "\t\tcase %d: TASK(", first);
		cu_put_run_task(out, task, run, k);
		text_put(out, "); break;\n");
	}
	text_put(out, period > 1 ? "\t\t\t}\n\t\t\tbreak;\n" : "");
}

static void
put_rank_begin(struct kernel_writer *w, const char *before, int rank)
{
	text_put(w->out, before);
	text_c_comment(w->out, w->sched->topo->vertex[rank].id);
	text_put(w->out, " */\n");
}

static void
put_cases(struct kernel_writer *w, int rank)
{
	const struct rank_tasks *t = &w->of_rank[rank];
	text_printf(w->out, "\tcase %d:", rank);
	put_rank_begin(w, "\t/* ", rank);
	text_put(w->out, "\t\tswitch (number) {\n\t\tdefault: __builtin_unreachable();\n");
	for (int i = 0; i < t->n_runs; i++)
		put_case(w->out, t->task, &t->run[i]);
	text_put(w->out, "\t\t}\n\t\tbreak;\n");
}

static void
put_switch(struct kernel_writer *w)
{
	Text *out = w->out;
	text_printf(out, "\nFN void\nprogram_task(int rank, int number, struct gpu_task *t)\n{\n"
	    "%s\tswitch (rank) {\n\tdefault: __builtin_unreachable();\n", w->has_steps ? "\tint64_t i;\n" : "");
	for (int r = 0; r < w->sched->topo->n_ranks; r++)
		put_cases(w, r);
	text_put(out, "\t}\n}\n");
}

static void
put_table(struct kernel_writer *w)
{
	int n_ranks = w->sched->topo->n_ranks, n = 0;
	Text *out = w->out;
	text_put(out, "\nDEVICE_TABLE struct gpu_task program_row[] = {\n");
	for (int r = 0; r < n_ranks; r++) {
		const struct kernel_task *task = w->of_rank[r].task;
		put_rank_begin(w, "\t/* ---- ", r);
		for (int i = 0; i < w->prog[r]->n_tasks; i++) {
			text_put(out, "\tROW(");
			cu_put_run_task(out, task, &(struct task_run){ i, 1, 1 }, 0);
			text_put(out, "),\n");
		}
	}
	text_put(out, "};\n\n/* Of each rank the first row. */\nDEVICE_TABLE int program_first[] = {\n");
	for (int r = 0; r < n_ranks; n += w->prog[r++]->n_tasks)
		text_printf(out, "%s%d,", r % 8 > 0 ? " " : r > 0 ? "\n\t" : "\t", n);
	text_put(out, "\n};\n\nFN void\nprogram_task(int rank, int number, struct gpu_task *t)\n{\n"
	    "\t*t = program_row[program_first[rank] + number];\n}\n");
}

static void
put_header(struct kernel_writer *w, const char *digest)
{
	Text *out = w->out;
	bool reduces = collective_reduces(w->sched->coll);
	const char *type = reduces ? " -DBLINK_TYPE=float32" : "", *suffix = reduces ? ".float32" : "";
	text_put(out, "/* Kernels of libblink, with the sources of its own (Apache License 2.0), for ");
	cu_put_about(out, w->sched, digest);
	text_printf(out, " *\n *	nvcc -ptx -fmad=false%s FILE.cu -o FILE%s.ptx\n *\n"
	    " * and BLINK_KERNELS=FILE%s.ptx: see libblink(3)", type, suffix, suffix);
	text_put(out, reduces ? ". A module is for one type of elements, blink.h has their names.\n *\n" : ".\n *\n");
	text_put(out, " * At the end is program_task: what each rank does, case by case; tasks that differ in equal\n"
	    " * steps, of which i is the number, as one case; or all in a table, where there would be too many\n"
	    " * cases. A task combines the rank's own input (own) with what other ranks publish, in this order,\n"
	    " * leaves the result in its output, and publishes it.\n"
	    " * TASK: shape; block of the send and of the receive buffer; part; of the part: from p, of q, to p,\n"
	    " * of q; first lane, sources, readers; lanes published before; own, output, complete. */\n");
}

/* Before the sources: what they are compiled for. */
static void
put_parameters(struct kernel_writer *w, const char *digest)
{
	Text *out = w->out;
	const char *hex = strchr(digest, ':') + 1;
	text_put(out, "#define GENERATED\n");
	if (collective_reduces(w->sched->coll))
		text_put(out, "#ifndef BLINK_TYPE\n#define BLINK_TYPE float32\n#endif\n"
		    "#ifndef BLINK_OP\n#define BLINK_OP sum\n#endif\n"
		    "#define KERNEL_TYPE BLINK_TYPE\n#define KERNEL_OP BLINK_OP\n");
	text_printf(out, "#define GENERATED_MARK " KERNEL_MARK "%s_%s\n", collective_name(w->sched->coll), hex);
	text_printf(out, "#define GENERATED_NAME blink_%.16s\n", hex);
	text_put(out, "#define GENERATED_SHAPES(X)	/* shape; own, output; sources, readers */");
	for (int i = 0; i < w->n_shapes; i++) {
		const struct shape *s = &w->shape[i];
		text_printf(out, " \\\n\tX(%d, %d, %d, %d, %d)", i + 1, s->own, s->output, s->n_from, s->n_to);
	}
	text_put(out, "\n#define GENERATED_RANKS(X)	/* rank, fingerprint of its program */");
	for (int r = 0; r < w->sched->topo->n_ranks; r++)
		text_printf(out, " \\\n\tX(%d, %016" PRIx64 ")", r, rank_program_fingerprint(w->prog[r]));
	text_put(out, "\n\n");
}

static void
put_file(struct kernel_writer *w, const char *digest)
{
	Text *out = w->out;
	bool reduces = collective_reduces(w->sched->coll);
	put_header(w, digest);
	put_parameters(w, digest);
	if (reduces)
		text_put(out, kernel_text_types);
	text_put(out, kernel_text_portable);
	if (reduces)
		text_put(out, kernel_text_element);
	text_put(out, kernel_text_collective);
	if (w->n_cases > CASES_MOST)
		put_table(w);
	else
		put_switch(w);
}

static Status
project(Ctx *ctx, struct kernel_writer *w)
{
	int n_ranks = w->sched->topo->n_ranks;
	TRY(NEW(ctx, w->prog, n_ranks));
	TRY(NEW(ctx, w->of_rank, n_ranks));
	for (int r = 0; r < n_ranks; r++)
		TRY(sched_project(ctx, w->sched, r, &w->prog[r]));
	return choose_shapes(ctx, w);
}

static Status
find_runs(Ctx *ctx, struct kernel_writer *w, int rank)
{
	const RankProgram *prog = w->prog[rank];
	struct rank_tasks *t = &w->of_rank[rank];
	int64_t lane = 0, publishes = 0;
	TRY(NEW(ctx, t->task, prog->n_tasks));
	for (int i = 0; i < prog->n_tasks; i++) {
		const RankTask *task = &prog->task[i];
		t->task[i] = (struct kernel_task){ task, &prog->extent[task->extent], shape_of(w, task), lane,
		    publishes };
		lane += task->n_from + task->n_to;
		publishes += task->n_to;
	}
	TRY(cu_runs_of(ctx, t->task, prog->n_tasks, &t->run, &t->n_runs));
	for (int i = 0; i < t->n_runs; i++) {
		w->n_cases += t->run[i].period;
		w->has_steps |= t->run[i].times > 1;
	}
	return OK;
}

Status
sched_write_cu_kernel(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	struct kernel_writer w = { .sched = sched, .out = out };
	char digest[DIGEST_ROOM];
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(project(ctx, &w));
	for (int r = 0; r < sched->topo->n_ranks; r++)
		TRY(find_runs(ctx, &w, r));
	digest_of(in->json->data, in->json->size, digest);
	put_file(&w, digest);
	arena_release(&ctx->scratch, mark);
	return out->failed ? fail_memory(ctx) : OK;
}
