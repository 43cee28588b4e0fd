#include "perf/find.h"
#include "model/gpu_list.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int
fail_gpus(const blinkIndexInfo_t *info, const GpuListError *error)
{
	switch (error->fault) {
	case GPU_LIST_UNKNOWN:
		return complain(USAGE,
		    "--gpus: \"%.*s\": %s has no such GPU: want an index 0 to %d, a range as 0-%d, or an id, as %s",
		    error->length, error->found, info->topology, info->nGpus - 1, info->nGpus - 1, info->gpus[0]);
	case GPU_LIST_TWICE:
		return complain(USAGE, "--gpus: %s is given twice: want each GPU once", info->gpus[error->gpu]);
	default:
		return complain(USAGE, "--gpus: \"%.*s\": want %s", error->length, error->found,
		    gpu_list_wanted(error->fault));
	}
}

/* gpu: room for those of the machine. */
static int
read_gpus(const struct options *opt, const blinkIndexInfo_t *info, int *gpu, int *n)
{
	const GpuNames names = { .n = info->nGpus, .id = info->gpus };
	GpuListError error;
	for (*n = 0; *n < info->nGpus && !opt->gpus; (*n)++)
		gpu[*n] = *n;
	if (!opt->gpus)
		return 0;
	bool *seen = calloc((size_t)info->nGpus, sizeof *seen);
	if (!seen)
		return complain(blinkOutOfMemory, "out of memory");
	*n = gpu_list_parse(&names, opt->gpus, strlen(opt->gpus), true, seen, gpu, &error);
	free(seen);
	return *n < 0 ? fail_gpus(info, &error) : 0;
}

/* A rank of the job, or the id of one of its GPUs, which wins. */
static int
read_root(const struct options *opt, const blinkIndexInfo_t *info, const int *gpu, int n, int *out)
{
	const char *text = opt->root ? opt->root : "0";
	for (int r = 0; r < n; r++) {
		if (strcmp(info->gpus[gpu[r]], text) == 0) {
			*out = r;
			return 0;
		}
	}
	size_t digits = strspn(text, "0123456789");
	*out = digits > 0 && digits < 10 && !text[digits] ? atoi(text) : n;
	return *out < n ? 0 : complain(USAGE,
	    "--root: %.80s: want a rank, 0 to %d, or the id of a GPU of the job, as %s", text, n - 1,
	    info->gpus[gpu[0]]);
}

static int
find_job(const struct options *opt, blinkIndex_t index, int *gpu, blinkSchedule_t *sched, char **path)
{
	blinkIndexInfo_t info;
	blinkIndexEntry_t entry;
	blinkError_t error;
	int n, root;
	blinkIndexGetInfo(index, &info);
	int code = read_gpus(opt, &info, gpu, &n);
	if (!code)
		code = read_root(opt, &info, gpu, n, &root);
	if (code)
		return code;
	blinkCollective_t collective = opt->collective < 0 ? blinkCollAllReduce : (blinkCollective_t)opt->collective;
	blinkResult_t result = blinkIndexGetEntry(index, gpu, n, collective, root, &entry, NULL, &error);
	if (!result)
		result = blinkIndexFind(index, gpu, n, collective, root, sched, &error);
	if (result)
		return complain((int)result, "%s", error.text);
	size_t room = strlen(info.directory) + strlen(entry.file) + sizeof "/";
	*path = malloc(room);
	if (!*path)
		return complain(blinkOutOfMemory, "out of memory");
	snprintf(*path, room, "%s/%s", info.directory, entry.file);
	return 0;
}

static int
find_in_index(const struct options *opt, blinkSchedule_t *sched, char **path)
{
	blinkIndex_t index;
	blinkIndexInfo_t info;
	blinkError_t error;
	blinkResult_t result = blinkIndexLoad(opt->path, &index, &error);
	if (!result && opt->without) {
		blinkIndex_t left;
		result = blinkIndexWithout(index, opt->without, &left, &error);
		blinkIndexDestroy(index);
		index = left;
	}
	if (result)
		return complain((int)result, "%s", error.text);
	blinkIndexGetInfo(index, &info);
	int *gpu = calloc((size_t)info.nGpus + 1, sizeof *gpu);
	int code = gpu ? find_job(opt, index, gpu, sched, path) : complain(blinkOutOfMemory, "out of memory");
	free(gpu);
	blinkIndexDestroy(index);
	return code;
}

int
find_schedule(const struct options *opt, blinkSchedule_t *sched, char **path)
{
	blinkError_t error;
	struct stat there;
	if (opt->gpus || opt->without || opt->root || opt->collective >= 0
	    || (stat(opt->path, &there) == 0 && S_ISDIR(there.st_mode)))
		return find_in_index(opt, sched, path);
	bool input = strcmp(opt->path, "-") == 0;
	blinkResult_t result = input ? blinkScheduleLoadData("/dev/stdin", sched, &error)
	    : opt->data_only ? blinkScheduleLoadData(opt->path, sched, &error)
	    : blinkScheduleLoad(opt->path, sched, &error);
	if (result)
		return complain((int)result, "%s", error.text);
	*path = strdup(opt->path);
	return *path ? 0 : complain(blinkOutOfMemory, "out of memory");
}

/* ---- of a job ---- */

static int
copy_gpus(const struct options *opt, const blinkIndexInfo_t *info, char **gpus)
{
	int n, *gpu = calloc((size_t)info->nGpus + 1, sizeof *gpu);
	int code = gpu ? read_gpus(opt, info, gpu, &n) : complain(blinkOutOfMemory, "out of memory");
	if (!code && n != opt->ranks)
		code = complain(USAGE, "--gpus: %d GPUs: want one for each of the %d ranks", n, (int)opt->ranks);
	for (int r = 0; !code && r < n; r++) {
		gpus[r] = strdup(info->gpus[gpu[r]]);
		if (!gpus[r])
			code = complain(blinkOutOfMemory, "out of memory");
	}
	free(gpu);
	return code;
}

int
find_job_gpus(const struct options *opt, char ***gpus)
{
	blinkIndex_t index;
	blinkIndexInfo_t info;
	blinkError_t error;
	*gpus = NULL;
	if (!opt->gpus)
		return 0;
	blinkResult_t result = blinkIndexLoad(opt->path, &index, &error);
	if (result)
		return complain((int)result, "%s", error.text);
	blinkIndexGetInfo(index, &info);
	*gpus = calloc((size_t)opt->ranks, sizeof **gpus);
	int code = *gpus ? copy_gpus(opt, &info, *gpus) : complain(blinkOutOfMemory, "out of memory");
	blinkIndexDestroy(index);
	return code;
}

void
find_free_gpus(char **gpus, int n)
{
	for (int r = 0; gpus && r < n; r++)
		free(gpus[r]);
	free(gpus);
}

int
find_job_root(const struct options *opt, char *const *gpus, int *root)
{
	const char *text = opt->root ? opt->root : "0";
	for (int r = 0; gpus && r < opt->ranks; r++) {
		if (strcmp(gpus[r], text) == 0) {
			*root = r;
			return 0;
		}
	}
	size_t digits = strspn(text, "0123456789");
	*root = digits > 0 && digits < 10 && !text[digits] ? atoi(text) : INT_MAX;
	return *root < opt->ranks ? 0 : complain(USAGE, "--root: %.80s: want a rank, 0 to %d", text,
	    (int)opt->ranks - 1);
}
