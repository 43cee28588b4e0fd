/* The order of things in a job: thousands of calls under way at once; several communicators at once, over overlapping
 * ranks and from several threads; splits of splits; groups; messages between ranks; calls that are tested, not waited
 * for; aborts; ranks that leave while others still work; and the same bits for all of them.
 *
 *	order [-t] [-n RANKS] [-s SERVERS] [-k CALLS] [-S SEED] SCENARIO...
 *
 * -t: ranks are threads; else processes, on so many servers. Without a scenario: all but huge and same_bits. */
#include "device.h"
#include "flight.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
	job_body *body;
	int n_calls, servers;
	bool threads;
	uint64_t seed;
};

/* ---- calls ---- */

/* Calls of all kinds and sizes, none waited for before the last is made. */
static void
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

static void
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
static void
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

/* Two ranks make broadcasts before the others begin, who then receive what was sent for each. They are the roots of
 * `turn` broadcasts each, in turns, of which there are `made` of so many elements. */
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

static void
ahead(struct rank *me)
{
	run_ahead(me, 16, 64, 1);
}

/* Calls that have half an arena each. */
static void
ahead_large(struct rank *me)
{
	run_ahead(me, 4, 8, 40000);
}

struct waiter {
	struct rank *me;
	blinkComm_t comm;
	uint64_t call;
	blinkResult_t result;
	int64_t took;
};

static void *
wait_in_thread(void *arg)
{
	struct waiter *w = arg;
	int64_t began = job_now();
	w->result = blinkCommWait(w->comm, w->call);
	w->took = job_now() - began;
	return NULL;
}

/* Any number of threads wait for the calls of one communicator, each for another of them. */
static void
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
static void
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
static void
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

/* ---- communicators ---- */

enum { SEVERAL = 6 };

static uint64_t
mask_of(const struct rank *me, uint64_t seed, int i)
{
	uint64_t all = (UINT64_C(1) << me->n) - 1, mask = mixed(seed, (uint64_t)i, 7) & all;
	return mask ? mask : all;
}

struct one_of_several {
	struct rank *me;
	int i;
};

static void *
run_one_of_several(void *arg)
{
	struct one_of_several *one = arg;
	struct rank me = *one->me;
	const struct order *o = me.arg;
	device_take(&me);
	blinkComm_t comm = job_join_some(&me, one->i, mask_of(&me, o->seed, one->i), NULL);
	if (!comm)
		return NULL;
	for (uint64_t round = 0; round < 4; round++)
		flight_run(&me, comm, 30, 1025, o->seed + round);
	job_leave(&me, comm);
	return NULL;
}

