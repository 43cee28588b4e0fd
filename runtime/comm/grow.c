/* Grow: a communicator of these ranks and new ones.
 *
 * New ranks join by the id alone. Of the ranks that are there one has it, and an exchange hands it to the others. */
#include "comm/comm.h"
#include "support/error.h"

#include <stdlib.h>

struct offer {
	blinkUniqueId_t id;
	int32_t has, n;			/* n: ranks of the new communicator */
};

static int
grow(struct rank_comm *r, const struct offer *mine, struct offer *all, const blinkConfig_t *config, blinkComm_t *out,
    struct blink_error *err)
{
	int n = r->self.n_ranks, from = -1;
	if (bootstrap_allgather(r->bootstrap, mine, sizeof *mine, all, rank_comm_deadline(r), err) != blinkSuccess)
		return err->code;
	for (int i = n - 1; i >= 0; i--) {
		if (all[i].n != all[0].n)
			return set_error(err, blinkMismatch, "nRanks: rank %d has %d, rank 0 has %d: want the same", i,
			    (int)all[i].n, (int)all[0].n);
		from = all[i].has ? i : from;
	}
	if (from < 0)
		return set_error(err, blinkInvalidArgument, "id: no rank has one");
	return rank_comm_open_child(r, out, mine->n, &all[from].id, r->self.rank, config, err);
}

blinkResult_t
blinkCommGrow(blinkComm_t comm, int nRanks, const blinkUniqueId_t *id, blinkComm_t *grown, const blinkConfig_t *config,
    blinkError_t *error)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r || !grown)
		return blinkInvalidArgument;
	struct offer mine = { .has = id != NULL, .n = nRanks };
	struct offer *all = NULL;
	if (id)
		mine.id = *id;
	if (nRanks <= r->self.n_ranks || nRanks > LIMIT_COMM_RANKS)
		set_error(&err, blinkInvalidArgument, "nRanks: %d: want %d to %d", nRanks, r->self.n_ranks + 1,
		    (int)LIMIT_COMM_RANKS);
	else if (!(all = calloc((size_t)r->self.n_ranks, sizeof *all)))
		set_error_memory(&err);
	else
		grow(r, &mine, all, config, grown, &err);
	free(all);
	if (err.code == blinkSuccess)
		return blinkSuccess;
	comm_error(comm, &err);
	return give_blink_error(error, &err);
}
