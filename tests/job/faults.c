/* Faults in a job: a rank that is killed, stopped, late, or leaves; that makes another call than the others, or joins
 * with other arguments; strangers at the ports; little memory and few files. Every other rank must hear of it within
 * the timeout, with a text that names the rank; afterwards the ranks that are left make another communicator, use it,
 * and leave no files, threads or shared memory behind.
 *
 *	faults [-n RANKS] [-s SERVERS] [-d DIRECTORY] [-S SEED] [-r TRIALS] [FAULT...]
 *
 * -d: has allreduce.json, a schedule of RANKS ranks. -r: so many jobs in which a rank by chance is killed or stopped at
 * a moment by chance, instead of the faults by name. Without names: all. */
#include "flight.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TIMEOUT_MS = 300, MARGIN_MS = 1000 };

/* Flags of the board. */
enum { READY, READY_TOO, FAILED, STRUCK_AT, GARBAGE, LEFT_OVER, AGAIN };

struct fault;

struct run {
	const struct fault *fault;
	const char *directory;
	int n, victim, servers, limit;
	uint64_t seed;
	int timeout_ms;
	bool stops;			/* a trial: the signal is SIGSTOP */
};

struct fault {
	const char *name;
	job_body *body;
	void (*strike)(struct rank *me, blinkComm_t comm);	/* what the victim does in its place */
	void (*direct)(struct job *job, struct run *run);	/* what the program does meanwhile */
	unsigned codes;			/* that the others may get: bits */
	bool ends;			/* the victim does not live on */
	bool spares_0;			/* rank 0, which made the id, is not the victim */
};

enum {
	REMOTE = 1 << blinkRemoteError, TIMEOUT = 1 << blinkTimeout, MISMATCH = 1 << blinkMismatch,
	ARGUMENT = 1 << blinkInvalidArgument,
	ANY = ~(1 << blinkSuccess | 1 << blinkInternalError | 1 << blinkInProgress)
};

/* ---- what a rank expects ---- */

/* "rank 3", or 3 in a list: "ranks 1, 3 and 5". */
static bool
names_rank(const char *text, int rank)
{
	for (const char *at = text; (at = strstr(at, "rank")) != NULL;) {
		at += strlen("rank");
		at += *at == 's';
		while (*at == ' ') {
			char *end;
			long found = strtol(at + 1, &end, 10);
			if (end == at + 1)
				break;
			if (found == rank)
				return true;
			at = end + (*end == ',');
			at += strncmp(at, " and", 4) == 0 ? 4 : 0;
		}
	}
	return false;
}

static void
expect_error(struct rank *me, blinkResult_t result, const char *text, int64_t began, unsigned codes, int victim)
{
	const struct run *run = me->arg;
	double took = (double)(job_now() - began) / 1e6, most = run->timeout_ms + MARGIN_MS * job_slack();
	job_need(me, result >= 0 && result < 32 && codes >> result & 1, "got %d after %.0f ms: %s", (int)result, took,
	    text);
	job_need(me, took <= most, "took %.0f ms, want at most %.0f: %d: %s", took, most, (int)result, text);
	job_need(me, victim < 0 || result == blinkSuccess || names_rank(text, victim), "rank %d is not named: %d: %s",
	    victim, (int)result, text);
	job_need(me, strchr(text, '\n') == NULL && (result == blinkSuccess || strlen(text) > 15), "a poor text: '%s'",
	    text);
}

static blinkConfig_t
config_of(const struct rank *me)
{
	const struct run *run = me->arg;
	job_server(me, run->servers);
	return (blinkConfig_t){ .threads = 1, .timeoutMs = run->timeout_ms };
}

struct counts {
	int files, threads;
};

static struct counts
count(void)
{
	return (struct counts){ count_files(), count_threads() };
}

/* Files and threads as before; those of a hub end when all ranks have come and left. Where some never come to an id, its
 * hub stays for a while, to tell them. */
