/* Choice of a schedule from files: indexes with ranges of sizes, isomorphic jobs, schedule files, what is broken.
 * Prints TAP. Run at the root of the repository. Arguments: seed. */
#include "buffers.h"
#include "choose/choose.h"
#include "compiled.h"

#include <sys/stat.h>
#include <unistd.h>

enum { N = 3, SMALL = 8192 };

static const char *folder;

static const char *
in_folder(const char *name)
{
	static char path[4][200];
	static int next;
	char *out = path[next++ % 4];
	snprintf(out, sizeof *path, "%s/%s", folder, name);
	return out;
}

static void
write_text(const char *name, const char *data, size_t size)
{
	FILE *file = fopen(in_folder(name), "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
		printf("Bail out! %s\n", in_folder(name));
		exit(1);
	}
}

static void
write_schedule(Ctx *ctx, const Topology *topo, const char *name, const int *gpu, int n, Collective coll, int root)
{
	Text text = { 0 };
	schedule_of(ctx, topo, gpu, n, coll, root, false, &text);
	write_text(name, text.data, text.size);
	text_free(&text);
}

/* Files over GPUs 0, 1, 2 by other orders of ranks, so that they differ: allreduce of any size, to 1000 bytes, to
 * 50000, and after a gap to 90000; broadcast of any size; reduce to 100 bytes alone. */
static const int gpus[N] = { 0, 1, 2 }, turned[N] = { 2, 0, 1 }, turned_rank[N] = { 1, 2, 0 }, again[N] = { 1, 2, 0 },
    again_rank[N] = { 2, 0, 1 };
static const IndexEntry entries[] = {
	{ .coll = BROADCAST, .root = 1, .rank = gpus, .file = "broadcast.json" },
	{ .coll = REDUCE, .root = 1, .rank = gpus, .sized = true, .from = 0, .to = 100, .file = "reduce.json" },
	{ .coll = ALLREDUCE, .root = -1, .rank = gpus, .file = "any.json" },
	{ .coll = ALLREDUCE, .root = -1, .rank = turned_rank, .sized = true, .from = 0, .to = 1000,
		.file = "low.json" },
	{ .coll = ALLREDUCE, .root = -1, .rank = again_rank, .sized = true, .from = 1001, .to = 50000,
		.file = "middle.json" },
	{ .coll = ALLREDUCE, .root = -1, .rank = turned_rank, .sized = true, .from = 60000, .to = 90000,
		.file = "low.json" },
};

enum { N_ENTRIES = sizeof entries / sizeof *entries };

static void
write_index(Ctx *ctx, const Topology *topo, const char *name, bool machine)
{
	static IndexEntry own[N_ENTRIES];
	Text text = { 0 };
	Index index = { .name = topo->name, .digest = topo->digest, .n_gpus = topo->n_ranks, .n_entries = N_ENTRIES,
		.entry = own, .machine = machine ? topo : NULL };
	index.gpu = arena_array(&ctx->run, (size_t)topo->n_ranks, sizeof *index.gpu);
	for (int g = 0; g < topo->n_ranks; g++)
		index.gpu[g] = topo->vertex[g].id;
	for (int e = 0; e < N_ENTRIES; e++) {
		own[e] = entries[e];
		own[e].n = N;
		own[e].gpu = gpus;
		own[e].rate = own[e].bound = 75;
		own[e].trees = own[e].depth = 2;
	}
	index_write(&index, &text);
	write_text(name, text.data, text.size);
	text_free(&text);
}

static const Topology *
write_files(Ctx *ctx)
{
	static const int five[] = { 0, 1, 2, 3, 4 }, high[] = { 10, 12, 14 };
	const Topology *topo = machine(ctx, "topologies/dgx1v.xml"), *larger = machine(ctx, "topologies/dgx2.xml");
	mkdir(in_folder("larger"), 0755);
	write_schedule(ctx, topo, "any.json", gpus, N, ALLREDUCE, -1);
	write_schedule(ctx, topo, "low.json", turned, N, ALLREDUCE, -1);
	write_schedule(ctx, topo, "middle.json", again, N, ALLREDUCE, -1);
	write_schedule(ctx, topo, "broadcast.json", gpus, N, BROADCAST, 1);
	write_schedule(ctx, topo, "reduce.json", gpus, N, REDUCE, 1);
	write_schedule(ctx, topo, "five.json", five, 5, ALLREDUCE, -1);
	write_schedule(ctx, larger, "larger/any.json", high, N, ALLREDUCE, -1);
	write_index(ctx, topo, "index.json", true);
	write_index(ctx, topo, "index.alone.json", false);
	return larger;
}

