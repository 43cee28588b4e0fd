/* The ranks on this rank's server, and their memory. */
#include "comm/comm.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

bool
rank_is_local(const struct rank_comm *r, int rank)
{
	return r->settings.shm && r->server[rank] == r->server[r->engine.rank];
}

int
local_index(const struct rank_comm *r, int rank)
{
	int index = 0;
	for (int i = 0; i < rank; i++)
		index += r->server[i] == r->server[rank];
	return index;
}

int
map_local(const struct rank_comm *r, struct shm *own, const void *addresses, size_t step, size_t least,
    int64_t deadline, char **memory, struct blink_error *err)
{
	const struct engine *e = &r->engine;
	struct shm_peer *peer = calloc((size_t)e->n_local, sizeof *peer);
	int n = 0;
	if (!peer)
		return set_error_memory(err);
	for (int i = 0; i < e->n_ranks; i++) {
		if (i == e->rank || !rank_is_local(r, i))
			continue;
		peer[n].rank = i;
		peer[n].least = least;
		memcpy(peer[n++].address, (const char *)addresses + (size_t)i * step, SHM_ADDRESS);
	}
	shm_exchange(own, e->rank, peer, n, deadline, &e->stop, err);
	for (int i = 0; i < n; i++)
		memory[peer[i].rank] = peer[i].memory;
	free(peer);
	return err->code;
}