static void
expect_counts(struct rank *me, struct counts before, bool hub_stays)
{
	if (hub_stays && me->rank == 0) {
		before.files += 3;
		before.threads += 1;
	}
	for (int i = 0; i < 400 && (count_files() > before.files || count_threads() > before.threads); i++)
		sleep_ms(5);
	struct counts after = count();
	job_need(me, after.files <= before.files, "%d open files, before %d", after.files, before.files);
	job_need(me, after.threads <= before.threads, "%d threads, before %d", after.threads, before.threads);
}

/* The ranks of the mask make another communicator, and use it. */
static void
go_on(struct rank *me, uint64_t mask)
{
	blinkConfig_t config = config_of(me);
	config.timeoutMs = (int64_t)(5000 * job_slack());
	blinkComm_t comm = job_join_some(me, AGAIN, mask, &config);
	if (!comm)
		return;
	flight_run(me, comm, 10, 1025, 77);
	job_at(me, "destroy the second communicator");
	job_need(me, blinkCommDestroy(comm) == blinkSuccess, "blinkCommDestroy");
}

static uint64_t
all_but(const struct run *run)
{
	uint64_t all = (UINT64_C(1) << run->n) - 1;
	return run->fault && !run->fault->ends ? all : all & ~(UINT64_C(1) << run->victim);
}

/* ---- in a call ---- */

static void
in_call(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	struct counts before = count();
	int64_t x[64] = { 0 }, began;
	blinkComm_t comm = job_join(me, &config);
	if (!comm || !flight_run(me, comm, 10, 1025, run->seed))
		return;
	job_barrier(me, READY, me->n);
	began = job_now();
	if (me->rank == run->victim) {
		run->fault->strike(me, comm);
	} else {
		job_at(me, "allreduce without rank %d", run->victim);
		blinkResult_t result = blinkAllReduce(x, x, 64, blinkInt64, blinkSum, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
		expect_error(me, result, blinkCommGetError(comm), began, run->fault->codes, run->victim);
		job_add(me->board, FAILED, 1);
		blinkCommDestroy(comm);
	}
	go_on(me, all_but(run));
	job_at(me, "count files and threads");
	expect_counts(me, before, false);
}

static void
be_killed(struct rank *me, blinkComm_t comm)
{
	(void)me;
	(void)comm;
	raise(SIGKILL);
}

static void
exit_early(struct rank *me, blinkComm_t comm)
{
	(void)me;
	(void)comm;
	_exit(0);
}

/* Calls of a rank that comes back too late: the first may have all it needs, one of the next fails. */
static void
fail_soon(struct rank *me, blinkComm_t comm)
{
	int64_t x[64] = { 0 }, began = job_now();
	blinkResult_t result = blinkSuccess;
	for (int i = 0; result == blinkSuccess && i < 10; i++) {
		result = blinkAllReduce(x, x, 64, blinkInt64, blinkSum, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	}
	expect_error(me, result, blinkCommGetError(comm), began, ANY, -1);
	blinkCommDestroy(comm);
}

/* It is woken by wake_victim. */
static void
be_stopped(struct rank *me, blinkComm_t comm)
{
	raise(SIGSTOP);
	job_at(me, "call after the stop");
	fail_soon(me, comm);
}

static void
wake_victim(struct job *job, struct run *run)
{
	job_await(job->board, FAILED, (uint64_t)run->n - 1);
	kill(job->pid[run->victim], SIGCONT);
}

static void
be_late(struct rank *me, blinkComm_t comm)
{
	job_at(me, "late");
	sleep_ms(2 * TIMEOUT_MS + 2 * MARGIN_MS);
	fail_soon(me, comm);
}

static void
leave_early(struct rank *me, blinkComm_t comm)
{
	job_at(me, "destroy while others call");
	job_need(me, blinkCommDestroy(comm) == blinkSuccess, "blinkCommDestroy");
}

/* What this rank did is done, but the others fail: it hears of it. */
static blinkResult_t
await_failure(blinkComm_t comm, blinkError_t *error)
{
	int64_t began = job_now();
	blinkResult_t result;
	while ((result = blinkCommGetAsyncError(comm, error)) == blinkSuccess && job_now() - began < 3000000000)
		sleep_ms(1);
	return result;
}

static void
make_no_call(struct rank *me, blinkComm_t comm)
{
	int64_t began = job_now();
	blinkError_t error = { "" };
	job_need(me, blinkCommWait(comm, 0) == blinkSuccess, "wait for calls that are done");
	job_at(me, "make no call");
	blinkResult_t result = await_failure(comm, &error);
	expect_error(me, result, error.text, began, ANY, me->rank);
	blinkCommDestroy(comm);
}

/* Another call than the others make. */
static void
judge_other(struct rank *me, blinkComm_t comm, blinkResult_t result)
{
	const struct run *run = me->arg;
	int64_t began = job_now();
	blinkError_t error = { "" };
	job_at(me, "another call: %s", run->fault->name);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(comm));
	if (result == blinkSuccess)
		result = await_failure(comm, &error);
	expect_error(me, result, error.text, began, MISMATCH | TIMEOUT, me->rank);
	blinkCommDestroy(comm);
}

static int64_t scratch[4096];

static void
call_more(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 65, blinkInt64, blinkSum, comm, NULL));
}

