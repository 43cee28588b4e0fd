/* Calls of an alltoall whose blocks differ in length, and what they should do: for test_kernels.c. */
#ifndef KERNEL_UNEVEN_H
#define KERNEL_UNEVEN_H

#include "kernel_calls.h"

static int64_t
random_block(void)
{
	static const int64_t counts[] = { 0, 0, 1, 2, 7, 33, 331, 1000 };
	return counts[below(sizeof counts / sizeof counts[0])];
}

/* One block after the other, some with a gap before it; returns how many elements that takes. */
static int64_t
place(const int64_t *count, int64_t *at, int n)
{
	int64_t end = 0;
	for (int r = 0; r < n; r++) {
		at[r] = end + below(3);
		end = at[r] + count[r];
	}
	return end;
}

static void
make_blocks(struct call *c, int r, int64_t count[MAX_RANKS][MAX_RANKS])
{
	int n = c->plan->n;
	int64_t size = (int64_t)c->reduction.size;
	struct gpu_blocks *b = (struct gpu_blocks *)(void *)new_buffer(c, r, sizeof *b, true);
	struct gpu_call *given = &c->given[r];
	for (int k = 0; k < n; k++) {
		b->sent[k] = count[r][k];
		b->received[k] = count[k][r];
	}
	c->sent[r] = (size_t)(place(b->sent, b->send_at, n) * size);
	c->received[r] = (size_t)(place(b->received, b->recv_at, n) * size);
	char *send = new_buffer(c, r, c->sent[r], below(2));
	for (size_t i = 0; i < c->sent[r]; i++)
		send[i] = (char)random64();
	c->input[r] = memcpy(new_memory(c, c->sent[r]), send, c->sent[r]);
	c->send[r] = given->send = send;
	c->recv[r] = given->recv = new_buffer(c, r, c->received[r], below(2));
	c->want[r] = memcpy(new_memory(c, c->received[r]), c->recv[r], c->received[r]);
	given->blocks = b;
	given->own_from = given->send + b->send_at[r] * size;
	given->own_to = given->recv + b->recv_at[r] * size;
	given->own_bytes = b->sent[r] * size;
}

static void
fill_want(const struct call *c)
{
	size_t size = c->reduction.size;
	for (int from = 0; from < c->plan->n; from++)
		for (int to = 0; to < c->plan->n; to++) {
			const struct gpu_blocks *sent = c->given[from].blocks, *received = c->given[to].blocks;
			memcpy(c->want[to] + (size_t)received->recv_at[from] * size,
			    c->input[from] + (size_t)sent->send_at[to] * size, (size_t)sent->sent[to] * size);
		}
}

/* Of a plan for an alltoall, of one part. */
static struct call *
uneven_call(struct gpus *g, const struct plan *plan, int type)
{
	struct call *c = zeroed(sizeof *c);
	struct gpu_call all = { .count = 1000, .signature = random64() | 1, .n_ranks = g->n, .n_parts = 1 };
	int64_t count[MAX_RANKS][MAX_RANKS];
	c->plan = plan;
	c->count = all.count;
	c->as_wanted = true;
	reduction_make(type, blinkSum, g->n, &c->reduction);
	c->kernel = kernel_of(type, NO_OP);
	all.size = (int32_t)c->reduction.size;
	all.part_end[0] = all.count;
	choose_protocol(c, &all, false, -1);
	choose_threads(c, &all);
	for (int r = 0; r < g->n; r++)
		for (int k = 0; k < g->n; k++)
			count[r][k] = random_block();
	for (int r = 0; r < g->n; r++) {
		give_rank(c, g, r, &all, false);
		make_blocks(c, r, count);
	}
	fill_want(c);
	return c;
}

#endif
