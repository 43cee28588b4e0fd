/* Shared memory of a rank, for its own files. */
#ifndef BLINK_SHM_INSIDE_H
#define BLINK_SHM_INSIDE_H

#include "transport/shm.h"

#include <sys/socket.h>
#include <sys/un.h>

/* Of a peer's memory: mapped here, or shared with a thread of this process, whose addresses serve as they are. */
struct mapping {
	void *memory;
	size_t bytes;
	struct shm *same;
	struct mapping *next;
};

struct shm {
	_Atomic int users;		/* this rank, and its peers in this process */
	pid_t process;			/* whose rank it is */
	unsigned char address[SHM_ADDRESS];
	int fd, listener;
	void *memory;
	size_t bytes;
	bool handle;			/* the descriptor is handed over as it is (shm_open_handle) */
	void (*release)(void *of, bool forked);	/* NULL: nobody listens */
	void *release_of;
	const struct net_keys *keys;
	struct mapping *mapped;		/* of peers */
	int lack;			/* why no descriptor could be taken: errno; 0 */
	struct shm *next;		/* of open_here */
};

/* That of a thread of this process, with one more user; NULL: it is another process's. */
struct shm *shm_find_open(const unsigned char address[SHM_ADDRESS]);

/* One user less: the last one frees it. */
void shm_drop(struct shm *of);

/* The abstract name of the socket, and its length. */
socklen_t shm_name(const unsigned char address[SHM_ADDRESS], struct sockaddr_un *out);

#endif
