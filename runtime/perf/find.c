#include "find.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A GPU by id or by number; -1: neither. */
static int
gpu_of(const blinkIndexInfo_t *info, const char *text, size_t length)
{
	for (int g = 0; g < info->nGpus; g++)
		if (strlen(info->gpus[g]) == length && memcmp(info->gpus[g], text, length) == 0)
			return g;
	int number = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9' || number >= info->nGpus)
			return -1;
		number = number * 10 + (text[i] - '0');
	}
	return length > 0 && number < info->nGpus ? number : -1;
}

/* gpu: capacity of one more than the machine has. */
static int
read_gpus(const struct options *opt, const blinkIndexInfo_t *info, int *gpu, int *n)
{
	*n = 0;
	for (int g = 0; g < info->nGpus && !opt->gpus; g++)
		gpu[(*n)++] = g;
	for (const char *at = opt->gpus; at; at = *at ? at + 1 : NULL) {
		size_t length = strcspn(at, ",");
		gpu[*n] = gpu_of(info, at, length);
		if (gpu[*n] < 0)
			return complain(USAGE, "--gpus: %.*s: want a GPU of %s, by index or id",
			    (int)(length < 80 ? length : 80), at, info->topology);
		if (++*n > info->nGpus)
			return complain(USAGE, "--gpus: want at most the %d GPUs of %s, each once", info->nGpus,
			    info->topology);
		at += length;
	}
	return 0;
}

static int
find_job(const struct options *opt, blinkIndex_t index, int *gpu, blinkSchedule_t *sched, char **path)
{
	blinkIndexInfo_t info;
	blinkIndexEntry_t entry;
	blinkError_t error;
	int n;
	blinkIndexGetInfo(index, &info);
	int code = read_gpus(opt, &info, gpu, &n);
	if (code)
		return code;
	blinkCollective_t collective = opt->collective < 0 ? blinkAllReduce : (blinkCollective_t)opt->collective;
	int root = opt->root < 0 ? 0 : (int)opt->root;
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
	if (opt->gpus || opt->without || opt->root >= 0 || opt->collective >= 0
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
