/* What the files of libblink share. */
#ifndef BLINK_RUNTIME_H
#define BLINK_RUNTIME_H

#include "base/digest.h"
#include "blink_program.h"
#include "passes.h"

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
	struct blink_error err;		/* of the last call that failed */
};

/* The table of a lowered schedule, executed by the host backend. digest: of the file. Memory: run arena. */
Status exec_program(Ctx *ctx, const Program *prog, const char *digest, struct blink_program *out);

#endif
