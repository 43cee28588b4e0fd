/* Jobs in which system calls of libblink fail: one call of one rank, or all calls of a function from one on. Each rank
 * gets right results or a documented error in time, and after it has destroyed its communicators nothing is left.
 *
 *	failing [-q] [-u] [-n RANKS] [-d DIRECTORY] [-j JOBS [-k]] [-S SEED]
 *	failing -l		prints the functions that can fail, with the numbers of their errors
 *
 * It first counts the calls of a job in which none fails, on one server, on three, and with -u over UCX. Then each
 * function fails with each of its errors (tests/faults.c), at a call and a rank that differ from one to the next, and a
 * rank is killed in some of its calls; -q: each function once. What is called only after a failure then fails after
 * one. -j: instead, that many jobs by chance; -k: in which a rank is killed. -d: has an index for RANKS - 1 and RANKS
 * ranks. At the end a line for each function that failed, "# failed libblink.so recvmsg 12", is for
 * tests/suite/faults.sh. */
#include "faults.h"

#include "../faults.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { IDS = 2, MOST_RANKS = 8, CPU_SECONDS = 20, PATIENCE_MS = 700, CALLS_MOST = 3001, WINDOW = 4096,
	CAUSES = 4 };

/* Where the ranks are. */
struct scene {
	const char *name, *net, *zero_copy;
	int servers;
};

static const struct scene scenes[] = {
	{ "one server", "tcp", "0", 1 }, { "3 servers", "tcp", "1", 3 }, { "2 servers, UCX", "ucx", "0", 2 }
};

enum { N_SCENES = sizeof scenes / sizeof *scenes };

/* What the processes of a job share. */
struct trial {
	struct run run;			/* first: it is what faults_ranks.c takes */
	const struct scene *scene;
	struct faults_plan plan;
	char miad[256], debug[256], said[256];
	atomic_long failed[FAULTS_SITES];	/* calls */
	atomic_int errors;		/* ranks with one */
	_Atomic pid_t maker;		/* of the ids */
	atomic_int have_id[IDS];	/* 1: made, 2: there will be none */
	blinkUniqueId_t id[IDS];
	long calls[MOST_RANKS][FAULTS_SITES];
};

static struct trial *trial;
static bool me_splits;			/* ranks of a part have other numbers */
static const char *directory;
static long failures[FAULTS_SITES];

/* ---- a rank ---- */

/* The victim is killed: the others name it, unless it was the process that they were to meet at. */
static void
expect_death(struct rank *me, blinkResult_t result, const char *text)
{
	bool known = blames(me, text, trial->run.victim, false)
	    || (me_splits && blames(me, text, trial->run.victim, true))
	    || strstr(text, "the meeting place of") || strstr(text, "that made the id");
	job_need(me, result == blinkSuccess || known, "rank %d is not named: %d: %s", trial->run.victim, (int)result,
	    text);
}

static bool
did(struct rank *me, blinkResult_t result, const char *text, int64_t began)
{
	bool dies = trial->plan.error == FAULTS_DIES;
	unsigned codes = trial->plan.at < 0 ? 0 : dies ? REMOTE | TIMEOUT | 1 << blinkSystemError : ANY;
	expect_error(me, result, text, began, codes | 1 << blinkSuccess, -1);
	if (dies)
		expect_death(me, result, text);
	return result == blinkSuccess;
}

static bool
did_call(struct rank *me, blinkResult_t result, blinkComm_t comm, int64_t began)
{
	return did(me, result, blinkCommGetError(comm), began);
}

static bool
have_id(struct rank *me, int slot)
{
	blinkError_t error = { "" };
	int64_t began = job_now();
	job_at(me, "id %d", slot);
	if (me->rank == 0) {
		trial->maker = getpid();
		blinkResult_t result = blinkGetUniqueId(&trial->id[slot], &error);
		atomic_store(&trial->have_id[slot], did(me, result, error.text, began) ? 1 : 2);
	}
	while (!atomic_load(&trial->have_id[slot]) && kill(trial->maker, 0) == 0)
		sleep_ms(1);
	return atomic_load(&trial->have_id[slot]) == 1;
}