/* ---- what is chosen ---- */

static const int one[MOST_RANKS], two[] = { 0, 0, 1, 1, 1, 1, 1, 1 };

static struct library *
open_library(const char *paths, int64_t small)
{
	struct library *lib = NULL;
	Ctx ctx;
	ctx_init(&ctx);
	if (library_open(&ctx, paths, small, &lib) != OK) {
		printf("Bail out! %s\n", ctx.error.text);
		exit(1);
	}
	ctx_free(&ctx);
	return lib;
}

static bool
delivers(Ctx *ctx, const Schedule *sched)
{
	struct blinkSchedule s = { .program = NULL };
	blinkComm_t comm;
	Program *prog;
	bool good = sched_lower(ctx, sched, &prog) == OK && exec_program(ctx, prog, "sha256:0", &s.built) == OK;
	s.program = &s.built;
	if (!good || blinkCommCreate(&s, NULL, &comm, NULL) != blinkSuccess)
		return false;
	good = try_call(comm, s.program, -1);
	blinkCommDestroy(comm);
	return good;
}

/* Bytes/s straight from one GPU to another. */
static int64_t
capacity(const Topology *topo, int from, int to)
{
	int64_t sum = 0;
	for (int l = 0; l < topo->n_links; l++)
		sum += topo->link[l].from == from && topo->link[l].to == to ? topo->link[l].capacity : 0;
	return sum;
}

/* Do the ranks of the schedule have the links between them that these GPUs have? */
static bool
fits(const Schedule *sched, const Topology *topo, const int *gpu)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			if (capacity(sched->topo, i, j) != capacity(topo, gpu[i], gpu[j]))
				return false;
	return true;
}

struct expected {
	const char *what;		/* part of Choice.what */
	int64_t from, to;
	bool built_in;
};

static bool
chooses(struct library *lib, const struct job *job, Collective coll, int root, int64_t bytes, struct expected want)
{
	Ctx ctx;
	Choice got = { .what = "" };
	ctx_init(&ctx);
	bool good = library_choose(&ctx, lib, job, coll, root, bytes, &got) == OK && strstr(got.what, want.what)
	    && got.from == want.from && got.to == want.to && !got.sched == want.built_in
	    && strncmp(got.digest, "sha256:", 7) == 0;
	if (good && got.sched)
		good = got.sched->topo->n_ranks == job->n_ranks && got.sched->coll == coll
		    && got.sched->root == (collective_rooted(coll) ? root : -1) && delivers(&ctx, got.sched);
	else if (good)
		good = got.built_in.coll == coll && (!collective_rooted(coll) || got.built_in.root == root);
	if (!good)
		printf("# %s, %lld bytes: \"%s\" for %lld to %lld, want \"%s\" for %lld to %lld %s\n",
		    collective_name(coll), (long long)bytes, got.what, (long long)got.from, (long long)got.to,
		    want.what, (long long)want.from, (long long)want.to, ctx.error.text);
	ctx_free(&ctx);
	return good;
}

static bool
chooses_fitting(struct library *lib, const struct job *job, const Topology *topo, const int *gpu, int64_t bytes)
{
	Ctx ctx;
	Choice got;
	ctx_init(&ctx);
	bool good = library_choose(&ctx, lib, job, ALLREDUCE, -1, bytes, &got) == OK && fits(got.sched, topo, gpu);
	ctx_free(&ctx);
	return good;
}

