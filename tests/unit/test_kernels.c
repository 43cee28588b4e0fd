/* The kernels of the CUDA backend (runtime/cuda/kernels), as twins whose threads are fibers (fibers.h): jobs of several
 * ranks whose tables are made of rank programs, call after call, against a plain execution of the same programs by the
 * host's reductions. Prints TAP. Arguments: seed, jobs. */
#include "../../runtime/reduce/reduce.h"
#include "blink_device.h"
#include "cuda/device.h"
#include "choose/choose.h"
#include "fibers.h"
#include "quick.h"
#include "random_schedule.h"

#include <unistd.h>

enum { RING_BYTES = 32 << 10, PACKET_BYTES = 32 << 10, CALLS = 5, NO_OP = 4 };

/* ---- GPUs ---- */

/* A rank's memory for one peer. */
struct pair_memory {
	struct gpu_flag ready[GPU_FLAGS];
	uint64_t done[GPU_FLAGS];
	_Alignas(16) char packets[2][PACKET_BYTES], ring[2][RING_BYTES];
	struct gpu_channel channel;
};

struct gpus {
	int n;
	struct pair_memory *of[MAX_RANKS];	/* [peer] */
	struct gpu_state *state[MAX_RANKS];
	struct gpu_status status[MAX_RANKS];
	uint64_t sent[MAX_RANKS][MAX_RANKS], received[MAX_RANKS][MAX_RANKS];
};

static void *
zeroed(size_t bytes)
{
	void *p = need(aligned_alloc(64, (bytes + 63) / 64 * 64));
	memset(p, 0, bytes);
	return p;
}

static struct gpus *
gpus_new(int n)
{
	struct gpus *g = zeroed(sizeof *g);
	g->n = n;
	n_regions = 0;
	for (int r = 0; r < n; r++) {
		g->of[r] = zeroed((size_t)n * sizeof *g->of[r]);
		g->state[r] = zeroed(sizeof *g->state[r]);
		g->state[r]->sent = g->sent[r];
		g->state[r]->received = g->received[r];
		g->status[r].awaits = -1;
		add_region(g->of[r], (size_t)n * sizeof *g->of[r], r, true);
		add_region(g->state[r], sizeof *g->state[r], r, false);
		add_region(g->sent[r], sizeof g->sent[r], r, false);
		add_region(g->received[r], sizeof g->received[r], r, false);
		add_region(&g->status[r], sizeof g->status[r], NOBODY, true);
	}
	return g;
}

static void
gpus_free(struct gpus *g)
{
	for (int r = 0; r < g->n; r++) {
		free(g->of[r]);
		free(g->state[r]);
	}
	free(g);
	n_regions = 0;
}

/* ---- plans ---- */

struct plan {
	Collective coll;
	int root, n, lanes_max, n_parts;
	RankProgram *of[MAX_RANKS];
	struct gpu_program program[MAX_RANKS];
};

static struct gpu_lane
lane_between(struct gpus *g, int publisher, int reader, bool reads, int lane)
{
	struct pair_memory *at = &g->of[reader][publisher];
	struct gpu_lane l = { .peer = reads ? publisher : reader, .lane = lane,
		.pair = { at->ready, g->of[publisher][reader].done, { at->packets[0], at->packets[1] },
		    { at->ring[0], at->ring[1] } } };
	return l;
}

/* Extents are of 128 bits; here they fit into 64. */
static void
make_task(struct gpus *g, int rank, const RankTask *task, const Extent *x, struct gpu_program *p, int *n_lanes,
    struct gpu_task *t, struct gpu_lane *lane)
{
	*t = (struct gpu_task){ x->send_block, x->recv_block, (int64_t)x->begin.num, (int64_t)x->begin.den,
	    (int64_t)x->end.num, (int64_t)x->end.den, x->part, task->n_from, task->n_to, *n_lanes,
	    *n_lanes + task->n_from, p->n_publishes, task->own, task->output, task->complete, 0, { 0 } };
	for (int i = 0; i < task->n_from; i++)
		lane[(*n_lanes)++] = lane_between(g, task->from[i].rank, rank, true, task->from[i].lane);
	for (int i = 0; i < task->n_to; i++)
		lane[(*n_lanes)++] = lane_between(g, rank, task->to[i].rank, false, task->to[i].lane);
	p->n_publishes += task->n_to;
}

