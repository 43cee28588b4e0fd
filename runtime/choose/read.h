/* Reading of schedule files. */
#ifndef BLINK_CHOOSE_READ_H
#define BLINK_CHOOSE_READ_H

#include "base/digest.h"
#include "base/text.h"
#include "format/format.h"
#include "model/model.h"

/* The entry of an index for a job. */
struct found {
	const Index *index;
	const IndexEntry *entry;
	const int *rank;		/* of each rank of the job: its number in the file */
};

/* A schedule file in memory, compact if it is, verified, and relabelled if `found` is not NULL. */
Status schedule_parse(Ctx *ctx, const char *name, const char *json, size_t size, const struct found *found,
    Schedule **out);

/* Likewise a regular file, which must not be a shared object. digest: of the file. Fails: also IO. */
Status schedule_read(Ctx *ctx, const char *path, const struct found *found, char digest[DIGEST_ROOM], Schedule **out);

/* The rest of an open file. out: the caller frees it, whatever is returned. Fails: IO, LIMIT, NO_MEMORY. */
Status file_rest(Ctx *ctx, const char *path, int fd, Text *out);

#endif
