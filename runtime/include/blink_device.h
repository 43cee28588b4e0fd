/* The operations of a generated program and of libblink's own executor: streams, events, copies and reductions over the
 * memories of ranks, with one body for GPUs (nvcc) and one for the host (a C compiler). Both give the same bits.
 * C11 and C++17.
 *
 * A program calls, for every chunk of every tree, in order of issue:
 *
 *	blink_wait(&k, stream, event)		until this chunk's event is recorded
 *	blink_wait_slot(&k, stream, event)	until that of the chunk which lay in the same slot of a ring is
 *	blink_copy(&k, stream, to, from)
 *	blink_reduce(&k, stream, to, from, with)
 *	blink_record(&k, stream, event)
 *
 * They queue work on a stream and return. None fails: the first error is kept and blink_end returns it. */
#ifndef BLINK_DEVICE_H
#define BLINK_DEVICE_H

#include "blink_program.h"
#include "blink_types.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

BLINK_FN size_t
blink_type_size(int type)
{
	switch (type) {
#define BLINK_SIZE(code, name, T, U, kind, read, write, with)                  \
	case code:                                                             \
		return sizeof(T);
		BLINK_TYPE_LIST(BLINK_SIZE, 0)
#undef BLINK_SIZE
	}
	return 0;
}

__attribute__((format(printf, 3, 4))) BLINK_FN int
blink_fail(struct blink_error *err, int code, const char *format, ...)
{
	va_list args;
	if (err->code == blinkSuccess) {
		va_start(args, format);
		vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		err->code = code;
	}
	return err->code;
}

BLINK_FN int
blink_fail_memory(struct blink_error *err)
{
	return blink_fail(err, blinkOutOfMemory, "out of memory");
}

/* n zeroed elements, and never NULL for n = 0. */
BLINK_FN void *
blink_array(size_t n, size_t size)
{
	return calloc(n ? n : 1, size);
}

/* Streams 0 .. n_streams-1 are the program's; after them each rank has one for copies inside its own memory. */
BLINK_FN int
blink_stream_rank(const struct blink_program *program, int stream)
{
	return stream < program->n_streams ? program->stream_rank[stream] : stream - program->n_streams;
}

#ifdef __CUDACC__
#include "blink_cuda.h"
#else
#include "blink_host.h"
#endif

/* ---- a device: all ranks of a program, and their memory ---- */

/* What a tree moves in this call: `n` elements from `first` of its block, `chunk` at a time. */
struct blink_share {
	int64_t first, n, chunk, n_chunks;
};

/* Memory of a rank that grows when a call needs more. */
struct blink_store {
	char *data;
	size_t size;
};

struct blink_device {
	const struct blink_program *program;
	struct blink_backend backend;
	struct blink_share *share;	/* of each tree */
	char **ring;			/* where each ring begins */
	const char **input;		/* of each rank: its send buffer, or the copy kept of it */
	char **output;
	struct blink_store *scratch, *kept;	/* of each rank */
};

struct blink_run {
	struct blink_device *device;
	int64_t count, n_chunks;	/* n_chunks: the most that any tree has */
	size_t size;			/* bytes of an element */
	int scales, divides;		/* an average, of floats and of integers */
	struct blink_error *err;
};

BLINK_FN void
blink_close(void *opened)
{
	struct blink_device *d = (struct blink_device *)opened;
	struct blink_error ignored = { blinkSuccess, "" };
	if (!d)
		return;
	for (int r = 0; r < d->program->n_ranks; r++) {
		if (d->scratch && d->scratch[r].data)
			blink_backend_free(&d->backend, r, d->scratch[r].data, &ignored);
		if (d->kept && d->kept[r].data)
			blink_backend_free(&d->backend, r, d->kept[r].data, &ignored);
	}
	blink_backend_close(&d->backend);
	free(d->share);
	free(d->ring);
	free(d->input);
	free(d->output);
	free(d->scratch);
	free(d->kept);
	free(d);
}

BLINK_FN int
blink_open(const struct blink_program *program, int threads, void **device, struct blink_error *err)
{
	size_t n = (size_t)program->n_ranks;
	struct blink_device *d = (struct blink_device *)blink_array(1, sizeof *d);
	if (!d)
		return blink_fail_memory(err);
	d->program = program;
	d->share = (struct blink_share *)blink_array((size_t)program->n_trees, sizeof *d->share);
	d->ring = (char **)blink_array((size_t)program->n_rings, sizeof *d->ring);
	d->input = (const char **)blink_array(n, sizeof *d->input);
	d->output = (char **)blink_array(n, sizeof *d->output);
	d->scratch = (struct blink_store *)blink_array(n, sizeof *d->scratch);
	d->kept = (struct blink_store *)blink_array(n, sizeof *d->kept);
	if (!d->share || !d->ring || !d->input || !d->output || !d->scratch || !d->kept)
		blink_fail_memory(err);
	else
		blink_backend_open(&d->backend, program, threads, err);
	if (err->code != blinkSuccess) {
		blink_close(d);
		return err->code;
	}
	*device = d;
	return blinkSuccess;
}