static bool
join(struct rank *me, int n, int slot, blinkComm_t *comm)
{
	blinkConfig_t config = { .threads = 1, .timeoutMs = trial->run.timeout_ms, .schedules = directory };
	blinkError_t error = { "" };
	int64_t began = job_now();
	job_at(me, "init of %d ranks", n);
	return did(me, blinkCommInitRank(comm, n, &trial->id[slot], me->rank, &config, &error), error.text, began);
}

static bool
call(struct rank *me, blinkComm_t comm, int n_calls, uint64_t seed)
{
	int64_t began = job_now();
	return did_call(me, flight_try(me, comm, n_calls, CALLS_MOST, seed), comm, began);
}

/* To the next rank, from the one before. */
static bool
exchange(struct rank *me, blinkComm_t comm)
{
	int32_t sent[600], got[600] = { 0 };
	int64_t began = job_now();
	int next = (me->rank + 1) % me->n, before = (me->rank + me->n - 1) % me->n;
	for (int i = 0; i < 600; i++)
		sent[i] = me->rank * 1000 + i;
	job_at(me, "messages");
	blinkResult_t result = blinkGroupStart(), made = blinkSuccess;
	made = blinkSend(sent, 600, blinkInt32, next, comm, NULL);
	blinkResult_t received = blinkRecv(got, 600, blinkInt32, before, comm, NULL);
	result = blinkGroupEnd();
	result = made != blinkSuccess ? made : received != blinkSuccess ? received : result;
	blinkResult_t waited = blinkCommWait(comm, 0);
	result = result == blinkSuccess ? waited : result;
	for (int i = 0; i < 600 && result == blinkSuccess; i++)
		if (!job_need(me, got[i] == before * 1000 + i, "a wrong message"))
			break;
	return did_call(me, result, comm, began);
}

static bool
use_window(struct rank *me, blinkComm_t comm)
{
	void *memory = NULL, *handle = NULL;
	int64_t began = job_now();
	job_at(me, "a window");
	if (!did_call(me, blinkMemAlloc(comm, me->rank, 2 * WINDOW * sizeof(int32_t), &memory), comm, began)
	    || !did_call(me, blinkCommRegister(comm, memory, 2 * WINDOW * sizeof(int32_t), &handle), comm, began))
		return false;
	int32_t *x = memory;
	for (int i = 0; i < WINDOW; i++)
		x[i] = i + me->rank;
	began = job_now();
	blinkResult_t result = blinkAllReduce(x, x + WINDOW, WINDOW, blinkInt32, blinkSum, comm, NULL);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	for (int i = 0; i < WINDOW && result == blinkSuccess; i++)
		if (!job_need(me, x[WINDOW + i] == me->n * i + me->n * (me->n - 1) / 2, "a wrong sum"))
			break;
	if (!did_call(me, result, comm, began))
		return false;
	began = job_now();
	return did_call(me, blinkCommDeregister(comm, handle), comm, began)
	    && did_call(me, blinkMemFree(comm, me->rank, memory), comm, began);
}

/* Of all ranks, from the communicator of all but the last, which joins. */
static bool
grow(struct rank *me, blinkComm_t comm, blinkComm_t *grown)
{
	blinkError_t error = { "" };
	if (!have_id(me, 1))
		return false;
	if (me->rank == me->n - 1)
		return join(me, me->n, 1, grown);
	int64_t began = job_now();
	job_at(me, "grow");
	return did(me, blinkCommGrow(comm, me->n, me->rank ? NULL : &trial->id[1], grown, NULL, &error), error.text,
	    began);
}

static bool
split(struct rank *me, blinkComm_t comm, blinkComm_t *part)
{
	blinkError_t error = { "" };
	int64_t began = job_now();
	job_at(me, "split");
	me_splits = true;
	bool good = did(me, blinkCommSplit(comm, me->rank % 2, me->rank, part, NULL, &error), error.text, began)
	    && call(me, *part, 3, 17 + (uint64_t)me->rank % 2);
	me_splits = false;
	return good;
}

