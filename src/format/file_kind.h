/* What a file is, by its content: so that a verb that is given another kind of file than it wants can say which. A
 * guess for messages alone: readers decide by themselves what is valid. */
#ifndef BLINK_FORMAT_FILE_KIND_H
#define BLINK_FORMAT_FILE_KIND_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* what messages call it */
#define FILE_KIND_LIST(X) \
	X(FILE_OTHER, "a file of another kind") \
	X(FILE_EMPTY, "an empty file") \
	X(FILE_TOPOLOGY, "a topology") \
	X(FILE_SCHEDULE, "a schedule") \
	X(FILE_INDEX, "an index of schedules") \
	X(FILE_LOOKUP, "the lookup file of an index") \
	X(FILE_JOB, "groups of a job") \
	X(FILE_PHASES, "what groups of a job do at once") \
	X(FILE_DIFFERENCES, "differences of blinkc diff") \
	X(FILE_CODE, "source code of a schedule") \
	X(FILE_SOURCE, "source code") \
	X(FILE_NCCL, "a topology of NCCL or RCCL") \
	X(FILE_NCCL_GRAPH, "a graph dump of NCCL (NCCL_GRAPH_DUMP_FILE)") \
	X(FILE_MSCCL, "an algorithm of MSCCL") \
	X(FILE_MSCCLPP, "a plan of MSCCL++") \
	X(FILE_HWLOC, "a topology of hwloc") \
	X(FILE_NVIDIA_SMI, "output of nvidia-smi topo -m") \
	X(FILE_ROCM_SMI, "output of rocm-smi --showtopo") \
	X(FILE_PICTURE, "a picture in SVG") \
	X(FILE_PAGE, "a page in HTML") \
	X(FILE_PROGRAM, "a program or shared object") \
	X(FILE_COMPRESSED, "a compressed file") \
	X(FILE_BINARY, "a binary file") \
	X(FILE_TEXT, "plain text")

typedef enum {
#define X(name, what) name,
	FILE_KIND_LIST(X)
#undef X
} FileKind;

const char *file_kind_name(FileKind kind);

/* FILE_OTHER: none of these for certain. */
FileKind file_kind(const char *data, size_t size);

/* Is the file, for certain, something else than what is wanted, a topology, a schedule or an index?
 * Fails: BAD_INPUT "x.xml: a topology: want a schedule; blinkc FILE compiles one". */
Status file_kind_check(Ctx *ctx, const char *label, const char *data, size_t size, FileKind want);

#endif
