/* Registered memory: again and again, freed by one rank while others keep theirs, and used wrongly.
 *
 *	windows [-t] [-n RANKS] [-s SERVERS] [-k ROUNDS] [SCENARIO...]
 *
 * -t: ranks are threads; else processes, on so many servers. Without a scenario: all. */
#include "flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 5000, MOST = 64 };

struct windows {
	job_body *body;
	int n_rounds, servers;
	bool threads;
};

static int
count_mappings(void)
{
	int n = 0;
	FILE *file = fopen("/proc/self/maps", "r");
	for (int c; file && (c = getc(file)) != EOF;)
		n += c == '\n';
	if (file)
		fclose(file);
	return n;
}

static int32_t *
allocate(struct rank *me, blinkComm_t comm, size_t bytes)
{
	void *memory = NULL;
	fine(me, blinkMemAlloc(comm, me->rank, bytes, &memory), comm, "blinkMemAlloc");
	return memory;
}

/* An allreduce from memory to memory, which peers read in place if it is registered. */
static void
sum(struct rank *me, blinkComm_t comm, int32_t *memory, int32_t round)
{
	bool right = true;
	for (int i = 0; i < COUNT; i++)
		memory[i] = round + me->rank + i;
	if (!fine(me, blinkAllReduce(memory, memory + COUNT, COUNT, blinkInt32, blinkSum, comm, NULL), comm,
	    "blinkAllReduce") || !wait_for(me, comm))
		return;
	for (int i = 0; i < COUNT; i++)
		right = right && memory[COUNT + i] == (round + i) * me->n + me->n * (me->n - 1) / 2;
	job_need(me, right, "round %d: a wrong sum", (int)round);
}

/* ---- again and again ---- */

/* One rank has new memory in each round, of another size, and frees it: the others, which keep theirs, do not keep its
 * memory. Neither mappings nor files become more. */
static void
again(struct rank *me)
{
	const struct windows *w = me->arg;
	int mappings = 0, files = 0;
	blinkComm_t comm = job_join(me, NULL);
	int32_t *kept = comm ? allocate(me, comm, 2 * COUNT * sizeof *kept) : NULL, *memory = kept;
	for (int i = 0; i < w->n_rounds && memory; i++) {
		void *handle = NULL;
		size_t bytes = (size_t)(2 * COUNT + i % 3 * 4096) * sizeof *kept;
		job_at(me, "round %d", i);
		if (me->rank == 0)
			memory = allocate(me, comm, bytes);
		if (!memory || !fine(me, blinkCommRegister(comm, memory, 2 * COUNT * sizeof *kept, &handle), comm,
		    "blinkCommRegister"))
			break;
		if (i < 20 || i % 100 == 0)
			sum(me, comm, memory, i);
		if (!fine(me, blinkCommDeregister(comm, handle), comm, "blinkCommDeregister"))
			break;
		if (me->rank == 0)
			fine(me, blinkMemFree(comm, me->rank, memory), comm, "blinkMemFree");
		if (i == 20) {
			mappings = count_mappings();
			files = count_files();
		}
	}
	/* A thread among others counts what they have at the moment, too. */
	int more = count_mappings() - mappings, more_files = count_files() - files;
	job_need(me, more < w->n_rounds / 4, "%d more mappings after %d rounds", more, w->n_rounds);
	job_need(me, more_files < w->n_rounds / 4, "%d more files after %d rounds", more_files, w->n_rounds);
	blinkCommDestroy(comm);
}

/* As many as there may be, and one more; taken back in another order, and all left to the end at last. */
static void
many(struct rank *me)
{
	int32_t *memory[MOST + 1];
	void *handle[MOST + 1];
	blinkComm_t comm = job_join(me, NULL);
	for (int i = 0; comm && i <= MOST; i++) {
		memory[i] = allocate(me, comm, 2 * COUNT * sizeof **memory);
		blinkResult_t result = memory[i] ? blinkCommRegister(comm, memory[i], 100, &handle[i])
		    : blinkOutOfMemory;
		if (!job_need(me, result == (i < MOST ? blinkSuccess : blinkInvalidArgument), "number %d: %d: %s", i,
		    (int)result, blinkCommGetError(comm)))
			return;
	}
	for (int i = 0; comm && i < MOST; i += 3)
		fine(me, blinkCommDeregister(comm, handle[i]), comm, "blinkCommDeregister");
	for (int i = 0; comm && i < MOST; i += 5)
		sum(me, comm, memory[i], i);
	for (int i = 0; comm && i < MOST; i += 3)
		fine(me, blinkCommRegister(comm, memory[i], 100, &handle[i]), comm,
		    "blinkCommRegister");
	for (int i = 0; comm && i < MOST; i += 5)
		sum(me, comm, memory[i], i + 1000);
	blinkCommDestroy(comm);
}

/* ---- wrong use ---- */

