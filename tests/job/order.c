/* The order of things in a job: thousands of calls under way at once; several communicators at once, over overlapping
 * ranks and from several threads; splits of splits; groups; messages between ranks; calls that are tested, not waited
 * for; aborts; ranks that leave while others still work; and the same bits for all of them.
 *
 *	order [-t] [-n RANKS] [-s SERVERS] [-k CALLS] [-S SEED] SCENARIO...
 *
 * -t: ranks are threads; else processes, on so many servers. Without a scenario: all but huge and same_bits. */
#include "order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	{ "uneven", uneven, false, false, 40 },
	{ "uneven_differs", uneven_differs, false, false, 20 },
	{ "uneven_refused", uneven_refused, false, false, 20 },
	{ "aborted", aborted, false, false, 20 },
	{ "taken_back", taken_back, true, false, 20 },
	{ "refused", refused, false, false, 20 },
	{ "messages_differ", messages_differ, false, false, 20 },
	{ "calls_differ", calls_differ, false, false, 20 },
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
	if (s->body == same_bits)
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