/* Each at the ends of its range, over these GPUs of the machine. */
static bool
chooses_by_size(struct library *lib, const struct job *job, const Topology *topo, const int *gpu)
{
	static const struct expected want[] = {
		{ "/low.json: ", 0, 1000, false }, { "/middle.json: ", 1001, 50000, false },
		{ "/any.json: ", 50001, 59999, false }, { "/low.json: ", 60000, 90000, false },
		{ "/any.json: ", 90001, INT64_MAX, false }
	};
	bool good = true;
	for (size_t i = 0; i < sizeof want / sizeof *want && good; i++)
		good = chooses(lib, job, ALLREDUCE, -1, want[i].from, want[i])
		    && chooses(lib, job, ALLREDUCE, -1, want[i].to, want[i])
		    && chooses_fitting(lib, job, topo, gpu, want[i].from);
	return good;
}

static void
test_sizes(const Topology *topo)
{
	static const char *const none[] = { "", "", "" }, *const numbers[] = { "2", "0", "1" },
	    *const other[] = { "6", "4", "5" };
	static const int order[] = { 2, 0, 1 }, isomorphic[] = { 6, 4, 5 };
	const char *const ids[] = { topo->vertex[1].id, topo->vertex[2].id, topo->vertex[0].id };
	struct library *lib = open_library(folder, SMALL), *alone = open_library(in_folder("index.alone.json"), SMALL);
	struct job job = { .n_ranks = N, .gpu = none, .server = one, .n_servers = 1 };
	ok(chooses_by_size(lib, &job, topo, gpus), "entries by the size of a message");
	job.gpu = NULL;
	ok(chooses_by_size(lib, &job, topo, gpus), "no GPUs are given: the first ones");
	job.gpu = numbers;
	ok(chooses_by_size(lib, &job, topo, order), "the same GPUs in another order, by number");
	job.gpu = ids;
	ok(chooses_by_size(alone, &job, topo, again), "likewise by id");
	job.gpu = other;
	ok(chooses_by_size(lib, &job, topo, isomorphic), "isomorphic GPUs");
	ok(chooses(alone, &job, ALLREDUCE, -1, 1, (struct expected){ "/index.alone.json has no allreduce over these 3 "
	    "GPUs", 0, SMALL, true }),
	    "none for isomorphic GPUs in an index without its machine");
	struct gpu_card card[N] = { { .known = 1, .number = 2, .shown = 8 }, { .known = 1, .number = 0, .shown = 8 },
	    { .known = 1, .number = 1, .shown = 8 } };
	job.gpu = NULL;
	job.card = card;
	ok(chooses_by_size(alone, &job, topo, order), "by the driver's numbers, without the machine");
	card[1].number = 2;
	bool twice = chooses_by_size(alone, &job, topo, order);
	card[1] = (struct gpu_card){ .known = 1, .number = 0, .shown = 7 };
	ok(!twice && !chooses_by_size(alone, &job, topo, order), "a number twice; a driver that shows other GPUs");
	ok(chooses(alone, &job, ALLREDUCE, -1, 1, (struct expected){ "has no GPUs with the driver's numbers of those "
	    "of this job", 0, SMALL, true }), "it says by what it searched");
	library_close(alone);
	library_close(lib);
}

/* Below BLINK_SMALL on one server the built-in one comes before entries of any size. */
static void
test_small(void)
{
	static const char *const none[] = { "", "", "" };
	struct library *lib = open_library(folder, SMALL), *zero = open_library(folder, 0);
	struct library *empty = open_library("::", 9);
	struct job job = { .n_ranks = N, .gpu = none, .server = one, .n_servers = 1 };
	const struct expected small = { "for small messages", 0, SMALL, true }, no = { "direct", 0, INT64_MAX, true },
	    rest = { "/broadcast.json: ", SMALL + 1, INT64_MAX, false };
	ok(chooses(lib, &job, BROADCAST, 1, SMALL, small) && chooses(lib, &job, BROADCAST, 1, SMALL + 1, rest),
	    "small messages on one server");
	ok(chooses(zero, &job, BROADCAST, 1, 1, (struct expected){ "/broadcast.json: ", 1, INT64_MAX, false }),
	    "BLINK_SMALL 0");
	ok(chooses(lib, &job, REDUCE, 1, 100, (struct expected){ "/reduce.json: ", 0, 100, false })
	    && chooses(lib, &job, REDUCE, 1, 101, (struct expected){ "has it for other sizes, as 0 to 100 bytes", 101,
	    SMALL, true })
	    && chooses(lib, &job, REDUCE, 1, SMALL + 1, (struct expected){ "built in", SMALL + 1, INT64_MAX, true }),
	    "only a range: built-in ones for other sizes");
	ok(chooses(lib, &job, BROADCAST, 0, 1, (struct expected){ "has no broadcast, root 0, over these 3 GPUs",
	    0, SMALL, true }), "another root");
	ok(chooses(lib, &job, ALLTOALL, -1, 5, no), "one built-in form for all sizes of an alltoall");
	ok(chooses(empty, &job, ALLREDUCE, -1, 10, (struct expected){ "onehop over 3 ranks, built in", 10, INT64_MAX,
	    true }),
	    "an empty library");
	job.server = two;
	job.n_servers = 2;
	ok(chooses(lib, &job, BROADCAST, 1, 1, (struct expected){ "/broadcast.json: ", 0, INT64_MAX, false }),
	    "small messages over two servers");
	ok(chooses(lib, &job, ALLGATHER, -1, 1, (struct expected){ "levels over 3", 0, SMALL, true }),
	    "built in over two servers");
	job.n_ranks = 1;
	job.n_servers = 1;
	ok(chooses(lib, &job, ALLTOALL, -1, 1, no), "one rank");
	library_close(lib);
	library_close(zero);
	library_close(empty);
}

