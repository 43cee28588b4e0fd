/* Several communicators at once and one after the other, and those that are split off. */
#include "order.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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
void
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
void
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
void
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
void
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
void
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

void
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
void
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
