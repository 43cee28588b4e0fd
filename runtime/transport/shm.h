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

/* Another kind of memory, which a descriptor stands for, that the peers import by means of their own: it is handed
 * over, and not mapped. Threads of this process get `memory`, which may be any pointer but NULL. fd: closed by
 * shm_close; -1: there are no other processes. Peers do the same. */
int shm_open_handle(int fd, void *memory, const struct net_keys *keys, unsigned char address[SHM_ADDRESS],
    struct shm **out, struct blink_error *err);

/* Called when this rank and all its peers in this process have forgotten the memory, before it is unmapped, by the
 * thread of the last. forked: this is a child of the process that it belongs to. */
void shm_when_free(struct shm *own, void (*release)(void *of, bool forked), void *of);

struct shm_peer {
	int rank;			/* of the communicator */
	unsigned char address[SHM_ADDRESS];
	size_t least;			/* bytes that its memory has at least, if it is of shm_open_own */
	void *memory;			/* its memory here: set by shm_exchange */
	int fd;				/* set by shm_exchange: the descriptor of memory of another process, which the
					 * caller closes, if that is of shm_open_handle; else -1 */
};

/* Map the memory of the peers, who call it too; or take their descriptors. rank: this one. Fails: blinkTimeout, naming
 * a peer, at the deadline; blinkSystemError where a peer is not reached: another network or user namespace, or it has
 * ended; blinkAborted soon after *stop is set. Does not wait in turn: any order of peers will do. */
int shm_exchange(struct shm *own, int rank, struct shm_peer *peer, int n_peers, int64_t deadline,
    const _Atomic int *stop, struct blink_error *err);

/* Unmap the memory of the peers, of all exchanges: nobody reads there any more. */
void shm_forget_peers(struct shm *own);

/* NULL is allowed. Forgets the peers, too. Memory of a thread of this process stays until the last of its peers has
 * forgotten it. */
void shm_close(struct shm *own);

#endif