static void
make_tables(Ctx *ctx, struct gpus *g, const RankProgram *prog, struct gpu_program *p)
{
	int lanes = 0, n_lanes = 0;
	struct gpu_task *task;
	struct gpu_lane *lane;
	for (int t = 0; t < prog->n_tasks; t++)
		lanes += prog->task[t].n_from + prog->task[t].n_to;
	MAKE(ctx, task, prog->n_tasks + 1);
	MAKE(ctx, lane, lanes + 1);
	*p = (struct gpu_program){ prog->n_tasks, 0, task, lane };
	for (int t = 0; t < prog->n_tasks; t++)
		make_task(g, prog->rank, &prog->task[t], &prog->extent[prog->task[t].extent], p, &n_lanes, &task[t],
		    lane);
	add_region(task, (size_t)prog->n_tasks * sizeof *task, prog->rank, false);
	add_region(lane, (size_t)lanes * sizeof *lane, prog->rank, false);
	add_region(p, sizeof *p, prog->rank, false);
}

static struct plan *
finish_plan(Ctx *ctx, struct gpus *g, struct plan *plan)
{
	for (int r = 0; r < g->n; r++) {
		make_tables(ctx, g, plan->of[r], &plan->program[r]);
		if (plan->of[r]->lanes_max > plan->lanes_max)
			plan->lanes_max = plan->of[r]->lanes_max;
	}
	plan->n_parts = plan->of[0]->n_parts;
	return plan;
}

static void
must(Ctx *ctx, Status status)
{
	if (status != OK) {
		printf("Bail out! %s\n", ctx->error.text);
		exit(1);
	}
}

static struct plan *
random_plan(Ctx *ctx, struct gpus *g, Collective coll)
{
	struct plan *plan;
	MAKE(ctx, plan, 1);
	const Schedule *sched = random_schedule(ctx, coll, g->n, below(2));
	*plan = (struct plan){ .coll = coll, .root = sched->root, .n = g->n };
	for (int r = 0; r < g->n; r++)
		must(ctx, sched_project(ctx, sched, r, &plan->of[r]));
	return finish_plan(ctx, g, plan);
}

static struct plan *
built_in_plan(Ctx *ctx, struct gpus *g, Collective coll, bool small)
{
	static const int server[MAX_RANKS];
	const struct job job = { .n_ranks = g->n, .server = server, .n_servers = 1 };
	const struct built_in which = { coll, 0, small };
	struct plan *plan;
	MAKE(ctx, plan, 1);
	*plan = (struct plan){ .coll = coll, .n = g->n };
	for (int r = 0; r < g->n; r++)
		must(ctx, built_in_program(ctx, &job, &which, r, &plan->of[r]));
	return finish_plan(ctx, g, plan);
}

/* ---- calls ---- */

struct call {
	const struct plan *plan;
	const struct virtual_kernel *kernel;
	struct reduction reduction;
	struct gpu_call given[MAX_RANKS];
	struct grid grid[MAX_RANKS];
	unsigned blocks[MAX_RANKS], threads;
	int64_t count;
	int n_memory;
	void *memory[4 * MAX_RANKS];
	size_t sent[MAX_RANKS], received[MAX_RANKS];	/* bytes */
	char *input[MAX_RANKS];		/* what it sends, kept */
	char *want[MAX_RANKS], *recv[MAX_RANKS];
	const char *send[MAX_RANKS];
	bool in_place[MAX_RANKS];
};

