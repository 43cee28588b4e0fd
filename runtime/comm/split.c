/* Split: a communicator for each color.
 *
 * The ranks exchange colors and keys by the hub of the communicator; in each color the rank that comes first makes a
 * unique id, and a second exchange hands it to the others. */
#include "comm/comm.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

struct choice {
	int32_t color, key;
};

struct offer {
	blinkUniqueId_t id;
	int32_t code;			/* 0: this rank could make one, or had not to */
};

/* Does rank a come before b? */
static bool
before(const struct choice *all, int a, int b)
{
	return all[a].key != all[b].key ? all[a].key < all[b].key : a < b;
}

/* The rank's number in its color, how many it has, and which rank of the parent is the first. */
static void
find_place(const struct choice *all, int n, int me, int *rank, int *size, int *first)
{
	*rank = *size = 0;
	*first = me;
	for (int i = 0; i < n; i++) {
		if (all[i].color != all[me].color)
			continue;
		++*size;
		*rank += before(all, i, me);
		if (before(all, i, *first))
			*first = i;
	}
}

int
rank_comm_open_child(struct rank_comm *r, blinkComm_t *out, int n, const blinkUniqueId_t *id, int rank,
    const blinkConfig_t *config, struct blink_error *err)
{
	const blinkConfig_t same = { .chunkBytes = (size_t)r->self.settings.chunk,
	    .timeoutMs = r->self.timeout / 1000000, .schedules = r->schedules, .gpu = r->gpu,
	    .backend = r->backend->name };
	return comm_open(out, n, id, rank, config ? config : &same, r, err);
}

static int
split(struct rank_comm *r, struct choice mine, const blinkConfig_t *config, blinkComm_t *out, struct choice *all,
    struct offer *offers, struct blink_error *err)
{
	struct rank_state *self = &r->self;
	struct offer offer = { .code = 0 };
	int rank, size, first;
	if (bootstrap_allgather(r->bootstrap, &mine, sizeof mine, all, rank_comm_deadline(r), err) != blinkSuccess)
		return err->code;
	find_place(all, self->n_ranks, self->rank, &rank, &size, &first);
	if (mine.color >= 0 && first == self->rank)
		offer.code = bootstrap_make_id(r->self.settings.interface, r->self.settings.secret, &offer.id, err);
	bootstrap_allgather(r->bootstrap, &offer, sizeof offer, offers, rank_comm_deadline(r), err);
	*out = NULL;
	if (err->code != blinkSuccess || mine.color < 0)
		return err->code;
	if (offers[first].code != blinkSuccess)
		return set_error(err, offers[first].code, "rank %d could not make a unique id", first);
	return rank_comm_open_child(r, out, size, &offers[first].id, rank, config, err);
}

blinkResult_t
blinkCommSplit(blinkComm_t comm, int color, int key, blinkComm_t *out, const blinkConfig_t *config, blinkError_t *error)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r || !out)
		return blinkInvalidArgument;
	struct choice *all = calloc((size_t)r->self.n_ranks, sizeof *all);
	struct offer *offers = calloc((size_t)r->self.n_ranks, sizeof *offers);
	if (all && offers)
		split(r, (struct choice){ color, key }, config, out, all, offers, &err);
	else
		set_error_memory(&err);
	free(all);
	free(offers);
	if (err.code == blinkSuccess)
		return blinkSuccess;
	comm_error(comm, &err);
	return give_blink_error(error, &err);
}
