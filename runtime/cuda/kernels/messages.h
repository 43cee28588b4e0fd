/* Messages to and from single ranks: cuda/device.h has the protocol. */
#ifndef BLINK_KERNELS_MESSAGES_H
#define BLINK_KERNELS_MESSAGES_H

#include "kernels/pass.h"

/* The messages of a block: those to one peer, or from one. */
struct run {
	struct gpu_message message;	/* the one at work */
	int32_t first, n;
	uint32_t stopped;		/* a kernel before */
};

/* Shared by the threads of a block. */
struct messages_block {
#if !ON_GPU
	struct answers answers;
#endif
	struct run run;
};
#if ON_GPU
SHARED_OF(messages_block);
#endif

FN void
load_message(const struct gpu_message *from, struct gpu_message *m)
{
	m->data = (char *)load8(&from->data);
	m->bytes = load8(&from->bytes);
	m->signature = load8(&from->signature);
	m->in = (struct gpu_channel *)load8(&from->in);
	m->done = (uint64_t *)load8(&from->done);
	m->peer = (int32_t)load4(&from->peer);
	m->sends = (int32_t)load4(&from->sends);
}

/* Run `number` of an exchange, for one thread; n = 0: there are not so many. */
FN void
find_run(const struct gpu_exchange *x, int number, struct run *out)
{
	out->first = out->n = 0;
	for (int i = 0, run = -1; i < x->n && run <= number; i++) {
		int32_t peer = (int32_t)load4(&x->message[i].peer), sends = (int32_t)load4(&x->message[i].sends);
		if (i == 0 || peer != out->message.peer || sends != out->message.sends)
			run++;
		out->message.peer = peer;
		out->message.sends = sends;
		if (run == number) {
			out->first = out->n == 0 ? i : out->first;
			out->n++;
		}
	}
}

/* Chunk `count` of the channel is a message's first: what it says of the message. */
FN void
say_message(const struct gpu_message *m, struct gpu_channel_slot *first)
{
	store8_fresh(&first->signature, m->signature);
	store8_fresh(&first->bytes, m->bytes);
}

FN bool
is_message(const struct gpu_message *m, const struct gpu_channel_slot *first)
{
	return load8_fresh(&first->bytes) == m->bytes
	    && (m->signature == 0 || load8_fresh(&first->signature) == m->signature);
}

/* Until chunk number `count` of the channel may be moved: for all threads. */
FN bool
wait_chunk(const struct gpu_message *m, struct gpu_status *status, uint64_t count, bool first, struct waiting *w)
{
	uint64_t need = count + 1;
	if (m->sends)
		need = need < GPU_CHANNEL_SLOTS ? 0 : need - GPU_CHANNEL_SLOTS;
	for (;;) {
		bool there = true;
		if (this_thread() == 0) {
			there = poll_flag(m->sends ? m->done : &m->in->ready.value, need, POLLS);
			if (!there)
				still_waits(status, w, m->peer);
			else
				waits_no_more(status, w);
			if (there && need > 0)
				acquired();
			if (there && !m->sends && first && !is_message(m, &m->in->slot[count % GPU_CHANNEL_SLOTS])) {
				peer_differs(status, GPU_DIFFERS_MESSAGE + m->peer);
				there = false;
			}
		}
		if (!barrier_any(!there))
			return true;
		if (all_stop(status))
			return false;
	}
}

/* n vectors from i on, aligned. */
FN void
move_through(const char *from, char *to, bool sends, int64_t i, int n)
{
	struct vector v[AT_ONCE];
	UNROLLED
	for (int u = 0; u < AT_ONCE; u++) {
		const char *at = from + (i + u * (int64_t)all_threads()) * VECTOR;
		if (u < n)
			v[u] = sends ? load16(at) : load16_fresh(at);
	}
	UNROLLED
	for (int u = 0; u < AT_ONCE; u++)
		if (u < n)
			store16(to + (i + u * (int64_t)all_threads()) * VECTOR, v[u]);
}

/* Whole vectors: returns how many. */
FN int64_t
move_slot_fast(const char *from, char *to, bool sends, int64_t vectors)
{
	int64_t round = AT_ONCE * (int64_t)all_threads(), i = 0;
	NOT_UNROLLED
	for (; i + round <= vectors; i += round)
		move_through(from, to, sends, i + this_thread(), AT_ONCE);
	NOT_UNROLLED
	for (i += this_thread(); i < vectors; i += all_threads())
		move_through(from, to, sends, i, 1);
	return vectors;
}

/* Through a slot, by all threads. */
FN void
move_slot(const struct gpu_message *m, char *slot, int64_t at, int64_t bytes)
{
	unsigned unit = unit_of(m->data, NULL, bytes);
	int64_t done = 0;
	if (unit_of(m->data, NULL, 0) == VECTOR && m->sends)
		done = move_slot_fast(m->data + at, slot, true, bytes / VECTOR);
	else if (unit_of(m->data, NULL, 0) == VECTOR)
		done = move_slot_fast(slot, m->data + at, false, bytes / VECTOR);
	NOT_UNROLLED
	for (int64_t i = done + this_thread(); i * VECTOR < bytes; i += all_threads()) {
		int64_t part = least(VECTOR, bytes - i * VECTOR);
		char *user = m->data + at + i * VECTOR;
		if (m->sends)
			store16(slot + i * VECTOR, load_user(user, part, unit));
		else
			store_user(user, load16_fresh(slot + i * VECTOR), part, unit);
	}
}

/* A message, from chunk `count` of its channel on; false: stopped. Its last chunk may be empty. */
FN bool
move_message(const struct gpu_message *m, struct gpu_status *status, uint64_t *count, struct waiting *w)
{
	uint64_t said = time_now();
	int64_t at = 0, bytes;
	do {
		struct gpu_channel_slot *slot = &m->in->slot[*count % GPU_CHANNEL_SLOTS];
		if (!wait_chunk(m, status, *count, at == 0, w))
			return false;
		bytes = least(GPU_CHANNEL_BYTES, (int64_t)m->bytes - at);
		move_slot(m, slot->data, at, bytes);
		if (this_thread() == 0 && m->sends && at == 0)
			say_message(m, slot);
		barrier();
		++*count;
		if (this_thread() == 0)
			store_flag(m->sends ? &m->in->ready.value : m->done, *count);
		say_progress(status, &said);
		at += bytes;
	} while (at < (int64_t)m->bytes);
	return true;
}

FN void
run_messages(struct run *r, const struct gpu_exchange *x)
{
	struct waiting w = { 0, false };
	if (this_thread() == 0) {
		find_run(x, (int)this_block(), r);
		r->stopped = load4_fresh(&x->state->stopped);
	}
	barrier();
	int first = r->first, n = r->stopped ? 0 : r->n;
	uint64_t *counter = NULL, count = 0;
	for (int i = 0; i < n; i++) {
		barrier();
		if (this_thread() == 0)
			load_message(x->message + first + i, &r->message);
		barrier();
		if (i == 0) {
			counter = (uint64_t *)load8(r->message.sends ? &x->state->sent : &x->state->received);
			counter += r->message.peer;
			count = load8_fresh(counter);
		}
		if (!move_message(&r->message, x->status, &count, &w)) {
			if (this_thread() == 0)
				store4_fresh(&x->state->stopped, 1);
			return;
		}
	}
	barrier();
	if (this_thread() == 0 && n > 0)
		store8_fresh(counter, count);
}

#endif
