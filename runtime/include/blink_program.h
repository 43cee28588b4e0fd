/* The interface between libblink and a program written by `blinkc compile --format cu`: one table, exported as
 * `blink_program`.
 * Not for other callers: blink.h is the interface. */
#ifndef BLINK_PROGRAM_H
#define BLINK_PROGRAM_H

#include "blink.h"

/* Raised when anything below changes; a program with another number is refused. `abi` stays the first member. */
#define BLINK_PROGRAM_ABI 3

/* Chunks that a scratch ring holds: one arriving while one is read. */
#define BLINK_RING 2

struct blink_error {
	int code;			/* blinkResult_t */
	char text[512];
};

__extension__ typedef __int128 blink_wide;

/* Parts of a block that run over links of their own; their sizes depend on the size of the message. */
enum { BLINK_PARTS_MAX = 8 };

/* Where a part ends in a message of M bytes, if M >= from: at byte floor((num * M + add) / den) of it; in a buffer of
 * blocks, at that fraction of each block. add = add_high * 2^62 + add_low. */
struct blink_part_end {
	int64_t from;
	int64_t num, den;
	int64_t add_high, add_low;
};

/* A tree moves element floor(begin * n) up to, not including, floor(end * n) of the n elements that its part has of
 * a block. */
struct blink_tree {
	int64_t send_block, recv_block;	/* which block of a rank's send and receive buffer that is */
	int part;
	int64_t begin, begin_of;	/* numerator and denominator */
	int64_t end, end_of;
};

struct blink_ring {
	int rank, tree;			/* whose memory it lies in, which tree's chunks it holds */
};

struct blink_call {
	const void *const *send;
	void *const *recv;
	int64_t count;
	int type, op;			/* blinkDataType_t, blinkRedOp_t */
	int64_t chunk_bytes;		/* 0: choose */
};

struct blink_program {
	uint32_t abi;
	const char *backend;
	const char *digest;		/* of the schedule */
	const char *topology, *algorithm;
	int collective, root, n_ranks;
	int keep_input;			/* trees may write where others read, if a call sends and receives in place */
	int n_parts, n_trees, n_streams, n_rings, n_events;
	const struct blink_part_end *part_end;	/* n_parts stages, by message size, of all parts but the last */
	const struct blink_tree *tree;
	const int *stream_rank;		/* whose device each stream belongs to */
	const struct blink_ring *ring;
	const void *plan;		/* more data of `run`, or NULL */

	/* All return a blinkResult_t, with the reason in *err unless it is blinkSuccess. device: from `open`. */
	int (*open)(const struct blink_program *self, int threads, void **device, struct blink_error *err);
	void (*close)(void *device);	/* also in a child forked after `open`: frees memory, and no more */
	int (*memory_new)(void *device, int rank, size_t bytes, void **memory, struct blink_error *err);
	int (*memory_free)(void *device, int rank, void *memory, struct blink_error *err);
	int (*memory_copy)(void *device, int rank, void *to, const void *from, size_t bytes, struct blink_error *err);
	int (*run)(void *device, const struct blink_call *call, struct blink_error *err);
};

/* A program uses only some functions of these headers. */
#define BLINK_FN static __attribute__((unused))

/* Blocks that a message of M bytes has, as blink-schedule(5) counts M. */
BLINK_FN int
blink_message_blocks(const struct blink_program *program)
{
	int c = program->collective;
	return c == blinkCollBroadcast || c == blinkCollReduce || c == blinkCollAllReduce ? 1 : program->n_ranks;
}

/* Blocks of `count` elements in the send and receive buffer of a rank, and which of them is its own (-1: none). If the
 * call is in place, the own block is already in both, and a collective that does not reduce does not change it. */
struct blink_layout {
	int send, recv;
	int own_send, own_recv;
};

BLINK_FN struct blink_layout
blink_layout_at(int collective, int root, int n, int rank)
{
	int at_root = rank == root;
	struct blink_layout l = { 1, 1, 0, 0 };
	switch (collective) {
	case blinkCollBroadcast:
		l.send = at_root;
		break;
	case blinkCollReduce:
		l.recv = at_root;
		break;
	case blinkCollGather:
		l.recv = at_root ? n : 0;
		l.own_recv = rank;
		break;
	case blinkCollAllGather:
		l.recv = n;
		l.own_recv = rank;
		break;
	case blinkCollScatter:
		l.send = at_root ? n : 0;
		l.own_send = rank;
		break;
	case blinkCollReduceScatter:
		l.send = n;
		l.own_send = rank;
		break;
	case blinkCollAlltoAll:
		l.send = l.recv = n;
		l.own_send = l.own_recv = rank;
		break;
	}
	return l;
}

/* Elements of a block at which each part ends. count: of a block; size: bytes of an element. */
BLINK_FN void
blink_part_ends(const struct blink_program *program, int64_t count, int64_t size, int64_t end[BLINK_PARTS_MAX])
{
	int inner = program->n_parts - 1, stage = 0;
	int64_t unit = size * blink_message_blocks(program);
	while (stage < inner && program->part_end[(stage + 1) * inner].from <= count * unit)
		stage++;
	for (int i = 0; i < inner; i++) {
		const struct blink_part_end *e = &program->part_end[stage * inner + i];
		blink_wide add = (blink_wide)e->add_high * ((blink_wide)1 << 62) + e->add_low;
		end[i] = (int64_t)(((blink_wide)e->num * (count * unit) + add) / ((blink_wide)e->den * unit));
	}
	end[inner] = count;
}

#ifdef __cplusplus
extern "C" {
#endif
__attribute__((visibility("default"))) extern const struct blink_program blink_program;
#ifdef __cplusplus
}
#endif

#endif
