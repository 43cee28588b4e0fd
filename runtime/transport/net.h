/* Data between ranks on different servers: messages from memory to memory. */
#ifndef BLINK_NET_H
#define BLINK_NET_H

#include "blink_program.h"

#include <stdbool.h>

/* The engine publishes chunks in lanes (engine/lanes.h). Within a server a reader finds them in shared memory;
 * between servers a net carries each chunk into memory of the reader, and the reader's `done` back. A message of no
 * bytes sets a flag and no more.
 *
 * The sender's memory stays valid and unchanged until the reader has sent `done` for it, which the engine waits for:
 * a net needs no copy of its own. A receiver may have no place for a message yet, if its rank is not in that call:
 * the net then reads no further from that connection until net_resume. Messages of one lane arrive in the order in
 * which they were sent; those of different lanes of a pair need not. */
struct net_message {
	uint32_t lane;		/* of the pair; the highest bit: `done`, from reader to publisher */
	uint32_t reserved;	/* 0 */
	uint64_t flag;		/* the value to set (engine/lanes.h) */
	uint64_t signature;
	uint64_t bytes;
};

/* Called by the net's thread; one at a time for a peer. */
struct net_events {
	void *context;
	/* Where the bytes of the message belong; NULL: not known yet. */
	void *(*place)(void *context, int from, const struct net_message *m);
	void (*arrived)(void *context, int from, const struct net_message *m);
	/* The connection to a peer has ended or does not make progress; reason: one line. */
	void (*broken)(void *context, int peer, const char *reason);
};

enum { NET_ADDRESS = 128 };

/* Of a message's lane: from reader to publisher; of a channel for send and receive. */
#define NET_DONE ((uint32_t)1 << 31)
#define NET_CHANNEL ((uint32_t)1 << 30)

/* What a net takes from the job: the address on which others reach this process (a sockaddr_in or sockaddr_in6
 * without port), and a signature by which both ends of a connection prove that they belong to it. */
struct net_keys {
	void *context;
	unsigned char address[28];
	void (*sign)(void *context, const void *text, size_t bytes, unsigned char out[32]);
};

/* A row for each kind of network; transport/net.c has the table, best first. BLINK_NET chooses by name. */
struct net_kind {
	const char *name;		/* "tcp", "ucx" */
	const char *what;		/* one line, for BLINK_DEBUG=INFO */
	/* Can it be used here? Opens libraries at run time; false with why[256] filled. */
	bool (*available)(char why[256]);
	/* listen: this rank's address for others, at most NET_ADDRESS bytes, which all ranks exchange. */
	int (*open)(int rank, int n_ranks, const struct net_events *events, const struct net_keys *keys,
	    void *address, void **net, struct blink_error *err);
	/* Peers' addresses, n_ranks * NET_ADDRESS bytes. Connections are made when first needed, and do not wait. */
	int (*connect)(void *net, const void *addresses, struct blink_error *err);
	int (*send)(void *net, int to, const struct net_message *m, const void *payload);
	void (*resume)(void *net, int from);	/* there is a place now for what `place` had none for */
	/* All that was sent has been handed to the network, or the deadline has passed; then end the thread and free. */
	void (*close)(void *net, int64_t deadline);
};

/* NULL-terminated. */
extern const struct net_kind *const net_kinds[];

#endif