static const struct virtual_kernel *
kernel_of(int type, int op)
{
	static const char *const types[] = {
#define NAME(code, name, T, U, kind, read, write, with) [code] = #name,
		BLINK_TYPE_LIST(NAME, 0)
#undef NAME
	};
	static const char *const ops[] = { [blinkSum] = "sum", [blinkProd] = "prod", [blinkMax] = "max",
		[blinkMin] = "min" };
	char name[64] = "blink_move";
	if (op != NO_OP)
		snprintf(name, sizeof name, "blink_%s_%s", types[type], ops[op]);
	for (const struct virtual_kernel *k = virtual_gpu_kernels; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	printf("Bail out! no %s\n", name);
	exit(1);
}

static char *
new_memory(struct call *c, size_t bytes)
{
	char *m = need(malloc(bytes + 32));
	c->memory[c->n_memory++] = m;
	return m;
}

/* Of exactly these bytes for kernels, at any address that suits an element. */
static char *
new_buffer(struct call *c, int rank, size_t bytes, bool aligned)
{
	char *m = new_memory(c, bytes);
	m += -(uintptr_t)m % 16;
	if (!aligned)
		m += c->reduction.size * (size_t)below((int)(16 / c->reduction.size));
	memset(m, 0xa5, bytes);
	add_region(m, bytes, rank, false);
	return m;
}

/* A number of a floating-point type that is no NaN, nor makes one; any bits of an integer. */
static void
put_number(int type, char *to)
{
	uint64_t bits = random64();
	double f = (double)(int64_t)bits / 0x1p62;
#define PUT_INTEGER(T, U, write) (T)bits
#define PUT_FLOAT(T, U, write) (T)write((U)f)
#define PUT(code, name, T, U, kind, read, write, unused)                       \
	if (type == code) {                                                    \
		T x = PUT_##kind(T, U, write);                                 \
		memcpy(to, &x, sizeof x);                                      \
	}
	BLINK_TYPE_LIST(PUT, 0)
#undef PUT
}

static void
make_buffers(struct call *c, int r)
{
	const struct plan *plan = c->plan;
	struct blink_layout l = blink_layout_at((int)plan->coll, plan->root, plan->n, r);
	size_t size = c->reduction.size, block = (size_t)c->count * size;
	bool aligned = below(2);
	char *send, *recv;
	c->sent[r] = (size_t)l.send * block;
	c->received[r] = (size_t)l.recv * block;
	c->in_place[r] = c->sent[r] && c->received[r] && below(2);
	if (c->in_place[r]) {
		send = recv = new_buffer(c, r, c->sent[r] > c->received[r] ? c->sent[r] : c->received[r], aligned);
		if (c->sent[r] > c->received[r])
			recv += (size_t)l.own_send * block;
		else if (c->sent[r] < c->received[r])
			send += (size_t)l.own_recv * block;
	} else {
		send = new_buffer(c, r, c->sent[r], aligned);
		recv = new_buffer(c, r, c->received[r], aligned);
	}
	for (size_t i = 0; i < c->sent[r]; i += size)
		put_number(c->reduction.type, send + i);
	c->input[r] = memcpy(new_memory(c, c->sent[r]), send, c->sent[r]);
	c->want[r] = memcpy(new_memory(c, c->received[r]), recv, c->received[r]);
	c->recv[r] = recv;
	c->send[r] = send;
	struct gpu_call *given = &c->given[r];
	if (c->in_place[r] && plan->of[r]->keep_input)
		send = memcpy(new_buffer(c, r, c->sent[r], aligned), send, c->sent[r]);
	given->send = send;
	given->recv = recv;
	if (c->sent[r] && c->received[r] && (!collective_reduces(plan->coll) || plan->n == 1)) {
		given->own_from = send + (size_t)l.own_send * block;
		given->own_to = recv + (size_t)l.own_recv * block;
		if (given->own_from != given->own_to || plan->n == 1)
			given->own_bytes = c->in_place[r] && plan->n > 1 ? 0 : (int64_t)block;
	}
}

/* Elements of the longest segment. */
static int64_t
longest_segment(const struct call *c, const int64_t *part_end)
{
	int64_t most = 0;
	for (int r = 0; r < c->plan->n; r++)
		for (int e = 0; e < c->plan->of[r]->n_extents; e++) {
			const Extent *x = &c->plan->of[r]->extent[e];
			int64_t n = part_end[x->part] - (x->part > 0 ? part_end[x->part - 1] : 0);
			int64_t begin = (int64_t)(x->begin.num * n / x->begin.den);
			int64_t end = (int64_t)(x->end.num * n / x->end.den);
			most = end - begin > most ? end - begin : most;
		}
	return most;
}

/* The protocol and its lengths: what is the same on all ranks. turns: -1: by chance. */
static void
choose_protocol(struct call *c, struct gpu_call *g, bool packets, int turns)
{
	int64_t lanes = c->plan->lanes_max > 0 ? c->plan->lanes_max : 1;
	int64_t longest = longest_segment(c, g->part_end), size = (int64_t)c->reduction.size, line = 128 / size;
	g->width = 1 + below(4);
	g->strip = (longest / g->width + line) / line * line;
	g->ring_share = RING_BYTES / (lanes * g->width) / 16 * 16;
	g->packet_share = PACKET_BYTES / (lanes * g->width) / 16 * 16;
	g->turns = turns < 0 ? below(3) == 0 : turns;
	if (packets && g->strip * size * 2 + 32 <= g->packet_share)
		return;
	g->slots = 2 + below(GPU_SLOTS_MOST - 1);
	g->slot_bytes = g->ring_share / g->slots / 16 * 16;
	int64_t few = 16 * (1 + below(8));
	if (below(2) && g->slot_bytes > few)
		g->slot_bytes = few;
	g->chunk = g->slot_bytes / (int64_t)c->reduction.size;
}

static void
choose_parts(const struct plan *plan, int64_t count, int64_t *part_end)
{
	for (int i = 0; i < plan->n_parts; i++)
		part_end[i] = i == plan->n_parts - 1 ? count : (i ? part_end[i - 1] : 0);
	for (int i = 0; i < plan->n_parts - 1; i++)
		part_end[i] += (int64_t)(random64() % (uint64_t)(count - part_end[i] + 1)) / 2;
	for (int i = 1; i < plan->n_parts; i++)
		part_end[i] = part_end[i] < part_end[i - 1] ? part_end[i - 1] : part_end[i];
}

static struct call *
new_call(struct gpus *g, const struct plan *plan, int type, int op, int64_t count, bool packets, int turns)
{
	struct call *c = zeroed(sizeof *c);
	struct gpu_call all = { .count = count, .signature = random64() | 1, .n_ranks = g->n };
	uint64_t scalar = 0;
	put_number(type, (char *)&scalar);
	c->plan = plan;
	c->count = count;
	if (op > blinkAvg)
		reduction_make_scaled(type, &scalar, &c->reduction);
	else
		reduction_make(type, op, g->n, &c->reduction);
	c->kernel = kernel_of(type, collective_reduces(plan->coll) ? c->reduction.op : NO_OP);
	all.size = (int32_t)c->reduction.size;
	all.n_parts = plan->n_parts;
	choose_parts(plan, count, all.part_end);
	choose_protocol(c, &all, packets, turns);
	if (collective_reduces(plan->coll)) {
		all.scales = c->reduction.scales;
		all.divide = c->reduction.divide;
		memcpy(&all.scale, &c->reduction.scale, sizeof all.scale);
	}
	int tasks = 0;
	for (int r = 0; r < g->n; r++)
		tasks += plan->of[r]->n_tasks;
	all.turns = all.turns || tasks * all.width > 256;
	c->threads = 1 + (unsigned)below(all.turns || tasks * all.width < 64 ? 4 : 2);
	for (int r = 0; r < g->n; r++) {
		int strips = plan->of[r]->n_tasks * all.width;
		c->given[r] = all;
		c->given[r].program = &plan->program[r];
		c->given[r].state = g->state[r];
		c->given[r].status = &g->status[r];
		c->given[r].rank = r;
		c->blocks[r] = (unsigned)(all.turns ? 1 + strips / GPU_TASKS_OF_BLOCK + below(3) : strips + below(3));
		c->blocks[r] += c->blocks[r] == 0;
		make_buffers(c, r);
	}
	return c;
}

static void
free_call(struct call *c)
{
	for (int i = 0; i < c->n_memory; i++)
		free(c->memory[i]);
	free(c);
}

/* ---- what a call should do ---- */

static int64_t
extent_of(const struct call *c, const RankProgram *prog, const RankTask *task, int64_t *first)
{
	const Extent *x = &prog->extent[task->extent];
	const int64_t *end = c->given[0].part_end;
	int64_t part = x->part > 0 ? end[x->part - 1] : 0, n = end[x->part] - part;
	*first = part + (int64_t)(x->begin.num * n / x->begin.den);
	return part + (int64_t)(x->end.num * n / x->end.den) - *first;
}

/* What each lane carries: [publisher][reader][lane]. */
struct carried {
	char **of[MAX_RANKS][MAX_RANKS];
};

static bool
execute_task(struct call *c, struct carried *carried, int r, const RankTask *task)
{
	const RankProgram *prog = c->plan->of[r];
	const Extent *x = &prog->extent[task->extent];
	const void *from[MAX_RANKS * 2] = { NULL };
	int64_t first, n = extent_of(c, prog, task, &first);
	size_t size = c->reduction.size;
	for (int i = 0; i < task->n_from; i++) {
		from[i] = carried->of[task->from[i].rank][r][task->from[i].lane];
		if (!from[i])
			return false;
	}
	char *value = need(malloc((size_t)n * size + 1));
	const void *own = task->own ? c->input[r] + (size_t)(x->send_block * c->count + first) * size : from[0];
	const void *const *others = task->own ? from : from + 1;
	int n_others = task->own ? task->n_from : task->n_from - 1;
	if (collective_reduces(c->plan->coll) && (task->own || n_others > 0)) {
		struct reduction red = c->reduction;
		red.scales = red.scales && task->own;
		reduction_run(&red, value, NULL, own, others, n_others, (size_t)n, task->complete, false);
	} else {
		memcpy(value, own, (size_t)n * size);
	}
	if (task->output)
		memcpy(c->want[r] + (size_t)(x->recv_block * c->count + first) * size, value, (size_t)n * size);
	for (int i = 0; i < task->n_to; i++)
		carried->of[r][task->to[i].rank][task->to[i].lane] =
		    memcpy(need(malloc((size_t)n * size + 1)), value, (size_t)n * size);
	free(value);
	return true;
}

static void
execute_tasks(struct call *c, struct carried *carried)
{
	bool *done[MAX_RANKS], left = true, moved = true;
	for (int r = 0; r < c->plan->n; r++)
		done[r] = need(calloc((size_t)c->plan->of[r]->n_tasks + 1, 1));
	while (left && moved) {
		left = moved = false;
		for (int r = 0; r < c->plan->n; r++)
			for (int t = 0; t < c->plan->of[r]->n_tasks; t++) {
				bool now = !done[r][t] && execute_task(c, carried, r, &c->plan->of[r]->task[t]);
				done[r][t] = done[r][t] || now;
				moved = moved || now;
				left = left || !done[r][t];
			}
	}
	if (left) {
		printf("Bail out! rank programs that do not fit\n");
		exit(1);
	}
	for (int r = 0; r < c->plan->n; r++)
		free(done[r]);
}

static void
execute(struct call *c)
{
	const struct plan *plan = c->plan;
	size_t block = (size_t)c->count * c->reduction.size;
	struct carried carried;
	for (int p = 0; p < plan->n; p++)
		for (int q = 0; q < plan->n; q++)
			carried.of[p][q] = need(calloc((size_t)plan->lanes_max + 1, sizeof(char *)));
	for (int r = 0; r < plan->n; r++) {
		struct blink_layout l = blink_layout_at((int)plan->coll, plan->root, plan->n, r);
		if (!c->sent[r] || !c->received[r])
			continue;
		const char *own = c->input[r] + (size_t)l.own_send * block;
		char *to = c->want[r] + (size_t)l.own_recv * block;
		if (!collective_reduces(plan->coll))
			memcpy(to, own, block);
		else if (plan->n == 1)
			reduction_run(&c->reduction, to, NULL, own, NULL, 0, (size_t)c->count, true, false);
	}
	execute_tasks(c, &carried);
	for (int p = 0; p < plan->n; p++)
		for (int q = 0; q < plan->n; q++) {
			for (int k = 0; k <= plan->lanes_max; k++)
				free(carried.of[p][q][k]);
			free(carried.of[p][q]);
		}
}

static bool
call_holds(const struct call *c)
{
	const struct gpu_call *g = &c->given[0];
	for (int r = 0; r < c->plan->n; r++) {
		bool kept = c->in_place[r] || !memcmp(c->send[r], c->input[r], c->sent[r]);
		if (kept && !memcmp(c->recv[r], c->want[r], c->received[r]))
			continue;
		printf("# %s of %d ranks: rank %d %s: %s count %lld width %d slots %d turns %d chunk %lld blocks %u "
		    "threads %u in place %d\n", collective_name(c->plan->coll), c->plan->n, r,
		    kept ? "has other values" : "sent buffer changed", c->kernel->name, (long long)c->count,
		    g->width, g->slots, g->turns, (long long)g->chunk, c->blocks[r], c->threads, c->in_place[r]);
		return false;
	}
	return true;
}

/* ---- runs ---- */

static uint32_t
now_of(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/* What a host would do: one that stops is seen by all. */
static void
stop_together(struct gpus *g)
{
	for (int r = 0; r < g->n; r++)
		for (int q = 0; q < g->n && now_of(&g->status[r].stop); q++)
			__atomic_store_n(&g->status[q].stop, 1, __ATOMIC_RELAXED);
}

/* The calls of each rank one after the other, each rank for itself; rank r goes through call[r][0 .. n - 1]. */
static void
run_calls(struct gpus *g, struct call *(*call)[CALLS], int n)
{
	int at[MAX_RANKS], left = g->n;
	for (int r = 0; r < g->n; r++)
		at[r] = -1;
	while (left > 0) {
		left = 0;
		for (int r = 0; r < g->n; r++) {
			if (at[r] < n && (at[r] < 0 || ended(&call[r][at[r]]->grid[r])) && ++at[r] < n) {
				struct call *c = call[r][at[r]];
				launch(c->kernel, r, c->blocks[r], c->threads, &c->given[r], &c->grid[r]);
			}
			left += at[r] < n;
		}
		run_round();
		stop_together(g);
	}
}

static bool
status_holds(const struct gpus *g, uint64_t calls)
{
	for (int r = 0; r < g->n; r++)
		if (g->status[r].begun != calls || g->status[r].done != calls || g->state[r]->call != calls
		    || g->status[r].differs || g->status[r].awaits != -1 || g->state[r]->blocks_done)
			return false;
	return true;
}

/* Several calls of several plans on the same GPUs. */
static bool
run_same(struct gpus *g, struct call **list, int n)
{
	struct call *call[MAX_RANKS][CALLS];
	bool good = true;
	uint64_t before = g->state[0]->call;
	n_violations = 0;
	for (int i = 0; i < n; i++) {
		execute(list[i]);
		for (int r = 0; r < g->n; r++)
			call[r][i] = list[i];
	}
	run_calls(g, call, n);
	for (int i = 0; i < n; i++) {
		good = call_holds(list[i]) && good;
		free_call(list[i]);
	}
	return good && n_violations == 0 && status_holds(g, before + (uint64_t)n);
}

static int64_t
random_count(void)
{
	static const int64_t counts[] = { 0, 1, 2, 3, 7, 16, 64, 97, 331, 1000, 2500 };
	return counts[below(sizeof counts / sizeof counts[0])];
}

static bool
random_job(void)
{
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(1 + below(5));
	struct call *list[CALLS];
	for (int i = 0; i < CALLS; i++) {
		Collective coll = (Collective)below(N_COLLECTIVES);
		const struct plan *plan = below(2) ? random_plan(&ctx, g, coll)
		    : built_in_plan(&ctx, g, coll, below(2));
		list[i] = new_call(g, plan, below(blinkFloat8e5m2 + 1), below(blinkAvg + 2), random_count(),
		    below(2), -1);
	}
	bool good = run_same(g, list, CALLS);
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* Every type with every operation, long and short. */
static bool
all_types(bool packets)
{
	bool good = true;
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(3);
	const struct plan *plan = built_in_plan(&ctx, g, ALLREDUCE, false);
	int base = n_regions;
	for (int type = 0; type <= blinkFloat8e5m2; type++)
		for (int op = 0; op <= blinkAvg + 1; op++) {
			struct call *c = new_call(g, plan, type, op, 300 + below(100), packets, -1);
			good = run_same(g, &c, 1) && good;
			n_regions = base;
		}
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* ---- what goes wrong ---- */

/* Rank 1 makes another call: its signature is another, or, where `missing`, it makes none, and the host stops all. */
static bool
run_wrong(bool packets, int turns, bool missing)
{
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(3);
	const struct plan *plan = built_in_plan(&ctx, g, ALLREDUCE, false);
	struct call *right = new_call(g, plan, blinkFloat32, blinkSum, 500, packets, turns);
	struct call *call[MAX_RANKS][CALLS] = { { right }, { right }, { right } };
	uint64_t deadline = virtual_gpu_time() + 20 * UINT64_C(1000000000);
	bool named[3] = { false, true, false };
	bool good = true;
	right->given[1].signature += 2;
	if (missing)
		for (int r = 0; r < 3; r += 2)
			launch(right->kernel, r, right->blocks[r], right->threads, &right->given[r], &right->grid[r]);
	else
		run_calls(g, call, 1);
	while (missing && n_running > 0 && virtual_gpu_time() < deadline) {
		run_round();
		for (int r = 0; r < 3; r++)	/* each may also wait for the other, which waits for rank 1 */
			named[r] = named[r] || now_of((uint32_t *)&g->status[r].awaits) == 1;
		__atomic_store_n(&g->status[0].stop, named[0] && named[2], __ATOMIC_RELAXED);
		stop_together(g);
	}
	int differs = 0;
	for (int r = 0; r < 3; r++) {
		differs += g->status[r].differs != 0;
		good = good && (missing && r == 1 ? g->status[r].begun == 0 : g->status[r].begun == 1)
		    && g->status[r].done == 0;
	}
	good = good && n_running == 0 && (missing ? named[0] && named[2] && !differs : differs > 0);
	free_call(right);
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* ---- messages ---- */

enum { MAILS = 2 * MAX_RANKS * MAX_RANKS };

struct mail {
	struct gpu_exchange exchange[MAX_RANKS];
	struct gpu_message message[MAX_RANKS][GPU_MESSAGES];
	struct grid grid[MAX_RANKS];
	unsigned blocks[MAX_RANKS];
	int n;
	int from[MAILS], to[MAILS];
	size_t bytes[MAILS];
	char *memory[2 * MAILS], *sent[MAILS], *received[MAILS];
};

static char *
mail_memory(char **memory, int rank, size_t bytes)
{
	char *m = *memory = need(malloc(bytes + 32));
	memset(m, 0xa5, bytes + 32);
	m += below(2) ? (uintptr_t)below(16) : -(uintptr_t)m % 16;
	add_region(m, bytes, rank, false);
	return m;
}

static void
add_message(struct gpus *g, struct mail *m, int i, bool sends, size_t wrong)
{
	int rank = sends ? m->from[i] : m->to[i], peer = sends ? m->to[i] : m->from[i];
	struct gpu_exchange *x = &m->exchange[rank];
	struct gpu_message *all = m->message[rank];
	if (x->n == 0 || all[x->n - 1].peer != peer || all[x->n - 1].sends != sends)
		m->blocks[rank]++;
	all[x->n++] = (struct gpu_message){ sends ? m->sent[i] : m->received[i], m->bytes[i] + (sends ? 0 : wrong),
	    (uint64_t)(i % 3), &g->of[m->to[i]][m->from[i]].channel, &g->of[m->from[i]][m->to[i]].channel.done,
	    peer, sends };
}

/* Between all pairs, also of a rank with itself. wrong: bytes by which they are longer for who gets them. */
static struct mail *
new_mail(struct gpus *g, size_t wrong)
{
	static const size_t sizes[] = { 0, 1, 3, 16, 1000, 65536, 65537, 140000 };
	struct mail *m = zeroed(sizeof *m);
	for (int p = 0; p < g->n; p++)
		for (int q = 0; q < g->n; q++)
			for (int k = below(3); k > 0; k--) {
				int i = m->n++;
				m->from[i] = p;
				m->to[i] = q;
				m->bytes[i] = sizes[below(8)];
				m->sent[i] = mail_memory(&m->memory[2 * i], p, m->bytes[i]);
				m->received[i] = mail_memory(&m->memory[2 * i + 1], q, m->bytes[i] + wrong);
				for (size_t b = 0; b < m->bytes[i]; b++)
					m->sent[i][b] = (char)random64();
			}
	for (int i = 0; i < m->n; i++)
		add_message(g, m, i, true, wrong);
	for (int i = 0; i < m->n; i++)
		add_message(g, m, i, false, wrong);
	for (int r = 0; r < g->n; r++) {
		m->exchange[r].state = g->state[r];
		m->exchange[r].status = &g->status[r];
		m->exchange[r].message = m->message[r];
		add_region(m->message[r], sizeof m->message[r], r, false);
	}
	return m;
}

/* false: not all is there. Ends also where a rank has stopped. */
static bool
run_mail(struct gpus *g, struct mail *m)
{
	const struct virtual_kernel *kernel = virtual_gpu_kernels;
	bool good = true;
	while (strcmp(kernel->name, "blink_messages") != 0)
		kernel++;
	for (int r = 0; r < g->n; r++)
		launch(kernel, r, m->blocks[r], 1 + (unsigned)below(4), &m->exchange[r], &m->grid[r]);
	while (n_running > 0) {
		run_round();
		stop_together(g);
	}
	for (int i = 0; i < m->n; i++)
		good = good && memcmp(m->sent[i], m->received[i], m->bytes[i]) == 0;
	return good;
}

static void
free_mail(struct mail *m)
{
	for (int i = 0; i < 2 * m->n; i++)
		free(m->memory[i]);
	free(m);
}

static bool
messages(void)
{
	struct gpus *g = gpus_new(1 + below(4));
	bool good = true;
	n_violations = 0;
	for (int base = n_regions, i = 0; i < 3; i++) {
		struct mail *m = new_mail(g, 0);
		good = run_mail(g, m) && good;
		n_regions = base;
		free_mail(m);
	}
	for (int r = 0; r < g->n; r++)
		good = good && g->status[r].differs == 0 && g->state[r]->call == 0;
	gpus_free(g);
	return good && n_violations == 0;
}

static bool
messages_differ(void)
{
	struct gpus *g = gpus_new(3);
	struct mail *m;
	while ((m = new_mail(g, 4))->n == 0)
		free_mail(m);
	run_mail(g, m);
	int differs = 0;
	for (int r = 0; r < g->n; r++)
		differs += g->status[r].differs != 0;
	free_mail(m);
	gpus_free(g);
	return differs > 0;
}

static bool
times(int n, bool (*what)(void))
{
	bool good = true;
	for (int i = 0; i < n && good; i++)
		good = what();
	return good;
}

int
main(int argc, char **argv)
{
	int jobs = quick_check() ? 2 : argc > 2 ? atoi(argv[2]) / 3 : 10;
	state = chance = argc > 1 ? (uint64_t)atoi(argv[1]) : 1;
	alarm(300);
	ok(all_types(false), "every type and operation, by flags");
	ok(all_types(true), "every type and operation, by packets");
	uneven = true;
	ok(times(jobs, random_job), "calls of random plans, one after the other");
	uneven = false;
	ok(times(jobs, messages), "messages");
	weak = true;
	ok(times(jobs, random_job), "random plans, where stores are seen late");
	ok(times(jobs, messages), "messages, where stores are seen late");
	weak = false;
	ok(run_wrong(false, 0, false) && run_wrong(true, 0, false) && run_wrong(false, 1, false),
	    "a rank in another call: all end, and somebody says who");
	ok(messages_differ(), "a message of another length: all end");
	ok(run_wrong(false, 0, true) && run_wrong(true, 0, true) && run_wrong(false, 1, true),
	    "a rank that does not come is named, and who waits for it can be stopped");
	free_fibers();
	printf("1..%d\n", n_tests);
	return n_failed > 0;
}
