/* The schedules of a machine, by the GPUs of a job. An index has entries for lists of GPUs. If it has none for the
 * job's list, it may have one for the same GPUs in ascending order, whose ranks are then renumbered; else, if it has
 * the machine, for GPUs that are joined in the same way. So a job of the index is found, and then, of the entries for
 * that job, the one for the size of the message. */
#include "choose/index.h"
#include "base/file_read.h"
#include "choose/read.h"
#include "graph/isomorphism.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void
index_unload(struct blinkIndex *index)
{
	lookup_close(index->lookup);
	ctx_free(&index->ctx);
}

/* ---- load ---- */

/* *file: the index itself; *directory: the one that has it. */
static Status
find_paths(Ctx *ctx, const char *path, const char **file, const char **directory)
{
	struct stat there;
	size_t n = strlen(path);
	const char *slash = strrchr(path, '/');
	char *made;
	if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) {
		TRY(NEW(ctx, made, n + sizeof "/index.json"));
		memcpy(made, path, n);
		strcpy(made + n, n > 0 && path[n - 1] == '/' ? "index.json" : "/index.json");
		*file = made;
		*directory = path;
	} else {
		*file = path;
		*directory = slash == path ? "/" : slash ? path : ".";
		n = slash > path ? (size_t)(slash - path) : strlen(*directory);
	}
	*directory = arena_text(&ctx->run, *directory, n);
	return *directory ? OK : fail_memory(ctx);
}

/* The entries of `fd` are searched in the lookup file beside it, if there is one that was made from it. */
static Status
read_index(struct blinkIndex *index, const char *path, int fd, Index **out)
{
	Ctx *ctx = &index->ctx;
	Text text = { 0 };
	const char *beside;
	TRY(lookup_path(ctx, path, &beside));
	if (beside)
		TRY(lookup_open(ctx, beside, fd, &index->lookup, out));
	if (index->lookup)
		return OK;
	Status status = file_rest(ctx, path, fd, &text);
	if (status == OK)
		status = index_read(ctx, path, text.data ? text.data : "", text.size, out);
	text_free(&text);
	return status;
}

