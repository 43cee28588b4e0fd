/* Bootstrap: ranks find each other by a unique id, exchange small data, and hear of each other's end. */
#ifndef BLINK_BOOTSTRAP_H
#define BLINK_BOOTSTRAP_H

#include "blink_program.h"

#include <stdbool.h>

/* A unique id says where a hub listens: a thread of the process that made it, to which every rank keeps a TCP
 * connection while its communicator lives. The hub collects what ranks contribute and hands it to all; when a
 * connection ends without a farewell it tells the others who died; when a rank waits too long it asks all ranks what
 * they are doing and tells everybody which one is to blame. All connections begin with a challenge that only who
 * knows the id's secret can answer (HMAC-SHA-256, both ways); others are dropped without harm, after a second at
 * most, however many they are.
 *
 * Times are in ns of CLOCK_MONOTONIC: deadlines, at which a call returns blinkTimeout with a text that names ranks. */

/* What a rank is doing, as the hub asks when some rank waits too long. Fixed size; no padding; zeroed before it is
 * filled. */
struct rank_status {
	uint64_t calls;		/* collective calls entered so far */
	uint64_t signature;	/* of the current call, or of the last: all ranks' must be the same for the same number,
				 * but for 0, which is not compared */
	uint64_t before;	/* the same of call number `calls` - 1: a rank may be a call ahead of those it misled */
	uint32_t in_call;	/* 1: it has not finished call number `calls` */
	int32_t awaits;		/* the rank whose data it waits for; -1: none */
	int32_t shortage;	/* why it accepts no connections of other ranks: an errno; 0: it does; EUSERS: it does,
				 * but strangers crowd its port */
	char text[108];		/* the call: "allreduce of 1000 float32, sum, schedule sha256:0123456789ab" */
};

/* Called by the thread of a connection, never at the same time as each other; from when all ranks have come, which may
 * be before bootstrap_join has returned, until bootstrap_leave returns. They may call bootstrap_fail, _stuck and
 * _progress. */
struct bootstrap_events {
	void *context;
	/* The communicator has failed: rank `culprit` (-1: not known) is to blame. Once, and not after bootstrap_fail.
	 * text: for the user, one line. */
	void (*failed)(void *context, int code, int culprit, const char *text);
	/* A rank has said farewell after that many calls; who waits for more of it waits in vain. */
	void (*left)(void *context, int rank, uint64_t calls);
	void (*ask)(void *context, struct rank_status *out);
};

struct bootstrap;

/* Start a hub in this process. interface: BLINK_SOCKET_IFNAME in NCCL's syntax ("eth", "=eth0", "^docker,lo",
 * comma-separated), NULL: the first that is up and not loopback or docker, else loopback. IPv4 and IPv6.
 * secret: BLINK_SECRET_FILE (secret.h), here and where ranks join; NULL: none. */
int bootstrap_make_id(const char *interface, const char *secret, blinkUniqueId_t *id, struct blink_error *err);

/* Join: contributes `bytes` bytes (at most 4096) and returns those of all ranks, in order, in all[n * bytes], once
 * all n are there. Fails with blinkInvalidArgument on every rank if two ranks have the same number or differ in n or
 * bytes; with blinkTimeout, naming the ranks that have not come, at the deadline. */
int bootstrap_join(const blinkUniqueId_t *id, const char *secret, int n, int rank, const void *mine, size_t bytes,
    void *all, int64_t deadline, const struct bootstrap_events *events, struct bootstrap **out,
    struct blink_error *err);

/* Every rank contributes as many bytes, at most 65536; all get all. Ranks call it in the same order; one at a time.
 * When it fails the communicator has failed: blinkTimeout names ranks that have not come, blinkMismatch one that gives
 * other bytes, blinkRemoteError one that has left. */
int bootstrap_allgather(struct bootstrap *b, const void *mine, size_t bytes, void *all, int64_t deadline,
    struct blink_error *err);

/* Tell all other ranks that the communicator has failed here; they hear `failed` with this text, unless another failure
 * was first. Returns when it has been sent, or after 100 ms, so that the process may end then. */
void bootstrap_fail(struct bootstrap *b, int code, int culprit, const char *text);

/* This rank waits too long: at `deadline` its call times out. The hub asks all ranks (`ask`) and tells all, this one
 * too, by `failed` with blinkTimeout, blinkMismatch or blinkRemoteError, whom to blame and why: a rank that does not
 * answer ("rank 3 does not answer: stopped, or cut off"), one whose call differs ("rank 3 called ...; rank 0 called
 * ..."), one that has not made the call yet, or the one that the others wait for (verdict.h). Not before the deadline;
 * at it if all have answered the last question, else at most half a second or a tenth of `patience` (ns), whichever is
 * more, after it. If the hub does not answer by then `failed` names its rank; a hub that has shown half of `patience`
 * before that it lives gets as long again. To be called about `patience` before the deadline, again if the deadline
 * changes; bootstrap_progress takes it back. Patience 0: as soon as all have answered, or had a second to. Does not
 * wait. */
void bootstrap_stuck(struct bootstrap *b, int64_t deadline, int64_t patience);
void bootstrap_progress(struct bootstrap *b);

/* Farewell after that many calls; closes the connection and frees. Also after a failure. Waits until the hub has heard
 * it, a second at most: no lock may be held that the events take. NULL is allowed. In a forked child: frees alone. When
 * all ranks of the hub's process have left, it may end: the others go on, but hear of no more deaths and can have no
 * exchange. */
void bootstrap_leave(struct bootstrap *b, uint64_t calls);

/* The address of this process by which ranks on other servers reach it, as of the interface of the connection to the
 * hub: a sockaddr_in or sockaddr_in6 without port, in 28 bytes, zero padded. The scope of one that is link-local is a
 * number of this server. */
void bootstrap_address(const struct bootstrap *b, unsigned char out[28]);
const char *bootstrap_interface(const struct bootstrap *b);

/* Keyed by the id's secret: HMAC-SHA-256 of a text, for who else must prove that it belongs to the job. */
void bootstrap_sign(const struct bootstrap *b, const void *text, size_t bytes, unsigned char out[32]);

#endif