static bool
shrink(struct rank *me, blinkComm_t comm, blinkComm_t *shrunk)
{
	blinkError_t error = { "" };
	int last = me->n - 1;
	int64_t began = job_now();
	job_at(me, "shrink");
	return me->rank == last
	    || (did(me, blinkCommShrink(comm, &last, 1, blinkShrinkDefault, shrunk, NULL, &error), error.text, began)
	    && call(me, *shrunk, 3, 29));
}

static bool
use_all(struct rank *me, blinkComm_t comm[4])
{
	bool is_new = me->rank == me->n - 1;
	return have_id(me, 0) && (is_new || (join(me, me->n - 1, 0, &comm[0]) && call(me, comm[0], 6, 5)))
	    && grow(me, comm[0], &comm[1]) && call(me, comm[1], 6, 11) && exchange(me, comm[1])
	    && use_window(me, comm[1]) && split(me, comm[1], &comm[2]) && shrink(me, comm[1], &comm[3]);
}

static void
set_environment(struct rank *me)
{
	const struct rlimit limit = { CPU_SECONDS, CPU_SECONDS };
	setrlimit(RLIMIT_CPU, &limit);
	job_server(me, trial->scene->servers);
	setenv("BLINK_NET", trial->scene->net, 1);
	setenv("BLINK_TCP_ZEROCOPY", trial->scene->zero_copy, 1);
	setenv("BLINK_MIAD", trial->miad, 1);
	setenv("BLINK_DEBUG", "WARN", 1);
	setenv("BLINK_DEBUG_FILE", trial->debug, 1);
	setenv("UCX_TLS", "tcp", 0);
	setenv("UCX_LOG_LEVEL", "fatal", 0);
	if (!freopen(trial->said, "a", stderr))
		job_need(me, false, "%s: %s", trial->said, strerror(errno));
}

/* When all ranks have gone. The hub of an id to which some never came stays for a while, to tell them. Rank 0 has made
 * up to four, and rank 1 that of its part of the split. */
static void
expect_nothing_left(struct rank *me, struct counts before, bool good)
{
	int n_ids = good ? 0 : me->rank == 0 ? 4 : me->rank == 1;
	job_at(me, "wait for the others");
	job_add(me->board, READY, 1);
	uint64_t n = (uint64_t)me->n - (trial->plan.error == FAULTS_DIES);
	for (double ms = 0; job_get(me->board, READY) < n && ms < 10 * trial->run.timeout_ms; ms++)
		sleep_ms(1);
	job_at(me, "count files and threads");
	expect_hubs(me, before, n_ids);
}

static void
play(struct rank *me)
{
	blinkComm_t comm[4] = { NULL };
	struct faults_plan plan = trial->plan;
	set_environment(me);
	struct counts before = count();
	before.files++;			/* that of BLINK_DEBUG_FILE, which stays */
	if (me->rank != trial->run.victim)
		plan.at = -1;
	faults_begin(&plan);
	bool good = use_all(me, comm);
	job_set(me->board, REPORTED + me->rank, !good);
	if (!good)
		atomic_fetch_add(&trial->errors, 1);
	for (int slot = 0; slot < IDS && me->rank == 0 && !good; slot++)
		if (!atomic_load(&trial->have_id[slot]))
			atomic_store(&trial->have_id[slot], 2);
	for (int i = 3; i >= 0; i--) {
		int64_t began = job_now();
		job_at(me, "destroy number %d", i);
		did(me, blinkCommDestroy(comm[i]), "of blinkCommDestroy", began);
	}
	faults_end();
	for (int i = 0; i < faults_sites(); i++) {
		trial->calls[me->rank][i] = atomic_load(&faults_site(i)->calls);
		atomic_fetch_add(&trial->failed[i], atomic_load(&faults_site(i)->failed));
	}
	expect_nothing_left(me, before, good);
}

