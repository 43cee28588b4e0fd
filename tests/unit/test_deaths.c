/* The death and the silence of ranks that are processes. Prints TAP. */
#include "ranks.h"

#include <fcntl.h>
#include <sys/resource.h>

/* ---- processes ---- */

/* What the processes of a job share. */
struct report {
	_Atomic int state;		/* 1: has joined; 2: has heard of a failure, or could not join; 3: left */
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
		    "rank %d of %d is killed%s: the others hear of it", victim, N,
		    victim ? "" : ", and the hub with it");
		reach(N, 3, victim);
		processes_end(N);
	}
	printf("# at most %.2f ms after the death\n", (double)slowest / 1e6);
}

/* All others hear of a death, or if it was before the rank had joined, that it does not come. */
static bool
death_at(int n, int victim, int64_t after)
{
	processes_start(n);
	while (!shared->has_id)
		nap(MS);
	nap(after);
	kill(process[victim], SIGKILL);
	bool good = reach(n, 3, victim);
	for (int i = 0; i < n; i++) {
		const struct report *r = &shared->rank[i];
		bool dead = r->code == blinkRemoteError && (r->culprit == victim || r->culprit == -2);
		bool absent = r->code == blinkTimeout && r->culprit == -2 && strstr(r->text, "not come within");
		absent |= r->code == blinkSystemError && strstr(r->text, "nobody listens");	/* all have gone */
		bool hub = victim == 0 && (r->code == blinkSystemError || r->code == blinkRemoteError ||
		    r->code == blinkTimeout);
		if (i == victim || dead || absent || hub || shared->rank[victim].state == 3)
			continue;
		printf("# %d of %d killed after %.2f ms; rank %d: code %d, culprit %d: %s\n", victim, n,
		    (double)after / 1e6, i, r->code, r->culprit, r->text);
		good = false;
	}
	processes_end(n);
	return good;
}

static void
deaths_at_any_time(uint64_t seed, int times)
{
	bool good = true;
	shared->patience = 700 * MS;
	shared->lasts = 20000 * MS;
	for (int i = 0; i < times && good; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		int n = 2 + (int)(seed >> 40) % 4, victim = (int)(seed >> 50) % n;
		good = death_at(n, victim, (int64_t)(seed >> 20) % (10 * MS));
	}
	ok(good, "%d deaths at any time", times);
}

/* ---- a hub in a process that has no rank ---- */

/* connections: for which it has descriptors; 0: any number */
static pid_t
hub_outside(int connections)
{
	shared->hub_outside = true;
	shared->has_id = 0;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		if (connections) {
			rlim_t first = (rlim_t)dup(1);		/* the hub has three of its own */
			close((int)first);
			setrlimit(RLIMIT_NOFILE, &(struct rlimit){ first + 3 + (rlim_t)connections, first + 100 });
		}
		shared->id = new_id();
		shared->has_id = 1;
		for (;;)
			pause();
	}
	while (!shared->has_id)
		nap(MS);
	return pid;
}

static void
end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void
launcher_dies(void)
{
	enum { N = 3 };
	shared->patience = shared->lasts = 20000 * MS;
	pid_t hub = hub_outside(0);
	processes_start(N);
	bool good = reach(N, 1, -1);
	end_process(hub);
	good &= reach(N, 3, -1);
	ok(good && all_blame(N, -1, blinkRemoteError, -1) &&
	    strstr(shared->rank[0].text, "the process that made the id (127."),
	    "the hub's process, which has no rank, is killed: %s", shared->rank[0].text);
	processes_end(N);
	shared->hub_outside = false;
}

static void
few_descriptors(void)
{
	enum { N = 12 };
	shared->patience = 10000 * MS;
	pid_t hub = hub_outside(7);
	int64_t begin = now_ns();
	processes_start(N);
	bool good = reach(N, 3, -1);
	for (int i = 0; i < N; i++)
		good &= shared->rank[i].code == blinkSystemError &&
		    strstr(shared->rank[i].text, "Too many open files (ulimit -n is");
	if (!good)
		all_blame(N, -1, blinkSystemError, -1);
	ok(good && now_ns() - begin < 8000 * MS, "no descriptors for all ranks: %s", shared->rank[0].text);
	processes_end(N);
	end_process(hub);
	shared->hub_outside = false;
}

/* ---- processes that stop ---- */

static void
stops(void)
{
	enum { N = 4 };
	shared->patience = 20000 * MS;
	shared->lasts = 10000 * MS;
	shared->stuck = 1500 * MS;
	for (int victim = 0; victim < N; victim += 3) {
		processes_start(N);
		bool good = reach(N, 1, -1);
		int64_t stopped = now_ns();
		kill(process[victim], SIGSTOP);
		good &= reach(N, 2, victim);
		int64_t took = last_heard(N, victim) - stopped;
		ok(good && took > 500 * MS && took < 5000 * MS && all_blame(N, victim, blinkTimeout, victim) &&
		    strstr(shared->rank[1].text, "does not answer: stopped, or cut off"), "rank %d stops: %s", victim,
		    shared->rank[1].text);
		printf("# heard %.0f ms after it; deadlines were %.0f ms after joining\n", (double)took / 1e6,
		    (double)shared->stuck / 1e6);
		good = reach(N, 3, victim);
		ok(good, "the others leave without waiting for rank %d", victim);
		kill(process[victim], SIGCONT);
		processes_end(N);
	}
	shared->stuck = 0;
}

