/* The bootstrap (runtime/bootstrap/bootstrap.h) with ranks as threads and as processes. Prints TAP. */
#include "ranks.h"

#include <sys/mman.h>

static int
leave(struct rank *r)
{
	bootstrap_leave(r->b, (uint64_t)r->number);
	return blinkSuccess;
}

static void
joins(void)
{
	static struct rank r[RANKS];
	for (int n = 1; n <= RANKS; n++) {
		blinkUniqueId_t id = new_id();
		job(r, &id, n, 20000 * MS, leave);
		ok(all_are(r, n, blinkSuccess), "%d ranks join and leave", n);
	}
	int64_t begin = now_ns();
	bool good = true;
	for (int i = 0; i < 200 && good; i++) {
		blinkUniqueId_t id = new_id();
		job(r, &id, 4, 20000 * MS, leave);
		good = all_are(r, 4, blinkSuccess);
	}
	ok(good, "200 jobs of 4 ranks, one after the other");
	printf("# %.2f ms each\n", (double)(now_ns() - begin) / 200e6);
}

static int
exchange(struct rank *r)
{
	static const size_t sizes[] = { 4, 0, 128, 65536, 1 };
	unsigned char *mine = malloc(65536), *all = malloc((size_t)r->n * 65536);
	int code = mine && all ? blinkSuccess : blinkOutOfMemory;
	for (size_t s = 0; s < 100 && code == blinkSuccess; s++) {
		size_t bytes = sizes[s % 5];
		memset(mine, r->number * 7 + (int)s, bytes);
		code = bootstrap_allgather(r->b, mine, bytes, all, now_ns() + 20000 * MS, &r->err);
		for (size_t i = 0; code == blinkSuccess && i < bytes * (size_t)r->n; i++)
			if (all[i] != (unsigned char)((int)(i / bytes) * 7 + (int)s))
				code = -1;
	}
	free(mine);
	free(all);
	bootstrap_leave(r->b, 0);
	return code;
}

static void
exchanges(void)
{
	static struct rank r[RANKS];
	blinkUniqueId_t id = new_id();
	job(r, &id, 8, 20000 * MS, exchange);
	ok(all_are(r, 8, blinkSuccess), "100 exchanges of 8 ranks, from 0 to 65536 bytes");
}

/* ---- processes ---- */

/* What the processes of a job share. */
struct report {
	_Atomic int state;		/* 0; 1: has joined; 2: has heard of a failure, or could not join; 3: has left */
	int join, code, culprit;
	char text[512];
	int64_t heard_at;
};

struct shared {
	_Atomic int has_id;
	blinkUniqueId_t id;
	int64_t patience;		/* to join */
	int64_t stuck;			/* ns after which a rank is stuck once it has joined; 0: not */
	int64_t lasts;			/* how long a rank waits for a failure */
	bool hub_outside;
	struct report rank[RANKS];
};

static struct shared *shared;
static pid_t process[RANKS];

static void
play_process(int n, int number)
{
	static struct rank r;
	struct report *out = &shared->rank[number];
	blinkUniqueId_t id;
	if (number == 0 && !shared->hub_outside) {
		shared->id = new_id();
		shared->has_id = 1;
	}
	while (!shared->has_id)
		nap(MS);
	id = shared->id;
	rank_init(&r, &id, n, number, shared->patience);
	out->join = rank_join(&r);
	if (out->join == blinkSuccess) {
		out->state = 1;
		int64_t deadline = now_ns() + shared->stuck;
		if (shared->stuck)
			bootstrap_stuck(r.b, deadline, shared->stuck);
		hears(&r, shared->lasts);
	}
	out->code = r.n_failed ? r.code : out->join;
	out->culprit = r.culprit;
	out->heard_at = r.n_failed ? r.heard_at : now_ns();
	snprintf(out->text, sizeof out->text, "%s", r.n_failed ? r.text : r.err.text);
	out->state = 2;
	bootstrap_leave(r.b, 0);
	out->state = 3;
	_exit(0);
}

static void
processes_start(int n)
{
	memset(shared->rank, 0, sizeof shared->rank);
	shared->has_id = shared->hub_outside;
	fflush(stdout);
	for (int i = 0; i < n; i++)
		if ((process[i] = fork()) == 0) {
			alarm(60);
			play_process(n, i);
		}
}

static bool
reach(int n, int state, int except)
{
	for (int64_t end = now_ns() + 20000 * MS; now_ns() < end; nap(MS)) {
		int there = 0;
		for (int i = 0; i < n; i++)
			there += i == except || shared->rank[i].state >= state;
		if (there == n)
			return true;
	}
	return false;
}

static void
processes_end(int n)
{
	for (int i = 0; i < n; i++) {
		if (shared->rank[i].state < 3)
			kill(process[i], SIGKILL);
		waitpid(process[i], NULL, 0);
	}
}

static bool
all_blame(int n, int victim, int code, int culprit)
{
	bool good = true;
	for (int i = 0; i < n; i++) {
		const struct report *r = &shared->rank[i];
		if (i == victim || (r->code == code && r->culprit == culprit))
			continue;
		printf("# rank %d: code %d, culprit %d: %s\n", i, r->code, r->culprit, r->text);
		good = false;
	}
	return good;
}

static int64_t
last_heard(int n, int victim)
{
	int64_t last = 0;
	for (int i = 0; i < n; i++)
		if (i != victim && shared->rank[i].heard_at > last)
			last = shared->rank[i].heard_at;
	return last;
}

static void
deaths(void)
{
	enum { N = 4 };
	int64_t slowest = 0;
	shared->patience = shared->lasts = 20000 * MS;
	shared->stuck = 0;
	for (int victim = 0; victim < N; victim++) {
		processes_start(N);
		bool good = reach(N, 1, -1);
		int64_t killed = now_ns();
		kill(process[victim], SIGKILL);
		good &= reach(N, 2, victim);
		int64_t took = last_heard(N, victim) - killed;
		slowest = took > slowest ? took : slowest;
		ok(good && took < 2000 * MS && all_blame(N, victim, blinkRemoteError, victim),
		    "rank %d of %d is killed%s: the others hear of it", victim, N, victim ? "" : ", and the hub with it");
		reach(N, 3, victim);
		processes_end(N);
	}
	printf("# at most %.2f ms after the death\n", (double)slowest / 1e6);
}

int
main(void)
{
	alarm(300);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	deaths();
	joins();
	exchanges();
	printf("1..%d\n", n_tests);
	return n_bad != 0;
}
