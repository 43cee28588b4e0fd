/* Shrink: a communicator of the ranks that are left.
 *
 * Those that are left out may be dead, or the process of the hub may be, so that nothing is asked of the communicator:
 * the ranks have told each other at init where each keeps a port (bootstrap/port.h). The lowest of those that are left
 * starts a hub there, and the others go there, and try again until it has. As one rank may be the lowest of several
 * shrinks, each of them has a secret of its own, made of who is left.
 *
 * A rank that has ended and is not left out would be waited for until the time is up. On the same host its port says
 * that it has. */
#include "comm/comm.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENDS_MS = 3000 };

/* left[n_ranks]: 1 for each rank that is left. */
static int
find_left(const struct rank_state *self, const int *excluded, int n, char *left, struct blink_error *err)
{
	memset(left, 1, (size_t)self->n_ranks);
	for (int i = 0; i < n; i++) {
		if (excluded[i] < 0 || excluded[i] >= self->n_ranks)
			return set_error(err, blinkInvalidArgument, "excluded[%d]: %d: want 0 to %d", i, excluded[i],
			    self->n_ranks - 1);
		if (!left[excluded[i]])
			return set_error(err, blinkInvalidArgument, "excluded[%d]: %d: it is there twice", i,
			    excluded[i]);
		left[excluded[i]] = 0;
	}
	if (!left[self->rank])
		return set_error(err, blinkInvalidArgument, "excluded: has rank %d itself: want only those that are "
		    "left to call it", self->rank);
	return blinkSuccess;
}

static bool
has_port(const blinkUniqueId_t *place)
{
	static const blinkUniqueId_t none;
	return memcmp(place, &none, sizeof none) != 0;
}

/* Who has broken its connection may still be about to end. */
static void
let_end(const struct rank_comm *r, const char *left)
{
	int i = atomic_load(&r->culprit);
	if (i < 0 || i == r->self.rank || !left[i] || !has_port(&r->place[i]))
		return;
	for (int ms = 0; ms < ENDS_MS && bootstrap_port_kept(&r->place[i]); ms += 10)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

static int
find_ended(const struct rank_comm *r, const char *left, struct blink_error *err)
{
	let_end(r, left);
	for (int i = 0; i < r->self.n_ranks; i++)
		if (left[i] && i != r->self.rank && has_port(&r->place[i]) && !bootstrap_port_kept(&r->place[i]))
			return set_error(err, blinkRemoteError, "rank %d has left the communicator, or its process has "
			    "ended: want it excluded", i);
	return blinkSuccess;
}

/* The ranks that are left have numbers of their own. Apart, so that its text is not on the stack of the shrink. */
__attribute__((noinline)) static int
explain(const struct rank_comm *r, int first, int size, struct blink_error *err)
{
	const struct blink_error found = *err;
	if (found.code != blinkTimeout)
		return found.code;
	*err = (struct blink_error){ 0 };
	return set_error(err, blinkTimeout, "shrink to %d of %d ranks, which meet at rank %d: by their new numbers: "
	    "%.300s: want all excluded that have ended", size, r->self.n_ranks, first, found.text);
}

static int
meet(struct rank_comm *r, const char *left, const blinkConfig_t *config, blinkComm_t *out, struct blink_error *err)
{
	int n = r->self.n_ranks, me = r->self.rank, first = me, rank = 0, size = 0;
	blinkUniqueId_t id;
	for (int i = n - 1; i >= 0; i--) {
		first = left[i] ? i : first;
		size += left[i];
		rank += left[i] && i < me;
	}
	id = r->place[first];
	if (n > 1 && !has_port(&id))
		return set_error(err, blinkSystemError, "rank %d, the lowest that is left, had no port to keep for a "
		    "shrink", first);
	if (n > 1 && find_ended(r, left, err) != blinkSuccess)
		return err->code;
	if (n > 1)
		bootstrap_id_of(&id, left, (size_t)n);
	if (first == me && (n > 1 ? bootstrap_open_port(r->port, &id, r->self.settings.secret, err)
	    : bootstrap_make_id(r->self.settings.interface, r->self.settings.secret, &id, err)) != blinkSuccess)
		return err->code;
	if (rank_comm_open_child(r, out, size, &id, rank, config, err) != blinkSuccess)
		return explain(r, first, size, err);
	return blinkSuccess;
}

blinkResult_t
blinkCommShrink(blinkComm_t comm, const int *excluded, int nExcluded, blinkShrink_t how, blinkComm_t *shrunk,
    const blinkConfig_t *config, blinkError_t *error)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r || !shrunk || nExcluded < 0 || (nExcluded && !excluded)
	    || (how != blinkShrinkDefault && how != blinkShrinkAbort))
		return blinkInvalidArgument;
	char *left = malloc((size_t)r->self.n_ranks);
	if (!left)
		set_error_memory(&err);
	else if (find_left(&r->self, excluded, nExcluded, left, &err) == blinkSuccess) {
		if (how == blinkShrinkAbort)
			blinkCommAbort(comm);
		if (how == blinkShrinkAbort || rank_comm_wait(r, 0, true, &err) == blinkSuccess)
			meet(r, left, config, shrunk, &err);
	}
	free(left);
	if (err.code == blinkSuccess)
		return blinkSuccess;
	comm_error(comm, &err);
	return give_blink_error(error, &err);
}
