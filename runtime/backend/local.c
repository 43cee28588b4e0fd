/* The ranks on this rank's server, and their memory. */
#include "backend/rank.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

int
local_index(const struct rank_state *r, int rank)
{
	int index = 0;
	for (int i = 0; i < rank; i++)
		index += r->server[i] == r->server[rank];
	return index;
}

int
map_local(const struct rank_state *r, struct shm *own, const void *addresses, size_t step, size_t least,
    int64_t deadline, char **memory, struct blink_error *err)
{
	struct shm_peer *peer = calloc((size_t)r->n_local, sizeof *peer);
	int n = 0;
	if (!peer)
		return set_error_memory(err);
	for (int i = 0; i < r->n_ranks; i++) {
		if (i == r->rank || !r->settings.shm || r->server[i] != r->server[r->rank])
			continue;
		peer[n].rank = i;
		peer[n].least = least;
		memcpy(peer[n++].address, (const char *)addresses + (size_t)i * step, SHM_ADDRESS);
	}
	shm_exchange(own, r->rank, peer, n, deadline, &r->stop, err);
	for (int i = 0; i < n; i++)
		memory[peer[i].rank] = peer[i].memory;
	free(peer);
	return err->code;
}