/* The machine of the second index has GPUs 10, 12 and 14; schedule files are for any GPUs. */
static void
write_larger(Ctx *ctx, const Topology *larger)
{
	static const int numbers[] = { 10, 12, 14 };
	Text text = { 0 };
	Index index = { .name = larger->name, .digest = larger->digest, .n_gpus = larger->n_ranks, .n_entries = 2 };
	IndexEntry entry[] = { { .n = N, .gpu = gpus, .rank = gpus, .coll = ALLREDUCE, .root = -1, .file = "low.json",
		.rate = 1, .bound = 1, .trees = 1, .depth = 1 }, { .n = N, .gpu = numbers, .rank = gpus,
		.coll = ALLREDUCE, .root = -1, .file = "any.json", .rate = 1, .bound = 1, .trees = 1, .depth = 1 } };
	index.gpu = arena_array(&ctx->run, (size_t)larger->n_ranks, sizeof *index.gpu);
	for (int g = 0; g < larger->n_ranks; g++)
		index.gpu[g] = larger->vertex[g].id;
	index.entry = entry;
	index_write(&index, &text);
	write_text("larger/index.json", text.data, text.size);
	text_free(&text);
	write_schedule(ctx, larger, "larger/low.json", gpus, N, ALLREDUCE, -1);
}

static void
test_order(Ctx *ctx, const Topology *larger)
{
	static const char *const high[] = { "10", "12", "14" }, *const twice[] = { "0", "1", "1" },
	    *const five[] = { "0", "1", "2", "3", "9999999999999" };
	char paths[1000];
	write_larger(ctx, larger);
	snprintf(paths, sizeof paths, "%s:%s:%s:%s", in_folder(""), in_folder("larger"), in_folder("five.json"),
	    in_folder("middle.json"));
	struct library *lib = open_library(paths, 0);
	struct job job = { .n_ranks = N, .gpu = high, .server = one, .n_servers = 1 };
	ok(chooses(lib, &job, ALLREDUCE, -1, 1, (struct expected){ "larger/any.json: ", 1, INT64_MAX, false }),
	    "the index that has the GPUs");
	job.gpu = twice;
	ok(chooses(lib, &job, ALLREDUCE, -1, 1, (struct expected){ "/middle.json: ", 1, INT64_MAX, false }),
	    "no index for a GPU of two ranks, but a schedule file");
	job = (struct job){ .n_ranks = 5, .gpu = five, .server = one, .n_servers = 1 };
	ok(chooses(lib, &job, ALLREDUCE, -1, 1, (struct expected){ "/five.json: ", 1, INT64_MAX, false }),
	    "a schedule file by its number of ranks");
	library_close(lib);
}

