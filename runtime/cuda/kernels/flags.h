/* The protocol of flags, for long messages: chunks of strips in rings.
 *
 * A block has workers, which move data, and setters, its last warp, which sets flags. The lanes of a strip, sources
 * and then readers, are numbered; worker l looks after lanes l, l + workers ... : it waits for the source's `ready`, or
 * for the reader's `done` of the chunk that had the slot, and puts the address of the slot into a table for all. A
 * barrier that tells every worker whether all lanes are there ends the wait; another one ends the work, and one of them
 * tells the setters. A fence takes as long as a short chunk, and delays the thread alone that executes it, so that the
 * workers go on with the next chunk meanwhile. Where they are faster, a fence and a flag are for several chunks:
 *
 *	worker l			setter l
 *	wait for flag of lane l, acquire
 *	-- barrier: all there? --
 *	load, combine, store
 *	-- barrier --------------
 *	worker 0: chunk c is done	sees that, release, sets flag of lane l to the last one done
 *	wait for flag of lane l ...
 *
 * The release orders what the whole block has stored, since the barrier comes before it; the acquire what the workers
 * load, since the barrier comes after it. A source's flag, that its slot has been read, needs neither. Rings are loaded
 * past the first-level cache, which may hold what was in the slot before.
 *
 * A block has a list of strips and goes round: those whose lanes are there move on by a chunk, the others are passed
 * over. Mostly the list has one strip, which is polled for long; with `turns` it has several, and then nothing that
 * one of them waits for holds up another. Before each round the workers look at the flags of all strips, which saves
 * most of the time that a load of a flag takes; those that were not there are looked at again when their turn comes.
 * The block's share of the own block is the list's last entry: without lanes it is always ready, and fills the first
 * gap. */
#ifndef BLINK_KERNELS_FLAGS_H
#define BLINK_KERNELS_FLAGS_H

#include "kernels/pass.h"

/* The flag of lane l, which is a source's or a reader's: is it there for this chunk? */
FN bool
flag_is_there(const struct block *b, const struct strip *s, int l, int32_t chunk, bool alone, struct waiting *w)
{
	const struct gpu_call *c = &b->call;
	struct lane lane = lane_of(b, s, l);
	int32_t need = l < s->n_from ? chunk + 1 : chunk + 1 - c->slots;
	const uint64_t *flag = l < s->n_from ? lane.ready : lane.done;
	uint64_t value = GPU_FLAG(b->number, need);
	if (need <= 0)
		return true;
	if (!(alone ? poll_flag(flag, value, POLLS) : look_at_flag(flag, value))) {
		still_waits(c->status, w, lane.peer);
		return false;
	}
	if (l < s->n_from)
		acquired();
	return true;
}

/* After its flag: the lane's slot comes into the table. False: the peer's call is another one. */
FN bool
place_slot(struct block *b, struct strip *s, int l, int32_t chunk)
{
	const struct gpu_call *c = &b->call;
	struct lane lane = lane_of(b, s, l);
	b->place[l] = lane.data + chunk % c->slots * c->slot_bytes;
	return l >= s->n_from || chunk > 0 || signature_fits(b, s, load8_fresh(signature_of(b, &lane)), lane.peer);
}

/* For all workers: places the lanes of a chunk. looks: at their flags, too. False: some are not there, or differ. */
FN bool
take_chunk(struct block *b, struct strip *s, int32_t chunk, bool looks, struct waiting *w)
{
	bool there = true;
	for (int l = (int)this_thread(); l < s->n_from + s->n_to && there && looks; l += (int)workers())
		there = flag_is_there(b, s, l, chunk, b->n_strips == 1, w);
	for (int l = (int)this_thread(); l < s->n_from + s->n_to && there; l += (int)workers())
		there = place_slot(b, s, l, chunk);
	return !barrier_any_of(WORKERS, workers(), !there);
}

/* For all workers: which strips of the list have all lanes of their next chunk? */
FN void
look_at_list(struct block *b, uint32_t round, struct waiting *w)
{
	unsigned first = 0;
	for (int i = 0; i < b->n_strips; i++) {
		struct strip *s = &b->strip[i];
		int lanes = s->chunk < s->n_chunks ? s->n_from + s->n_to : 0;
		unsigned l = (this_thread() + workers() - first) % workers();
		for (; (int)l < lanes; l += workers())
			if (!flag_is_there(b, s, (int)l, s->chunk, false, w))
				tell_block(&s->missed, round);
		first = (first + (unsigned)lanes) % workers();
	}
	barrier_of(WORKERS, workers());
}

