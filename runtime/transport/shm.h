/* Shared memory between the ranks of a server: anonymous, and gone with the processes that have it. */
#ifndef BLINK_SHM_H
#define BLINK_SHM_H

#include "transport/net.h"

/* A rank's memory is a memfd, which has no name: it is handed to the peers over Unix sockets in the abstract namespace
 * (SCM_RIGHTS), and nothing of it is left in /dev/shm or elsewhere when processes end, however they end. */

enum { SHM_ADDRESS = 32 };

struct shm;

/* Memory of this rank, zeroed, and a socket where peers ask for it. bytes: only pages that are touched take memory.
 * address: for the peers. keys: by which both ends of a socket prove that they belong to the job. */
int shm_open_own(size_t bytes, const struct net_keys *keys, unsigned char address[SHM_ADDRESS], struct shm **out,
    struct blink_error *err);
void *shm_memory(const struct shm *own);

struct shm_peer {
	int rank;			/* of the communicator */
	unsigned char address[SHM_ADDRESS];
	void *memory;			/* its memory here: set by shm_exchange */
};

/* Map the memory of the peers, who call it too: rank: this one. Fails: blinkTimeout, naming a peer, at the deadline;
 * blinkSystemError where a peer is not reached: another network or user namespace, or it has ended; blinkAborted soon
 * after *stop is set. Does not wait in turn: any order of peers will do. */
int shm_exchange(struct shm *own, int rank, struct shm_peer *peer, int n_peers, int64_t deadline,
    const _Atomic int *stop, struct blink_error *err);

/* Unmap the memory of the peers, of all exchanges: nobody reads there any more. */
void shm_forget_peers(struct shm *own);

/* NULL is allowed. Forgets the peers, too. Memory of a thread of this process stays until the last of its peers has
 * forgotten it. */
void shm_close(struct shm *own);

#endif