/* Why a schedule that was named is not used. */
static void
test_reasons(void)
{
	static const char *const absent[] = { "0", "gpu99", "1" }, *const twice[] = { "0", "2", "2" },
	    *const many[9] = { NULL };
	static const int all[9] = { 0 };
	char paths[1000];
	struct library *file = open_library(in_folder("broadcast.json"), 0), *index = open_library(folder, 0);
	snprintf(paths, sizeof paths, "%s:%s:%s", in_folder("five.json"), in_folder("broadcast.json"),
	    in_folder("reduce.json"));
	struct library *several = open_library(paths, 0);
	struct job job = { .n_ranks = N, .server = one, .n_servers = 1 };
#define SAYS(lib, coll, root, words) chooses(lib, &job, coll, root, 1, (struct expected){ words, 1, INT64_MAX, true })
	ok(SAYS(file, ALLREDUCE, -1, "built in, as /tmp/") && SAYS(file, ALLREDUCE, -1, "/broadcast.json is for "
	    "broadcast, root 1, over 3 ranks"), "a file for another collective");
	ok(SAYS(file, BROADCAST, 2, "is for broadcast, root 1, over 3 ranks"), "for another root");
	ok(SAYS(several, BROADCAST, 2, "as none of the 3 that were named is for it: /tmp/")
	    && SAYS(several, BROADCAST, 2, "/broadcast.json is for"), "of several the nearest is named");
	job.gpu = absent;
	ok(SAYS(index, ALLREDUCE, -1, "has no GPU \"gpu99\" (rank 1)"), "a GPU that the index has not");
	job.gpu = twice;
	ok(SAYS(index, ALLREDUCE, -1, "for rank 2 and one before it"), "a GPU of two ranks");
	job = (struct job){ .n_ranks = 9, .server = all, .n_servers = 1, .gpu = many };
	ok(SAYS(index, ALLREDUCE, -1, "has 8 GPUs, and the job 9 ranks"), "more ranks than GPUs");
	ok(SAYS(several, ALLREDUCE, -1, "/five.json is for allreduce over 5 ranks"), "for another number of ranks");
#undef SAYS
	library_close(file);
	library_close(index);
	library_close(several);
}

/* Both indexes have the job; GPUs by number are in either machine. */
static void
test_machines(const Topology *small, const Topology *larger)
{
	static const struct expected first = { "/any.json: ", 90001, INT64_MAX, false },
	    second = { "larger/low.json: ", 1, INT64_MAX, false }, none = { "onehop over 3 ranks, built in", 1,
		INT64_MAX, true };
	char paths[500], part[MACHINE_BYTES], digits[13];
	struct stated stated[2] = { { 0, "" }, { 2, "" } };
	struct job job = { .n_ranks = N, .server = one, .n_servers = 1, .stated = stated };
	snprintf(paths, sizeof paths, "%s:%s", in_folder(""), in_folder("larger"));
	struct library *lib = open_library(paths, 0);
#define STATES(n, a, b, bytes, want) (job.n_stated = n, snprintf(stated[0].machine, MACHINE_BYTES, "%s", a), \
	snprintf(stated[1].machine, MACHINE_BYTES, "%s", b), chooses(lib, &job, ALLREDUCE, -1, bytes, want))
	snprintf(part, sizeof part, "%.20s", larger->digest);
	snprintf(digits, sizeof digits, "%s", larger->digest + strlen("sha256:"));
	ok(STATES(0, "", "", 100000, first), "no machine is stated: the first index that has the job");
	ok(STATES(1, small->name, "", 100000, first) && STATES(1, larger->name, "", 100000, second),
	    "the index of the machine that is stated, by name");
	ok(STATES(1, larger->digest, "", 1, second) && STATES(1, part, "", 1, second)
	    && STATES(1, digits, "", 1, second), "by digest, whole or cut");
	ok(STATES(2, larger->name, part, 1, second), "stated in two ways");
	digits[11] = 0;
	ok(STATES(1, digits, "", 1, none) && STATES(1, "dgx", "", 1, none), "neither a name nor enough of a digest");
	ok(STATES(1, "odd", "", 1, ((struct expected){ "built in, as no index that was named is of machine odd", 1,
	    INT64_MAX, true })), "no index of that machine");
	ok(STATES(2, small->name, larger->name, 1, ((struct expected){ "built in, as no index is of machine "
	    "dgx1v (rank 0) and of dgx2 (rank 2)", 1, INT64_MAX, true })), "ranks that state different machines");
