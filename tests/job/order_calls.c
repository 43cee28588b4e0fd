/* Calls of one communicator, under way at once: tested, waited for, ahead of other ranks; the same bits for all. */
#include "order.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Calls of all kinds and sizes, none waited for before the last is made. */
void
stream(struct rank *me)
{
	const struct order *o = me->arg;
	struct flight f;
	bool good = true;
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	flight_make(&f, me->n, me->rank, o->n_calls, 331, 40001, o->seed);
	for (int k = 0; k < f.n_calls && good; k++)
		good = flight_start_one(&f, me, comm, k);
	if (good && wait_for(me, comm))
		flight_land(&f, me);
	job_leave(me, comm);
}

void
alone(struct rank *me)
{
	const struct order *o = me->arg;
	blinkComm_t comm = job_join_some(me, me->rank, UINT64_C(1) << me->rank, NULL);
	if (!comm)
		return;
	flight_run(me, comm, 200, 4099, o->seed + (uint64_t)me->rank);
	job_leave(me, comm);
}

/* Calls are numbered from 1; they are tested until they are done, and are not while a rank has not made its own. */
void
tested(struct rank *me)
{
	blinkComm_t comm = job_join(me, NULL);
	int64_t x[3] = { me->rank, me->rank * 10, me->rank * 100 }, sum = (int64_t)me->n * (me->n - 1) / 2;
	blinkResult_t result = blinkInProgress;
	uint64_t last = 9;
	if (!comm)
		return;
	job_need(me, blinkCommTest(comm, 0) == blinkSuccess, "no call has been made, and they are not done");
	job_need(me, blinkCommLastCall(comm, &last) == blinkSuccess && last == 0, "the last call is %d", (int)last);
	if (me->rank == me->n - 1)
		job_await(me->board, 0, (uint64_t)me->n - 1);
	for (uint64_t i = 0; i < 3; i++) {
		fine(me, blinkAllReduce(&x[i], &x[i], 1, blinkInt64, blinkSum, comm, NULL), comm, "allreduce");
		job_need(me, blinkCommLastCall(comm, &last) == blinkSuccess && last == i + 1, "call %d", (int)last);
	}
	if (me->rank < me->n - 1) {
		for (int i = 0; i < 20; i++) {
			result = blinkCommTest(comm, 1);
			job_need(me, result == blinkInProgress, "done without a rank: %d", (int)result);
		}
		job_add(me->board, 0, 1);
	}
	job_at(me, "test until done");
	while ((result = blinkCommTest(comm, 2)) == blinkInProgress)
		sleep_ms(0.1);
	job_need(me, result == blinkSuccess && x[0] == sum && x[1] == 10 * sum, "test: %d: %s", (int)result,
	    blinkCommGetError(comm));
	job_need(me, blinkCommWait(comm, 1) == blinkSuccess, "wait for a call that is done");
	wait_for(me, comm);
	job_need(me, x[2] == 100 * sum, "sum %d", (int)x[2]);
	job_leave(me, comm);
}

/* Two ranks make broadcasts before the others begin, who then receive what was sent for each. The two are the root in
 * turns, for `turn` broadcasts at a time, until `made` broadcasts of `count` elements are made. */
static void
run_ahead(struct rank *me, int turn, int made, size_t count)
{
	blinkComm_t comm = job_join(me, NULL);
	int roots = me->n > 2 ? 2 : 1, wrong = 0;
	int64_t *x = calloc((size_t)made * count, sizeof *x);
	if (!comm || !job_need(me, x, "no memory"))
		return;
	if (me->rank >= roots)
		job_await(me->board, 0, (uint64_t)roots);
	for (int k = 0; k < made; k++) {
		int root = k / turn % roots;
		int64_t *at = x + (size_t)k * count;
		for (size_t i = 0; i < count && root == me->rank; i++)
			at[i] = 1000 + k;
		fine(me, blinkBroadcast(at, at, count, blinkInt64, root, comm, NULL), comm, "broadcast");
	}
	if (me->rank < roots) {
		for (int i = 0; i < 100 && blinkCommTest(comm, 0) == blinkInProgress; i++)
			sleep_ms(1);
		job_add(me->board, 0, 1);
	}
	wait_for(me, comm);
	for (size_t i = 0; i < (size_t)made * count; i++)
		wrong += x[i] != 1000 + (int64_t)(i / count);
	job_need(me, !wrong, "%d elements of %d broadcasts are wrong", wrong, made);
	free(x);
	job_leave(me, comm);
}

void
ahead(struct rank *me)
{
	run_ahead(me, 16, 64, 1);
}

/* Calls that have half an arena each. */
void
ahead_large(struct rank *me)
{
	run_ahead(me, 4, 8, 40000);
}

