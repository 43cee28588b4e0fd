/* What code that blinkc writes for a schedule (--format cuda-kernel) has besides the interpreter's own: its tasks are
 * constants, and its passes over data know how many lanes they have. Protocols, waits, flags, windows of calls and the
 * parameters are those of collective.h, so that ranks of a job may be interpreted or generated, each as it likes.
 *
 * blinkc writes, before all of this:
 *
 *	GENERATED		and KERNEL_TYPE and KERNEL_OP, as the compiler's command line gives them; not where
 *				nothing is reduced
 *	GENERATED_SHAPES(X)	X(shape, own, output, n_from, n_to): the kinds of tasks that it has, from 1 on
 *	GENERATED_RANKS(X)	X(rank, number): each rank, and the fingerprint of its program
 *	GENERATED_MARK		by which libblink knows a module: version of these sources, collective, schedule
 *	GENERATED_NAME		what the kernel's name begins with, of the schedule's digest
 *
 * and after it program_task, of a TASK for each task of each rank, or for each run of tasks in equal steps; where these
 * are too many for a switch, of a table of ROWs. A shape's pass is the interpreter's, compiled for constants: most
 * loops over lanes are unrolled, and what a task does not do is not there. Shape 0 is the interpreter's itself: for
 * tasks of rare shapes, and for shares of the own block.
 *
 * A module has one kernel, for all ranks. Marks and fingerprints are names in it, which libblink finds in PTX as in a
 * cubin: it takes only what is compiled from the very program that it would interpret. */
#ifndef BLINK_KERNELS_GENERATED_H
#define BLINK_KERNELS_GENERATED_H

#include "kernels/collective.h"
#include "kernels/entry.h"

/* A task's part of a block is from `begin` / `begin_of` to `end` / `end_of` of `part_`; its lanes are those of the
 * program from `first` on. */
#define TASK(shape_, send_block_, recv_block_, part_, begin_, begin_of_, end_, end_of_, first, n_from_, n_to_, \
    publishes_, own_, output_, complete_) do { \
	t->send_block = send_block_; \
	t->recv_block = recv_block_; \
	t->part = part_; \
	t->begin = begin_; \
	t->begin_of = begin_of_; \
	t->end = end_; \
	t->end_of = end_of_; \
	t->from = first; \
	t->to = (first) + (n_from_); \
	t->n_from = n_from_; \
	t->n_to = n_to_; \
	t->publishes = publishes_; \
	t->own = own_; \
	t->output = output_; \
	t->complete = complete_; \
	t->shape = shape_; \
} while (0)

/* The same as a row of a table. */
#define ROW(shape_, send_block_, recv_block_, part_, begin_, begin_of_, end_, end_of_, first, n_from_, n_to_, \
    publishes_, own_, output_, complete_) \
	{ send_block_, recv_block_, begin_, begin_of_, end_, end_of_, part_, n_from_, n_to_, first, \
	  (first) + (n_from_), publishes_, own_, output_, complete_, shape_, { 0 } }

#if ON_GPU
#define DEVICE_TABLE static DEVICE const
#else
#define DEVICE_TABLE static const
#endif

/* A strip of a shape, with what the compiler is to know of it. */
FN struct strip
shaped(const struct strip *s, bool own, bool output, int n_from, int n_to)
{
	struct strip x = *s;
	if ((x.own != NULL) != own || (x.output != NULL) != output)
		__builtin_unreachable();
	if (!own)
		x.own = NULL;
	if (!output)
		x.output = NULL;
	x.n_from = n_from;
	x.n_to = n_to;
	x.scales = own && s->scales;
	return x;
}

FN void
program_chunk(const struct block *b, const struct strip *s, int32_t chunk, enum operation op)
{
	switch (s->shape) {
#define CHUNK(shape, own, output, n_from, n_to) \
	case shape: { \
		struct strip x = shaped(s, own, output, n_from, n_to); \
		move_chunk(b, &x, chunk, op); \
		break; \
	}
	GENERATED_SHAPES(CHUNK)
#undef CHUNK
	default:
		move_chunk(b, s, chunk, op);
	}
}

/* ---- entries ---- */

#define PASTED_(a, b, c) a##_##b##_##c
#define PASTED(a, b, c) PASTED_(a, b, c)
#ifdef KERNEL_TYPE
enum { OPERATION_sum = SUM, OPERATION_prod = PROD, OPERATION_max = MAX, OPERATION_min = MIN };
#define NAME PASTED(GENERATED_NAME, KERNEL_TYPE, KERNEL_OP)
#define OPERATION ((enum operation)JOIN(OPERATION, KERNEL_OP))
#else
#define NAME JOIN(GENERATED_NAME, move)
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define OPERATION SUM
#endif

KERNEL(NAME, gpu_call, block, run_collective(&memory_of(block), &given, OPERATION))

#if ON_GPU
extern "C" {
DEVICE unsigned GENERATED_MARK;
#define RANK(rank, number) DEVICE unsigned blink_##number##_rank##rank;
GENERATED_RANKS(RANK)
#undef RANK
}
#else
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
const struct virtual_kernel virtual_gpu_kernels[] = {
	{ TEXT(NAME), sizeof(struct gpu_call), GPU_THREADS, NAME },
	{ NULL, 0, 0, NULL },
};
#endif

#endif