BLINK_FN int
blink_memory_new(void *device, int rank, size_t bytes, void **memory, struct blink_error *err)
{
	return blink_backend_alloc(&((struct blink_device *)device)->backend, rank, bytes, memory, err);
}

BLINK_FN int
blink_memory_free(void *device, int rank, void *memory, struct blink_error *err)
{
	return blink_backend_free(&((struct blink_device *)device)->backend, rank, memory, err);
}

BLINK_FN int
blink_memory_copy(void *device, int rank, void *to, const void *from, size_t bytes, struct blink_error *err)
{
	return blink_backend_transfer(&((struct blink_device *)device)->backend, rank, to, from, bytes, err);
}

/* ---- the buffers of a call ---- */

BLINK_FN struct blink_layout
blink_layout_of(const struct blink_program *program, int rank)
{
	return blink_layout_at(program->collective, program->root, program->n_ranks, rank);
}

BLINK_FN int
blink_reduces(int collective)
{
	return collective == blinkCollReduce || collective == blinkCollAllReduce
	    || collective == blinkCollReduceScatter;
}

/* Contents are lost. */
BLINK_FN int
blink_grow(struct blink_device *d, int rank, struct blink_store *store, size_t size, struct blink_error *err)
{
	void *data = NULL, *old = store->data;
	if (store->size >= size)
		return blinkSuccess;
	/* In this order: a child forked meanwhile closes the device, too. */
	store->data = NULL;
	store->size = 0;
	if (old && blink_backend_free(&d->backend, rank, old, err) != blinkSuccess)
		return err->code;
	if (blink_backend_alloc(&d->backend, rank, size, &data, err) != blinkSuccess)
		return err->code;
	store->data = (char *)data;
	store->size = size;
	return blinkSuccess;
}

/* Take the buffers of rank r, and refuse those that are not valid. */
BLINK_FN int
blink_take_buffers(struct blink_run *run, const struct blink_call *call, int r)
{
	struct blink_layout l = blink_layout_of(run->device->program, r);
	size_t block = (size_t)run->count * run->size, sent = (size_t)l.send * block, received = (size_t)l.recv * block;
	uintptr_t send = sent ? (uintptr_t)call->send[r] : 0, recv = received ? (uintptr_t)call->recv[r] : 0;
	if ((sent && !send) || (received && !recv))
		return blink_fail(run->err, blinkInvalidArgument, "rank %d: %s buffer: NULL: want %zu bytes", r,
		    sent && !send ? "send" : "receive", sent && !send ? sent : received);
	if (send % run->size || recv % run->size)
		return blink_fail(run->err, blinkInvalidArgument,
		    "rank %d: %s buffer: not aligned to its elements of %zu bytes", r,
		    send % run->size ? "send" : "receive", run->size);
	if (send && recv && send < recv + received && recv < send + sent &&
	    send + (size_t)l.own_send * block != recv + (size_t)l.own_recv * block)
		return blink_fail(run->err, blinkInvalidArgument,
		    "rank %d: send and receive buffer overlap, but not as in place", r);
	run->device->input[r] = (const char *)send;
	run->device->output[r] = (char *)recv;
	return blinkSuccess;
}

/* Trees read the input of rank r from a copy, which an average of floats has scaled. */
BLINK_FN void
blink_keep_input(struct blink_run *run, int r)
{
	struct blink_device *d = run->device;
	int stream = d->program->n_streams + r;
	size_t n = (size_t)blink_layout_of(d->program, r).send * (size_t)run->count;
	struct blink_store *kept = &d->kept[r];
	if (blink_grow(d, r, kept, n * run->size, run->err) != blinkSuccess)
		return;
	if (run->scales)
		blink_backend_average(&d->backend, stream, kept->data, d->input[r], n);
	else
		blink_backend_copy(&d->backend, stream, r, kept->data, r, d->input[r], n * run->size);
	d->input[r] = kept->data;
}

/* Copies inside the memory of rank r before any tree starts: of an input that is scaled, or that one tree would
 * overwrite while another still needs it; and of a block that the rank both holds and needs, which no tree carries. */