#undef STATES
	ok(machine_valid("dgx1v") && machine_valid("") && machine_valid("sha256:0123456789ab")
	    && !machine_valid("sha256:0123456789a") && !machine_valid("sha256:0123456789abX"),
	    "what a machine can be stated by");
	library_close(lib);
}

/* ---- what is broken ---- */

static bool
refuses(const char *paths, Status code, const char *words)
{
	struct library *lib = NULL;
	Ctx ctx;
	ctx_init(&ctx);
	Status got = library_open(&ctx, paths, 0, &lib);
	bool good = got == code && strstr(ctx.error.text, words) && !lib;
	if (!good)
		printf("# %d: %s\n", (int)got, ctx.error.text);
	ctx_free(&ctx);
	return good;
}

static bool
fails(struct library *lib, Collective coll, int root, Status code, const char *words)
{
	static const char *const none[] = { "", "", "" };
	struct job job = { .n_ranks = N, .gpu = none, .server = one, .n_servers = 1 };
	Choice got;
	Ctx ctx;
	ctx_init(&ctx);
	Status status = library_choose(&ctx, lib, &job, coll, root, 1, &got);
	bool good = status == code && strstr(ctx.error.text, words);
	if (!good)
		printf("# %d: %s\n", (int)status, ctx.error.text);
	ctx_free(&ctx);
	return good;
}

static void
test_broken(Ctx *ctx, const Topology *topo)
{
	static const char sizes[] = "{ \"format\": \"blink-index\", \"version\": 1, \"topology\": { \"name\": \"x\", ";
	write_text("cut.json", sizes, 30);
	write_text("index.cut.json", sizes, 30);
	write_text("cut2.json", sizes, sizeof sizes - 1);
	ok(refuses(in_folder("absent.json"), IO, "absent.json: No such file"), "a file that is not there");
	ok(refuses(in_folder("larger/absent"), IO, "larger/absent: No such file"), "a directory that is not there");
	ok(refuses("tests", IO, "tests: a directory without index.json"), "a directory without an index");
	ok(refuses(in_folder("cut.json"), BAD_INPUT, "cut.json"), "a file that is cut");
	ok(refuses(in_folder("cut2.json"), BAD_INPUT, "cut2.json"), "an index that is cut");
	ok(refuses(in_folder("index.cut.json"), BAD_INPUT, "index.cut.json"), "an index by its name that is cut");
	ok(refuses("topologies/dgx1v.xml", BAD_INPUT, "dgx1v.xml: a topology: want a schedule"), "a topology");
	ok(refuses("/bin/sh", BAD_INPUT, "/bin/sh: a program or shared object: want a schedule"), "a program");
	struct library *lib = open_library(folder, 0);
	ok(fails(lib, BROADCAST, 3, USAGE, "root: 3: want a rank, 0 to 2"), "a root that is no rank");
	write_schedule(ctx, topo, "broadcast.json", gpus, N, REDUCE, 1);
	ok(fails(lib, BROADCAST, 1, BAD_INPUT, "broadcast.json: reduce over 3 ranks, root 1: want broadcast over 3"),
	    "a file that is for another job than its entry");
	write_text("low.json", sizes, 30);
	ok(fails(lib, ALLREDUCE, -1, BAD_INPUT, "low.json"), "a schedule of an index that is cut");
	unlink(in_folder("reduce.json"));
	ok(fails(lib, REDUCE, 1, IO, "reduce.json: No such file"), "a schedule of an index that is not there");
	library_close(lib);
	lib = open_library(in_folder("middle.json"), 0);
	write_schedule(ctx, topo, "middle.json", gpus, N, REDUCE, 1);
	ok(fails(lib, ALLREDUCE, -1, BAD_INPUT, "middle.json: reduce over 3 ranks, root 1: want allreduce over 3"),
	    "a schedule file that was changed since");
	library_close(lib);
}

/* ---- one rank's part ---- */

static struct library *
open_part(Ctx *ctx, const char *path, int n_ranks, int rank)
{
	struct library *lib = NULL;
	if (library_open_part(ctx, path, 0, n_ranks, rank, &lib) != OK) {
		printf("Bail out! %s\n", ctx->error.text);
		exit(1);
	}
	return lib;
}

