/* Messages to and from single ranks: cuda/device.h has the protocol.
 *
 * A block goes round its queues: a thread of each looks whether its next chunk can be moved, and of those that can, all
 * workers move some, at most a chunk's bytes of the longest, so that peers do not wait for their flags for longer.
 * Three barriers are the same for all of them, so that many short chunks cost little more than one. As with
 * collectives, the last warp sets the flags that need a fence, those of what was sent, while the others go on
 * (kernels/flags.h). */
#ifndef BLINK_KERNELS_MESSAGES_H
#define BLINK_KERNELS_MESSAGES_H

#include "kernels/pass.h"

/* The messages of a channel in one direction: its strip of the first of them that is not done. */
struct queue {
	struct gpu_message message;
	int32_t next, end;		/* those after it */
	int32_t channel;
	uint32_t there;			/* not 0: its next chunk can be moved */
	int64_t at, strip_end;		/* bytes of the message; the same: nothing is left */
	uint64_t count;			/* chunks of the channel */
	uint32_t begins, moved;		/* not 0: the chunk is a strip's first; was moved in this round */
	uint32_t sent, set;		/* chunks of this kernel: moved, and those whose flag is set */
	uint64_t *flag;			/* for the peer, of the first `before` chunks and those that were sent */
	uint64_t before;
};

/* Shared by the threads of a block. */
struct messages_block {
#if !ON_GPU
	struct answers answers;
#endif
	uint32_t stopped;		/* a kernel before */
	uint32_t told;			/* by the workers: how often chunks were moved, and the end */
	struct queue queue[GPU_QUEUES_OF_BLOCK];
};
#if ON_GPU
SHARED_OF(messages_block);
#endif

/* ---- queues, each by one thread ---- */

FN void
load_message(const struct gpu_message *from, struct gpu_message *m)
{
	m->data = (char *)load8(&from->data);
	m->bytes = load8(&from->bytes);
	m->strip = load8(&from->strip);
	m->chunk = load8(&from->chunk);
	m->signature = load8(&from->signature);
	m->channels.in = (struct gpu_channel *)load8(&from->channels.in);
	m->channels.done = (uint64_t *)load8(&from->channels.done);
	m->channels.slots = (char *)load8(&from->channels.slots);
	m->peer = (int32_t)load4(&from->peer);
	m->sends = (int32_t)load4(&from->sends);
}

/* The next strip that is not empty. */
FN void
next_strip(struct queue *q, const struct gpu_exchange *x)
{
	for (; q->at == q->strip_end && q->next < q->end; q->next++) {
		load_message(x->messages->message + q->next, &q->message);
		int64_t bytes = (int64_t)q->message.bytes, strip = (int64_t)q->message.strip;
		q->at = least(q->channel * strip, bytes);
		q->strip_end = least(q->at + strip, bytes);
		q->begins = 1;
	}
}

FN uint64_t *
counter_of(const struct queue *q, const struct gpu_exchange *x)
{
	uint64_t *counters = (uint64_t *)load8(q->message.sends ? &x->state->sent : &x->state->received);
	return counters + (int64_t)q->message.peer * GPU_CHANNELS + q->channel;
}

FN struct gpu_channel *
channel_of(const struct queue *q)
{
	return q->message.channels.in + q->channel;
}

/* That the peer sets for this rank, or this one for the peer. */
FN uint64_t *
flag_of(const struct queue *q, bool ready)
{
	return ready ? &channel_of(q)->ready.value
	    : (uint64_t *)((char *)q->message.channels.done + q->channel * sizeof(struct gpu_channel));
}

FN void
make_queue(const struct gpu_exchange *x, int number, struct queue *q)
{
	const struct gpu_queue *from = x->messages->queue + number;
	q->next = (int32_t)load2(&from->first);
	q->end = (int32_t)load2(&from->end);
	q->channel = (int32_t)load2(&from->channel);
	q->at = q->strip_end = 0;
	next_strip(q, x);
	q->count = q->before = load8_fresh(counter_of(q, x));
	q->sent = q->set = 0;
	q->flag = flag_of(q, q->message.sends);
}

