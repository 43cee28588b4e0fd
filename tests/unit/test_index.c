/* The index of schedules as libblink looks it up: which file, in which ranks, and what comes of running it; and
 * schedules in the ranks of other jobs. Run at the root of the repository. */
#include "choose/index.h"
#include "compiled.h"
#include "random.h"
#include "schedule/schedule.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_RANKS = 8, COUNT = 7 };

static const char *folder;
static int n_failed;

static void
ok(bool good, const char *name)
{
	n_failed += report(!good, name);
}

/* ---- schedules ---- */

static void
shuffle(int *a, int n)
{
	for (int i = n - 1; i > 0; i--) {
		int j = below(i + 1), t = a[i];
		a[i] = a[j];
		a[j] = t;
	}
}

/* ---- relabel ---- */

/* It does what its collective asks of the new ranks, and goes back to the same bytes. */
static bool
relabels(Ctx *ctx, const Schedule *sched, const int *rank)
{
	int n = sched->topo->n_ranks, back[MAX_RANKS];
	Schedule *other, *again;
	Text before = { 0 }, after = { 0 };
	for (int i = 0; i < n; i++)
		back[rank[i]] = i;
	bool good = sched_relabel(ctx, sched, rank, &other) == OK && topo_check(ctx, "relabelled", other->topo) == OK &&
	    sched_verify(ctx, "relabelled", other) == OK && sched_relabel(ctx, other, back, &again) == OK;
	for (int i = 0; good && i < n; i++)
		good = text_same(other->topo->vertex[i].id, sched->topo->vertex[rank[i]].id);
	good = good && (sched->root < 0 ? other->root < 0 : rank[other->root] == sched->root);
	if (good) {
		sched_write_json(sched, &before);
		sched_write_json(again, &after);
		good = before.size == after.size && memcmp(before.data, after.data, before.size) == 0;
	}
	if (!good)
		printf("# %s\n", ctx->error.text);
	text_free(&before);
	text_free(&after);
	return good;
}

static void
test_relabel(const Topology *topo)
{
	static const struct {
		int n, gpu[MAX_RANKS];
		bool hybrid;
	} jobs[] = { { 3, { 0, 1, 2 }, false }, { 4, { 1, 4, 5, 6 }, false }, { 6, { 0, 1, 2, 3, 4, 7 }, false },
		{ 3, { 0, 1, 4 }, true } };
	for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
		for (int coll = 0; coll < N_COLLECTIVES; coll++) {
			Text json = { 0 };
			int rank[MAX_RANKS];
			bool good = true;
			Ctx ctx;
			char name[80];
			ctx_init(&ctx);
			Schedule *sched = schedule_of(&ctx, topo, jobs[j].gpu, jobs[j].n, (Collective)coll,
			    below(jobs[j].n), jobs[j].hybrid, &json);
			for (int i = 0; i < jobs[j].n; i++)
				rank[i] = i;
			for (int k = 0; k < 6 && good; k++) {
				good = relabels(&ctx, sched, rank);
				shuffle(rank, jobs[j].n);
			}
			snprintf(name, sizeof name, "a %s over %d GPUs%s, in other ranks",
			    collective_name((Collective)coll), jobs[j].n, jobs[j].hybrid ? ", hybrid" : "");
			ok(good, name);
			text_free(&json);
			ctx_free(&ctx);
		}
	}
}

/* ---- an index and its files ---- */