/* Has the library read it once, and kept what each of the ranks does? It is gone when it is chosen. */
static bool
keeps_parts(const Text *json, Collective coll, int n)
{
	struct job job = { .n_ranks = n, .server = one, .n_servers = 2 };
	bool good = true;
	for (int r = 0; r < n && good; r++) {
		Ctx ctx;
		Schedule *sched;
		RankProgram *want;
		Choice got = { .what = "" };
		char digest[DIGEST_ROOM];
		ctx_init(&ctx);
		write_text("part.json", json->data, json->size);
		struct library *lib = open_part(&ctx, in_folder("part.json"), n, r);
		unlink(in_folder("part.json"));
		digest_of(json->data, json->size, digest);
		good = library_choose(&ctx, lib, &job, coll, -1, 1 << 20, &got) == OK && got.prog && got.prog->rank == r
		    && strcmp(got.digest, digest) == 0 && strstr(got.what, "part.json: trees, ")
		    && sched_read_compact(&ctx, "x", json->data, json->size, &sched) == OK
		    && sched_project(&ctx, sched, r, &want) == OK
		    && rank_program_fingerprint(want) == rank_program_fingerprint(got.prog);
		library_close(lib);
		ctx_free(&ctx);
	}
	return good;
}

static void
test_parts(Ctx *ctx, const Topology *topo)
{
	static const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct job job = { .n_ranks = 8, .server = one, .n_servers = 2 };
	Text json = { 0 };
	Schedule *sched = schedule_of(ctx, topo, all, 8, ALLREDUCE, -1, false, &json), *compact;
	Choice got = { .what = "" };
	ok(keeps_parts(&json, ALLREDUCE, 8), "of a schedule file that is read once each rank's part is kept");
	write_text("part.json", json.data, json.size);
	struct library *lib = open_part(ctx, in_folder("part.json"), 4, 0);
	job.n_ranks = 4;
	ok(library_choose(ctx, lib, &job, ALLREDUCE, -1, 1 << 20, &got) == OK && !got.sched && !got.prog,
	    "but not of one for more ranks");
	library_close(lib);
	/* The last edge of the last tree ends elsewhere. */
	char *last = strrchr(json.data, ',');
	while (strncmp(last, "[[", 2) != 0 && last > json.data)
		last--;
	json.size = (size_t)(last - json.data);
	json.data[json.size] = 0;
	write_text("part.json", json.data, json.size);
	ctx->error.status = OK;
	ok(library_open_part(ctx, in_folder("part.json"), 0, 8, 0, &lib) == BAD_INPUT
	    && strstr(ctx->error.text, "part.json:"), "one that is cut is refused");
	ctx->error.status = OK;
	text_free(&json);
	if (compile_compact(ctx, "x", sched, &compact) == OK) {
		sched_write_json(compact, &json);
		ok(keeps_parts(&json, ALLREDUCE, 8), "of a compact file, too");
		text_free(&json);
	} else {
		ok(false, "of a compact file, too");
	}
}

/* ---- ranges in an index ---- */

static bool
reads(const char *bytes, const char *words)
{
	Ctx ctx;
	Index *index = NULL;
	char json[2000];
	snprintf(json, sizeof json, "{ \"format\": \"blink-index\", \"version\": 1, \"topology\": { \"name\": \"x\", "
	    "\"digest\": \"sha256:0\", \"gpus\": [\"a\", \"b\"] }, \"schedules\": [%s] }", bytes);
	ctx_init(&ctx);
	Status status = index_read(&ctx, "index", json, strlen(json), &index);
	bool good = words ? status == BAD_INPUT && strstr(ctx.error.text, words) : status == OK;
	if (!good)
		printf("# %d: %s\n", (int)status, ctx.error.text);
	if (good && !words) {
		Text text = { 0 }, more = { 0 };
		Index *same;
		index_write(index, &text);
		good = index_read(&ctx, "index", text.data, text.size, &same) == OK && index_same_entries(index, same);
		index_write(same, &more);
		good = good && text.size == more.size && memcmp(text.data, more.data, text.size) == 0;
		text_free(&text);
		text_free(&more);
	}
	ctx_free(&ctx);
	return good;
}

