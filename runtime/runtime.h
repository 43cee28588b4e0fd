/* Types and functions that the files of libblink share. */
#ifndef BLINK_RUNTIME_H
#define BLINK_RUNTIME_H

#include "base/digest.h"
#include "base/text.h"
#include "blink_program.h"
#include "model/model.h"

#include <stdio.h>
#include <sys/types.h>

struct blinkSchedule {
	blinkScheduleInfo_t info;
	const struct blink_program *program;
	struct blink_program built;	/* from a file: what `program` points to */
	char digest[DIGEST_ROOM];
	Ctx ctx;			/* its memory */
	void *object;			/* a shared object: from dlopen */
};

struct blinkComm {
	const struct blink_program *program;
	size_t chunk_bytes;
	void *device;
	pid_t owner;			/* the process that made it: a forked child may only destroy it */
	struct blink_error err;		/* of the last call that failed */
};

struct blinkIndex {
	blinkIndexInfo_t info;
	const Index *index;
	const char *file;		/* its name in its directory */
	Ctx ctx;			/* its memory */
};

/* The entry of an index for a job. */
struct found {
	const Index *index;
	const IndexEntry *entry;
	const int *rank;		/* of each rank of the job: its number in the file */
};

/* The rest of an open file. out: the caller frees it, whatever is returned. Fails: IO, LIMIT, NO_MEMORY. */
Status runtime_read(Ctx *ctx, const char *path, int fd, Text *out);

/* blinkScheduleLoad of a file that an index names, in the ranks of the job. */
blinkResult_t schedule_load(const char *path, const struct found *found, blinkSchedule_t *out, blinkError_t *error);

/* `error` unless it is NULL, and the result. */
blinkResult_t give_error(blinkError_t *error, Status status, const char *text);

/* Where parts end, as programs have it. n_parts stages of n_parts - 1 each. Memory: run arena. */
Status part_ends(Ctx *ctx, const PartEnd *end, int n_parts, struct blink_part_end **out);

/* The table of a lowered schedule, executed by the host backend. digest: of the file. Memory: run arena. */
Status exec_program(Ctx *ctx, const Program *prog, const char *digest, struct blink_program *out);

#endif
