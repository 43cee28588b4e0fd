/* How ranks that a script starts meet: rank 0 writes the unique id to a file. */
#ifndef BLINK_TESTS_JOB_MEET_H
#define BLINK_TESTS_JOB_MEET_H

#include "blink.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_SECONDS = 30 };

static double
seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
need(blinkResult_t result, const char *what, const char *text)
{
	if (result == blinkSuccess)
		return;
	printf("%s: %d: %s\n", what, (int)result, text);
	exit(1);
}

/* The text is read after the call. */
static inline void
need_call(blinkResult_t result, const char *what, blinkComm_t comm)
{
	need(result, what, blinkCommGetError(comm));
}

/* Written whole, by a rename. */
static void
meet(int rank, const char *directory, blinkUniqueId_t *id)
{
	char path[4096], new[4096 + 8];
	blinkError_t error = { "" };
	snprintf(path, sizeof path, "%s/id", directory);
	snprintf(new, sizeof new, "%s.new", path);
	if (rank == 0) {
		need(blinkGetUniqueId(id, &error), "id", error.text);
		FILE *f = fopen(new, "w");
		if (!f || fwrite(id, sizeof *id, 1, f) != 1 || fclose(f) != 0 || rename(new, path) != 0)
			need(blinkSystemError, "id", path);
		return;
	}
	double until = seconds(CLOCK_MONOTONIC) + WAIT_SECONDS;
	while (access(path, R_OK) != 0 && seconds(CLOCK_MONOTONIC) < until)
		usleep(20000);
	FILE *f = fopen(path, "r");
	if (!f || fread(id, sizeof *id, 1, f) != 1)
		need(blinkSystemError, "id", path);
	fclose(f);
}

#endif
