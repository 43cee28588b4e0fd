/* A directory for the files of one input, in memory if there is room for it, and removed at the end. */
#ifndef BLINK_FUZZ_SCRATCH_H
#define BLINK_FUZZ_SCRATCH_H

#include "driver.h"

#include <ftw.h>
#include <sys/stat.h>

static char scratch[64];

static int
scratch_visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	return at->level > 0 ? remove(path) : 0;
}

static void
scratch_clear(void)
{
	nftw(scratch, scratch_visit, 8, FTW_DEPTH | FTW_PHYS);
}

static void
scratch_end(void)
{
	scratch_clear();
	rmdir(scratch);
}

static void
scratch_begin(void)
{
	if (*scratch)
		return;
	snprintf(scratch, sizeof scratch, "%s/blink-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	REQUIRE(mkdtemp(scratch), "%s", scratch);
	atexit(scratch_end);
}

static void
scratch_write(const char *name, const void *data, size_t size)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", scratch, name);
	FILE *file = fopen(path, "w");
	REQUIRE(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "%s", path);
}

#endif