static void
refused(struct rank *me, blinkComm_t comm, blinkResult_t result, const char *what)
{
	job_need(me, result == blinkInvalidArgument && strlen(blinkCommGetError(comm)) > 10, "%s: %d: %s", what,
	    (int)result, blinkCommGetError(comm));
}

/* What is refused changes nothing: neither what is registered, nor the communicator. */
static void
wrong(struct rank *me)
{
	int32_t other[4] = { 0 }, *memory;
	void *handle = NULL, *second = NULL;
	blinkComm_t comm = job_join(me, NULL);
	if (!comm || !(memory = allocate(me, comm, 2 * COUNT * sizeof *memory)))
		return;
	refused(me, comm, blinkCommDeregister(comm, memory), "not registered");
	refused(me, comm, blinkCommRegister(comm, other, sizeof other, &handle), "other memory");
	refused(me, comm, blinkCommRegister(comm, memory, 2 * COUNT * sizeof *memory + 1, &handle), "too many bytes");
	void *at = me->rank == me->n - 1 ? other : memory;
	refused(me, comm, blinkCommRegister(comm, at, sizeof other, &handle), "other memory on the last rank");
	job_need(me, strstr(blinkCommGetError(comm), "rank 0") == NULL, "rank 0 is blamed: %s",
	    blinkCommGetError(comm));
	fine(me, blinkCommRegister(comm, memory, sizeof other, &handle), comm, "blinkCommRegister");
	refused(me, comm, blinkCommRegister(comm, memory, sizeof other, &second), "twice");
	refused(me, comm, blinkMemFree(comm, me->rank, memory), "free what is registered");
	sum(me, comm, memory, 7);
	fine(me, blinkCommDeregister(comm, handle), comm, "blinkCommDeregister");
	refused(me, comm, blinkCommDeregister(comm, handle), "taken back twice");
	sum(me, comm, memory, 8);
	job_need(me, blinkCommGetAsyncError(comm, NULL) == blinkSuccess, "the communicator has failed");
	blinkCommDestroy(comm);
}

/* One rank takes back other memory than the rest: its numbers would be wrong from then on. */
static void
crossed(struct rank *me)
{
	int32_t *memory[2] = { NULL, NULL };
	void *handle[2] = { NULL, NULL };
	blinkComm_t comm = job_join(me, NULL);
	for (int i = 0; i < 2 && comm; i++) {
		memory[i] = allocate(me, comm, 2 * COUNT * sizeof **memory);
		fine(me, blinkCommRegister(comm, memory[i], 100, &handle[i]), comm, "blinkCommRegister");
	}
	if (!comm)
		return;
	job_at(me, "take back crosswise");
	blinkResult_t result = blinkCommDeregister(comm, handle[me->rank == 1]);
	job_need(me, result == blinkMismatch && strstr(blinkCommGetError(comm), "rank 1 takes back"), "%d: %s",
	    (int)result, blinkCommGetError(comm));
	result = blinkAllReduce(memory[0], memory[0], 10, blinkInt32, blinkSum, comm, NULL);
	job_need(me, result == blinkMismatch, "a call after it: %d", (int)result);
	job_need(me, blinkMemFree(comm, me->rank, memory[me->rank == 1]) == blinkSuccess, "blinkMemFree after it");
	blinkCommDestroy(comm);
}

/* ---- the program ---- */

static const struct scenario {
	const char *name;
	job_body *body;
} scenarios[] = {
	{ "again", again },
	{ "many", many },
	{ "wrong", wrong },
	{ "crossed", crossed },
};

static void
begin(struct rank *me)
{
	const struct windows *w = me->arg;
	job_server(me, w->servers);
	w->body(me);
}

int
main(int argc, char **argv)
{
	struct windows w = { .n_rounds = 300, .servers = 1 };
	int n = 3, failed = 0, n_played = 0;
	for (int c; (c = getopt(argc, argv, "tn:s:k:")) != -1;) {
		switch (c) {
		case 't': w.threads = true; break;
		case 'n': n = atoi(optarg); break;
		case 's': w.servers = atoi(optarg); break;
		case 'k': w.n_rounds = atoi(optarg); break;
		default: return 2;
		}
	}
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
		char name[128];
		bool wanted = optind == argc;
		for (int a = optind; a < argc; a++)
			wanted |= strcmp(argv[a], scenarios[i].name) == 0;
		if (!wanted)
			continue;
		w.body = scenarios[i].body;
		snprintf(name, sizeof name, "registered memory, %s, %d %s%s", scenarios[i].name, n,
		    w.threads ? "threads" : "processes", w.servers > 1 ? ", several servers" : "");
		failed |= job_report(name, job_run(name, n, w.threads, 60, begin, &w));
		n_played++;
	}
	if (!n_played)
		printf("not ok windows: no such scenario\n");
	return failed || !n_played;
}