FN bool
queue_is_there(const struct queue *q, struct gpu_status *status, bool alone, struct waiting *w)
{
	bool sends = q->message.sends;
	uint64_t need = sends ? (q->count < GPU_CHANNEL_SLOTS ? 0 : q->count + 1 - GPU_CHANNEL_SLOTS) : q->count + 1;
	const uint64_t *flag = flag_of(q, !sends);
	if (need > 0 && !(alone ? poll_flag(flag, need, POLLS) : look_at_flag(flag, need))) {
		still_waits(status, w, q->message.peer);
		return false;
	}
	waits_no_more(status, w);
	if (!sends)
		acquired();
	if (!sends && q->begins && load8_fresh(&channel_of(q)->ready.signature[q->count % GPU_CHANNEL_SLOTS])
	    != q->message.signature) {
		peer_differs(status, GPU_DIFFERS_MESSAGE + q->message.peer);
		return false;
	}
	return true;
}

FN int64_t
chunk_bytes(const struct queue *q)
{
	return least((int64_t)q->message.chunk, q->strip_end - q->at);
}

FN void
set_sent(struct queue *q, uint32_t sent)
{
	if (q->set == sent)
		return;
	store_flag(q->flag, q->before + sent);
	q->set = sent;
}

/* For setters. */
FN void
set_all_sent(struct messages_block *b, int n)
{
	for (uint32_t heard = 0; !(heard & END);) {
		heard = hear_more(&b->told, heard);
		for (int i = (int)(this_thread() - workers()); i < n; i += N_SETTERS)
			set_sent(&b->queue[i], hear_block(&b->queue[i].sent));
	}
}

/* The chunk is moved, and all workers have met. */
FN void
end_chunk(struct queue *q, const struct gpu_exchange *x)
{
	int64_t bytes = chunk_bytes(q);
	unsigned slot = (unsigned)(q->count % GPU_CHANNEL_SLOTS);
	q->count++;
	if (!q->message.sends) {
		store_done(q->flag, q->count);
	} else {
		if (q->begins)
			store8_fresh(&channel_of(q)->ready.signature[slot], q->message.signature);
		store8_fresh(&channel_of(q)->bytes[slot], (uint64_t)bytes);
		tell_block(&q->sent, q->sent + 1);
		if (workers() == all_threads())
			set_sent(q, q->sent);
	}
	q->at += bytes;
	q->begins = q->moved = 0;
	if (q->at == q->strip_end) {
		store8_fresh(counter_of(q, x), q->count);
		next_strip(q, x);
	}
}

/* ---- chunks, by all workers ---- */

/* n vectors from i on; n, sends and unit are known to the compiler. */
FN void
move_through(char *user, char *slot, bool sends, int64_t i, int n, unsigned unit)
{
	struct vector v[AT_ONCE];
	UNROLLED
	for (int u = 0; u < AT_ONCE; u++) {
		int64_t at = (i + u * (int64_t)workers()) * VECTOR;
		if (u < n)
			v[u] = sends ? load_user(user + at, VECTOR, unit) : load16_fresh(slot + at);
	}
	UNROLLED
	for (int u = 0; u < AT_ONCE; u++) {
		int64_t at = (i + u * (int64_t)workers()) * VECTOR;
		if (u < n && sends)
			store16(slot + at, v[u]);
		else if (u < n)
			store_user(user + at, v[u], VECTOR, unit);
	}
}

/* Whole vectors. What is loaded in small units takes many loads for each, and fewer vectors are under way at once. */
FN void
move_units(char *user, char *slot, bool sends, int64_t vectors, unsigned unit)
{
	int n = !sends || unit >= 4 ? AT_ONCE : unit == 2 ? 2 : 1;
	int64_t round = n * (int64_t)workers(), i = 0;
	NOT_UNROLLED
	for (; n > 1 && i + round <= vectors; i += round)
		move_through(user, slot, sends, i + this_thread(), n, unit);
	NOT_UNROLLED
	for (i += this_thread(); i < vectors; i += workers())
		move_through(user, slot, sends, i, 1, unit);
}

