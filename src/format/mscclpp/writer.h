/* What is being written, for the files of this folder. from_schedule.c has the idea, and packets.c another. */
#ifndef BLINK_FORMAT_MSCCLPP_WRITER_H
#define BLINK_FORMAT_MSCCLPP_WRITER_H

#include "model/schedule.h"
#include "mscclpp/mscclpp.h"

enum { BLOCKS = 64, GROUP = MSCCLPP_MAX_OP_CHANNELS, ALIGNMENT = 16 };

/* Channels of a threadblock for one purpose. */
struct list {
	int n[MSCCLPP_PORT + 1], id[MSCCLPP_PORT + 1][MSCCLPP_MAX_CHANNELS];
};

/* Ranges of other ranks, with the channels of ports. */
struct ranges {
	int n, room;
	MscclppRange *range;
	int *channel, channel_room;
};

/* A threadblock, and what it has to do. */
struct work {
	int rank, piece;	/* piece -1: it only begins and ends */
	bool collects, forwards;
	int release, acquire;	/* a semaphore, after each unit and before it; -1: none */
	MscclppBlock *block;
	struct list begin_signal, begin_wait, unit_wait, unit_signal, end_signal, end_wait;
	struct ranges read, add, write, put, put_signal;	/* memory; scratch; memory; by ports */
	int *passive;		/* of each type and rank: the channel to its threadblock that begins and ends, + 1 */
	int op_room;
};

/* A rank in the tree of a piece. */
struct node {
	bool holds, made;	/* has it the data, or a summand, in its input; in `place`, after a while */
	int from;		/* the rank that it copies from; -1: none */
	int parent;		/* that its sum goes to; -1: none */
	MscclppBuffer buffer;
	int input, place;	/* chunks */
	int collect, forward;	/* numbers of its threadblocks; -1: none */
};

struct hop {
	int src, dst;
	bool reduces, port;
};

struct writer {
	Ctx *ctx;
	const Schedule *sched;
	bool packets, in_place;
	int n, n_pieces, pieces, block_chunks;	/* pieces: of a segment */
	int *offset, *count;		/* of each segment, on the grid of one piece each */
	struct node *node;		/* of each piece and rank */
	struct hop **hop;		/* of each piece */
	int *n_hops;
	int *star;			/* of each piece: the root that has the switch do it; -1: none */
	int n_work, work_room;
	struct work *work;
	int *idle;			/* of each rank: its last threadblock that begins and ends; -1: none */
	Mscclpp *plan;
	int *block_room, *remote_room, *semaphore_room, *peer_room;	/* of each rank; the last: and type */
	bool has_stars;
	const char *too_many;		/* what does not fit; NULL: all does */
	int at_rank;
};

/* There is no room for more of `what` at a rank: the first is kept. */
void writer_full(struct writer *w, int rank, const char *what);
bool writer_is_port(const struct writer *w, int a, int b);	/* in different servers */
struct node *writer_node(const struct writer *w, int p, int r);
int writer_count(const struct writer *w, int p);		/* chunks of a piece */

/* A new threadblock of a rank, and its number; an operation at its end, a nop only after another operation. */
Status writer_add_work(struct writer *w, int rank, int piece, int *out);
Status writer_add_op(struct writer *w, struct work *work, MscclppKind kind, MscclppOp **out);
Status writer_add_nop(struct writer *w, struct work *work);

/* hops.c: what the threadblocks of a piece have to do, by its hops. operations.c: the operations for that. */
Status writer_add_hops(struct writer *w, int p);
Status writer_add_ops(struct writer *w, struct work *work);

/* The number of this buffer of another rank in a threadblock. */
Status writer_get_remote(struct writer *w, struct work *work, int type, int rank, MscclppBuffer buffer, int *id);

#endif
