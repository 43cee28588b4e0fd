/* One rank of a job, as all see it who work for it: its communicator, its backend, and the network's thread. */
#ifndef BLINK_BACKEND_RANK_H
#define BLINK_BACKEND_RANK_H

#include "backend/call.h"
#include "bootstrap/bootstrap.h"
#include "support/settings.h"
#include "transport/net.h"
#include "transport/shm.h"

#include <pthread.h>
#include <stdatomic.h>

struct backend;

/* What has become of another rank. */
struct rank_peer {
	_Atomic int64_t gone_at;	/* ns: it has left, or the net does not reach it any more; 0: it is there */
	char *gone;			/* why; written before gone_at */
	bool left;			/* it said farewell before anything failed; the bootstrap's thread alone */
};

/* What a backend asks of its communicator, and tells it. Set once, before the backend opens. */
struct rank_events {
	void *context;
	/* The plan for a collective; the same each time for the same call. */
	int (*plan)(void *context, const struct call *call, struct plan **out, struct blink_error *err);
	/* A collective begins: a call that is to be executed before it, as the same number, or NULL; it may set
	 * chunk_bytes. A collective has ended. Both NULL: nobody listens. Of the host engine alone. */
	int (*begins)(void *context, const struct call *call, struct call **before, struct blink_error *err);
	void (*ended)(void *context, const struct call *call);
	/* The rank has waited for `deadline - patience`; it goes on; and it has never waited. */
	void (*stuck)(void *context, int64_t deadline, int64_t patience);
	void (*progress)(void *context);
	/* A defect on this rank that the others must hear of. */
	void (*failed)(void *context, const struct blink_error *err, int culprit);
	/* Every rank contributes as many bytes, and all get all (bootstrap_allgather). */
	int (*exchange)(void *context, const void *mine, size_t bytes, void *all, int64_t deadline,
	    struct blink_error *err);
	/* Has one of the schedules parts that go over PCIe, beside others that do not? */
	bool (*has_routes)(void *context);
};

struct rank_state {
	int rank, n_ranks;
	int n_local;			/* ranks whose memory this one can map, itself included */
	int local_index;		/* its number among them */
	const int *server;		/* of each rank */
	const void *parent;		/* the backend's state of the communicator that it is made of; NULL: none */
	int64_t timeout;		/* ns */
	int64_t deadline;		/* of init */
	int64_t chunk_bytes;		/* 0: chosen */
	int spins;			/* looks at a flag before it gives way or sleeps; 0 where ranks share CPUs */
	bool yields;			/* it gives way before it sleeps: there is no CPU beside those of the ranks */
	bool pins;			/* there are cores for all local ranks: threads are bound to them */
	struct settings settings;
	struct net_keys keys;
	struct rank_events events;
	const struct net_kind *net;	/* NULL: all ranks are on this server */
	void *net_handle;
	char device[32];		/* PCI address of the GPU that the backend has taken; "": none */

	_Atomic int awaits;		/* rank whose flag it waits for; -1 */
	_Atomic int shortage;		/* why the net accepts no connections: an errno; 0: it does */
	struct rank_peer *peer;		/* of each rank */

	pthread_mutex_t lock;		/* of `error`; and of the host engine's queue */
	struct blink_error error;	/* after it, all calls fail */
	_Atomic int stop;		/* an error has been set */

	pthread_mutex_t hear_lock;	/* of what follows */
	const struct backend *backend;	/* that hears; NULL: none does, yet or any more */
	void *of_backend;
};

/* rank and n_ranks have been set. Whatever it returns, rank_close frees. */
int rank_open(struct rank_state *r, struct blink_error *err);
void rank_close(struct rank_state *r);

/* From now on, or until `backend` is NULL, it is woken by what happens, and asked. What has happened already wakes it
 * at once. */
void rank_hears(struct rank_state *r, const struct backend *backend, void *of_backend);

/* ---- from any thread; no lock is held ---- */

/* All calls fail from now on; the first error counts. */
void rank_fail(struct rank_state *r, int code, const char *text);

/* The same for what fails on this rank: the others are told first. culprit: the rank to blame; -1: this one. */
void rank_fail_here(struct rank_state *r, const struct blink_error *err, int culprit);
void rank_error(struct rank_state *r, struct blink_error *out);

/* A peer has left, or its connection has ended. An error for who still waits for it, after a grace in which a better
 * reason may come from the hub. reason: one line. */
void rank_peer_gone(struct rank_state *r, int peer, const char *reason);

/* What the hub asks of a rank that waits, or is waited for. */
void rank_status_of(struct rank_state *r, struct rank_status *out);

/* By the net, to a peer that it reaches. The rank fails if there is no memory for the message. */
void rank_send(struct rank_state *r, int to, const struct net_message *m, const void *payload);

/* ---- ranks on this server ---- */

/* Number of a rank among those on its server, in order. */
int local_index(const struct rank_state *r, int rank);

/* Exchange memory with all local ranks, which do the same (shm_exchange). addresses: the first rank's, of SHM_ADDRESS
 * bytes; each other's `step` bytes after the one before. least: bytes of each memory. memory: of each rank; set for the
 * local ones but this. */
int map_local(const struct rank_state *r, struct shm *own, const void *addresses, size_t step, size_t least,
    int64_t deadline, char **memory, struct blink_error *err);

#endif
