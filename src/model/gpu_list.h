/* Lists of GPUs, as people and job schedulers write them: on a command line, and in each line of a batch's list.
 *
 *   1,4-6  gpu1,gpu5  s0:0-2 s1:3,5  s0:0-2,s1:3  CUDA_VISIBLE_DEVICES=0,1  gpu:2(IDX:0-1)
 *
 * An item is an id, a number, or a range of numbers; an id wins over a number. Items are separated by commas, and
 * words by blanks or semicolons. After "SERVER:" numbers count the GPUs of that server, and ids are those of its GPUs,
 * with or without "SERVER/" before them, until the word ends or another server is named. */
#ifndef BLINK_MODEL_GPU_LIST_H
#define BLINK_MODEL_GPU_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* The GPUs of a machine. */
typedef struct {
	int n;
	const char *const *id;
	const int *node;		/* server of each, -1: none; NULL: what is before the last / of its id */
	const char *const *node_id;
} GpuNames;

typedef enum {
	GPU_LIST_UNKNOWN,		/* no such GPU */
	GPU_LIST_NODE,			/* that server has no such GPU */
	GPU_LIST_TWICE,
	GPU_LIST_RANGE,			/* neither a number nor a range */
	GPU_LIST_BRACKET,		/* (IDX: without its end */
	GPU_LIST_EMPTY			/* nothing between two commas, or at an end */
} GpuListFault;

/* What is wrong, and the part of the text that is. */
typedef struct {
	GpuListFault fault;
	const char *found;
	int length;			/* of it, 80 at most */
	int gpu;			/* GPU_LIST_TWICE: which */
} GpuListError;

/* A list of `size` bytes to the numbers of its GPUs, in its order, each once; gpu: room for all.
 * strict: nothing may be missing between commas. seen: of each GPU false, as it is again afterwards.
 * Returns how many, or -1 with *error. */
int gpu_list_parse(const GpuNames *names, const char *text, size_t size, bool strict, bool *seen, int *gpu,
    GpuListError *error);

/* What is wanted instead: "each GPU once". */
const char *gpu_list_wanted(GpuListFault fault);

#endif
