/* What a rank expects when another one fails: an error in time that names it, nothing left behind, and another
 * communicator that works. */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void
expect_error(struct rank *me, blinkResult_t result, const char *text, int64_t began, unsigned codes, int victim)
{
	const struct run *run = me->arg;
	/* The load may have been more when the timeout was chosen by it, and most of the time passed. */
	double took = (double)(job_now() - began) / 1e6, margin = job_margin(2 * MARGIN_MS), then = 2 * run->timeout_ms;
	double most = run->timeout_ms + (margin > then ? margin : then);
	job_need(me, result >= 0 && result < 32 && codes >> result & 1, "got %d after %.0f ms: %s", (int)result, took,
	    text);
	job_need(me, took <= most, "took %.0f ms, want at most %.0f: %d: %s", took, most, (int)result, text);
	job_need(me, victim < 0 || result == blinkSuccess || names_rank(text, victim), "rank %d is not named: %d: %s",
	    victim, (int)result, text);
	job_need(me, strchr(text, '\n') == NULL && (result == blinkSuccess || strlen(text) >= strlen("out of memory")),
	    "a poor text: '%s'", text);
}

bool
blames(const struct rank *me, const char *text, int victim, bool halves)
{
	for (int r = 0; r < me->n; r++) {
		bool there = !halves || r % 2 == me->rank % 2;
		if (there && (r == victim || job_get(me->board, REPORTED + r)) && names_rank(text, halves ? r / 2 : r))
			return true;
	}
	return false;
}

blinkConfig_t
config_of(const struct rank *me)
{
	const struct run *run = me->arg;
	job_server(me, run->servers);
	return (blinkConfig_t){ .threads = 1, .timeoutMs = run->timeout_ms };
}

struct counts
count(void)
{
	return (struct counts){ count_files(), count_threads() };
}

void
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

void
expect_hubs(struct rank *me, struct counts before, int most)
{
	struct counts after = count();
	for (int i = most ? 20 : 80; i > 0 && (after.files > before.files || after.threads > before.threads); i--) {
		sleep_ms(25);
		after = count();
	}
	int n = after.threads - before.threads;
	job_need(me, n <= most, "%d threads, before %d", after.threads, before.threads);
	job_need(me, after.files <= before.files + 3 * n, "%d open files, before %d, %d threads more", after.files,
	    before.files, n);
}

void
go_on(struct rank *me, uint64_t mask)
{
	blinkConfig_t config = config_of(me);
	config.timeoutMs = (int64_t)(5000 * job_slack()) + 3 * config.timeoutMs;	/* others fail later */
	blinkComm_t comm = job_join_some(me, AGAIN, mask, &config);
	if (!comm)
		return;
	flight_run(me, comm, 10, 1025, 77);
	job_at(me, "destroy the second communicator");
	job_need(me, blinkCommDestroy(comm) == blinkSuccess, "blinkCommDestroy");
}

uint64_t
all_but(const struct run *run)
{
	uint64_t all = (UINT64_C(1) << run->n) - 1;
	return run->fault && !run->fault->ends ? all : all & ~(UINT64_C(1) << run->victim);
}

/* Longer than the others take to fail. */
int64_t
patience_ns(const struct rank *me)
{
	const struct run *run = me->arg;
	return (int64_t)(1e6 * (run->timeout_ms + job_margin(2 * MARGIN_MS)));
}

/* What this rank did is done, but the others fail: it hears of it. */
blinkResult_t
await_failure(struct rank *me, blinkComm_t comm, blinkError_t *error)
{
	int64_t began = job_now();
	blinkResult_t result;
	while ((result = blinkCommGetAsyncError(comm, error)) == blinkSuccess && job_now() - began < patience_ns(me))
		sleep_ms(1);
	return result;
}

/* Arguments of the victim differ; all hear of it. */
void
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

void
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
