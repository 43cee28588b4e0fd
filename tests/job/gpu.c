/* What is particular to ranks on GPUs: graphs that are captured once and replayed with other data, streams that fork
 * and join, several streams, communicators and ranks on one GPU, one thread that drives all of them; and ranks that
 * fail: killed, stopped by an abort, with other calls or none, or because a function of the driver fails.
 *
 *	gpu [-t] [-n RANKS] [-s SERVERS] [-k REPLAYS] [-S SEED] [-f FUNCTION:N...] SCENARIO...
 *
 * With BLINK_BACKEND=cuda, and the virtual driver of tests/virtual_gpu or a real one. -f, one argument with blanks: in
 * a job for each, the N-th call of that function of the driver fails on the last rank: all calls are right, or all
 * ranks end with an error. Of killed rank 1 is meant, which dies there: FUNCTION:N:die. Of killed_in_step it is
 * COLLECTIVE:N, and rank 1 is killed at the N-th fence of its kernels. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct scenario {
	const char *name;
	job_body *body;
	bool processes_only, threads_only, fails, dies;
	int seconds;
} scenarios[] = {
	{ "graph", graph, .seconds = 60 },
	{ "graph_forked", graph_forked, .seconds = 60 },
	{ "graph_uneven", graph_uneven, .seconds = 60 },
	{ "graph_beside_call", graph_beside_call, .seconds = 30 },
	{ "streams", streams, .seconds = 30 },
	{ "two_communicators", two_communicators, .seconds = 30 },
	{ "default_stream", default_stream, .seconds = 20 },
	{ "one_thread", one_thread, .threads_only = true, .seconds = 30 },
	{ "messages", messages, .seconds = 40 },
	{ "killed", killed, .processes_only = true, .dies = true, .seconds = 30 },
	{ "stopped", stopped, .processes_only = true, .dies = true, .seconds = 40 },
	{ "killed_in_queue", killed_in_queue, .processes_only = true, .dies = true, .seconds = 60 },
	{ "killed_in_step", killed_in_step, .processes_only = true, .fails = true, .dies = true, .seconds = 30 },
	{ "unlike", unlike, .processes_only = true, .seconds = 30 },
	{ "late", late, .seconds = 30 },
	{ "crossed", crossed, .seconds = 40 },
	{ "idle", idle, .threads_only = true, .seconds = 60 },
	{ "leaves", leaves, .seconds = 30 },
	{ "differs", differs, .seconds = 30 },
	{ "message_differs", message_differs, .seconds = 30 },
	{ "aborted", aborted, .seconds = 20 },
	{ "bad_pointer", bad_pointer, .processes_only = true, .seconds = 20 },
	{ "stream_refused", stream_refused, .seconds = 20 },
	{ "driver_fails", driver_fails, .processes_only = true, .fails = true, .seconds = 30 },
};

enum { N_SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void
begin(struct rank *me)
{
	const struct test *test = me->arg;
	job_server(me, test->servers);
	if (test->fails && test->body == killed && me->rank == VICTIM)
		setenv("VIRTUAL_GPU_FAIL", test->fails, 1);
	if (test->body != driver_fails && test->body != killed_in_step)
		device_take(me);
	test->body(me);
}

static int
play(const struct scenario *s, int n, struct test *test)
{
	char name[160], servers[32] = "";
	if (test->servers > 1)
		snprintf(servers, sizeof servers, " on %d servers", test->servers);
	snprintf(name, sizeof name, "%s, %d %s%s%s%s", s->name, n, test->threads ? "threads" : "processes", servers,
	    s->fails ? ", " : "", s->fails ? test->fails : "");
	struct job job = { .name = name, .n = n, .threads = test->threads, .seconds = s->seconds };
	job.doomed[VICTIM] = s->dies;
	test->body = s->body;
	job_start(&job, begin, test);
	return job_report(name, job_wait(&job));
}

/* One after the other, of a list with blanks between them. */
static int
play_failures(const struct scenario *s, int n, struct test *test, char *list)
{
	int failed = 0;
	for (char *rest = list; (test->fails = strsep(&rest, " "));)
		failed |= play(s, n, test);
	return failed;
}

int
main(int argc, char **argv)
{
	double load = job_load();
	struct test test = { .replays = 10, .servers = 1, .seed = 1,
	    .timeout_ms = TIMEOUT_MS * job_slack() * (load > 2 ? load / 2 : 1) };
	int n = 4, failed = 0, n_played = 0;
	char *fails = NULL;
	for (int c; (c = getopt(argc, argv, "tn:s:k:S:f:")) != -1;) {
		switch (c) {
		case 't': test.threads = true; break;
		case 'n': n = atoi(optarg); break;
		case 's': test.servers = atoi(optarg); break;
		case 'k': test.replays = atoi(optarg); break;
		case 'S': test.seed = (uint64_t)atol(optarg); break;
		case 'f': fails = optarg; break;
		default: return 2;
		}
	}
	for (int i = 0; i < N_SCENARIOS; i++) {
		const struct scenario *s = &scenarios[i];
		bool wanted = optind == argc && s->fails == !!fails;
		for (int a = optind; a < argc; a++)
			wanted |= strcmp(argv[a], s->name) == 0;
		if (!wanted || (test.threads ? s->processes_only : s->threads_only))
			continue;
		n_played++;
		failed |= s->fails || fails ? play_failures(s, n, &test, fails) : play(s, n, &test);
	}
	if (!n_played)
		printf("not ok gpu: no such scenario\n");
	return failed || !n_played;
}
