/* The lookup file of an index finds what the index in JSON finds, of random indexes: every job that they have, jobs
 * that they have not, and the files to try for isomorphic jobs. It is not taken for another index; and whatever its
 * bytes are, what comes of it is within its limits. */
#include "base/file.h"
#include "format/format.h"
#include "quick.h"
#include "random.h"
#include "schedule/schedule.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_GPUS = 300, MOST_ENTRIES = 400, MOST_SET = 6 };

static const char *folder;
static int n_failed;

static void
ok(bool good, const char *name)
{
	n_failed += report(!good, name);
}

static const char *
in_folder(const char *name)
{
	static char path[2][200];
	static int turn;
	turn ^= 1;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static void
write_bytes(const char *name, const char *data, size_t size)
{
	FILE *file = fopen(in_folder(name), "wb");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
		printf("Bail out! %s: not written\n", name);
		exit(1);
	}
}

/* ---- random indexes ---- */

/* n distinct numbers below most, in any order. */
static int *
draw(Ctx *ctx, int n, int most)
{
	int *value = arena_array(&ctx->run, (size_t)n, sizeof *value);
	for (int i = 0; i < n;) {
		bool again = false;
		value[i] = below(most);
		for (int k = 0; k < i; k++)
			again |= value[k] == value[i];
		i += !again;
	}
	return value;
}

static const char *
some_file(Ctx *ctx)
{
	static const char *const folders[] = { "a", "allreduce/0-3", "\xc3\xa9/b" };
	char path[64];
	snprintf(path, sizeof path, "%s.%d.json", folders[below(3)], below(9));
	return arena_text(&ctx->run, path, strlen(path));
}

/* A job, and of it one entry or some with ranges of sizes. */
static void
add_job(Ctx *ctx, Index *index)
{
	int n = 2 + below(index->n_gpus < MOST_SET ? index->n_gpus - 1 : MOST_SET - 1);
	int ranges = below(3) ? 0 : 1 + below(3);
	IndexEntry job = { .n = n, .gpu = draw(ctx, n, below(2) || index->n_gpus < 8 ? index->n_gpus : 8),
		.rank = draw(ctx, n, n), .coll = (Collective)below(N_COLLECTIVES), .root = -1 };
	job.root = collective_rooted(job.coll) ? below(n) : -1;
	for (int i = 0; i < index->n_entries; i++)
		if (index_job_order(&index->entry[i], &job) == 0)
			return;
	for (int i = 0; i <= ranges && index->n_entries < MOST_ENTRIES; i++) {
		IndexEntry *entry = &index->entry[index->n_entries];
		*entry = job;
		entry->file = some_file(ctx);
		entry->rate = below(1000) / 8.0;
		entry->bound = below(7) * 1e14;
		entry->trees = 1 + below(9);
		entry->depth = 1 + below(9);
		entry->form = below(4) ? (uint64_t)(1 + below(4)) << 60 | 7 : 0;
		entry->sized = i > 0;
		entry->from = i > 0 ? 100 * i : 0;
		entry->to = i == 3 ? LIMIT_MESSAGE : i > 0 ? 100 * i + 99 : 0;
		index->n_entries += i > 0 || ranges == 0 || below(2);
	}
}

static void
make_index(Ctx *ctx, int n_gpus, int n_jobs, Index *index)
{
	*index = (Index){ .name = "machine", .digest = "sha256:0", .n_gpus = n_gpus };
	index->gpu = arena_array(&ctx->run, (size_t)n_gpus, sizeof *index->gpu);
	index->entry = arena_array(&ctx->run, MOST_ENTRIES + 1, sizeof *index->entry);
	for (int g = 0; g < n_gpus; g++) {
		char id[16];
		snprintf(id, sizeof id, "gpu%d", g);
		index->gpu[g] = arena_text(&ctx->run, id, strlen(id));
	}
	for (int j = 0; j < n_jobs; j++)
		add_job(ctx, index);
}

/* ---- the same answers ---- */

static bool
same_entry(const IndexEntry *a, const IndexEntry *b)
{
	size_t ints = (size_t)a->n * sizeof(int);
	return a->n == b->n && memcmp(a->gpu, b->gpu, ints) == 0 && memcmp(a->rank, b->rank, ints) == 0
	    && a->coll == b->coll && a->root == b->root && a->sized == b->sized && a->from == b->from
	    && a->to == b->to && text_same(a->file, b->file) && a->rate == b->rate && a->bound == b->bound
	    && a->trees == b->trees && a->depth == b->depth && a->form == b->form;
}

static bool
same_job(Ctx *ctx, const Index *index, const Lookup *lookup, const IndexEntry *want, int *found)
{
	const IndexEntry *by_json, *by_lookup;
	int n, n_lookup;
	by_json = index_job(index, want, &n);
	if (lookup_job(ctx, lookup, want, &by_lookup, &n_lookup) != OK || n != n_lookup || !by_json != !by_lookup)
		return false;
	bool same = true;
	for (int i = 0; i < n && by_json; i++)
		same = same && same_entry(&by_json[i], &by_lookup[i]);
	*found += by_json != NULL;
	return same;
}