static const char *
in_folder(const char *name)
{
	static char path[200];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void
write_file(Ctx *ctx, const char *name, const Text *text)
{
	if (file_write(ctx, in_folder(name), text) != OK) {
		printf("Bail out! %s\n", ctx->error.text);
		exit(1);
	}
}

/* Every collective over GPUs 0, 2 and 3: by files whose ranks are 2, 0 and 1 of the job, and of broadcast a second
 * entry, for 3,0,2 in that order. Broadcast and scatter have roots 0 and 2, others 1. */
static void
write_index(Ctx *ctx, const Topology *topo, Index *index)
{
	static const int sorted[] = { 0, 2, 3 }, turned[] = { 3, 0, 2 }, rank[] = { 1, 2, 0 }, same[] = { 0, 1, 2 };
	static char name[32][40];
	Text text = { 0 };
	*index = (Index){ .name = topo->name, .digest = topo->digest, .n_gpus = topo->n_ranks };
	index->gpu = arena_array(&ctx->run, (size_t)topo->n_ranks, sizeof *index->gpu);
	index->entry = arena_array(&ctx->run, 32, sizeof *index->entry);
	for (int g = 0; g < topo->n_ranks; g++)
		index->gpu[g] = topo->vertex[g].id;
	for (int k = 0; k < 3 * N_COLLECTIVES; k++) {
		Collective coll = (Collective)(k % N_COLLECTIVES);
		bool exact = k / N_COLLECTIVES == 2, second = k / N_COLLECTIVES == 1;
		if (exact ? coll != BROADCAST : second && coll != BROADCAST && coll != SCATTER)
			continue;
		IndexEntry *entry = &index->entry[index->n_entries];
		bool first = coll == BROADCAST || coll == SCATTER;
		int root = !collective_rooted(coll) ? -1 : exact ? 1 : second ? 2 : first ? 0 : 1;
		const int *as = exact ? same : rank;
		text_free(&text);
		text = (Text){ 0 };
		schedule_of(ctx, topo, turned, 3, coll, root < 0 ? -1 : as[root], false, &text);
		snprintf(name[index->n_entries], sizeof *name, "%s-%d-%d.json", collective_name(coll), exact, root);
		*entry = (IndexEntry){ .n = 3, .gpu = exact ? turned : sorted, .rank = as, .coll = coll, .root = root,
			.file = name[index->n_entries], .rate = 50, .bound = 75, .trees = 2, .depth = 3 };
		write_file(ctx, entry->file, &text);
		index->n_entries++;
	}
	text_free(&text);
	text = (Text){ 0 };
	index_write(index, &text);
	write_file(ctx, "index.json", &text);
	text_free(&text);
}

/* The lookup file of the index. */
static void
write_lookup(Ctx *ctx, const Index *index)
{
	Text json = { 0 }, lookup = { 0 };
	index_write(index, &json);
	if (lookup_write(ctx, index, json.data, json.size, &lookup) == OK)
		write_file(ctx, "index.lookup", &lookup);
	text_free(&json);
	text_free(&lookup);
}

/* ---- run: what the ranks of the caller must have ---- */

static int32_t
sent(int rank, int at)
{
	return (rank + 1) * 1000 + at * 7 + rank * at;
}

static int32_t
want(Collective coll, int n, int root, int rank, int at)
{
	int block = at / COUNT, i = at % COUNT, own = rank * COUNT + i;
	int32_t sum = 0;
	switch (coll) {
	case BROADCAST:
		return sent(root, at);
	case SCATTER:
		return sent(root, own);
	case GATHER:
	case ALLGATHER:
		return sent(block, i);
	case ALLTOALL:
		return sent(block, own);
	default:
		for (int r = 0; r < n; r++)
			sum += sent(r, coll == REDUCESCATTER ? own : at);
		return sum;
	}
}

/* Elements that a rank receives. */
static int
received(Collective coll, int n, int root, int rank)
{
	bool one = coll == REDUCE || coll == GATHER;
	int blocks = coll == GATHER || coll == ALLGATHER || coll == ALLTOALL ? n : 1;
	return one && rank != root ? 0 : blocks * COUNT;
}

static bool
delivers(blinkSchedule_t sched, Collective coll, int n, int root)
{
	int32_t from[MAX_RANKS][MAX_RANKS * COUNT], to[MAX_RANKS][MAX_RANKS * COUNT];
	const void *send[MAX_RANKS];
	void *recv[MAX_RANKS];
	blinkScheduleInfo_t info;
	blinkComm_t comm;
	if (blinkScheduleGetInfo(sched, &info) || info.nRanks != n || (int)info.collective != (int)coll
	    || info.root != root || blinkCommCreate(sched, NULL, &comm, NULL))
		return false;
	memset(to, 0, sizeof to);
	for (int r = 0; r < n; r++) {
		for (int at = 0; at < n * COUNT; at++)
			from[r][at] = sent(r, at);
		send[r] = from[r];
		recv[r] = to[r];
	}
	bool good = blinkRun(comm, send, recv, COUNT, blinkInt32, blinkSum) == blinkSuccess;
	for (int r = 0; r < n; r++)
		for (int at = 0; at < received(coll, n, root, r); at++)
			good = good && to[r][at] == want(coll, n, root, r, at);
	blinkCommDestroy(comm);
	return good;
}

static bool
finds(blinkIndex_t index, const int *gpus, Collective coll, int root)
{
	blinkSchedule_t sched;
	blinkError_t error;
	if (blinkIndexFind(index, gpus, 3, (blinkCollective_t)coll, root, &sched, &error)) {
		printf("# %s\n", error.text);
		return false;
	}
	bool good = delivers(sched, coll, 3, collective_rooted(coll) ? root : -1);
	blinkScheduleDestroy(sched);
	return good;
}

static const int orders[][3] = { { 0, 2, 3 }, { 0, 3, 2 }, { 2, 0, 3 }, { 2, 3, 0 }, { 3, 0, 2 }, { 3, 2, 0 } };

/* The rank of the job that a GPU has. */
static int
rank_of(const int *gpus, int gpu)
{
	return gpus[0] == gpu ? 0 : gpus[1] == gpu ? 1 : 2;
}

static void
test_find(blinkIndex_t index)
{
	for (int coll = 0; coll < N_COLLECTIVES; coll++) {
		bool good = true;
		char name[80];
		/* Of gpus 0, 2, 3 the entry's root is 1, or 0 and 2. */
		int root = coll == BROADCAST || coll == SCATTER ? 3 : 2;
		for (size_t k = 0; k < sizeof orders / sizeof *orders && good; k++)
			good = finds(index, orders[k], (Collective)coll, rank_of(orders[k], root));
		snprintf(name, sizeof name, "%s over GPUs in any order delivers in the ranks of the job",
		    collective_name((Collective)coll));
		ok(good, name);
	}
	ok(finds(index, orders[0], ALLREDUCE, 99), "a root is ignored where there is none");
}

static void
test_entry(blinkIndex_t index)
{
	static const struct {
		int gpus[3], root, ranks[3];
		const char *file;
	} cases[] = {
		{ { 0, 2, 3 }, 0, { 1, 2, 0 }, "broadcast-0-0.json" },
		{ { 0, 2, 3 }, 2, { 1, 2, 0 }, "broadcast-0-2.json" },
		{ { 2, 3, 0 }, 1, { 2, 0, 1 }, "broadcast-0-2.json" },
		{ { 3, 0, 2 }, 1, { 0, 1, 2 }, "broadcast-1-1.json" },	/* as it is asked for */
		{ { 3, 0, 2 }, 0, { 0, 1, 2 }, "broadcast-0-2.json" },	/* that list has no such root */
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		blinkIndexEntry_t entry;
		int ranks[3] = { -1, -1, -1 };
		char name[80];
		bool good = blinkIndexGetEntry(
				index, cases[k].gpus, 3, blinkCollBroadcast, cases[k].root, &entry, ranks, NULL)
			== blinkSuccess
		    && strcmp(entry.file, cases[k].file) == 0 && memcmp(ranks, cases[k].ranks, sizeof ranks) == 0;
		snprintf(name, sizeof name, "entry of GPUs %d,%d,%d from rank %d", cases[k].gpus[0], cases[k].gpus[1],
		    cases[k].gpus[2], cases[k].root);
		ok(good && entry.rate == 50 && entry.bound == 75 && entry.nTrees == 2 && entry.depth == 3, name);
	}
}

static bool
refused(blinkIndex_t index, const int *gpus, int n, int coll, int root, blinkResult_t code, const char *words)
{
	blinkSchedule_t sched = NULL;
	blinkIndexEntry_t entry = { .file = "untouched" };
	blinkError_t error = { "" };
	bool good = blinkIndexFind(index, gpus, n, (blinkCollective_t)coll, root, &sched, &error) == code
	    && strstr(error.text, words) && !sched;
	blinkResult_t other = blinkIndexGetEntry(index, gpus, n, (blinkCollective_t)coll, root, &entry, NULL, NULL);
	if (!good)
		printf("# %s\n", error.text);
	return good
	    && (code == blinkInvalidArgument || code == blinkInfeasible
		    ? other == code && strcmp(entry.file, "untouched") == 0
		    : !other);
}

static void
test_arguments(blinkIndex_t index)
{
	static const int gpus[9] = { 0, 2, 3, 1, 4, 5, 6, 7, 8 }, twice[] = { 0, 2, 0 }, none[] = { 0, 8 },
			 below0[] = { -1, 0 }, other[] = { 0, 2, 4 };
	blinkIndexInfo_t info;
	blinkSchedule_t sched;
	blinkIndexEntry_t entry;
	ok(blinkIndexGetInfo(index, &info) == blinkSuccess && info.nGpus == 8 && info.nSchedules == 11
		&& strcmp(info.gpus[7], "gpu7") == 0 && strcmp(info.topology, "dgx1v") == 0
		&& strncmp(info.digest, "sha256:", 7) == 0 && strcmp(info.directory, folder) == 0,
	    "info");
	ok(refused(index, twice, 3, blinkCollAllReduce, -1, blinkInvalidArgument, "given twice"), "a GPU twice");
	ok(refused(index, none, 2, blinkCollAllReduce, -1, blinkInvalidArgument, "want 0 to 7"), "no such GPU");
	ok(refused(index, below0, 2, blinkCollAllReduce, -1, blinkInvalidArgument, "want 0 to 7"), "a GPU below 0");
	ok(refused(index, gpus, 1, blinkCollAllReduce, -1, blinkInvalidArgument, "want 2 to 8"), "one GPU");
	ok(refused(index, gpus, 9, blinkCollAllReduce, -1, blinkInvalidArgument, "want 2 to 8"),
	    "more GPUs than there are");
	ok(refused(index, gpus, -1, blinkCollAllReduce, -1, blinkInvalidArgument, "want 2 to 8"), "less than none");
	ok(refused(index, gpus, 3, 8, -1, blinkInvalidArgument, "want 0 to 7"), "no such collective");
	ok(refused(index, gpus, 3, -1, -1, blinkInvalidArgument, "want 0 to 7"), "a collective below 0");
	ok(refused(index, gpus, 3, blinkCollReduce, 3, blinkInvalidArgument, "want a rank"), "no such root");
	ok(refused(index, gpus, 3, blinkCollReduce, -1, blinkInvalidArgument, "want a rank"), "no root");
	ok(refused(index, gpus, 3, blinkCollReduce, 0, blinkInfeasible,
	       "no schedule for reduce over GPUs 0,2,3 from rank 0"),
	    "a root that it has not");
	ok(refused(index, other, 3, blinkCollAllReduce, -1, blinkInfeasible,
	       "no schedule for allreduce over GPUs 0,2,4"),
	    "GPUs that it has not");
	ok(blinkIndexFind(NULL, gpus, 3, blinkCollAllReduce, 0, &sched, NULL) == blinkInvalidArgument
		&& blinkIndexFind(index, NULL, 3, blinkCollAllReduce, 0, &sched, NULL) == blinkInvalidArgument
		&& blinkIndexFind(index, gpus, 3, blinkCollAllReduce, 0, NULL, NULL) == blinkInvalidArgument
		&& blinkIndexGetEntry(NULL, gpus, 3, blinkCollAllReduce, 0, &entry, NULL, NULL) == blinkInvalidArgument
		&& blinkIndexGetEntry(index, gpus, 3, blinkCollAllReduce, 0, NULL, NULL, NULL) == blinkInvalidArgument
		&& blinkIndexGetInfo(NULL, &info) == blinkInvalidArgument
		&& blinkIndexGetInfo(index, NULL) == blinkInvalidArgument
		&& blinkIndexLoad(NULL, &index, NULL) == blinkInvalidArgument
		&& blinkIndexLoad("x", NULL, NULL) == blinkInvalidArgument && blinkIndexDestroy(NULL) == blinkSuccess,
	    "NULL");
}

/* ---- files that are wrong ---- */

static blinkResult_t
load_result(const char *path, char text[1024])
{
	blinkIndex_t index;
	blinkError_t error = { "" };
	blinkResult_t result = blinkIndexLoad(path, &index, &error);
	if (result == blinkSuccess)
		blinkIndexDestroy(index);
	memcpy(text, error.text, 1024);
	return result;
}

/* Nobody writes to them. */
static void
test_fifos(void)
{
	char path[128], made[160], text[1024];
	blinkSchedule_t sched = NULL;
	blinkIndex_t index = NULL;
	blinkError_t error = { "" };
	snprintf(path, sizeof path, "%s/fifo", folder);
	snprintf(made, sizeof made, "%s/index.json", path);
	alarm(60);
	bool good = mkfifo(path, 0600) == 0;
	ok(good && blinkScheduleLoad(path, &sched, &error) == blinkSystemError && strstr(error.text, "a FIFO"),
	    "a schedule that is a FIFO");
	ok(blinkScheduleLoadData(path, &sched, &error) == blinkSystemError && strstr(error.text, "a FIFO"),
	    "data that is a FIFO");
	ok(load_result(path, text) == blinkSystemError && strstr(text, "a FIFO"), "an index that is a FIFO");
	unlink(path);
	good = mkdir(path, 0700) == 0 && mkfifo(made, 0600) == 0;
	ok(good && load_result(path, text) == blinkSystemError && strstr(text, "a FIFO"),
	    "a directory whose index is a FIFO");
	unlink(made);
	rmdir(path);
	good = blinkIndexLoad(folder, &index, &error) == blinkSuccess;
	char saved[160];
	snprintf(saved, sizeof saved, "%s/saved", folder);
	snprintf(made, sizeof made, "%s/index.json", folder);
	blinkIndexInfo_t info;
	good = good && blinkIndexGetInfo(index, &info) == blinkSuccess && rename(made, saved) == 0
	    && mkfifo(made, 0600) == 0;
	ok(good && blinkIndexWithout(index, info.digest, &index, &error) == blinkSystemError
	    && strstr(error.text, "a FIFO"), "an index of changes that is a FIFO");
	unlink(made);
	rename(saved, made);
	blinkIndexDestroy(index);
	alarm(0);
}

static void
test_files(Ctx *ctx, Index *made)
{
	static const int gpus[] = { 0, 2, 3 };
	char text[1024], before[300];
	Text bytes = { 0 };
	blinkIndex_t index;
	ok(load_result("/nowhere", text) == blinkSystemError && strncmp(text, "/nowhere: ", 10) == 0, "no such index");
	ok(load_result(in_folder("reduce-0-1.json"), text) == blinkBadInput
	    && strstr(text, "a schedule: want an index of schedules"),
	    "a schedule is no index");
	snprintf(before, sizeof before, "%s/", folder);
	ok(load_result(before, text) == blinkSuccess, "a directory with a slash behind it");
	ok(load_result("src", text) == blinkSystemError
	    && strncmp(text, "src: a directory without index.json", 35) == 0,
	    "a directory without an index");

	bool good = getcwd(before, sizeof before) && chdir(folder) == 0
	    && blinkIndexLoad("index.json", &index, NULL) == blinkSuccess;
	ok(good && finds(index, gpus, ALLREDUCE, -1), "an index in the current directory");
	if (good)
		blinkIndexDestroy(index);
	if (chdir(before) != 0 || blinkIndexLoad(folder, &index, NULL) != blinkSuccess) {
		printf("Bail out! %s: does not load\n", folder);
		exit(1);
	}

	text_put(&bytes, "\177ELF");
	write_file(ctx, "reduce-0-1.json", &bytes);
	ok(refused(index, gpus, 3, REDUCE, 1, blinkBadInput, "a shared object: want a schedule file"),
	    "a shared object is not loaded");
	unlink(in_folder("reduce-0-1.json"));
	ok(refused(index, gpus, 3, REDUCE, 1, blinkSystemError, "reduce-0-1.json: "), "a file that is not there");
	text_free(&bytes);
	file_read(ctx, in_folder("allgather-0--1.json"), &bytes);
	write_file(ctx, "reduce-0-1.json", &bytes);
	ok(refused(index, gpus, 3, REDUCE, 1, blinkBadInput, "as in its index"), "a file of another collective");
	blinkIndexDestroy(index);

	made->digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
	text_free(&bytes);
	bytes = (Text){ 0 };
	index_write(made, &bytes);
	write_file(ctx, "index.json", &bytes);
	text_free(&bytes);
	if (blinkIndexLoad(folder, &index, NULL) == blinkSuccess) {
		ok(refused(index, gpus, 3, ALLREDUCE, -1, blinkBadInput, "topology.digest"),
		    "a file for another machine");
		blinkIndexDestroy(index);
	}
}

/* ---- threads ---- */

static void *
find_often(void *index)
{
	bool right = true;
	for (int i = 0; i < 12; i++)
		right = finds(index, orders[i % 6], (Collective)(ALLREDUCE + i % 2 * 3), -1) && right;
	return right ? index : NULL;
}

static void
test_threads(blinkIndex_t index)
{
	pthread_t thread[4];
	bool right = true;
	void *end;
	for (int i = 0; i < 4; i++)
		right = pthread_create(&thread[i], NULL, find_often, index) == 0 && right;
	for (int i = 0; i < 4; i++)
		right = pthread_join(thread[i], &end) == 0 && end && right;
	ok(right, "one index, four threads");
}

/* A schedule is complete in itself. */
static void
test_outlives(void)
{
	blinkIndex_t index;
	blinkSchedule_t sched;
	bool good = blinkIndexLoad(folder, &index, NULL) == blinkSuccess &&
	    blinkIndexFind(index, orders[3], 3, blinkCollAlltoAll, -1, &sched, NULL) == blinkSuccess;
	if (good) {
		blinkIndexDestroy(index);
		good = delivers(sched, ALLTOALL, 3, -1);
		blinkScheduleDestroy(sched);
	}
	ok(good, "a schedule outlives the index");
}

/* What an index finds: all of it in memory, or by its lookup file. */
static void
test_index(bool by_lookup)
{
	blinkIndex_t index;
	if (blinkIndexLoad(folder, &index, NULL) != blinkSuccess) {
		printf("Bail out! the index does not load\n");
		exit(1);
	}
	ok((index->lookup != NULL) == by_lookup, by_lookup ? "by its lookup file" : "without a lookup file");
	test_find(index);
	test_entry(index);
	test_arguments(index);
	test_threads(index);
	test_outlives();
	blinkIndexDestroy(index);
}

int
main(void)
{
	char made[] = "/tmp/blink-test-XXXXXX", command[64];
	Index written;
	Ctx ctx;
	setvbuf(stdout, NULL, _IOLBF, 0);
	folder = mkdtemp(made);
	ctx_init(&ctx);
	const Topology *topo = machine(&ctx, "topologies/dgx1v.xml");
	write_index(&ctx, topo, &written);
	test_relabel(topo);
	test_index(false);
	write_lookup(&ctx, &written);
	test_index(true);
	test_fifos();
	test_files(&ctx, &written);
	ctx_free(&ctx);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		printf("# %s is left behind\n", folder);
	return n_failed != 0;
}