BLINK_FN void
blink_prepare_rank(struct blink_run *run, int r)
{
	struct blink_device *d = run->device;
	const struct blink_program *program = d->program;
	struct blink_layout l = blink_layout_of(program, r);
	size_t block = (size_t)run->count * run->size;
	if (run->scales && d->input[r])
		blink_keep_input(run, r);
	if (run->scales || !d->input[r] || !d->output[r])
		return;
	const char *own_sent = d->input[r] + (size_t)l.own_send * block;
	char *own_received = d->output[r] + (size_t)l.own_recv * block;
	if (own_sent != own_received) {
		if (!blink_reduces(program->collective) || program->n_ranks == 1)
			blink_backend_copy(&d->backend, program->n_streams + r, r, own_received, r, own_sent, block);
	} else if (program->keep_input) {
		blink_keep_input(run, r);
	}
}

/* ---- a call ---- */

/* Enough chunks to keep a pipeline of many hops full, each large enough to be worth a launch. */
enum { BLINK_CHUNKS = 16, BLINK_CHUNK_MIN = 64 << 10, BLINK_CHUNK_MAX = 4 << 20, BLINK_ALIGN = 256 };

BLINK_FN int64_t
blink_floor_mul(int64_t n, int64_t of, int64_t count)
{
	return (int64_t)((blink_wide)n * count / of);
}

/* end: of the parts. */
BLINK_FN struct blink_share
blink_share_of(const struct blink_tree *tree, const int64_t *end, size_t size, int64_t chunk_bytes)
{
	struct blink_share share;
	int64_t part = tree->part > 0 ? end[tree->part - 1] : 0, count = end[tree->part] - part;
	share.first = part + blink_floor_mul(tree->begin, tree->begin_of, count);
	share.n = part + blink_floor_mul(tree->end, tree->end_of, count) - share.first;
	if (chunk_bytes == 0) {
		chunk_bytes = share.n * (int64_t)size / BLINK_CHUNKS;
		if (chunk_bytes < BLINK_CHUNK_MIN)
			chunk_bytes = BLINK_CHUNK_MIN;
		if (chunk_bytes > BLINK_CHUNK_MAX)
			chunk_bytes = BLINK_CHUNK_MAX;
	}
	share.chunk = chunk_bytes / (int64_t)size;
	share.chunk = share.chunk > share.n ? share.n : share.chunk;
	share.chunk = share.chunk < 1 ? 1 : share.chunk;
	share.n_chunks = share.n / share.chunk + (share.n % share.chunk != 0);
	return share;
}

BLINK_FN size_t
blink_slot_bytes(const struct blink_share *share, size_t size)
{
	return ((size_t)share->chunk * size + BLINK_ALIGN - 1) / BLINK_ALIGN * BLINK_ALIGN;
}

/* Place the rings of each rank one after the other. */
BLINK_FN int
blink_place_rings(struct blink_run *run)
{
	struct blink_device *d = run->device;
	const struct blink_program *program = d->program;
	size_t *used = (size_t *)blink_array((size_t)program->n_ranks, sizeof *used);
	if (!used)
		return blink_fail_memory(run->err);
	for (int pass = 0; pass < 2 && run->err->code == blinkSuccess; pass++) {
		for (int i = 0; i < program->n_rings; i++) {
			const struct blink_ring *ring = &program->ring[i];
			const struct blink_share *share = &d->share[ring->tree];
			size_t slots = share->n_chunks < BLINK_RING ? (size_t)share->n_chunks : BLINK_RING;
			/* A tree without elements has no slots, and its rank may have no memory for any. */
			if (pass == 1 && slots > 0)
				d->ring[i] = d->scratch[ring->rank].data + used[ring->rank];
			used[ring->rank] += slots * blink_slot_bytes(share, run->size);
		}
		for (int r = 0; r < program->n_ranks && pass == 0; r++) {
			blink_grow(d, r, &d->scratch[r], used[r], run->err);
			used[r] = 0;
		}
	}
	free(used);
	return run->err->code;
}