/* Communicators over overlapping ranks, each driven by a thread of its own. */
static void
several(struct rank *me)
{
	const struct order *o = me->arg;
	pthread_t thread[SEVERAL];
	struct one_of_several one[SEVERAL];
	int n = 0;
	for (int i = 0; i < SEVERAL; i++) {
		if (!(mask_of(me, o->seed, i) >> me->rank & 1))
			continue;
		one[n] = (struct one_of_several){ me, i };
		if (!job_need(me, pthread_create(&thread[n], NULL, run_one_of_several, &one[n]) == 0, "no thread"))
			exit(97);
		n++;
	}
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

/* One thread: calls on one communicator and on another in turn, waited for at the end. */
static void
in_turn(struct rank *me)
{
	const struct order *o = me->arg;
	uint64_t all = (UINT64_C(1) << me->n) - 1;
	blinkComm_t a = job_join_some(me, 0, all, NULL), b = a ? job_join_some(me, 1, all, NULL) : NULL;
	struct flight f, g;
	if (!b)
		return;
	flight_make(&f, me->n, me->rank, 200, 1025, 1025, o->seed);
	flight_make(&g, me->n, me->rank, 200, 1025, 1025, o->seed + 1);
	for (int k = 0; k < f.n_calls; k++) {
		/* Ranks need not agree on the order between communicators. */
		bool a_first = me->rank % 2;
		flight_start_one(a_first ? &f : &g, me, a_first ? a : b, k);
		flight_start_one(a_first ? &g : &f, me, a_first ? b : a, k);
	}
	wait_for(me, a);
	wait_for(me, b);
	flight_land(&f, me);
	flight_land(&g, me);
	job_leave(me, a);
	job_leave(me, b);
}

/* Communicators one after the other leave no files, threads or memory behind. */
static void
one_by_one(struct rank *me)
{
	int files = 0, threads = 0;
	for (int round = 0; round < 20; round++) {
		blinkComm_t comm = job_join_some(me, round, (UINT64_C(1) << me->n) - 1, NULL);
		if (!comm)
			return;
		flight_run(me, comm, 5, 331, (uint64_t)round);
		job_leave(me, comm);
		/* The process of the ids listens until all have left. */
		job_barrier(me, round, me->n);
		for (int i = 0; round > 2 && i < 200 && (count_files() > files || count_threads() > threads); i++)
			sleep_ms(5);
		if (round == 2) {
			sleep_ms(200);
			files = count_files();
			/* A driver keeps threads of its own. */
			threads = device_wanted() ? INT_MAX : count_threads();
		}
	}
	job_need(me, count_files() <= files, "%d open files; after the third communicator %d", count_files(), files);
	job_need(me, count_threads() <= threads, "%d threads; after the third communicator %d", count_threads(),
	    threads);
}

/* Ranks go as soon as their own part is done, others have not begun theirs. */
static void
leaving(struct rank *me)
{
	for (int round = 0; round < 20; round++) {
		uint64_t h = mixed((uint64_t)round, (uint64_t)me->rank, 3);
		blinkComm_t comm = job_join_some(me, round, (UINT64_C(1) << me->n) - 1, NULL);
		if (!comm)
			return;
		if (h % 3 == 0)
			sleep_ms((double)(h % 7));
		flight_run(me, comm, 1 + round % 5, round % 4 ? 331 : 40001, (uint64_t)round);
		job_leave(me, comm);
	}
}

/* A forked child may destroy what its parent has, and the parent goes on. */
static void
forked(struct rank *me)
{
	int status = -1;
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	flight_run(me, comm, 20, 1025, 1);
	pid_t pid = fork();
	if (pid == 0)
		_exit(blinkCommDestroy(comm) == blinkSuccess ? 0 : 1);
	job_at(me, "wait for the child");
	waitpid(pid, &status, 0);
	job_need(me, pid > 0 && status == 0, "the forked child ended with 0x%x", status);
	flight_run(me, comm, 20, 1025, 2);
	job_leave(me, comm);
}

/* ---- splits ---- */

/* The rank's color and key at a split, and what follows from those of all. */
static int
color_of(uint64_t seed, int rank)
{
	return (int)(mixed(seed, (uint64_t)rank, 11) % 4) - 1;
}

static int
key_of(uint64_t seed, int rank)
{
	return (int)(mixed(seed, (uint64_t)rank, 12) % 3) - 1;
}

static void
expect_place(uint64_t seed, int n, int rank, int *want_n, int *want_rank)
{
	*want_n = *want_rank = 0;
	for (int r = 0; r < n; r++) {
		if (color_of(seed, r) != color_of(seed, rank))
			continue;
		int key = key_of(seed, r), own = key_of(seed, rank);
		*want_n += 1;
		*want_rank += key < own || (key == own && r < rank);
	}
}

static void
split_more(struct rank *me, blinkComm_t comm, uint64_t seed, int depth)
{
	int n = 0, rank = 0, want_n, want_rank, got_n = -1, got_rank = -1;
	blinkComm_t split = NULL;
	blinkError_t error = { "" };
	blinkCommCount(comm, &n);
	blinkCommUserRank(comm, &rank);
	expect_place(seed, n, rank, &want_n, &want_rank);
	int color = color_of(seed, rank);
	job_at(me, "split %d of %d ranks, color %d", depth, n, color);
	blinkResult_t result = blinkCommSplit(comm, color, key_of(seed, rank), &split, NULL, &error);
	if (!job_need(me, result == blinkSuccess, "split: %d: %s", (int)result, error.text))
		return;
	if (!job_need(me, !split == (color < 0), "color %d: %s communicator", color, split ? "a" : "no") || !split) {
		flight_run(me, comm, 10, 331, seed);
		return;
	}
	blinkCommCount(split, &got_n);
	blinkCommUserRank(split, &got_rank);
	job_need(me, got_n == want_n && got_rank == want_rank, "split: rank %d of %d, want %d of %d", got_rank, got_n,
	    want_rank, want_n);
	flight_run(me, split, 10, 1025, seed + 1);
	if (depth > 0)
		split_more(me, split, mixed(seed, (uint64_t)color, 5), depth - 1);
	bool after = seed % 2;		/* the same for all: whether the parent is used before the split is destroyed */
	if (after)
		flight_run(me, comm, 10, 331, seed);
	job_leave(me, split);
	if (!after)
		flight_run(me, comm, 10, 331, seed);
}

static void
splits(struct rank *me)
{
	const struct order *o = me->arg;
	blinkComm_t comm = job_join(me, NULL);
	for (uint64_t round = 0; comm && round < 4; round++)
		split_more(me, comm, mixed(o->seed, round, 1), 2);
	if (comm)
		job_leave(me, comm);
}

/* A split outlives the communicator that it is of. */
static void
split_outlives(struct rank *me)
{
	blinkComm_t comm = job_join(me, NULL), split = NULL;
	blinkError_t error = { "" };
	if (!comm)
		return;
	blinkResult_t result = blinkCommSplit(comm, 0, -me->rank, &split, NULL, &error);
	job_need(me, result == blinkSuccess, "split: %d: %s", (int)result, error.text);
	job_leave(me, comm);
	if (split) {
		flight_run(me, split, 20, 1025, 5);
		job_leave(me, split);
	}
}

/* ---- groups and messages ---- */

static bool
group(struct rank *me, bool start)
{
	blinkResult_t result = start ? blinkGroupStart() : blinkGroupEnd();
	return job_need(me, result == blinkSuccess, "%s of a group: %d", start ? "start" : "end", (int)result);
}

static void
groups(struct rank *me)
{
	const struct order *o = me->arg;
	uint64_t all = (UINT64_C(1) << me->n) - 1;
	blinkComm_t a = job_join_some(me, 0, all, NULL), b = a ? job_join_some(me, 1, all, NULL) : NULL;
	struct flight f, g;
	for (uint64_t round = 0; b && round < 10; round++) {
		flight_make(&f, me->n, me->rank, 10, 1025, 1025, o->seed + round);
		flight_make(&g, me->n, me->rank, 10, 1025, 1025, o->seed + round + 100);
		group(me, true);
		for (int k = 0; k < f.n_calls; k++)
			flight_start_one(&f, me, a, k);
		group(me, true);
		for (int k = 0; k < g.n_calls; k++)
			flight_start_one(&g, me, b, k);
		group(me, false);
		group(me, false);
		wait_for(me, a);
		wait_for(me, b);
		flight_land(&f, me);
		flight_land(&g, me);
	}
	if (b) {
		job_leave(me, a);
		job_leave(me, b);
	}
}

/* Byte i of message k from one rank to another. */
static unsigned char
message_byte(int from, int to, int k, size_t i)
{
	return (unsigned char)mixed((uint64_t)(from * 64 + to), (uint64_t)k, i / 8);
}

static unsigned char *
message_memory(struct rank *me, size_t bytes)
{
	unsigned char *memory = malloc(bytes + 1);
	if (!job_need(me, memory != NULL, "no memory"))
		exit(97);
	return memory;
}

/* The call of one message; its memory, filled if it is sent. */
static unsigned char *
post(struct rank *me, blinkComm_t comm, bool sends, int peer, int k, size_t bytes)
{
	unsigned char *memory = message_memory(me, bytes);
	for (size_t i = 0; i < bytes; i++)
		memory[i] = sends ? message_byte(me->rank, peer, k, i) : 0x5a;
	memory[bytes] = 0x77;
	job_at(me, "%s %zu bytes, message %d, rank %d", sends ? "send" : "receive", bytes, k, peer);
	blinkResult_t result = sends ? blinkSend(memory, bytes, blinkUint8, peer, comm, NULL)
	    : blinkRecv(memory, bytes, blinkUint8, peer, comm, NULL);
	job_need(me, result == blinkSuccess, "message %d, rank %d: %d: %s", k, peer, (int)result,
	    blinkCommGetError(comm));
	return memory;
}

static void
judge_message(struct rank *me, unsigned char *memory, int from, int to, int k, size_t bytes)
{
	size_t wrong = 0;
	for (size_t i = 0; i < bytes; i++)
		wrong += memory[i] != message_byte(from, to, k, i);
	job_need(me, !wrong && memory[bytes] == 0x77, "message %d of %zu bytes from rank %d to %d: %zu bytes wrong", k,
	    bytes, from, to, wrong);
	free(memory);
}

/* In one group: messages between all, and of each to itself. */
static void
all_to_all(struct rank *me, blinkComm_t comm, uint64_t seed, int messages)
{
	unsigned char *sent[JOB_RANKS][16], *received[JOB_RANKS][16];
	group(me, true);
	for (int k = 0; k < messages; k++)
		for (int p = 0; p < me->n; p++) {
			sent[p][k] = post(me, comm, true, p, k, message_bytes(seed, me->rank, p, k));
			received[p][k] = post(me, comm, false, p, k, message_bytes(seed, p, me->rank, k));
		}
	group(me, false);
	wait_for(me, comm);
	for (int k = 0; k < messages; k++)
		for (int p = 0; p < me->n; p++) {
			judge_message(me, sent[p][k], me->rank, p, k, message_bytes(seed, me->rank, p, k));
			judge_message(me, received[p][k], p, me->rank, k, message_bytes(seed, p, me->rank, k));
		}
}

/* Each receives from the rank before it and sends to the next: around in one group; along without groups. */
static void
ring(struct rank *me, blinkComm_t comm, uint64_t seed, bool around)
{
	int before = (me->rank + me->n - 1) % me->n, next = (me->rank + 1) % me->n;
	unsigned char *received[40] = { NULL }, *sent[40] = { NULL };
	bool receives = around || me->rank > 0, sends = around || me->rank < me->n - 1;
	for (int k = 0; k < 40; k++) {
		if (around)
			group(me, true);
		if (receives)
			received[k] = post(me, comm, false, before, k, message_bytes(seed, before, me->rank, k));
		if (sends)
			sent[k] = post(me, comm, true, next, k, message_bytes(seed, me->rank, next, k));
		if (around)
			group(me, false);
	}
	wait_for(me, comm);
	for (int k = 0; k < 40; k++) {
		if (receives)
			judge_message(me, received[k], before, me->rank, k, message_bytes(seed, before, me->rank, k));
		if (sends)
			judge_message(me, sent[k], me->rank, next, k, message_bytes(seed, me->rank, next, k));
	}
}

static void
messages(struct rank *me)
{
	const struct order *o = me->arg;
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	for (uint64_t round = 0; round < 6; round++) {
		all_to_all(me, comm, o->seed + round, 1 + (int)round * 3);
		ring(me, comm, o->seed + round, round % 2);
		flight_run(me, comm, 5, 1025, round);
	}
	job_leave(me, comm);
}

/* ---- aborts ---- */

/* One rank makes a call that the last one does not, waits in a thread, and aborts from another. */
static void
aborted(struct rank *me)
{
	char x = 1;
	blinkError_t error = { "" };
	blinkComm_t comm = job_join(me, NULL);
	struct waiter w = { .me = me, .comm = comm };
	pthread_t thread;
	if (!comm)
		return;
	flight_run(me, comm, 5, 331, 1);
	bool calls = me->rank < me->n - 1;
	if (calls) {
		job_need(me, blinkAllReduce(&x, &x, 1, blinkInt8, blinkSum, comm, NULL) == blinkSuccess, "allreduce");
		if (pthread_create(&thread, NULL, wait_in_thread, &w) != 0)
			exit(97);
	}
	job_barrier(me, 0, me->n);
	if (me->rank == 0) {
		sleep_ms(20);
		job_need(me, blinkCommGetAsyncError(comm, &error) == blinkSuccess, "failed before: %s", error.text);
		blinkResult_t result = blinkCommAbort(comm);
		job_need(me, result == blinkSuccess, "blinkCommAbort: %d", (int)result);
	}
	job_at(me, "wait for the abort");
	if (calls)
		pthread_join(thread, NULL);
	for (int i = 0; i < job_margin(1000) && blinkCommGetAsyncError(comm, NULL) == blinkSuccess; i++)
		sleep_ms(1);
	blinkResult_t result = blinkCommGetAsyncError(comm, &error);
	job_need(me, result == blinkAborted, "after an abort: %d: %s", (int)result, error.text);
	job_need(me, me->rank == 0 || strstr(error.text, "rank 0"), "the text does not name rank 0: %s", error.text);
	job_need(me, !calls || w.result == blinkAborted, "the wait: %d", (int)w.result);
	job_need(me, w.took < (int64_t)(1e6 * job_margin(1000)), "the wait took %.0f ms", (double)w.took / 1e6);
	result = blinkAllReduce(&x, &x, 1, blinkInt8, blinkSum, comm, NULL);
	job_need(me, result == blinkAborted, "a call after the abort: %d", (int)result);
	blinkCommDestroy(comm);
}

/* On servers of their own: rank 0 aborts while the others have no place for what it sends, since they make no call. Its
 * memory is its own again, and it leaves without them. */
static void
taken_back(struct rank *me)
{
	const size_t bytes = 48 << 20;
	const blinkConfig_t config = { .chunkBytes = 8 << 20 };
	job_server(me, me->n);
	blinkComm_t comm = job_join(me, &config);
	char *data = malloc(bytes);
	if (!comm || !data)
		exit(97);
	flight_run(me, comm, 5, 331, 1);
	if (me->rank == 0) {
		memset(data, 1, bytes);
		blinkResult_t made = blinkBroadcast(data, data, bytes, blinkInt8, 0, comm, NULL);
		sleep_ms(50);
		blinkCommAbort(comm);
		blinkResult_t result = blinkCommWait(comm, 0);
		job_need(me, made == blinkSuccess && result == blinkAborted, "aborted: %d, %d", (int)made, (int)result);
	}
	free(data);
	if (me->rank != 0)
		job_await(me->board, 1, 1);
	int64_t began = job_now();
	job_leave(me, comm);
	job_need(me, job_now() - began < (int64_t)(1e6 * job_margin(2000)), "leaving took %.0f ms",
	    (double)(job_now() - began) / 1e6);
	job_set(me->board, 1, 1);
}

/* ---- arguments ---- */

/* What is refused at once leaves the communicator as it was. */
static void
refused(struct rank *me)
{
	float x[64] = { 0 };
	blinkComm_t comm = job_join(me, NULL);
	void *at = x;
	if (!comm)
		return;
#define REFUSED(call) do { blinkResult_t result = call; job_need(me, result == blinkInvalidArgument && \
	strlen(blinkCommGetError(comm)) > 10, #call ": %d: %s", (int)result, blinkCommGetError(comm)); } while (0)
	REFUSED(blinkBroadcast(at, at, 1, blinkFloat32, me->n, comm, NULL));
	REFUSED(blinkBroadcast(at, at, 1, blinkFloat32, -1, comm, NULL));
	REFUSED(blinkReduce(at, at, 1, blinkFloat32, blinkSum, 1000, comm, NULL));
	REFUSED(blinkAllReduce(at, at, 1, (blinkDataType_t)12, blinkSum, comm, NULL));
	REFUSED(blinkAllReduce(at, at, 1, (blinkDataType_t)-1, blinkSum, comm, NULL));
	REFUSED(blinkAllReduce(at, at, 1, blinkFloat32, (blinkRedOp_t)17, comm, NULL));
	REFUSED(blinkAllReduce(at, at, 1, blinkFloat32, (blinkRedOp_t)-1, comm, NULL));
	REFUSED(blinkAllReduce(NULL, at, 1, blinkFloat32, blinkSum, comm, NULL));
	REFUSED(blinkAllReduce(at, NULL, 1, blinkFloat32, blinkSum, comm, NULL));
	REFUSED(blinkAllReduce(at, at, SIZE_MAX / 2, blinkFloat32, blinkSum, comm, NULL));
	REFUSED(blinkAllGather(at, x + 8, SIZE_MAX / 8, blinkFloat32, comm, NULL));
	REFUSED(blinkSend(at, 1, blinkFloat32, me->n, comm, NULL));
	REFUSED(blinkRecv(at, 1, blinkFloat32, -1, comm, NULL));
	REFUSED(blinkCommWait(comm, 1));
	REFUSED(blinkRedOpDestroy(blinkSum, comm));
#undef REFUSED
	job_need(me, blinkCommGetAsyncError(comm, NULL) == blinkSuccess, "refused arguments fail the communicator");
	flight_run(me, comm, 10, 331, 3);
	job_leave(me, comm);
}

/* A group with a call that is refused makes none of its calls; nor does one whose communicator ends in between. */
static void
groups_fail(struct rank *me)
{
	int x[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	uint64_t all = (UINT64_C(1) << me->n) - 1, last = 9;
	blinkComm_t comm = job_join_some(me, 0, all, NULL), other = comm ? job_join_some(me, 1, all, NULL) : NULL;
	for (int round = 0; other && round < 3; round++) {
		group(me, true);
		blinkAllReduce(x, x, 8, blinkInt32, blinkSum, comm, NULL);
		group(me, true);
		blinkSend(x, 1, blinkInt32, 0, comm, NULL);
		if (round == 0)
			blinkBroadcast(x, x, 1, blinkInt32, me->n, other, NULL);
		else if (round == 1)
			blinkRecv(x, 1, blinkInt32, 0, NULL, NULL);
		else
			blinkCommDestroy(comm);
		group(me, false);
		if (round == 2)
			blinkAllReduce(x, x, 8, blinkInt32, blinkSum, other, NULL);
		blinkResult_t result = blinkGroupEnd();
		job_need(me, result == blinkInvalidArgument, "round %d: the end of a group: %d", round, (int)result);
		blinkCommLastCall(round == 2 ? other : comm, &last);
		job_need(me, last == 0 && x[0] == 1, "round %d: call %llu was made", round, (unsigned long long)last);
	}
	if (other) {
		flight_run(me, other, 10, 331, 3);
		job_leave(me, other);
	}
}

/* ---- the program ---- */

static const struct scenario {
	const char *name;
	job_body *body;
	bool processes_only, by_name_only;
	int seconds;
} scenarios[] = {
	{ "stream", stream, false, false, 60 },
	{ "alone", alone, false, false, 20 },
	{ "tested", tested, false, false, 20 },
	{ "ahead", ahead, false, false, 20 },
	{ "ahead_large", ahead_large, false, false, 20 },
	{ "waited", waited, false, false, 20 },
	{ "several", several, false, false, 30 },
	{ "in_turn", in_turn, false, false, 20 },
	{ "one_by_one", one_by_one, true, false, 30 },
	{ "leaving", leaving, false, false, 30 },
	{ "forked", forked, true, false, 20 },
	{ "splits", splits, false, false, 30 },
	{ "split_outlives", split_outlives, false, false, 20 },
	{ "groups", groups, false, false, 30 },
	{ "messages", messages, false, false, 40 },
	{ "aborted", aborted, false, false, 20 },
	{ "taken_back", taken_back, true, false, 20 },
	{ "refused", refused, false, false, 20 },
	{ "groups_fail", groups_fail, false, false, 20 },
	{ "same_bits", same_bits, false, true, 20 },
	{ "huge", huge, true, true, 100 },
};

enum { N_SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void
begin(struct rank *me)
{
	const struct order *o = me->arg;
	job_server(me, o->servers);
	device_take(me);
	o->body(me);
}

static int
play(const struct scenario *s, int n, struct order *o)
{
	char name[128];
	int shm = count_shm();
	snprintf(name, sizeof name, "%s, %d %s%s", s->name, n, o->threads ? "threads" : "processes",
	    o->servers > 1 ? ", several servers" : "");
	o->body = s->body;
	/* By an exchange or by a tree, and some of many trees. */
	if (s->body == same_bits)
		setenv("BLINK_SMALL", "40000", 1);
	int wrong = job_run(name, n, o->threads, s->seconds, begin, o);
	unsetenv("BLINK_SMALL");
	if (count_shm() > shm && ++wrong)
		printf("# %d more files in /dev/shm\n", count_shm() - shm);
	return job_report(name, wrong);
}

int
main(int argc, char **argv)
{
	struct order o = { .n_calls = 2000, .servers = 1, .seed = 1 };
	int n = 4, failed = 0, n_played = 0;
	for (int c; (c = getopt(argc, argv, "tn:s:k:S:")) != -1;) {
		switch (c) {
		case 't': o.threads = true; break;
		case 'n': n = atoi(optarg); break;
		case 's': o.servers = atoi(optarg); break;
		case 'k': o.n_calls = atoi(optarg); break;
		case 'S': o.seed = (uint64_t)atol(optarg); break;
		default: return 2;
		}
	}
	for (int i = 0; i < N_SCENARIOS; i++) {
		bool wanted = optind == argc && !scenarios[i].by_name_only;
		for (int a = optind; a < argc; a++)
			wanted |= strcmp(argv[a], scenarios[i].name) == 0;
		if (!wanted || (o.threads && scenarios[i].processes_only))
			continue;
		n_played++;
		failed |= play(&scenarios[i], n, &o);
	}
	if (!n_played)
		printf("not ok order: no such scenario\n");
	return failed || !n_played;
}