Status
index_load(struct blinkIndex *index, const char *path)
{
	Ctx *ctx = &index->ctx;
	Index *read;
	const char *asked = path;
	TRY(find_paths(ctx, path, &path, &index->info.directory));
	int fd;
	if (asked != path && access(path, F_OK) != 0 && errno == ENOENT)
		return fail(ctx, IO, "%s: a directory without index.json: want one that blinkc batch wrote", asked);
	TRY(file_open(ctx, path, &fd));
	Status status = read_index(index, path, fd, &read);
	close(fd);
	TRY(status);
	const char *slash = strrchr(path, '/');
	index->index = read;
	index->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	index->file = arena_text(&ctx->run, slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
	if (!index->file)
		return fail_memory(ctx);
	index->info = (blinkIndexInfo_t){ .nGpus = read->n_gpus, .gpus = read->gpu, .topology = read->name,
	    .digest = read->digest, .directory = index->info.directory,
	    .nSchedules = index->lookup ? lookup_entries(index->lookup) : read->n_entries };
	return OK;
}

/* ---- find ---- */

struct ranked {
	int gpu, rank;
};

static int
by_gpu(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

static Status
check_job(Ctx *ctx, const Index *index, const int *gpus, int n, int collective, int root)
{
	if (n < 2 || n > index->n_gpus)
		return fail(ctx, USAGE, "nGpus: %d: want 2 to %d", n, index->n_gpus);
	for (int i = 0; i < n; i++)
		if (gpus[i] < 0 || gpus[i] >= index->n_gpus)
			return fail(ctx, USAGE, "gpus[%d]: %d: want 0 to %d", i, gpus[i], index->n_gpus - 1);
	if (collective < 0 || collective >= N_COLLECTIVES)
		return fail(ctx, USAGE, "collective: %d: want 0 to %d", collective, N_COLLECTIVES - 1);
	if (collective_rooted((Collective)collective) && (root < 0 || root >= n))
		return fail(ctx, USAGE, "root: %d: want a rank, 0 to %d", root, n - 1);
	return OK;
}

/* The job with its GPUs in ascending order, as the index may have it, and the new number of each rank. */
static Status
sort_job(Ctx *ctx, const int *gpus, IndexEntry *want, int *place)
{
	struct ranked *sorted;
	int *gpu, root = want->root;
	TRY(TEMP(ctx, sorted, want->n));
	TRY(TEMP(ctx, gpu, want->n));
	for (int i = 0; i < want->n; i++)
		sorted[i] = (struct ranked){ gpus[i], i };
	qsort(sorted, (size_t)want->n, sizeof *sorted, by_gpu);
	for (int i = 0; i < want->n; i++) {
		if (i > 0 && sorted[i].gpu == sorted[i - 1].gpu)
			return fail(ctx, USAGE, "gpus: %d: given twice: want each once", sorted[i].gpu);
		gpu[i] = sorted[i].gpu;
		place[sorted[i].rank] = i;
	}
	want->gpu = gpu;
	want->root = root < 0 ? -1 : place[root];
	return OK;
}

Status
index_path(Ctx *ctx, const struct blinkIndex *index, const IndexEntry *entry, char **out)
{
	size_t n = strlen(index->info.directory) + strlen(entry->file) + sizeof "/";
	TRY(NEW(ctx, *out, n));
	snprintf(*out, n, "%s/%s", index->info.directory, entry->file);
	return OK;
}

/* Is the job that of a file? rank: as it is in the file. */
static Status
match_file(Ctx *ctx, const struct blinkIndex *index, const IndexEntry *entry, const Topology *job, int root, int *rank,
    bool *found)
{
	char *path;
	Schedule *sched;
	Text text = { 0 };
	int fd;
	TRY(index_path(ctx, index, entry, &path));
	TRY(file_open_regular(ctx, path, &fd));
	Status status = file_rest(ctx, path, fd, &text);
	close(fd);
	if (status == OK)
		status = sched_read(ctx, path, text.data ? text.data : "", text.size, &sched);
	text_free(&text);
	if (status == OK && index_same_job(entry, sched))
		status = index_match(ctx, path, job, root, sched, rank, found);
	return status;
}

/* The entries of a job, as index_job gives them. */
static Status
entries_of(Ctx *ctx, const struct blinkIndex *index, const IndexEntry *want, const IndexEntry **out, int *n)
{
	if (index->lookup)
		return lookup_job(ctx, index->lookup, want, out, n);
	*out = index_job(index->index, want, n);
	return OK;
}

static Status
candidates_of(Ctx *ctx, const struct blinkIndex *index, const IndexEntry *asked, uint64_t form,
    const IndexEntry ***out, int *n)
{
	if (index->lookup)
		return lookup_candidates(ctx, index->lookup, asked->coll, asked->n, form, out, n);
	return index_candidates(ctx, index->index, asked->coll, asked->n, form, out, n);
}

/* The index does not list the job. If it has the machine, the job's links say to which one it is isomorphic. *out:
 * NULL: none. */
static Status
find_isomorphic(Ctx *ctx, const struct blinkIndex *index, const IndexEntry *asked, const IndexEntry **out, int *rank)
{
	const Index *in = index->index;
	const IndexEntry **candidate;
	Topology *job;
	uint64_t form;
	int n;
	bool found = false;
	*out = NULL;
	if (!in->machine)
		return OK;
	Status status = topo_of_index_job(ctx, in, in->machine, asked->gpu, asked->n, &job);
	if (status == INFEASIBLE)
		ctx->error = (Error){ .status = OK };
	if (status != OK)
		return status == INFEASIBLE ? OK : status;
	limit_steps(ctx, LIMIT_MATCH_STEPS);
	TRY(topo_invariant(ctx, job, asked->root, &form));
	TRY(candidates_of(ctx, index, asked, form, &candidate, &n));
	for (int i = 0; i < n && !found; i++) {
		TRY(match_file(ctx, index, candidate[i], job, asked->root, rank, &found));
		*out = found ? candidate[i] : NULL;
	}
	return OK;
}

Status
index_find_job(Ctx *ctx, const struct blinkIndex *index, const int *gpus, int n, int collective, int root,
    struct indexed_job *out)
{
	const IndexEntry *match;
	int *place;
	*out = (struct indexed_job){ .index = index };
	TRY(check_job(ctx, index->index, gpus, n, collective, root));
	IndexEntry asked = { .n = n, .gpu = gpus, .coll = (Collective)collective };
	asked.root = collective_rooted(asked.coll) ? root : -1;
	IndexEntry sorted = asked;
	TRY(NEW(ctx, out->rank, n));
	TRY(TEMP(ctx, place, n));
	TRY(sort_job(ctx, gpus, &sorted, place));
	TRY(entries_of(ctx, index, &asked, &out->entry, &out->n_entries));
	bool as_asked = out->entry != NULL;
	if (!as_asked)
		TRY(entries_of(ctx, index, &sorted, &out->entry, &out->n_entries));
	for (int i = 0; i < n && out->entry; i++)
		out->rank[i] = out->entry->rank[as_asked ? i : place[i]];
	if (out->entry)
		return OK;
	TRY(find_isomorphic(ctx, index, &asked, &match, out->rank));
	if (!match)
		return OK;
	TRY(entries_of(ctx, index, match, &out->entry, &out->n_entries));
	if (!out->entry)
		return fail(ctx, BAD_INPUT, "%s: entries out of order", index->info.directory);
	return index_rank_again(ctx, match, out->entry, out->rank);
}

Status
index_choose(Ctx *ctx, const struct indexed_job *job, int64_t size, const IndexEntry **out, int **rank)
{
	*out = index_of_size(job->entry, job->n_entries, size);
	if (!*out)
		return OK;
	TRY(NEW(ctx, *rank, (*out)->n));
	memcpy(*rank, job->rank, (size_t)(*out)->n * sizeof **rank);
	return index_rank_again(ctx, job->entry, *out, *rank);
}