static void
stops_before_all_come(void)
{
	enum { N = 3 };
	shared->patience = 600 * MS;
	pid_t hub = hub_outside(0);
	kill(hub, SIGSTOP);
	int64_t begin = now_ns();
	processes_start(N);
	bool good = reach(N, 3, -1);
	int64_t took = now_ns() - begin;
	ok(good && all_blame(N, -1, blinkTimeout, -2) && took > 500 * MS && took < 5000 * MS &&
	    strstr(shared->rank[0].text, "does not answer"), "the hub is stopped while ranks join: %s",
	    shared->rank[0].text);
	processes_end(N);
	end_process(hub);
	shared->hub_outside = false;
}

/* ---- the hub's process ends, as it may ---- */

static bool
take(int fd, void *what, size_t bytes)
{
	return read(fd, what, bytes) == (ssize_t)bytes;
}

static void
hub_ends_first(void)
{
	static struct rank r[3];
	int pipes[2], joined[2];
	blinkUniqueId_t id;
	if (pipe2(pipes, O_CLOEXEC) || pipe2(joined, O_CLOEXEC))
		abort();
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		id = new_id();
		rank_init(&r[0], &id, 3, 0, 20000 * MS);
		alarm(60);
		bool sent = write(pipes[1], &id, sizeof id) == sizeof id && rank_join(&r[0]) == blinkSuccess;
		sent &= read(joined[0], &id, 1) == 1;
		bootstrap_leave(r[0].b, 4);
		_exit(!sent);
	}
	bool good = take(pipes[0], &id, sizeof id);
	for (int i = 1; i < 3; i++)
		rank_init(&r[i], &id, 3, i, 20000 * MS);
	ranks_start(r + 1, 2);
	ranks_end(r + 1, 2);
	good &= all_are(r + 1, 2, blinkSuccess) && write(joined[1], "", 1) == 1;
	waitpid(pid, NULL, 0);
	nap(50 * MS);
	good &= !has_failed(&r[1]) && !has_failed(&r[2]);
	ok(good && r[1].calls[0] == 5 && r[2].calls[0] == 5,
	    "rank 0 leaves and its process ends, and with it the hub: no failure");
	bootstrap_stuck(r[1].b, now_ns() + 100 * MS, 100 * MS);
	ok(hears(&r[1], 5000 * MS) && r[1].code == blinkTimeout && r[1].culprit == -1, "a rank is stuck then: %s",
	    r[1].text);
	char mine = 0, all[3];
	ok(bootstrap_allgather(r[2].b, &mine, 1, all, now_ns() + 20000 * MS, &r[2].err) == blinkRemoteError,
	    "an exchange then: %s", r[2].err.text);
	bootstrap_leave(r[1].b, 0);
	bootstrap_leave(r[2].b, 0);
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(joined[i]);
	}
}

/* ---- fork ---- */

/* In the process of rank 1 and of the hub: a child that lives on when its parent is killed. It may free, no more. */
static void
child_lives_on(struct rank *r, int answer)
{
	char mine = 0, all[2];
	alarm(20);
	char good = bootstrap_allgather(r->b, &mine, 1, all, now_ns(), &r->err) == blinkInvalidArgument;
	bootstrap_fail(r->b, blinkAborted, 1, "of the child");
	bootstrap_stuck(r->b, now_ns(), MS);
	bootstrap_progress(r->b);
	bootstrap_leave(r->b, 0);
	if (write(answer, &good, 1) == 1)
		pause();
	_exit(1);
}

static void
parent_of_child(int answer)
{
	static struct rank r;
	blinkUniqueId_t id = new_id();
	alarm(60);
	rank_init(&r, &id, 2, 1, 20000 * MS);
	if (write(answer, &id, sizeof id) != sizeof id || rank_join(&r) != blinkSuccess)
		_exit(1);
	pid_t child = fork();
	if (child == 0)
		child_lives_on(&r, answer);
	if (write(answer, &child, sizeof child) == sizeof child)
		pause();
	_exit(1);
}

/* The child holds no connection open, neither of the rank nor of the hub. */
static void
forked_child(void)
{
	static struct rank r;
	blinkUniqueId_t id;
	int answer[2];
	struct { char good; pid_t child; } said = { 0 };
	if (pipe2(answer, O_CLOEXEC | O_DIRECT))	/* each write is read alone */
		abort();
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		parent_of_child(answer[1]);
	close(answer[1]);
	bool good = take(answer[0], &id, sizeof id);
	rank_init(&r, &id, 2, 0, 20000 * MS);
	good &= rank_join(&r) == blinkSuccess;
	for (int i = 0; i < 2; i++) {
		char word[sizeof(pid_t)];
		ssize_t got = read(answer[0], word, sizeof word);
		if (got == 1)
			said.good = word[0];
		else if (got == sizeof word)
			memcpy(&said.child, word, sizeof word);
	}
	nap(50 * MS);
	ok(good && said.good && said.child > 0 && !has_failed(&r), "a forked child leaves: nobody hears of it");
	end_process(pid);
	ok(hears(&r, 5000 * MS) && r.culprit == 1, "its parent is killed: %s", r.text);
	if (said.child > 0)
		kill(said.child, SIGKILL);
	bootstrap_leave(r.b, 0);
	close(answer[0]);
}

/* usage: test_deaths [SEED] [DEATHS] */
int
main(int argc, char **argv)
{
	alarm(300);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	deaths();
	deaths_at_any_time(argc > 1 ? strtoull(argv[1], NULL, 10) : 1, argc > 2 ? atoi(argv[2]) : 50);
	launcher_dies();
	few_descriptors();
	stops();
	stops_before_all_come();
	hub_ends_first();
	forked_child();
	printf("1..%d\n", n_tests);
	return n_bad != 0;
}
