/* Calls of collectives on GPUs of fibers: their buffers and protocols, by chance, and what they should do, by a plain
 * execution of the same rank programs: for test_kernels.c. */
#ifndef KERNEL_CALLS_H
#define KERNEL_CALLS_H

#include "../../runtime/cuda/sizes.h"
#include "../../runtime/reduce/reduce.h"
#include "kernel_gpus.h"
#include "numbers.h"

enum { NO_OP = 4 };

/* ---- calls ---- */

struct call {
	const struct plan *plan;
	const struct virtual_kernel *kernel;
	struct reduction reduction;
	struct gpu_call given[MAX_RANKS];
	struct gpu_multicast_call switched[MAX_RANKS];	/* the same, where the plan is switched */
	struct grid grid[MAX_RANKS];
	unsigned blocks[MAX_RANKS], threads;
	int64_t count;
	int n_memory;
	void *memory[8 * MAX_RANKS];
	size_t sent[MAX_RANKS], received[MAX_RANKS];	/* bytes */
	char *input[MAX_RANKS];		/* what it sends, kept */
	char *want[MAX_RANKS], *recv[MAX_RANKS];
	const char *send[MAX_RANKS];
	bool in_place[MAX_RANKS];
	bool as_wanted;			/* `want` is what it should do; else `execute` says */
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
		put_number(c->reduction.type, random64(), send + i);
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
choose_protocol(struct call *c, struct gpu_call *g, int protocol, int turns)
{
	int64_t lanes = c->plan->lanes_max > 0 ? c->plan->lanes_max : 1;
	int64_t longest = longest_segment(c, g->part_end), size = (int64_t)c->reduction.size, line = 128 / size;
	g->width = 1 + below(4);
	g->strip = (longest / g->width + line) / line * line;
	g->ring_share = RING_BYTES / (lanes * g->width) / 16 * 16;
	g->packet_share = PACKET_BYTES / (lanes * g->width) / 16 * 16;
	g->turns = turns < 0 ? below(3) == 0 : turns;
	if (protocol == GPU_LINES) {
		g->packet_share = LINES_BYTES / (lanes * g->width) / 128 * 128;
		g->lines = PACKET_BYTES;
		if ((1 + (g->strip * size + 479) / 480 * 4) * 128 <= g->packet_share)
			return;
		g->lines = 0;
	}
	if (protocol == GPU_PACKETS && g->strip * size * 2 + 32 <= g->packet_share)
		return;
	int64_t most = g->ring_share / 16 < GPU_SLOTS_MOST ? g->ring_share / 16 : GPU_SLOTS_MOST;
	g->slots = 2 + below((int)most - 1);
	g->slot_bytes = g->ring_share / g->slots / 16 * 16;
	int64_t few = 16 * (1 + below(8));
	if (below(2) && g->slot_bytes > few)
		g->slot_bytes = few;
	g->chunk = g->slot_bytes / (int64_t)c->reduction.size;
}

/* Strips that take turns are dealt out, sometimes in the order of the tasks and sometimes in any other. */
static void
choose_order(struct call *c, int r, struct gpu_call *g)
{
	int n = c->plan->of[r]->n_tasks;
	gpu_count_strips(c->plan->of[r], NULL, g);
	if (!g->counted || !g->turns || !g->slots || below(3) == 0)
		return;
	uint16_t *order = (uint16_t *)(void *)new_buffer(c, r, (size_t)n * sizeof *order, true);
	for (int i = 0; i < n; i++) {
		int at = below(i + 1);
		order[i] = order[at];
		order[at] = (uint16_t)i;
	}
	g->order = order;
	gpu_count_strips(c->plan->of[r], order, g);
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

/* Blocks take turns where there would be too many fibers. */
static void
choose_threads(struct call *c, struct gpu_call *all)
{
	int tasks = 0;
	for (int r = 0; r < c->plan->n; r++)
		tasks += c->plan->of[r]->n_tasks;
	all->turns = all->turns || tasks * all->width > 256;
	c->threads = 1 + (unsigned)below(all->turns || tasks * all->width < 64 ? 4 : 2);
}

/* All that a rank is given but its buffers. counts: its strips, in some order. */
static void
give_rank(struct call *c, struct gpus *g, int r, const struct gpu_call *all, bool counts)
{
	struct gpu_call *given = &c->given[r];
	int n_tasks = c->plan->of[r]->n_tasks;
	*given = *all;
	if (counts)
		choose_order(c, r, given);
	int strips = counts && given->counted ? GPU_FIRST(given, n_tasks) : n_tasks * all->width;
	given->program = c->plan->program[r];
	given->state = g->state[r];
	given->status = &g->status[r];
	given->rank = r;
	c->blocks[r] = (unsigned)(all->turns ? 1 + strips / GPU_TASKS_OF_BLOCK + below(3) : strips + below(3));
	c->blocks[r] += c->blocks[r] == 0;
}

/* op: above blinkAvg a sum of values times a factor; above that, by one that is in memory. */
static struct call *
new_call(struct gpus *g, const struct plan *plan, int type, int op, int64_t count, int protocol, int turns)
{
	struct call *c = zeroed(sizeof *c);
	struct gpu_call all = { .count = count, .signature = random64() | 1, .n_ranks = g->n };
	uint64_t scalar = 0;
	bool in_memory = false;
	put_number(type, random64(), (char *)&scalar);
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
	choose_protocol(c, &all, protocol, turns);
	if (collective_reduces(plan->coll)) {
		all.scales = c->reduction.scales;
		all.divide = c->reduction.divide;
		in_memory = c->reduction.scalar && (op > blinkAvg + 1 || below(2));
		reduction_read_scalar(&c->reduction);
		if (!in_memory)
			memcpy(&all.scale, &c->reduction.scale, sizeof all.scale);
	}
	choose_threads(c, &all);
	bool counts = below(2);
	for (int r = 0; r < g->n; r++) {
		give_rank(c, g, r, &all, counts);
		make_buffers(c, r);
		if (in_memory)
			c->given[r].scalar = memcpy(new_buffer(c, r, (size_t)all.size, below(2)), &scalar,
			    (size_t)all.size);
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
		    "threads %u in place %d%s\n", collective_name(c->plan->coll), c->plan->n, r,
		    kept ? "has other values" : "sent buffer changed", c->kernel->name, (long long)c->count,
		    g->width, g->slots, g->turns, (long long)g->chunk, c->blocks[r], c->threads, c->in_place[r],
		    g->lines ? " lines" : "");
		return false;
	}
	return true;
}

#endif
