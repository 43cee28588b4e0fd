/* The kernels before and after the copies of a call that copy engines serve: one block each. cuda/device.h says what
 * they are for. */
#ifndef BLINK_KERNELS_COPIES_H
#define BLINK_KERNELS_COPIES_H

#include "kernels/collective.h"

/* What a thread needs of a partner, from memory. */
FN struct gpu_partner
partner_of(const struct block *b, int i)
{
	const struct gpu_partner *at = b->call.partner + i;
	struct gpu_partner p = { (struct gpu_meeting *)load8(&at->own), (struct gpu_meeting *)load8(&at->theirs),
		(int32_t)load4(&at->peer), (int32_t)load4(&at->n_lanes) };
	return p;
}

FN void
greet(const struct block *b, int i)
{
	struct gpu_partner p = partner_of(b, i);
	store8_fresh(&p.theirs->signature[b->number & 1], b->call.signature);
	store_flag(&p.theirs->met, b->number);
}

/* A partner that is there; one that is in a later call has found the same signature in this one. */
FN void
compare_signature(const struct block *b, const struct gpu_partner *p)
{
	acquired();
	uint64_t theirs = load8_fresh(&p->own->signature[b->number & 1]);
	fence();
	if (load8_fresh(&p->own->met) == b->number && theirs != b->call.signature)
		peer_differs(b->call.status, p->peer);
}

/* All partners are in this call. */
FN void
meet(const struct block *b, struct waiting *w)
{
	int n = b->call.n_partners;
	for (int i = (int)this_thread(); i < n; i += (int)all_threads())
		greet(b, i);
	for (bool late = true; late;) {
		late = false;
		for (int i = (int)this_thread(); i < n && !late; i += (int)all_threads()) {
			struct gpu_partner p = partner_of(b, i);
			late = !poll_flag(&p.own->met, b->number, POLLS);
			if (late)
				still_waits(b->call.status, w, p.peer);
			else
				compare_signature(b, &p);
		}
		if (!late)
			waits_no_more(b->call.status, w);
		late = barrier_any(late);
		if (late && all_stop(b->call.status))
			return;
	}
}

/* Windows are of both halves, so that the readers of the last two calls are waited for. */
FN void
begin_copies(struct block *b, const struct gpu_call *call)
{
	struct waiting w = { 0, false };
	struct past p = enter_call(b, call, true);
	begin_call(b, &p, false);
	if (wait_for_list(b, list_of_half(b), &w) && wait_for_list(b, (unsigned)((b->number + 2) % GPU_LISTS), &w))
		meet(b, &w);
}

/* No lane is left to wait for: a publisher's copies end when all have been read. After a failure flags stay as they
 * are: the host sets them, so that waits end. */
FN void
end_copies(struct block *b, const struct gpu_call *call)
{
	struct past p = enter_call(b, call, false);
	take_call(b, &p, false, false);
	bool stops = load4_fresh(&call->status->stop) != 0;
	for (int i = 0; i < call->n_partners && !stops; i++) {
		struct gpu_partner partner = partner_of(b, i);
		for (int l = (int)this_thread(); l < partner.n_lanes; l += (int)all_threads()) {
			store4_fresh(&partner.own->ready[l], 0);
			store4_fresh(&partner.own->done[l], 0);
		}
	}
	if (this_thread() == 0)
		b->call.program.n_publishes = 0;
	end_call(b);
}

#endif