static bool
same_candidates(Ctx *ctx, const Index *index, const Lookup *lookup, Collective coll, int n, uint64_t form, int *found)
{
	const IndexEntry **by_json, **by_lookup;
	int n_json, n_lookup;
	if (index_candidates(ctx, index, coll, n, form, &by_json, &n_json) != OK
	    || lookup_candidates(ctx, lookup, coll, n, form, &by_lookup, &n_lookup) != OK || n_json != n_lookup)
		return false;
	bool same = true;
	for (int i = 0; i < n_json; i++)
		same = same && same_entry(by_json[i], by_lookup[i]);
	*found += n_json;
	return same;
}

/* Writes both files; false: something failed. */
static bool
write_both(Ctx *ctx, const Index *index, Text *json, Text *bytes)
{
	Text again = { 0 };
	index_write(index, json);
	bool good = lookup_write(ctx, index, json->data, json->size, bytes) == OK
	    && lookup_write(ctx, index, json->data, json->size, &again) == OK && again.size == bytes->size
	    && memcmp(again.data, bytes->data, bytes->size) == 0;
	text_free(&again);
	write_bytes("index.json", json->data, json->size);
	write_bytes("index.lookup", bytes->data, bytes->size);
	return good;
}

static bool
agrees(Ctx *ctx, const Index *index, const Lookup *lookup)
{
	int jobs = 0, candidates = 0;
	bool good = lookup_entries(lookup) == index->n_entries;
	for (int i = 0; i < index->n_entries; i++)
		good = good && same_job(ctx, index, lookup, &index->entry[i], &jobs);
	for (int i = 0; i < 200; i++) {
		int n = 2 + below(index->n_gpus - 1 < MOST_SET ? index->n_gpus - 1 : MOST_SET);
		IndexEntry want = { .n = n, .gpu = draw(ctx, n, index->n_gpus) };
		want.coll = (Collective)below(N_COLLECTIVES);
		want.root = below(3) - 1;
		good = good && same_job(ctx, index, lookup, &want, &jobs);
	}
	for (int coll = 0; coll < N_COLLECTIVES; coll++)
		for (int n = 2; n <= MOST_SET + 1; n++)
			for (int form = 0; form < 6; form++)
				good = good && same_candidates(ctx, index, lookup, (Collective)coll, n,
				    form ? (uint64_t)form << 60 | 7 : 0, &candidates);
	return good && jobs >= index->n_entries && (candidates > 0 || index->n_entries == 0);
}

static bool
same_as_json(int n_gpus, int n_jobs)
{
	Ctx ctx;
	Index made, *index, *head;
	Lookup *lookup = NULL;
	Text json = { 0 }, bytes = { 0 };
	ctx_init(&ctx);
	make_index(&ctx, n_gpus, n_jobs, &made);
	bool good = write_both(&ctx, &made, &json, &bytes)
	    && index_read(&ctx, "index", json.data, json.size, &index) == OK;
	int fd = open(in_folder("index.json"), O_RDONLY);
	good = good && lookup_open(&ctx, in_folder("index.lookup"), fd, &lookup, &head) == OK && lookup
	    && head->n_gpus == n_gpus && agrees(&ctx, index, lookup);
	if (ctx.error.status != OK)
		printf("# %s\n", ctx.error.text);
	lookup_close(lookup);
	close(fd);
	text_free(&json);
	text_free(&bytes);
	ctx_free(&ctx);
	return good;
}

static void
test_same(void)
{
	static const int gpus[] = { 2, 3, 8, 256, 257, MOST_GPUS };
	int rounds = quick_check() ? 3 : 12;
	for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
		char name[80];
		bool good = same_as_json(gpus[g], 0);
		for (int round = 0; round < rounds; round++)
			good = good && same_as_json(gpus[g], 1 + below(120));
		snprintf(name, sizeof name, "of %d GPUs: what the JSON finds", gpus[g]);
		ok(good, name);
	}
}

/* ---- other files ---- */