static void
call_less(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 1, blinkInt64, blinkSum, comm, NULL));
}

static void
call_nothing(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 0, blinkInt64, blinkSum, comm, NULL));
}

static void
call_type(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 64, blinkFloat64, blinkSum, comm, NULL));
}

static void
call_op(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllReduce(scratch, scratch, 64, blinkInt64, blinkMax, comm, NULL));
}

static void
call_collective(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkAllGather(scratch, scratch + 64, 64, blinkInt64, comm, NULL));
}

static void
call_in_other_order(struct rank *me, blinkComm_t comm)
{
	blinkResult_t result = blinkBroadcast(scratch, scratch, 8, blinkInt64, 0, comm, NULL);
	if (result == blinkSuccess)
		result = blinkAllReduce(scratch, scratch, 64, blinkInt64, blinkSum, comm, NULL);
	judge_other(me, comm, result);
}

static void
send_instead(struct rank *me, blinkComm_t comm)
{
	judge_other(me, comm, blinkSend(scratch, 8, blinkInt64, (me->rank + 1) % me->n, comm, NULL));
}

/* ---- roots and messages ---- */

/* Broadcasts of different roots: nobody waits for more than the data of its root. */
static void
other_root(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkComm_t comm = job_join(me, &config);
	if (!comm)
		return;
	int root = me->rank == run->victim ? (run->victim + 1) % me->n : run->victim;
	int64_t began = job_now();
	blinkResult_t result = blinkBroadcast(scratch, scratch, 4096, blinkInt64, root, comm, NULL);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	/* A rank that is done does not learn of it in this call, but in the next. */
	if (result == blinkSuccess) {
		result = blinkAllReduce(scratch, scratch, 1, blinkInt64, blinkSum, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	}
	expect_error(me, result, blinkCommGetError(comm), began, MISMATCH | TIMEOUT | REMOTE, run->victim);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

/* Nobody sends what a rank waits for; and a message of another size. */
static void
message_missing(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkComm_t comm = job_join(me, &config);
	int next = (run->victim + 1) % me->n;
	if (!comm)
		return;
	int64_t began = job_now();
	blinkResult_t result = blinkSuccess;
	blinkError_t error = { "" };
	if (me->rank == next) {
		result = blinkRecv(scratch, 8, blinkInt64, run->victim, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	}
	while (result == blinkSuccess && job_now() - began < 3000000000) {
		result = blinkCommGetAsyncError(comm, &error);
		sleep_ms(1);
	}
	expect_error(me, result, me->rank == next ? blinkCommGetError(comm) : error.text, began, TIMEOUT | REMOTE,
	    run->victim);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

static void
message_size(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkComm_t comm = job_join(me, &config);
	int next = (run->victim + 1) % me->n;
	if (!comm)
		return;
	int64_t began = job_now();
	blinkResult_t result = blinkSuccess;
	if (me->rank == next)
		result = blinkRecv(scratch, 8, blinkInt64, run->victim, comm, NULL);
	if (me->rank == run->victim)
		result = blinkSend(scratch, 9, blinkInt64, next, comm, NULL);
	if (result == blinkSuccess)
		result = blinkAllReduce(scratch, scratch, 1, blinkInt64, blinkSum, comm, NULL);
	result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
	expect_error(me, result, blinkCommGetError(comm), began, MISMATCH | TIMEOUT, -1);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

/* ---- at init ---- */

/* Arguments of the victim differ; all hear of it. */
static void
init_with(struct rank *me, int n, int rank, const blinkConfig_t *config, const blinkUniqueId_t *id)
{
	const struct run *run = me->arg;
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	int64_t began = job_now();
	job_at(me, "init as rank %d of %d", rank, n);
	blinkResult_t result = blinkCommInitRank(&comm, n, id, rank, config, &error);
	expect_error(me, result, error.text, began, run->fault->codes,
	    run->fault->codes & TIMEOUT && me->rank != run->victim ? run->victim : -1);
	job_need(me, !comm, "an error, and a communicator");
}

static void
init_differs(struct rank *me)
{
	const struct run *run = me->arg;
	const char *fault = run->fault->name;
	blinkConfig_t config = config_of(me);
	struct counts before = count();
	blinkUniqueId_t id;
	int n = me->n, rank = me->rank;
	bool victim = rank == run->victim;
	if (!job_id(me, 0, 0, &id))
		return;
	if (victim && strcmp(fault, "other number of ranks") == 0)
		n++;
	if (victim && strcmp(fault, "same rank twice") == 0)
		rank = (rank + 1) % n;
	if (victim && strcmp(fault, "wrong secret") == 0)
		for (int i = 8; i < BLINK_UNIQUE_ID_BYTES; i++)
			id.internal[i] ^= (char)(i >= BLINK_UNIQUE_ID_BYTES / 2 || !id.internal[i] ? 0 : 1);
	if (!victim || strcmp(fault, "never comes") != 0)
		init_with(me, n, rank, &config, &id);
	else
		job_await(me->board, FAILED, (uint64_t)me->n - 1);
	job_add(me->board, FAILED, 1);
	go_on(me, all_but(run));
	expect_counts(me, before, strcmp(fault, "same rank twice") != 0);
}

static void
dies_at_init(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	struct counts before = count();
	blinkUniqueId_t id;
	if (!job_id(me, 0, 0, &id))
		return;
	job_barrier(me, READY, me->n);
	if (me->rank == run->victim)
		raise(SIGKILL);
	init_with(me, me->n, me->rank, &config, &id);
	go_on(me, all_but(run));
	expect_counts(me, before, true);
}

/* One rank has a schedule that the others do not have. */
static void
other_schedules(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	blinkUniqueId_t id;
	char path[4096];
	snprintf(path, sizeof path, "%s/allreduce.json", run->directory);
	config.schedules = me->rank == run->victim ? path : NULL;
	if (!job_id(me, 0, 0, &id))
		return;
	int64_t began = job_now();
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	if (result == blinkSuccess) {
		began = job_now();
		result = blinkAllReduce(scratch, scratch, 4096, blinkInt64, blinkSum, comm, NULL);
		result = result == blinkSuccess ? blinkCommWait(comm, 0) : result;
		snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(comm));
	}
	expect_error(me, result, error.text, began, MISMATCH | ARGUMENT, run->victim);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

/* Arguments that are refused at once, by the rank alone. */
static void
init_refused(struct rank *me)
{
	blinkConfig_t config = config_of(me), wrong;
	struct counts before = count();
	blinkUniqueId_t id, no_id = { { 0 } };
	if (!job_id(me, 0, 0, &id))
		return;
#define REFUSED(code, n, id, rank, config) do { \
	blinkComm_t comm = NULL; \
	blinkError_t error = { "" }; \
	blinkResult_t result = blinkCommInitRank(&comm, n, id, rank, config, &error); \
	job_need(me, result == (code) && !comm && strlen(error.text) > 10, "%d ranks, rank %d: %d: %s", n, rank, \
	    (int)result, error.text); \
} while (0)
	REFUSED(blinkInvalidArgument, 0, &id, 0, &config);
	REFUSED(blinkInvalidArgument, -1, &id, 0, &config);
	REFUSED(blinkInvalidArgument, me->n, &id, me->n, &config);
	REFUSED(blinkInvalidArgument, me->n, &id, -1, &config);
	REFUSED(blinkInvalidArgument, me->n, &no_id, me->rank, &config);
	REFUSED(blinkInvalidArgument, me->n, NULL, me->rank, &config);
	wrong = config;
	wrong.timeoutMs = -1;
	REFUSED(blinkInvalidArgument, me->n, &id, me->rank, &wrong);
	wrong = config;
	wrong.threads = -1;
	REFUSED(blinkInvalidArgument, me->n, &id, me->rank, &wrong);
#undef REFUSED
	job_barrier(me, READY, me->n);
	blinkComm_t comm = job_join_some(me, AGAIN, (UINT64_C(1) << me->n) - 1, &config);
	if (comm) {
		flight_run(me, comm, 10, 331, 1);
		blinkCommDestroy(comm);
	}
	expect_counts(me, before, true);
}

/* ---- strangers at the ports ---- */

/* Ports on which a process listens: its sockets by inode, found in the table of the network. */
static bool
owns_socket(pid_t pid, unsigned long inode)
{
	char path[64], link[64], want[64];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	snprintf(want, sizeof want, "socket:[%lu]", inode);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && !found && (e = readdir(dir)) != NULL;) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
		found = n > 0 && (size_t)n == strlen(want) && memcmp(link, want, (size_t)n) == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Their addresses, at most `most`. IPv4 alone. */
static int
listening(pid_t pid, struct sockaddr_in *out, int most)
{
	char line[512];
	unsigned address, port, state;
	unsigned long inode;
	int n = 0;
	FILE *file = fopen("/proc/net/tcp", "r");
	while (file && n < most && fgets(line, sizeof line, file)) {
		if (sscanf(line, " %*d: %x:%x %*x:%*x %x %*s %*s %*s %*s %*s %lu", &address, &port, &state, &inode)
		    != 4)
			continue;
		if (state != 10 || !owns_socket(pid, inode))
			continue;
		out[n] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
		out[n++].sin_addr.s_addr = address ? address : htonl(INADDR_LOOPBACK);
	}
	if (file)
		fclose(file);
	return n;
}

/* A stranger: a connection that sends some bytes by chance, or none, and stays. */
static int
connect_garbage(const struct sockaddr_in *to, uint64_t *state)
{
	char bytes[512];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to) != 0)
		return fd;
	size_t n = next_random(state) % 3 ? next_random(state) % sizeof bytes : 0;
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)next_random(state);
	if (n && send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EBADF)
		return -1;
	return fd;
}

enum { STRANGERS = 300 };

static void
speak_garbage(struct job *job, struct run *run)
{
	static int fds[STRANGERS];
	struct sockaddr_in ports[16];
	int n_ports = 0;
	uint64_t state = run->seed;
	job_await(job->board, READY, 1);
	for (int i = 0; i < STRANGERS; i++) {
		if (i % 50 == 0) {
			n_ports = 0;
			for (int r = 0; r < run->n; r++)
				n_ports += listening(job->pid[r], ports + n_ports, 16 - n_ports);
		}
		fds[i] = n_ports ? connect_garbage(&ports[next_random(&state) % (uint64_t)n_ports], &state) : -1;
		job_add(job->board, GARBAGE, fds[i] >= 0);
		if (i == STRANGERS / 2)
			job_set(job->board, READY_TOO, 1);
		if (i > STRANGERS / 2)
			sleep_ms(1);
	}
	job_await(job->board, FAILED, (uint64_t)run->n);
	for (int i = 0; i < STRANGERS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void
meet_strangers(struct rank *me)
{
	struct counts before = count();
	blinkConfig_t config = config_of(me);
	blinkUniqueId_t id;
	config.timeoutMs = (int64_t)(5000 * job_slack());
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	if (!job_id(me, 0, 0, &id))
		return;
	job_set(me->board, READY, 1);
	job_at(me, "wait for the strangers");
	job_await(me->board, READY_TOO, 1);
	job_at(me, "init among strangers");
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	job_need(me, result == blinkSuccess, "init: %d: %s", (int)result, error.text);
	for (uint64_t i = 0; comm && i < 60; i++) {
		flight_run(me, comm, 10, 1025, i);
		sleep_ms(2);
	}
	job_need(me, job_get(me->board, GARBAGE) > STRANGERS / 2, "%d strangers",
	    (int)job_get(me->board, GARBAGE));
	blinkCommDestroy(comm);
	job_add(me->board, FAILED, 1);
	expect_counts(me, before, false);
}

/* ---- little memory, few files ---- */

static long
virtual_pages(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (file && fscanf(file, "%ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages;
}

/* Join and call, with errors where there are any; nothing ends the process or hangs. */
static void
try_all(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	blinkUniqueId_t id;
	if (!job_id(me, 0, run->victim ? 0 : 1, &id))
		return;
	job_barrier(me, READY_TOO, me->n);
	struct rlimit limit;
	int resource = strcmp(run->fault->name, "few files") == 0 ? RLIMIT_NOFILE : RLIMIT_AS;
	rlim_t most = resource == RLIMIT_NOFILE ? (rlim_t)(count_files() + run->limit)
	    : (rlim_t)virtual_pages() * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)run->limit << 18);
	getrlimit(resource, &limit);
	limit.rlim_cur = most;
	if (me->rank == run->victim)
		job_need(me, setrlimit(resource, &limit) == 0, "setrlimit");
	int64_t began = job_now();
	job_at(me, "init with limit %d", run->limit);
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	if (result == blinkSuccess) {
		began = job_now();
		job_at(me, "calls with limit %d", run->limit);
		result = flight_try(me, comm, 5, 1025, 1);
		snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(comm));
	}
	limit.rlim_cur = limit.rlim_max;
	setrlimit(resource, &limit);
	expect_error(me, result, error.text, began, ANY | 1 << blinkSuccess,
	    me->rank == run->victim ? -1 : run->victim);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

/* Shared memory of 32 pages for all. */
static void
little_shm(struct rank *me)
{
	blinkConfig_t config = config_of(me);
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	blinkUniqueId_t id;
	if (!job_id(me, 0, 0, &id))
		return;
	job_at(me, "init in little shared memory");
	int64_t began = job_now();
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	if (result == blinkSuccess) {
		began = job_now();
		result = flight_try(me, comm, 10, 40001, 1);
		snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(comm));
	}
	expect_error(me, result, error.text, began, ANY | 1 << blinkSuccess, -1);
	blinkCommDestroy(comm);
}

/* ---- by name ---- */

static const struct fault faults[] = {
	{ "killed", in_call, be_killed, NULL, REMOTE, true, false },
	{ "exits", in_call, exit_early, NULL, REMOTE, true, false },
	{ "stopped", in_call, be_stopped, wake_victim, TIMEOUT, false, false },
	{ "late", in_call, be_late, NULL, TIMEOUT, false, false },
	{ "leaves", in_call, leave_early, NULL, REMOTE, false, false },
	{ "no call", in_call, make_no_call, NULL, TIMEOUT | MISMATCH, false, false },
	{ "larger count", in_call, call_more, NULL, MISMATCH | TIMEOUT, false, false },
	{ "smaller count", in_call, call_less, NULL, MISMATCH | TIMEOUT, false, false },
	{ "no elements", in_call, call_nothing, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other type", in_call, call_type, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other operation", in_call, call_op, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other collective", in_call, call_collective, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other order", in_call, call_in_other_order, NULL, MISMATCH | TIMEOUT, false, false },
	{ "a message instead", in_call, send_instead, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other root", other_root, NULL, NULL, 0, false, false },
	{ "message missing", message_missing, NULL, NULL, 0, false, false },
	{ "message of other size", message_size, NULL, NULL, 0, false, false },
	{ "other number of ranks", init_differs, NULL, NULL, ARGUMENT, false, false },
	{ "same rank twice", init_differs, NULL, NULL, ARGUMENT, false, false },
	{ "never comes", init_differs, NULL, NULL, TIMEOUT, false, false },
	{ "wrong secret", init_differs, NULL, NULL, TIMEOUT | 1 << blinkSystemError | ARGUMENT | REMOTE, false, true },
	{ "dies at init", dies_at_init, NULL, NULL, TIMEOUT, true, true },
	{ "other schedules", other_schedules, NULL, NULL, 0, false, false },
	{ "refused at init", init_refused, NULL, NULL, 0, false, false },
	{ "strangers", meet_strangers, NULL, speak_garbage, 0, false, false },
	{ "few files", try_all, NULL, NULL, 0, false, false },
	{ "little memory", try_all, NULL, NULL, 0, false, false },
	{ "little shared memory", little_shm, NULL, NULL, 0, false, false },
};

enum { N_FAULTS = sizeof faults / sizeof *faults };

static int
run_fault(struct run *run)
{
	struct job job = { .name = run->fault->name, .n = run->n, .seconds = 20 };
	int shm = count_shm();
	job.doomed[run->victim] = run->fault->ends;
	job_start(&job, run->fault->body, run);
	if (run->fault->direct)
		run->fault->direct(&job, run);
	int wrong = job_wait(&job);
	if (count_shm() > shm && ++wrong)
		printf("# %d more files in /dev/shm\n", count_shm() - shm);
	if (wrong)
		printf("# %s: victim %d of %d, limit %d\n", run->fault->name, run->victim, run->n, run->limit);
	return wrong;
}

/* The victim is rank 0, which made the id, another, and the last. Of limits many are tried. */
static int
play_victims(struct run *run)
{
	static const int few[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20 };
	static const int little[] = { 0, 1, 3, 8, 20, 34, 40, 64, 100, 200, 400 };
	bool files = strcmp(run->fault->name, "few files") == 0;
	bool memory = strcmp(run->fault->name, "little memory") == 0;
	int n_limits = files ? (int)(sizeof few / sizeof *few) : memory ? (int)(sizeof little / sizeof *little) : 1;
	bool any = strcmp(run->fault->name, "strangers") == 0 || strcmp(run->fault->name, "refused at init") == 0;
	int victims[] = { 0, 1, run->n - 1 }, wrong = 0;
	for (int v = 0; v < (any ? 1 : files || memory ? 2 : 3); v++) {
		run->victim = victims[v];
		if ((v == 0 && run->fault->spares_0) || (v == 2 && run->n == 2))
			continue;
		for (int i = 0; i < n_limits; i++) {
			run->limit = files ? few[i] : memory ? little[i] : 0;
			wrong += run_fault(run);
		}
	}
	return wrong;
}

static int
play(struct run *run)
{
	char name[128];
	const char *where = run->servers > 1 ? "several servers" : "one server";
	snprintf(name, sizeof name, "%s, %d ranks, %s", run->fault->name, run->n, where);
	if (run->fault->body == other_schedules && !run->directory) {
		printf("skip %s: no schedules\n", name);
		return 0;
	}
	if (run->fault->body == try_all && job_slack() >= 5 && strcmp(run->fault->name, "little memory") == 0) {
		printf("skip %s: a sanitizer takes much\n", name);
		return 0;
	}
	if (run->fault->body != little_shm)
		return job_report(name, play_victims(run));
	/* In a place of its own, where nobody else sees what is mounted. */
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
	    || mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=128k") != 0) {
		printf("skip %s: %s\n", name, strerror(errno));
		return 0;
	}
	int wrong = play_victims(run);
	umount("/dev/shm");
	return job_report(name, wrong);
}

/* ---- by chance ---- */

/* Calls without end, until one fails. */
static blinkResult_t
call_until_error(struct rank *me, blinkComm_t comm, uint64_t seed)
{
	blinkResult_t result = blinkSuccess;
	for (uint64_t i = 0; result == blinkSuccess && job_now() < (int64_t)job_get(me->board, LEFT_OVER); i++)
		result = flight_try(me, comm, 1 + (int)(mixed(seed, i, 1) % 8), i % 10 ? 331 : 40001, seed + i);
	return result;
}

static void
trial_body(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	struct counts before = count();
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	blinkUniqueId_t id;
	if (!job_id(me, 0, 0, &id))
		return;
	job_add(me->board, READY, 1);
	job_at(me, "init, victim %d", run->victim);
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	bool joined = result == blinkSuccess;
	if (joined) {
		result = call_until_error(me, comm, run->seed);
		snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(comm));
	}
	int64_t struck = (int64_t)job_get(me->board, STRUCK_AT);
	if (me->rank == run->victim)
		job_need(me, result != blinkSuccess, "stopped, and no error");
	else if (joined || run->victim)
		expect_error(me, result, error.text, struck ? struck : job_now(), REMOTE | TIMEOUT, run->victim);
	else	/* whose rank it was that made the id is not known yet; the farewell to its process takes a second */
		expect_error(me, result, error.text, (struck ? struck : job_now()) + 1000000000,
		    REMOTE | TIMEOUT | 1 << blinkSystemError, -1);
	job_at(me, "destroy, victim %d", run->victim);
	blinkCommDestroy(comm);
	job_add(me->board, FAILED, 1);
	if (me->rank != run->victim)
		go_on(me, all_but(run));
	job_at(me, "count files and threads");
	expect_counts(me, before, !joined);
}

static int
trial(struct run *run, int i)
{
	uint64_t h = mixed(run->seed, (uint64_t)i, 99);
	struct run one = { .n = 2 + (int)(h % 7), .servers = run->servers, .seed = h, .stops = h >> 8 & 1 };
	one.timeout_ms = 200 + (int)(h >> 16 & 127);
	one.victim = (int)((h >> 24) % (uint64_t)one.n);
	double delay = (double)((h >> 32) % 1000) / 1000 * (h >> 48 & 1 ? 8 : 60);
	struct job job = { .name = "trial", .n = one.n, .seconds = 15 };
	job.doomed[one.victim] = true;
	job_start(&job, trial_body, &one);
	job_set(job.board, LEFT_OVER, (uint64_t)job.deadline - 2000000000);
	job_await(job.board, READY, 1);
	sleep_ms(delay);
	job_set(job.board, STRUCK_AT, (uint64_t)job_now());
	kill(job.pid[one.victim], one.stops ? SIGSTOP : SIGKILL);
	if (one.stops) {
		job_await(job.board, FAILED, (uint64_t)one.n - 1);
		sleep_ms(20);
		kill(job.pid[one.victim], SIGCONT);
	}
	int wrong = job_wait(&job);
	if (wrong)
		printf("# trial %d: rank %d of %d %s after %.1f ms, timeout %d ms\n", i, one.victim, one.n,
		    one.stops ? "stopped" : "killed", delay, one.timeout_ms);
	return wrong;
}

static int
play_trials(struct run *run, int n_trials)
{
	char name[128];
	int wrong = 0, shm = count_shm();
	for (int i = 0; i < n_trials; i++)
		wrong += trial(run, i) != 0;
	if (count_shm() > shm && ++wrong)
		printf("# %d more files in /dev/shm\n", count_shm() - shm);
	snprintf(name, sizeof name, "%d kills and stops by chance, %s", n_trials,
	    run->servers > 1 ? "several servers" : "one server");
	return job_report(name, wrong);
}

int
main(int argc, char **argv)
{
	struct run run = { .n = 4, .servers = 1, .seed = 1, .timeout_ms = TIMEOUT_MS };
	int n_trials = 0, failed = 0, n_played = 0;
	for (int c; (c = getopt(argc, argv, "n:s:d:S:r:")) != -1;) {
		switch (c) {
		case 'n': run.n = atoi(optarg); break;
		case 's': run.servers = atoi(optarg); break;
		case 'd': run.directory = optarg; break;
		case 'S': run.seed = (uint64_t)atol(optarg); break;
		case 'r': n_trials = atoi(optarg); break;
		default: return 2;
		}
	}
	if (n_trials)
		return play_trials(&run, n_trials);
	for (int i = 0; i < N_FAULTS; i++) {
		bool wanted = optind == argc;
		for (int a = optind; a < argc; a++)
			wanted |= strcmp(argv[a], faults[i].name) == 0;
		if (!wanted)
			continue;
		run.fault = &faults[i];
		n_played++;
		failed |= play(&run);
	}
	if (!n_played)
		printf("not ok faults: no such fault\n");
	return failed || !n_played;
}
