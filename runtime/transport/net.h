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
 * the net then reads no further from that connection until `resume`. Messages of one lane arrive in the order in
 * which they were sent; those of different lanes of a pair need not.
 *
 * A peer proves once, as a connection begins, that it belongs to the job. What it sends after that is as it wrote it:
 * the net checks that bytes land within the place that they were given, and the events check the rest. */
struct net_message {
	uint32_t lane;		/* of the pair, with NET_DONE and NET_CHANNEL */
	uint32_t place;		/* where the reader has it, as its engine counts: nets carry it as it is */
	uint64_t flag;		/* the value to set (engine/lanes.h) */
	uint64_t signature;
	uint64_t bytes;
};

/* Of a message's lane: from reader to publisher; of a channel for send and receive. The rest is below NET_LANES. */
#define NET_DONE ((uint32_t)1 << 31)
#define NET_CHANNEL ((uint32_t)1 << 30)
#define NET_LANES ((uint32_t)1 << 16)

/* What `place` returns for a message that cannot be: the peer is broken. */
#define NET_REFUSED ((void *)-1)

/* Called by the net's thread, one at a time, until `close` has returned. They may call `send` and `resume`. */
struct net_events {
	void *context;
	/* Where the bytes of the message belong, of which there are some; NULL: not known yet. It is asked for again
	 * after NULL; and for messages that follow one that has not arrived yet. */
	void *(*place)(void *context, int from, const struct net_message *m);
	void (*arrived)(void *context, int from, const struct net_message *m);
	/* The connection to a peer has ended or does not make progress; reason: one line that names the peer. Once for
	 * a peer; nothing arrives from it afterwards. Not for a peer that has closed its net in order, unless something
	 * is sent to it after that. */
	void (*broken)(void *context, int peer, const char *reason);
	/* Connections of peers cannot be accepted, since something is short: an errno, as EMFILE; EUSERS: they can, but
	 * so many strangers connect that peers may be dropped with them, and try again; 0: they can again.
	 * NULL is allowed. */
	void (*short_of)(void *context, int error);
};

enum { NET_ADDRESS = 128 };

/* What a net takes from the job: the address on which others reach this process (a sockaddr_in or sockaddr_in6
 * without port), and a signature by which both ends of a connection prove that they belong to it. */
struct net_keys {
	void *context;
	unsigned char address[28];
	void (*sign)(void *context, const void *text, size_t bytes, unsigned char out[32]);
	int64_t patience;	/* ns without any sign of a peer's host after which the peer is broken; 0: 20 s */
	int zero_copy;		/* TCP: 0: where it pays; above: wherever the kernel does it; below: never */
};

/* A row for each kind of network; transport/kinds.c has the table, best first. BLINK_NET chooses by name. */
struct net_kind {
	const char *name;		/* "tcp" */
	const char *what;		/* one line, for BLINK_DEBUG=INFO */
	/* Can it be used here? Opens libraries at run time; false with why[256] filled. */
	bool (*available)(char why[256]);
	/* listen: this rank's address for others, NET_ADDRESS bytes, zero padded, which all ranks exchange. *events and
	 * *keys are copied. Fails: blinkSystemError, blinkOutOfMemory. */
	int (*open)(int rank, int n_ranks, const struct net_events *events, const struct net_keys *keys,
	    void *address, void **net, struct blink_error *err);
	/* Peers' addresses, n_ranks * NET_ADDRESS bytes. Connections are made when first needed, and do not wait.
	 * Fails: blinkMismatch, an address of another kind of net; blinkSystemError, blinkOutOfMemory. */
	int (*connect)(void *net, const void *addresses, struct blink_error *err);
	/* By any thread, after connect; never blocks. A blinkResult_t: blinkInvalidArgument, a rank or a lane that does
	 * not exist; blinkRemoteError, the peer is broken; blinkOutOfMemory. Nothing is sent unless blinkSuccess. */
	int (*send)(void *net, int to, const struct net_message *m, const void *payload);
	/* A call has failed: what has not been sent yet is not sent any more, and when this returns the net reads no
	 * memory that was given to `send`. By any thread but the net's, while none is in `send`; after it `send` fails
	 * with blinkRemoteError. May be called again. */
	void (*abandon)(void *net);
	/* There is a place now for what `place` had none for. By any thread; costs little where nothing waits. */
	void (*resume)(void *net, int from);
	/* All that was sent has been handed to the network, or the deadline (ns, CLOCK_MONOTONIC) has passed; then end
	 * the thread and free; no memory that was given to `send` is read after it. Not while another call runs. NULL
	 * is allowed. In a forked child: frees alone. */
	void (*close)(void *net, int64_t deadline);
};

/* NULL-terminated. */
extern const struct net_kind *const net_kinds[];

#endif
