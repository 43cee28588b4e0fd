/* A rank's connection to the hub: what its thread and its callers share. */
#ifndef BLINK_BOOTSTRAP_INSIDE_H
#define BLINK_BOOTSTRAP_INSIDE_H

#include "bootstrap/wire.h"

#define SECOND INT64_C(1000000000)

struct exchange {
	bool given, done, late;		/* late: the hub has been told */
	const void *mine;
	size_t bytes;
	void *all;
	int64_t deadline, patience;
};

struct investigation {
	bool wanted, told;
	bool changed;			/* by the caller; the hub does not know yet */
	int64_t deadline, patience, since;
	int64_t asked_at;		/* the hub has asked us, so it lives */
};

struct bootstrap {
	pid_t owner;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;		/* exchange.done or failure */
	struct descriptor socket, wake;
	int n, rank, hub_rank;
	struct bootstrap_events events;
	unsigned char secret[SECRET_BYTES];
	unsigned char own[ADDRESS_BYTES], hub[ADDRESS_BYTES];
	char interface[sizeof(((struct id *)0)->interface)];

	/* by the lock */
	bool exchanging;
	struct exchange exchange;
	struct investigation stuck;
	struct blink_error failure;	/* code blinkSuccess: none */
	bool fail_wanted, fail_said;	/* said: the kernel has it, or there is no hub */
	struct failure fail;
	bool joined, leaving;
	uint64_t calls;

	/* of the thread */
	struct reader in;
	struct writer out;
	bool gone;			/* the hub: no connection */
	bool hub_may_end;
	bool no_answer;			/* the hub was found to be silent */
	bool said_farewell;
	int64_t leave_until;
};

/* The thread, until the farewell; of: the struct bootstrap. */
void *bootstrap_run(void *of);

/* Put a frame behind what waits to be written. False: no memory. Of the thread, or before it begins. */
bool bootstrap_tell(struct bootstrap *b, enum frame_kind kind, const void *body, size_t bytes);

#endif