#define ENTRY(more)                                                            \
	"{ \"gpus\": [0, 1], \"collective\": \"allreduce\", \"root\": null, " more                          \
	"\"file\": \"f.json\", \"ranks\": [0, 1], \"rate\": 1, \"bound\": 1, \"trees\": 1, \"depth\": 1 }"

static void
test_ranges(void)
{
	ok(reads(ENTRY("") ", " ENTRY("\"bytes\": [1, 1], ") ", " ENTRY("\"bytes\": [2, 9007199254740992], "), NULL),
	    "ranges that do not overlap");
	ok(reads(ENTRY("\"bytes\": [5, 8], ") ", " ENTRY("\"bytes\": [0, 4], "), NULL), "ranges in any order");
	ok(reads(ENTRY("") ", " ENTRY(""), "two entries for the same GPUs"), "two entries without a range");
	ok(reads(ENTRY("\"bytes\": [5, 8], ") ", " ENTRY("\"bytes\": [0, 5], "), "two entries for 5 bytes of the same"),
	    "ranges that share a size");
	ok(reads(ENTRY("\"bytes\": [5, 8], ") ", " ENTRY("\"bytes\": [5, 8], "), "two entries for 5 bytes"),
	    "equal ranges");
	ok(reads(ENTRY("\"bytes\": [0, 99], ") ", " ENTRY("\"bytes\": [5, 8], "), "two entries for 5 bytes"),
	    "a range in another");
	ok(reads(ENTRY("\"bytes\": [9, 8], "), "schedules[0].bytes[0]: 9: want at most its end, 8"),
	    "an end before its start");
	ok(reads(ENTRY("\"bytes\": [9], "), "schedules[0].bytes: an array: want two numbers"), "one number");
	ok(reads(ENTRY("\"bytes\": 9, "), "schedules[0].bytes: 9: want two numbers"), "no array");
	ok(reads(ENTRY("\"bytes\": [-1, 8], "), "schedules[0].bytes[0]: -1"), "a number below 0");
	ok(reads(ENTRY("\"bytes\": [0, 1e300], "), "schedules[0].bytes[1]: 1e+300"), "a number too large");
	ok(reads(ENTRY("\"bytes\": [0, 1.5], "), "schedules[0].bytes[1]: 1.5"), "half a byte");
	ok(reads(ENTRY("\"bytes\": [0, \"8\"], "), "schedules[0].bytes[1]: \"8\""), "a text");
}

/* blinkIndexFind knows no size. */
static void
test_find(void)
{
	static const int other[] = { 6, 4, 5 };
	blinkIndex_t index;
	blinkIndexEntry_t any, largest, as;
	bool good = blinkIndexLoad(folder, &index, NULL) == blinkSuccess
	    && blinkIndexGetEntry(index, gpus, N, blinkCollAllReduce, 0, &any, NULL, NULL) == blinkSuccess
	    && blinkIndexGetEntry(index, other, N, blinkCollAllReduce, 0, &as, NULL, NULL) == blinkSuccess
	    && blinkIndexGetEntry(index, gpus, N, blinkCollReduce, 1, &largest, NULL, NULL) == blinkSuccess;
	ok(good && strcmp(any.file, "any.json") == 0 && strcmp(as.file, "any.json") == 0
	    && strcmp(largest.file, "reduce.json") == 0, "without a size: the entry for any, else for the largest");
	blinkIndexDestroy(index);
}

int
main(int argc, char **argv)
{
	static char made[] = "/tmp/test_library.XXXXXX";
	char command[100];
	Ctx ctx;
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(300);
	folder = mkdtemp(made);
	if (!folder)
		return 1;
	ctx_init(&ctx);
	const Topology *larger = write_files(&ctx), *topo = machine(&ctx, "topologies/dgx1v.xml");
	test_sizes(topo);
	test_small();
	test_order(&ctx, larger);
	test_reasons();
	test_machines(topo, larger);
	test_find();
	test_ranges();
	test_broken(&ctx, topo);
	test_parts(&ctx, machine(&ctx, "topologies/dgx-a100.xml"));
	ctx_free(&ctx);
	snprintf(command, sizeof command, "rm -r %s", folder);
	int failed = end_tests();
	return system(command) != 0 || failed;
}