/* Start a call: afterwards a program issues chunk after chunk, and ends with blink_end whatever happened. */
BLINK_FN int
blink_begin(struct blink_run *run, void *device, const struct blink_call *call, struct blink_error *err)
{
	struct blink_device *d = (struct blink_device *)device;
	const struct blink_program *program = d->program;
	int averages = blink_reduces(program->collective) && call->op == blinkAvg && program->n_ranks > 1;
	int64_t part_end[BLINK_PARTS_MAX];
	run->device = d;
	run->err = err;
	run->count = call->count;
	run->n_chunks = 0;
	run->size = blink_type_size(call->type);
	run->scales = averages && call->type > blinkUint64;
	run->divides = averages && !run->scales;
	int op = call->op == blinkAvg ? blinkSum : call->op;
	if (blink_backend_begin(&d->backend, call->type, op, err) != blinkSuccess)
		return err->code;
	if (run->size == 0)
		return blink_fail(err, blinkInvalidArgument, "type: %d: not a blinkDataType_t", call->type);
	if (blink_reduces(program->collective) && (call->op < blinkSum || call->op > blinkAvg))
		return blink_fail(err, blinkInvalidArgument, "op: %d: not a blinkRedOp_t", call->op);
	if (call->count < 0 || call->count > INT64_MAX / 4 / program->n_ranks / (int64_t)run->size)
		return blink_fail(err, blinkInvalidArgument, "count: %lld: too large", (long long)call->count);
	blink_part_ends(program, call->count, (int64_t)run->size, part_end);
	for (int t = 0; t < program->n_trees; t++) {
		d->share[t] = blink_share_of(&program->tree[t], part_end, run->size, call->chunk_bytes);
		if (run->n_chunks < d->share[t].n_chunks)
			run->n_chunks = d->share[t].n_chunks;
	}
	if (blink_place_rings(run) != blinkSuccess)
		return err->code;
	for (int r = 0; r < program->n_ranks && err->code == blinkSuccess; r++)
		blink_take_buffers(run, call, r);
	for (int r = 0; r < program->n_ranks && err->code == blinkSuccess; r++)
		blink_prepare_rank(run, r);
	if (program->keep_input || run->scales)
		blink_backend_finish(&d->backend, err);
	return err->code;
}

/* Wait until all queued work is done. */
BLINK_FN int
blink_end(struct blink_run *run)
{
	struct blink_device *d = run->device;
	if (blink_backend_finish(&d->backend, run->err) != blinkSuccess || !run->divides)
		return run->err->code;
	for (int r = 0; r < d->program->n_ranks; r++)
		if (d->output[r])
			blink_backend_average(&d->backend, d->program->n_streams + r, d->output[r], d->output[r],
			    (size_t)blink_layout_of(d->program, r).recv * (size_t)run->count);
	return blink_backend_finish(&d->backend, run->err);
}

/* ---- a chunk ---- */

struct blink_chunk {
	struct blink_device *device;
	int64_t c;			/* its number */
	size_t n, bytes;		/* elements, and their bytes */
	size_t send_at, recv_at, slot_at;	/* bytes from the start of a buffer or ring */
};

struct blink_place {
	int rank;
	char *at;
};

/* Chunk c of tree t; false where the tree has fewer. */
BLINK_FN int
blink_chunk(const struct blink_run *run, int t, int64_t c, struct blink_chunk *k)
{
	const struct blink_share *share = &run->device->share[t];
	const struct blink_tree *tree = &run->device->program->tree[t];
	int64_t from = share->first + c * share->chunk, left = share->n - c * share->chunk;
	if (c >= share->n_chunks)
		return 0;
	k->device = run->device;
	k->c = c;
	k->n = (size_t)(left < share->chunk ? left : share->chunk);
	k->bytes = k->n * run->size;
	k->send_at = (size_t)(tree->send_block * run->count + from) * run->size;
	k->recv_at = (size_t)(tree->recv_block * run->count + from) * run->size;
	k->slot_at = (size_t)(c % BLINK_RING) * blink_slot_bytes(share, run->size);
	return 1;
}

BLINK_FN struct blink_place
blink_input(const struct blink_chunk *k, int rank)
{
	struct blink_place place = { rank, (char *)k->device->input[rank] + k->send_at };
	return place;
}

BLINK_FN struct blink_place
blink_output(const struct blink_chunk *k, int rank)
{
	struct blink_place place = { rank, k->device->output[rank] + k->recv_at };
	return place;
}

BLINK_FN struct blink_place
blink_scratch(const struct blink_chunk *k, int ring)
{
	struct blink_place place = { k->device->program->ring[ring].rank, k->device->ring[ring] + k->slot_at };
	return place;
}

BLINK_FN void
blink_wait(const struct blink_chunk *k, int stream, int event)
{
	blink_backend_wait(&k->device->backend, stream, event, k->c);
}

BLINK_FN void
blink_wait_slot(const struct blink_chunk *k, int stream, int event)
{
	if (k->c >= BLINK_RING)
		blink_backend_wait(&k->device->backend, stream, event, k->c - BLINK_RING);
}

BLINK_FN void
blink_copy(const struct blink_chunk *k, int stream, struct blink_place to, struct blink_place from)
{
	blink_backend_copy(&k->device->backend, stream, to.rank, to.at, from.rank, from.at, k->bytes);
}

/* to = from op with */
BLINK_FN void
blink_reduce(const struct blink_chunk *k, int stream, struct blink_place to, struct blink_place from,
    struct blink_place with)
{
	blink_backend_reduce(&k->device->backend, stream, to.at, from.at, with.at, k->n);
}

BLINK_FN void
blink_record(const struct blink_chunk *k, int stream, int event)
{
	blink_backend_record(&k->device->backend, stream, event, k->c);
}

#endif