FN void
move_slot(char *user, char *slot, bool sends, int64_t bytes)
{
	int64_t vectors = (int64_t)((uint64_t)bytes / VECTOR), rest = bytes - vectors * VECTOR;
	switch (unit_of(user, NULL, 0)) {
	case VECTOR:
		move_units(user, slot, sends, vectors, VECTOR);
		break;
	case 8:
		move_units(user, slot, sends, vectors, 8);
		break;
	case 4:
		move_units(user, slot, sends, vectors, 4);
		break;
	case 2:
		move_units(user, slot, sends, vectors, 2);
		break;
	default:
		move_units(user, slot, sends, vectors, 1);
	}
	if (rest == 0 || this_thread() != 0)
		return;
	user += vectors * VECTOR;
	slot += vectors * VECTOR;
	if (sends)
		store16(slot, load_user(user, rest, 1));
	else
		store_user(user, load16_fresh(slot), rest, 1);
}

FN void
move_queue(const struct queue *q, const struct gpu_exchange *x)
{
	int64_t slot = (int64_t)q->channel * GPU_CHANNEL_SLOTS + (int64_t)(q->count % GPU_CHANNEL_SLOTS);
	char *user = q->message.data + q->at, *at = q->message.channels.slots + slot * (int64_t)x->slot_bytes;
	if (q->message.sends)
		move_slot(user, at, true, chunk_bytes(q));
	else
		move_slot(user, at, false, chunk_bytes(q));
}

/* ---- the kernel ---- */

/* Who looks after queue i. */
FN bool
is_mine(int i)
{
	return (unsigned)i % workers() == this_thread();
}

/* Chunks that can be moved, from queue `first` on; returns where the next round begins. */
FN int
move_round(struct messages_block *b, const struct gpu_exchange *x, int n, int first)
{
	int64_t left = (int64_t)x->slot_bytes;
	int i = first;
	NOT_UNROLLED
	for (int k = 0; k < n && left > 0; k++) {
		struct queue *q = &b->queue[i];
		if (q->there) {
			move_queue(q, x);
			left -= chunk_bytes(q);
			if (is_mine(i))
				q->moved = 1;
		}
		i = i + 1 < n ? i + 1 : 0;
	}
	return i;
}

/* For workers; false: stopped. */
FN bool
run_queues(struct messages_block *b, const struct gpu_exchange *x, int n)
{
	struct waiting w = { 0, false };
	uint64_t said = time_now();
	for (int first = 0, idle = 0;;) {
		bool there = false, left = false;
		for (int i = (int)this_thread(); i < n; i += (int)workers()) {
			struct queue *q = &b->queue[i];
			bool open = q->at < q->strip_end;
			q->there = open && queue_is_there(q, x->status, n == 1, &w);
			there = there || q->there;
			left = left || open;
		}
		if (barrier_any_of(WORKERS, workers(), there)) {
			first = move_round(b, x, n, first);
			barrier_of(WORKERS, workers());
			for (int i = (int)this_thread(); i < n; i += (int)workers())
				if (b->queue[i].moved)
					end_chunk(&b->queue[i], x);
			barrier_of(WORKERS, workers());
			if (this_thread() == 0)
				tell_block(&b->told, b->told + 1);
			say_progress(x->status, &said);
			continue;
		}
		if (!barrier_any_of(WORKERS, workers(), left))
			return true;
		if (w.since != 0)
			pause_thread();
		if (++idle % (n == 1 ? 1 : ROUNDS) == 0 && workers_stop(x->status))
			return false;
	}
}

FN void
run_messages(struct messages_block *b, const struct gpu_exchange *x)
{
	int n = (x->n_queues - (int)this_block() + (int)all_blocks() - 1) / (int)all_blocks();
	if (this_thread() == 0) {
		b->stopped = load4_fresh(&x->state->stopped);
		b->told = 0;
	}
	for (int i = (int)this_thread(); i < n; i += (int)all_threads()) {
		b->queue[i].moved = 0;
		make_queue(x, (int)this_block() + i * (int)all_blocks(), &b->queue[i]);
	}
	barrier();
	if (b->stopped)
		return;
	if (this_thread() >= workers()) {
		set_all_sent(b, n);
		return;
	}
	bool good = run_queues(b, x, n);
	if (this_thread() != 0)
		return;
	tell_block(&b->told, b->told | END);
	if (!good)
		store4_fresh(&x->state->stopped, 1);
}

#endif