/* ---- jobs ---- */

static const char *
text_of(int error)
{
	return error == FAULTS_DIES ? "the process is killed" : error == FAULTS_SHORT ? "a short count"
	    : strerrorname_np(error);
}

/* Hands on what the ranks wrote to standard error. Does it say that UCX ended one of them, by an assertion of its own?
 * UCX 1.13 does so when a peer dies at an unlucky moment of the handshake. */
static bool
ucx_gave_up(void)
{
	char line[1000];
	bool assertion = false;
	FILE *file = fopen(trial->said, "r");
	while (file && fgets(line, sizeof line, file)) {
		assertion |= strstr(line, " Assertion `") != NULL;
		fputs(line, stderr);
	}
	if (file)
		fclose(file);
	unlink(trial->said);
	return assertion;
}

static int
run_once(const struct scene *scene, int n, int victim, const struct faults_plan *plan)
{
	struct job job = { .name = plan->name, .n = n, .seconds = 20 };
	int shm = count_shm();
	memset(&trial->failed, 0, sizeof *trial - offsetof(struct trial, failed));
	trial->scene = scene;
	trial->plan = *plan;
	trial->run = (struct run){ .n = n, .victim = victim, .servers = scene->servers,
		.timeout_ms = (int)(PATIENCE_MS * job_slack() * (plan->at < 0 ? 10 : 1)) };
	if (plan->at < 0 || plan->error == FAULTS_DIES)		/* else a rank that is late is an error like others */
		trial->run.timeout_ms = (int)(trial->run.timeout_ms * job_load());
	job.doomed[victim] = plan->error == FAULTS_DIES;
	job_start(&job, play, &trial->run);
	int wrong = job_wait(&job);
	if (count_shm() > shm && ++wrong)
		printf("# %d more files in /dev/shm\n", count_shm() - shm);
	if (plan->at < 0 && trial->errors && ++wrong)
		printf("# errors of %d ranks, though nothing failed\n", trial->errors);
	if (wrong && plan->at >= 0)
		printf("# %s: call %ld of %s of rank %d%s fails: %s%s%s\n", scene->name, plan->at, plan->name, victim,
		    plan->on ? ", and all later ones," : "", text_of(plan->error),
		    plan->also ? "; and all of " : "", plan->also ? plan->also : "");
	fflush(stdout);
	return wrong;
}

/* Where UCX ended a rank the trial is done again. */
static int
run_trial(const struct scene *scene, int n, int victim, const struct faults_plan *plan)
{
	int wrong = run_once(scene, n, victim, plan);
	for (int again = 0; ucx_gave_up() && wrong && plan->error == FAULTS_DIES && again < 3; again++) {
		printf("# UCX found its own state broken: again\n");
		wrong = run_once(scene, n, victim, plan);
	}
	return wrong;
}

/* Calls that a rank makes of that function where none fails. */
static long counted[N_SCENES][MOST_RANKS][FAULTS_SITES];

static int
count_calls(int s, int n)
{
	const struct faults_plan none = { .library = "libblink.so", .name = "no failure", .at = -1 };
	int wrong = run_trial(&scenes[s], n, 0, &none);
	memcpy(counted[s], trial->calls, sizeof trial->calls);
	return wrong;
}

/* Jobs in which a function was called that none calls where nothing fails. */
static struct cause {
	int scene, victim;
	struct faults_plan plan;
} causes[FAULTS_SITES][CAUSES];
static int n_causes[FAULTS_SITES];

static bool
calls_any(long calls[MOST_RANKS][FAULTS_SITES], int n, int i)
{
	bool any = false;
	for (int r = 0; r < n; r++)
		any |= calls[r][i] > 0;
	return any;
}

static void
note_causes(int s, int n, int victim, const struct faults_plan *plan)
{
	for (int i = 0; i < faults_sites(); i++)
		if (!calls_any(counted[s], n, i) && calls_any(trial->calls, n, i) && n_causes[i] < CAUSES)
			causes[i][n_causes[i]++] = (struct cause){ s, victim, *plan };
}