void *
wait_in_thread(void *arg)
{
	struct waiter *w = arg;
	int64_t began = job_now();
	w->result = blinkCommWait(w->comm, w->call);
	w->took = job_now() - began;
	return NULL;
}

/* Any number of threads wait for the calls of one communicator, each for another of them. */
void
waited(struct rank *me)
{
	enum { WAITERS = 6 };
	pthread_t thread[WAITERS];
	struct waiter w[WAITERS];
	struct flight f;
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	for (int round = 0; round < 5; round++) {
		flight_make(&f, me->n, me->rank, 60, 1025, 1025, (uint64_t)round);
		for (int k = 0; k < f.n_calls; k++)
			flight_start_one(&f, me, comm, k);
		for (uint64_t i = 0; i < WAITERS; i++) {
			w[i] = (struct waiter){ .me = me, .comm = comm, .call = i * 10 };
			if (!job_need(me, pthread_create(&thread[i], NULL, wait_in_thread, &w[i]) == 0, "no thread"))
				exit(97);
		}
		for (int i = 0; i < WAITERS; i++) {
			pthread_join(thread[i], NULL);
			job_need(me, w[i].result == blinkSuccess, "waiter %d: %d", i, (int)w[i].result);
		}
		flight_land(&f, me);
	}
	job_leave(me, comm);
}

/* Values whose reductions depend on the order of operands: zeros of both signs, infinities, NaN of many kinds. */
static void
put_specials(char *to, size_t count, size_t size, uint64_t exponent, uint64_t *state)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t bits = next_random(state), sign = UINT64_C(1) << (8 * size - 1);
		uint64_t kinds[] = { 0, sign, exponent | bits, bits & (exponent | sign) };
		memcpy(to + i * size, &kinds[bits >> 61 & 3], size);
	}
}

/* After an allreduce every rank has the same bits, whatever is reduced, in which form, and by what operation. */
void
same_bits(struct rank *me)
{
	static const struct { blinkDataType_t type; uint64_t exponent; } types[] = {
		{ blinkFloat16, 0x7c00 }, { blinkBfloat16, 0x7f80 }, { blinkFloat32, 0x7f800000 },
		{ blinkFloat64, UINT64_C(0x7ff) << 52 }, { blinkFloat8e4m3, 0x78 }, { blinkFloat8e5m2, 0x7c } };
	enum { COUNT = 9001, N_TYPES = sizeof types / sizeof *types, N_OPS = blinkAvg + 1 };
	static const size_t counts[] = { 97, COUNT };
	uint64_t state = 77 + (uint64_t)me->rank;
	char *mine = malloc(8 * COUNT), *all = malloc((size_t)me->n * 8 * COUNT);
	blinkComm_t comm = job_join(me, NULL);
	for (int i = 0; comm && mine && all && i < N_TYPES * N_OPS * 2; i++) {
		blinkDataType_t type = types[i % N_TYPES].type;
		blinkRedOp_t op = (blinkRedOp_t)(i / N_TYPES % N_OPS);
		size_t size = blinkTypeSize(type), count = counts[i / N_TYPES / N_OPS], bytes = count * size;
		put_specials(mine, count, size, types[i % N_TYPES].exponent, &state);
		fine(me, blinkAllReduce(mine, mine, count, type, op, comm, NULL), comm, "allreduce");
		fine(me, blinkAllGather(mine, all, bytes, blinkUint8, comm, NULL), comm, "allgather");
		if (!wait_for(me, comm))
			break;
		for (int r = 0; r < me->n; r++)
			job_need(me, memcmp(mine, all + (size_t)r * bytes, bytes) == 0,
			    "%zu of type %d, operation %d: not as rank %d", count, (int)type, (int)op, r);
	}
	if (comm)
		job_leave(me, comm);
	free(mine);
	free(all);
}

/* More elements than an int counts, of one byte; takes 2 GiB a rank. */
void
huge(struct rank *me)
{
	size_t count = ((size_t)1 << 31) + 5, words = count / 8, wrong = 0;
	blinkComm_t comm = job_join(me, NULL);
	uint64_t *data = malloc(count);
	if (!comm || !job_need(me, data != NULL, "no memory"))
		return;
	((char *)data)[count - 1] = me->rank ? 0 : 77;
	for (size_t i = 0; i < words; i++)
		data[i] = me->rank ? 0 : i * 0x9e3779b97f4a7c15u;
	fine(me, blinkBroadcast(data, data, count, blinkInt8, 0, comm, NULL), comm, "broadcast");
	wait_for(me, comm);
	for (size_t i = 0; i < words; i++)
		wrong += data[i] != i * 0x9e3779b97f4a7c15u;
	job_need(me, !wrong && ((char *)data)[count - 1] == 77, "%zu of %zu words are wrong", wrong, words);
	free(data);
	job_leave(me, comm);
}