/* To a reader on another server: what there is to relay. */
FN void
leave_letter(const struct block *b, const struct strip *s, int l)
{
	const struct gpu_call *c = &b->call;
	const struct gpu_lane *at = lane_at(b, s, l);
	struct gpu_letter *letter = (struct gpu_letter *)load8(&at->pair.letter);
	int64_t strip = (int64_t)load4(&at->lane) * c->width + s->number;
	if (letter == NULL)
		return;
	letter += 2 * strip + (int64_t)(b->number & 1);
	store8_fresh(&letter->at, (uint64_t)(strip * c->ring_share));
	store8_fresh(&letter->bytes, (uint64_t)s->bytes);
	store8_fresh(&letter->chunk_bytes, (uint64_t)s->chunk_bytes);
	store8_fresh(&letter->slot_bytes, (uint64_t)c->slot_bytes);
	store8_fresh(&letter->slots, (uint64_t)c->slots);
	store8_fresh(&letter->call, b->number);
}

/* Tell peers how many chunks are done, sources first, who wait for no fence; after the first time, who has to tell
 * when. For thread `me` of `n`. */
FN void
set_flags(const struct block *b, const struct strip *s, uint32_t done, bool first, int me, int n)
{
	uint64_t value = GPU_FLAG(b->number, done);
	int l = me;
	for (; l < s->n_from; l += n)
		store_done(lane_of(b, s, l).done, value);
	for (; l < s->n_from + s->n_to; l += n) {
		struct lane lane = lane_of(b, s, l);
		if (first) {
			store8_fresh(signature_of(b, &lane), signature_to_set(b, s));
			leave_letter(b, s, l);
		}
		store_flag(lane.ready, value);
		if (first)
			leave_pending(b, s, l - s->n_from, &lane);
	}
}

/* For the first setter: all strips of which more is done than their flags say. heard: of `told`, so far; returns it. */
FN uint32_t
find_done(struct block *b, uint32_t heard)
{
	b->sets = false;
	for (int i = 0; i < b->n_strips; i++)
		b->strip[i].set = b->strip[i].next;
	for (;; heard = hear_more(&b->told, heard)) {
		for (int i = 0; i < b->n_strips; i++) {
			struct strip *s = &b->strip[i];
			s->next = hear_block(&s->done);
			b->sets |= s->set < s->next;
		}
		if (b->sets || heard & END)
			return heard;
	}
}

/* For setters: flags of what the workers have done, until that is all. A setter waits once for its flags of all strips:
 * only its first fence after a barrier has to. */
FN void
set_all_flags(struct block *b)
{
	int me = (int)(this_thread() - workers());
	for (uint32_t heard = 0;;) {
		if (me == 0)
			heard = find_done(b, heard);
		barrier_of(SETTERS, N_SETTERS);
		if (!b->sets)
			return;
		for (int i = 0; i < b->n_strips; i++) {
			const struct strip *s = &b->strip[i];
			if (s->set < s->next)
				set_flags(b, s, s->next, s->set == 0, me, N_SETTERS);
		}
		barrier_of(SETTERS, N_SETTERS);
	}
}

/* For workers: a chunk is done. Without setters they set its flags themselves. */
FN void
hand_over(struct block *b, struct strip *s, uint32_t done)
{
	barrier_of(WORKERS, workers());
	if (workers() == all_threads()) {
		set_flags(b, s, done, done == 1, (int)this_thread(), (int)all_threads());
	} else if (this_thread() == 0) {
		tell_block(&s->done, done);
		tell_block(&b->told, b->told + 1);
	}
}

/* For workers: go round the list until all is done; false: stopped. */
FN bool
move_list(struct block *b, enum operation op, struct waiting *w)
{
	uint64_t said = time_now();
	bool alone = b->n_strips == 1;
	uint32_t round = 0;
	for (bool left = true, moved; left;) {
		left = moved = false;
		round++;
		if (!alone)
			look_at_list(b, round, w);
		for (int i = 0; i < b->n_strips; i++) {
			struct strip *s = &b->strip[i];
			int32_t chunk = s->chunk;
			if (strip_is_done(b, i, chunk))
				continue;
			left = true;
			bool known = !alone && hear_block(&s->missed) != round;
			if (!take_chunk(b, s, chunk, !known, w))
				continue;
			if (this_thread() == 0)
				s->chunk = chunk + 1;
			waits_no_more(b->call.status, w);
			program_chunk(b, s, chunk, op);
			hand_over(b, s, (uint32_t)chunk + 1);
			say_progress(b->call.status, &said);
			moved = true;
		}
		if (!left || moved)
			continue;
		if (w->since != 0)
			pause_thread();
		if (round % (alone ? 1 : ROUNDS) == 0 && workers_stop(b->call.status))
			return false;
	}
	return true;
}

/* False, for workers alone: stopped. */
FN bool
run_list(struct block *b, enum operation op, struct waiting *w)
{
	if (this_thread() >= workers()) {
		set_all_flags(b);
		return true;
	}
	bool good = move_list(b, op, w);
	if (this_thread() == 0)
		tell_block(&b->told, b->told | END);
	return good;
}

#endif