static int
fail(int s, int n, int victim, int i, struct faults_plan *plan)
{
	plan->library = "libblink.so";
	plan->name = faults_site(i)->name;
	int wrong = run_trial(&scenes[s], n, victim, plan) != 0;
	for (int k = 0; k < faults_sites(); k++)
		failures[k] += trial->failed[k];
	failures[i] += plan->error == FAULTS_DIES;
	if (!plan->also)
		note_causes(s, n, victim, plan);
	return wrong;
}

static int
n_errors(int i)
{
	int n = 0;
	while (n < FAULTS_ERRORS && faults_site(i)->errors[n])
		n++;
	return n;
}

/* Each function with each error; once: those that have failed nowhere yet, with one. */
static int
play_each(int s, int n, bool once, int *n_jobs)
{
	int wrong = 0, turn = s;
	for (int i = 0; i < faults_sites(); i++) {
		for (int e = 0; e < n_errors(i); e++) {
			int victim = turn % n;
			for (int r = 0; r < n && !counted[s][victim][i]; r++)
				victim = (victim + 1) % n;
			if (!counted[s][victim][i] || (once && failures[i]))
				continue;
			struct faults_plan plan = { .at = turn * 7 % counted[s][victim][i],
				.error = faults_site(i)->errors[e], .on = turn % 5 == 4 };
			wrong += fail(s, n, victim, i, &plan);
			++*n_jobs;
			turn++;
		}
	}
	return wrong;
}

static int
site_of(const char *name)
{
	int i = 0;
	while (strcmp(faults_site(i)->name, name) != 0)
		i++;
	return i;
}

/* The last threads that would begin: where a net needs one to end, it stays. */
static int
play_last_thread(int s, int n, int *n_jobs)
{
	int i = site_of("pthread_create"), wrong = 0;
	for (int back = 1; back <= 2; back++) {
		struct faults_plan plan = { .at = counted[s][1][i] - back, .error = EAGAIN, .on = true };
		wrong += fail(s, n, 1, i, &plan);
		++*n_jobs;
	}
	return wrong;
}

/* What a cause led to differs from one time to the next: each is tried until the call comes. */
static int
play_after(int n, bool once, int *n_jobs)
{
	int wrong = 0;
	for (int i = 0; i < faults_sites(); i++) {
		for (int e = 0; e < n_errors(i) && !(once && failures[i]); e++) {
			long before = failures[i];
			for (int c = 0; c < n_causes[i] && failures[i] == before; c++) {
				struct cause *cause = &causes[i][c];
				struct faults_plan plan = cause->plan;
				plan.also = faults_site(i)->name;
				plan.also_error = faults_site(i)->errors[e];
				wrong += fail(cause->scene, n, cause->victim, site_of(plan.name), &plan);
				++*n_jobs;
			}
		}
	}
	return wrong;
}

/* Early calls as often as late ones: those of the start are few. */
static int
play_by_chance(int n_scenes, int n, int n_jobs, uint64_t seed, bool dies)
{
	uint64_t state = mixed(seed, 5, 7);
	int wrong = 0;
	for (int k = 0; k < n_jobs;) {
		uint64_t h = next_random(&state);
		int s = (int)(h % (uint64_t)n_scenes), victim = (int)((h >> 8) % (uint64_t)n);
		int i = (int)((h >> 16) % (uint64_t)faults_sites());
		long most = counted[s][victim][i];
		if (!most)
			continue;
		long range = h >> 63 && most > 12 ? 12 : most;
		struct faults_plan plan = { .at = (long)((h >> 32) % (uint64_t)range), .on = (h >> 60) % 4 == 0,
			.error = faults_site(i)->errors[(h >> 24) % (uint64_t)n_errors(i)] };
		if (dies)
			plan.error = FAULTS_DIES;
		int bad = fail(s, n, victim, i, &plan);
		if (bad)
			printf("# job %d\n", k);
		wrong += bad;
		if (++k % 100 == 0)
			printf("# %d jobs, %d of them wrong\n", k, wrong);
	}
	return wrong;
}