/* -1: an error; 0: not taken; 1: taken, and all that is asked of it is within its limits. */
static int
uses(const Index *index)
{
	Ctx ctx;
	Index *head;
	Lookup *lookup;
	ctx_init(&ctx);
	int fd = open(in_folder("index.json"), O_RDONLY), result = 0;
	Status status = lookup_open(&ctx, in_folder("index.lookup"), fd, &lookup, &head);
	for (int i = 0; status == OK && lookup && i < index->n_entries; i++) {
		const IndexEntry *found, **list;
		int n, n_list;
		status = lookup_job(&ctx, lookup, &index->entry[i], &found, &n);
		for (int k = 0; status == OK && k < n; k++)
			for (int r = 0; r < found[k].n; r++)
				result |= (unsigned)found[k].rank[r] >= (unsigned)found[k].n ? 2 : 0;
		if (status == OK)
			status = lookup_candidates(&ctx, lookup, index->entry[i].coll, index->entry[i].n, 0, &list,
			    &n_list);
	}
	if (status != OK && !strstr(ctx.error.text, "index.lookup: "))
		result |= 2;
	result = result & 2 ? 2 : status != OK ? -1 : lookup != NULL;
	lookup_close(status == OK ? lookup : NULL);
	close(fd);
	ctx_free(&ctx);
	return result;
}

static void
set_time(const char *name, int seconds)
{
	struct timespec when[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
	utimensat(AT_FDCWD, in_folder(name), when, 0);
}

static void
test_stale(const Index *index, const Text *json, const Text *bytes)
{
	char *other = malloc(json->size);
	ok(uses(index) == 1, "the lookup file is taken");
	set_time("index.json", 2000);
	set_time("index.lookup", 1000);
	ok(uses(index) == 1, "older than its index, with its digest");
	memcpy(other, json->data, json->size);
	memcpy(strstr(other, "machine"), "nothing", 7);
	write_bytes("index.json", other, json->size);
	set_time("index.json", 2000);
	ok(uses(index) == 0, "older than its index, of the same size, with another digest");
	write_bytes("index.json", json->data, json->size - 1);
	set_time("index.lookup", 3000);
	ok(uses(index) == 0, "younger than its index, of another size");
	write_bytes("index.json", json->data, json->size);
	write_bytes("index.lookup", bytes->data, bytes->size);
	free(other);
}

static void
test_broken(const Index *index, const Text *bytes)
{
	int wrong = 0, taken = 0, refused = 0;
	char *broken = malloc(bytes->size);
	size_t step = quick_check() ? 4 : 1;
	for (size_t size = 0; size < bytes->size; size += step * (1 + (size_t)below(16))) {
		write_bytes("index.lookup", bytes->data, size);
		wrong += uses(index) != 0;
	}
	ok(wrong == 0, "cut short anywhere, it is not taken");
	wrong = 0;
	for (size_t at = 0; at < bytes->size; at += step) {
		memcpy(broken, bytes->data, bytes->size);
		broken[at] = (char)(below(2) ? ~broken[at] : broken[at] ^ 1 << below(8));
		write_bytes("index.lookup", broken, bytes->size);
		int result = uses(index);
		wrong += result == 2;
		taken += result == 1;
		refused += result == -1;
	}
	ok(wrong == 0 && taken > 0 && refused > 0,
	    "with any byte changed, it finds what is within limits, or says where");
	write_bytes("index.lookup", bytes->data, bytes->size);
	free(broken);
}

/* While it is open. */
static void
test_changed(const Index *index, const Text *bytes)
{
	Ctx ctx;
	Index *head;
	Lookup *lookup = NULL;
	const IndexEntry *found;
	int n, fd = open(in_folder("index.json"), O_RDONLY);
	ctx_init(&ctx);
	bool good = lookup_open(&ctx, in_folder("index.lookup"), fd, &lookup, &head) == OK && lookup
	    && truncate(in_folder("index.lookup"), (off_t)bytes->size / 2) == 0;
	ok(good && lookup_job(&ctx, lookup, &index->entry[0], &found, &n) == IO
	    && strstr(ctx.error.text, "changed since"), "cut short while it is open: an error, and no signal");
	ctx.error = (Error){ .status = OK };
	lookup_close(lookup);
	write_bytes("index.lookup", bytes->data, bytes->size);
	lookup = NULL;
	good = lookup_open(&ctx, in_folder("index.lookup"), fd, &lookup, &head) == OK && lookup
	    && unlink(in_folder("index.lookup")) == 0;
	ok(good && lookup_job(&ctx, lookup, &index->entry[0], &found, &n) == OK && n > 0,
	    "removed while it is open: still there");
	lookup_close(lookup);
	close(fd);
	ctx_free(&ctx);
}

int
main(void)
{
	char made[] = "/tmp/blink-test-XXXXXX", command[64];
	Ctx ctx;
	Index index;
	Text json = { 0 }, bytes = { 0 };
	setvbuf(stdout, NULL, _IOLBF, 0);
	folder = mkdtemp(made);
	test_same();
	ctx_init(&ctx);
	make_index(&ctx, 8, 12, &index);
	ok(write_both(&ctx, &index, &json, &bytes), "the same bytes again");
	test_stale(&index, &json, &bytes);
	test_broken(&index, &bytes);
	test_changed(&index, &bytes);
	text_free(&json);
	text_free(&bytes);
	ctx_free(&ctx);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		printf("# %s is left behind\n", folder);
	return n_failed != 0;
}
