/* What blocks of an alltoall differ in, and what they hold. */
#include "blocks.h"

#include "flight.h"

#include <stdlib.h>
#include <string.h>

enum { GAP = 3 };			/* elements around each block, that nobody writes */

enum { STEADY = 40, STEADY_ROUNDS = 5 };

/* Elements from one rank to another in a round: none, few, or many; all none in every seventh; to one rank alone in
 * every fifth. In the last rounds about as many for some rounds, short and long in turn, but one of each that is not,
 * so that what the rounds before had is right or not. */
static size_t
count_of(uint64_t seed, uint64_t round, int from, int to)
{
	uint64_t x = mixed(seed + round, (uint64_t)(from * 64 + to), 7);
	if (round >= STEADY) {
		size_t n = (round - STEADY) / STEADY_ROUNDS % 2 ? 9000 : 300;
		return round % STEADY_ROUNDS == 3 && (from + to) % 3 == 1 ? 3 * n : n + x % (n / 10);
	}
	if (round % 7 == 6 || (round % 5 == 4 && to != (int)round % 3))
		return 0;
	if (x % 3 == 0)
		return 0;
	return x % 3 == 1 ? x / 3 % 20 : x % 16 == 5 && round % 3 == 2 ? x / 64 % 100000 : x / 64 % 3000;
}

static int32_t
element_of(uint64_t values, int from, int to, size_t i)
{
	return (int32_t)mixed(values, (uint64_t)(from * 64 + to), i) | 1;
}

/* In a random order of ranks, with gaps; displacements of blocks without elements are wild. */
static void
place_blocks(struct rank *me, struct blocks *b, uint64_t seed, uint64_t round, bool sends)
{
	int start = (int)(mixed(seed, round, (uint64_t)me->rank) % (uint64_t)me->n);
	b->n = GAP;
	for (int i = 0; i < me->n; i++) {
		int r = (start + i * (me->n % 3 ? 3 : 1)) % me->n;
		b->count[r] = sends ? count_of(seed, round, me->rank, r) : count_of(seed, round, r, me->rank);
		b->displ[r] = b->count[r] ? b->n : SIZE_MAX;
		b->n += b->count[r] + GAP;
	}
	b->data = calloc(b->n, sizeof *b->data);
	if (!job_need(me, b->data != NULL, "no memory"))
		exit(97);
}

void
blocks_make(struct rank *me, struct blocks_pair *p, blinkComm_t comm, uint64_t seed, uint64_t round)
{
	struct blocks *of[2] = { &p->send, &p->recv };
	p->comm = comm;
	for (int i = 0; i < 2; i++) {
		place_blocks(me, of[i], seed, round, i == 0);
		of[i]->device = device_memory(me, comm, of[i]->n * sizeof *of[i]->data);
	}
}

void
blocks_fill(struct rank *me, struct blocks_pair *p, uint64_t values)
{
	struct blocks *s = &p->send, *r = &p->recv;
	for (int to = 0; to < me->n; to++)
		for (size_t i = 0; i < s->count[to]; i++)
			s->data[s->displ[to] + i] = element_of(values, me->rank, to, i);
	memset(r->data, 0, r->n * sizeof *r->data);
	device_in(me, p->comm, s->device, s->data, s->n * sizeof *s->data);
	device_in(me, p->comm, r->device, r->data, r->n * sizeof *r->data);
}

bool
blocks_exchange(struct rank *me, const struct blocks_pair *p, void *stream)
{
	const struct blocks *s = &p->send, *r = &p->recv;
	return fine(me, blinkAlltoAllv(s->device ? s->device : (char *)s->data, s->count, s->displ, r->device
	    ? r->device : (char *)r->data, r->count, r->displ, blinkInt32, p->comm, stream), p->comm, "alltoallv");
}

void
blocks_judge(struct rank *me, struct blocks_pair *p, uint64_t values, int round)
{
	const struct blocks *b = &p->recv;
	size_t wrong = 0, written = 0, want = 0;
	device_out(me, p->comm, b->data, b->device, b->n * sizeof *b->data);
	for (int r = 0; r < me->n; r++) {
		for (size_t i = 0; i < b->count[r]; i++)
			wrong += b->data[b->displ[r] + i] != element_of(values, r, me->rank, i);
		want += b->count[r];
	}
	for (size_t i = 0; i < b->n; i++)
		written += b->data[i] != 0;
	job_need(me, wrong == 0 && written == want, "round %d: %zu elements wrong; %zu written, want %zu", round,
	    wrong, written, want);
}

void
blocks_free(struct rank *me, struct blocks_pair *p)
{
	device_free(me, p->comm, p->send.device);
	device_free(me, p->comm, p->recv.device);
	free(p->send.data);
	free(p->recv.data);
}
