/* Windows: what of the callers' memory all ranks have registered.
 *
 * Memory is a memfd from the beginning, so that registering needs no copy. To register is to exchange descriptors,
 * which all ranks of a server do at once: the hub hands round where, and shm_exchange does the rest. What is mapped
 * then is unmapped when it is taken back, so that a rank's memory is gone once the rank has freed it.
 *
 * A window has the same number on all ranks, by which readers know it (WHERE): they compare it each time. */
#include "engine/engine.h"
#include "support/clock.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

struct offer {
	unsigned char address[SHM_ADDRESS];
	int32_t number;			/* of the window; 0: what the caller gave is not valid */
};

static int
free_number(const struct engine *e)
{
	for (int w = 1; w <= WINDOWS; w++)
		if (!atomic_load(&e->window[w]))
			return w;
	return 0;
}

static int64_t
deadline_of(const struct engine *e)
{
	return now_ns() + e->self->timeout;
}

static int
exchange(struct engine *e, const void *mine, size_t bytes, void *all, struct blink_error *err)
{
	return e->self->events.exchange(e->self->events.context, mine, bytes, all, deadline_of(e), err);
}

/* A failure of this rank alone: the others hear of it, too. It may be no more than what followed from another. */
static int
fail_here(struct engine *e, struct blink_error *err)
{
	rank_fail_here(e->self, err, -1);
	rank_error(e->self, err);
	return err->code;
}

/* All ranks do the same: number: of the window that is taken back; 0: one is registered. */
static int
compare_numbers(struct engine *e, const int32_t *number, struct blink_error *err)
{
	int other = 0;
	while (other < e->self->n_ranks && number[other] == number[0])
		other++;
	if (other == e->self->n_ranks)
		return blinkSuccess;
	set_error(err, blinkMismatch, "rank %d takes back registered memory number %d, rank 0 number %d (0: registers)",
	    other, (int)number[other], (int)number[0]);
	rank_fail_here(e->self, err, other);
	return err->code;
}

/* Afterwards no call is under way on this rank, whatever is returned; and none begins before all ranks have come. */
static int
meet(struct engine *e, int32_t number, struct blink_error *err)
{
	int32_t *all = calloc((size_t)e->self->n_ranks, sizeof *all);
	if (engine_wait(e, 0, true, err) == blinkSuccess && !all) {
		set_error_memory(err);
		fail_here(e, err);
	}
	if (err->code == blinkSuccess && exchange(e, &number, sizeof number, all, err) == blinkSuccess)
		compare_numbers(e, all, err);
	free(all);
	return err->code;
}

/* Ask all whether what they were given is valid. m: NULL if this rank's is not. */
static int
offer_all(struct engine *e, const struct memory *m, struct offer *all, struct blink_error *err)
{
	struct offer mine = { .number = m && !m->registered ? free_number(e) : 0 };
	if (m)
		memcpy(mine.address, m->address, SHM_ADDRESS);
	exchange(e, &mine, sizeof mine, all, err);
	for (int i = 0; i < e->self->n_ranks && err->code == blinkSuccess; i++)
		if (!all[i].number)
			set_error(err, blinkInvalidArgument, "rank %d: memory: not of blinkMemAlloc, or registered; "
			    "or %d are", i, (int)WINDOWS);
	return err->code;
}

static int
open_window(struct engine *e, struct memory *m, const struct offer *offer, struct blink_error *err)
{
	struct window *window = calloc(1, sizeof *window + (size_t)e->self->n_ranks * sizeof window->peer[0]);
	if (!window)
		set_error_memory(err);
	else
		map_local(e->self, m->shm, offer->address, sizeof *offer, 1, deadline_of(e), window->peer, err);
	if (err->code != blinkSuccess) {
		free(window);
		shm_forget_peers(m->shm);
		return fail_here(e, err);
	}
	window->own = window->peer[e->self->rank] = m->at;
	window->bytes = m->bytes;
	m->registered = offer[e->self->rank].number;
	atomic_store(&e->window[m->registered], window);
	return meet(e, m->registered, err);
}

int
window_register(void *of, struct memory *m, struct blink_error *err)
{
	struct engine *e = of;
	struct offer *offer = calloc((size_t)e->self->n_ranks, sizeof *offer);
	if (!offer && set_error_memory(err))
		fail_here(e, err);
	else if (meet(e, 0, err) == blinkSuccess && offer_all(e, m, offer, err) == blinkSuccess)
		open_window(e, m, offer, err);
	free(offer);
	return err->code;
}

/* Nobody reads here any more: the window is closed, whatever the others say. */
int
window_deregister(void *of, struct memory *m, struct blink_error *err)
{
	struct engine *e = of;
	meet(e, m->registered, err);
	free(atomic_exchange(&e->window[m->registered], NULL));
	shm_forget_peers(m->shm);
	m->registered = 0;
	return err->code;
}
