/* The files that read a job: read_workload.c has all but what the others have. */
#ifndef BLINK_FORMAT_WORKLOAD_READER_H
#define BLINK_FORMAT_WORKLOAD_READER_H

#include "format/doc.h"
#include "format/format.h"
#include "model/workload.h"

/* read_call_matrix.c. The blocks of a call, whose other members are read: by its member "matrix", without "bytes" and
 * "skew"; by "skew", beside "bytes"; or equal. n_ranks: of the job. Fails: BAD_INPUT, LIMIT. */
Status call_read_matrix(Ctx *ctx, const char *label, const Doc *at, int n_ranks, const GroupKind *kind,
    GroupCall *call);

#endif