/* At calls by which memory is handed over, and the first ones of init. */
static int
play_deaths(int s, int n, int *n_jobs)
{
	static const char *const names[] = { "sendmsg", "recvmsg", "accept4", "connect", "epoll_ctl" };
	int wrong = 0;
	for (int i = 0; i < faults_sites(); i++) {
		for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
			if (strcmp(faults_site(i)->name, names[k]) != 0)
				continue;
			for (long at = 0; at < counted[s][1][i] && at < 40; at += 3) {
				struct faults_plan plan = { .at = at, .error = FAULTS_DIES };
				wrong += fail(s, n, 1, i, &plan);
				++*n_jobs;
			}
		}
	}
	return wrong;
}

static int
list_functions(void)
{
	for (int i = 0; i < faults_sites(); i++) {
		printf("%s", faults_site(i)->name);
		for (int e = 0; e < n_errors(i); e++)
			printf(" %d", faults_site(i)->errors[e]);
		printf("\n");
	}
	return 0;
}

static void
report_failures(void)
{
	for (int i = 0; i < faults_sites(); i++)
		if (failures[i])
			printf("# failed %s %s %ld\n", "libblink.so", faults_site(i)->name, failures[i]);
}

int
main(int argc, char **argv)
{
	bool once = false, ucx = false, dies = false;
	int n = 4, n_jobs = 0, done = 0, wrong = 0;
	uint64_t seed = 1;
	char name[128], folder[] = "/tmp/failing.XXXXXX", command[300];
	for (int c; (c = getopt(argc, argv, "qlkun:d:j:S:")) != -1;) {
		switch (c) {
		case 'q': once = true; break;
		case 'l': return list_functions();
		case 'k': dies = true; break;
		case 'u': ucx = true; break;
		case 'n': n = atoi(optarg); break;
		case 'd': directory = optarg; break;
		case 'j': n_jobs = atoi(optarg); break;
		case 'S': seed = (uint64_t)atol(optarg); break;
		default: return 2;
		}
	}
	if (n < 3 || n > MOST_RANKS || faults_sites() > FAULTS_SITES || !mkdtemp(folder))
		return 2;
	trial = shared_memory(sizeof *trial);
	snprintf(trial->miad, sizeof trial->miad, "%s/miad", folder);
	snprintf(trial->debug, sizeof trial->debug, "%s/debug.%%p", folder);
	snprintf(trial->said, sizeof trial->said, "%s/said", folder);
	int n_scenes = ucx ? N_SCENES : N_SCENES - 1, failed = 0, uncounted = 0;
	for (int s = 0; s < n_scenes; s++)
		uncounted |= job_report("no call fails", count_calls(s, n));
	for (int s = 0; s < n_scenes && !uncounted && !n_jobs; s++) {
		done = 0;
		wrong = play_each(s, n, once, &done) + play_last_thread(s, n, &done);
		snprintf(name, sizeof name, "%d jobs with failing calls, %s", done, scenes[s].name);
		failed |= job_report(name, wrong);
		done = 0;
		wrong = once ? 0 : play_deaths(s, n, &done);
		snprintf(name, sizeof name, "%d deaths in calls, %s", done, scenes[s].name);
		failed |= done && job_report(name, wrong);
	}
	done = 0;
	if (!n_jobs && !uncounted) {
		wrong = play_after(n, once, &done);
		snprintf(name, sizeof name, "%d jobs in which what follows a failure fails, too", done);
		failed |= job_report(name, wrong);
	}
	if (n_jobs && !uncounted) {
		wrong = play_by_chance(n_scenes, n, n_jobs, seed, dies);
		snprintf(name, sizeof name, "%d jobs with %s by chance, seed %llu", n_jobs,
		    dies ? "deaths in calls" : "failing calls", (unsigned long long)seed);
		failed |= job_report(name, wrong);
	}
	report_failures();
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return (system(command) != 0) | uncounted | failed;
}
