/* The protocol of packets, for short messages: each has data and the number of the call.
 *
 * A thread takes packets i, i + threads ...: it polls the packet of each source, several sources at once, and stores at
 * once what it makes of them. There are no barriers but at the ends of a strip. Strips of a block come one after the
 * other; nobody waits in a circle, since all ranks have their tasks in the same order of segments and a segment's tasks
 * before those that hang on them. */
#ifndef BLINK_KERNELS_PACKETS_H
#define BLINK_KERNELS_PACKETS_H

#include "kernels/pass.h"

FN bool
packet_is_there(const struct vector *p, uint64_t number)
{
	return p->w[1] == (uint32_t)number && p->w[3] == (uint32_t)number;
}

FN struct vector
packet_of(uint32_t data0, uint32_t data1, uint64_t number)
{
	struct vector v = { { data0, (uint32_t)number, data1, (uint32_t)number } };
	return v;
}

/* The last vector of a line (lines.h): 8 bytes of data, and the number. */
FN bool
tail_is_there(const struct vector *v, uint64_t number)
{
	return (v->w[2] | (uint64_t)v->w[3] << 32) == number;
}

FN struct vector
tail_of(uint32_t data0, uint32_t data1, uint64_t number)
{
	struct vector v = { { data0, data1, (uint32_t)number, (uint32_t)(number >> 32) } };
	return v;
}

/* ---- heads: which call it is ---- */

/* The first packet of a strip, or the last vector of its first line. */
FN void
store_head(const struct block *b, char *at)
{
	uint32_t low = (uint32_t)b->call.signature, high = (uint32_t)(b->call.signature >> 32);
	if (b->call.lines)
		store_tail(at + GPU_LINE - VECTOR, tail_of(low, high, b->number));
	else
		store16_fresh(at, packet_of(low, high, b->number));
}

/* Is it there? *fits: it is this call's. */
FN bool
look_at_head(const struct block *b, const char *at, bool *fits)
{
	struct vector v = b->call.lines ? load_tail(at + GPU_LINE - VECTOR) : load16_fresh(at);
	*fits = (v.w[0] | (uint64_t)v.w[b->call.lines ? 1 : 2] << 32) == b->call.signature;
	return b->call.lines ? tail_is_there(&v, b->number) : packet_is_there(&v, b->number);
}

/* While something is waited for: false, where the call will not go on, or the source is in another one. */
FN bool
may_wait(const struct block *b, const struct strip *s, int l, struct waiting *w)
{
	struct lane lane = lane_of(b, s, l);
	bool fits;
	still_waits(b->call.status, w, lane.peer);
	if (look_at_head(b, b->place[l], &fits) && !fits)
		peer_differs(b->call.status, lane.peer);
	return load4_fresh(&b->call.status->stop) == 0;
}

/* ---- packets ---- */

/* Packet i of the sources l up to l + n: several are under way at once. */
FN bool
load_packets(const struct block *b, const struct strip *s, int l, int n, int64_t i, struct waiting *w,
    struct vector p[SOURCES_AT_ONCE])
{
	NOT_UNROLLED
	for (int polls = 1;; polls++) {
		int missing = -1;
		UNROLLED
		for (int k = 0; k < SOURCES_AT_ONCE; k++)
			if (k < n)
				p[k] = load16_fresh(b->place[l + k] + i * VECTOR);
		UNROLLED
		for (int k = 0; k < SOURCES_AT_ONCE; k++)
			if (k < n && !packet_is_there(&p[k], b->number))
				missing = l + k;
		if (missing < 0)
			break;
		if (polls % POLLS == 0 && !may_wait(b, s, missing, w))
			return false;
		pause_thread();
	}
	waits_no_more(b->call.status, w);
	return true;
}

/* Bytes 8 i up to 8 i + `bytes` of a strip. */
FN bool
move_packet(const struct block *b, const struct strip *s, int64_t i, int64_t bytes, unsigned unit, enum operation op,
    struct waiting *w)
{
	struct vector v = { { 0, 0, 0, 0 } };
	if (s->own)
		v = load_user(s->own + 8 * i, bytes, unit);
	if (!MOVES && s->scales)
		v = scale(v, b->call.scale);
	NOT_UNROLLED
	for (int l = 0; l < s->n_from; l += SOURCES_AT_ONCE) {
		struct vector p[SOURCES_AT_ONCE];
		int n = (int)least(SOURCES_AT_ONCE, s->n_from - l);
		if (!load_packets(b, s, l, n, i + 1, w, p))
			return false;
		NOT_UNROLLED
		for (int k = 0; k < n; k++) {
			struct vector more = { { p[0].w[0], p[0].w[2], 0, 0 } };
			if (l + k > 0 || s->own)
				v = combine_any(op, v, more, 2);
			else
				v = more;
			UNROLLED
			for (int next = 1; next < SOURCES_AT_ONCE; next++)
				p[next - 1] = p[next];
		}
	}
	if (!MOVES && s->divides)
		v = divide(v, b->call.divide);
	if (s->output)
		store_user(s->output + 8 * i, v, bytes, unit);
	NOT_UNROLLED
	for (int l = s->n_from; l < s->n_from + s->n_to; l++)
		store16_fresh(b->place[l] + (i + 1) * VECTOR, packet_of(v.w[0], v.w[1], b->number));
	return true;
}

/* Packets of a lane; those that say which call it is go at once. */
FN void
place_lane(struct block *b, const struct strip *s, int l, const struct lane *lane)
{
	b->place[l] = lane->data;
	if (l >= s->n_from) {
		store_head(b, lane->data);
		leave_pending(b, s, l - s->n_from, lane);
	}
}

FN void
place_packets(struct block *b, const struct strip *s)
{
	for (int l = (int)this_thread_from_last(); l < s->n_from + s->n_to; l += (int)all_threads()) {
		struct lane lane = lane_of(b, s, l);
		place_lane(b, s, l, &lane);
	}
}

/* Of a strip that is read: is its publisher in the same call? */
FN bool
publishers_agree(const struct block *b, const struct strip *s, struct waiting *w)
{
	for (int l = (int)this_thread_from_last(); l < s->n_from; l += (int)all_threads()) {
		bool fits = true;
		for (int polls = 1; !look_at_head(b, b->place[l], &fits); polls++) {
			if (polls % POLLS == 0 && !may_wait(b, s, l, w))
				return false;
			pause_thread();
		}
		waits_no_more(b->call.status, w);
		if (!fits) {
			peer_differs(b->call.status, lane_of(b, s, l).peer);
			return false;
		}
	}
	return true;
}

/* All threads have met since they read: publishers are told. No fence: a packet was read if its number was seen, so
 * that what is stored hangs on what was loaded. */
FN void
tell_publishers(const struct block *b, const struct strip *s)
{
	for (int l = (int)this_thread_from_last(); l < s->n_from; l += (int)all_threads())
		store8_fresh(lane_of(b, s, l).done, GPU_FLAG(b->number, 1));
}

/* A strip whose packets have places, by all threads of the block. */
FN bool
move_packets(struct block *b, const struct strip *s, enum operation op, struct waiting *w)
{
	unsigned unit = unit_of(s->own, s->output, s->bytes | 8);
	bool good = true;
	NOT_UNROLLED
	for (int64_t i = this_thread(); i * 8 < s->bytes && good; i += all_threads())
		good = move_packet(b, s, i, least(8, s->bytes - i * 8), unit, op, w);
	if (barrier_any(!good || !publishers_agree(b, s, w)))
		return false;
	tell_publishers(b, s);
	return true;
}

#endif
