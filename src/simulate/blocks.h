/* Threadblocks that wait, are woken, and send messages over links, by discrete events: what simulations of programs
 * share. A kind of program embeds struct blocks as its first member. */
#ifndef BLINK_SIMULATE_BLOCKS_H
#define BLINK_SIMULATE_BLOCKS_H

#include "simulate/run.h"

struct blocks;

/* What a kind of program does, in no time. */
struct blocks_kind {
	Status (*go_on)(struct blocks *b, int t);	/* a threadblock that was woken, as far as it can */
	Status (*happens)(struct blocks *b, Event event);	/* of blocks_after */
	Status (*moved)(struct blocks *b, int hop);	/* its bytes have */
};

struct blocks {
	struct net net;			/* bytes: of the message that each hop sends, on links */
	struct run run;			/* links, clocks, events, result; a slot for each hop */
	SimAsk ask;			/* as links.c is to see it: no packets, and chunks of any size */
	const SimAsk *asked;
	const struct blocks_kind *kind;
	const SimPlan *plan;
	const char *name;		/* of the program */
	int *woken, n_woken;
	bool *is_woken;
	Wide *moved;			/* of each link: bytes without flags */
};

/* n threadblocks that send by the hops of a plan, which has no segments. *out: in the run arena, but for time and last
 * message not yet known. */
Status blocks_new(Ctx *ctx, const SimPlan *plan, const char *name, const struct blocks_kind *kind, int n,
    const SimAsk *asked, SimResult *out, struct blocks *b);

/* That the numbers of messages and of steps of threadblocks are not too large. cut: what they depend on, for the
 * message; kept messages have room in the result. Fails: LIMIT. */
Status blocks_room(struct blocks *b, Wide messages, Wide steps, const char *cut);

void blocks_wake(struct blocks *b, int t);

/* ps from now. Fails: LIMIT. */
Status blocks_after(struct blocks *b, int64_t wait, int id, int message);

/* The next message, which begins now by `cause`: its number. blocks_move: its bytes begin to move; wire: with flags. */
int blocks_begin(struct blocks *b, int hop, int cause, int64_t number);
void blocks_move(struct blocks *b, int hop, int message, int64_t bytes, int64_t wire);
void blocks_end(struct blocks *b, int message);		/* at its sender */
void blocks_arrive(struct blocks *b, int message);

/* All threadblocks are woken after the call, and what follows happens. */
Status blocks_run(struct blocks *b, int n);

#endif
