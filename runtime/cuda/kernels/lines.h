/* The protocol of lines, for messages of medium length: 128 bytes, 120 of data and the number of the call.
 *
 * Over NVLink, and within a GPU, 128 bytes that eight threads of a warp store at once by one instruction arrive at
 * once, and so they are loaded: whoever sees the number has the data. CUDA's memory model does not promise it, but GPUs
 * of capability 7.0 and later do so, and NCCL's LL128 relies on it, too. It takes neither fences nor barriers, and not
 * twice the bytes, as packets do.
 *
 * Two lines have 240 bytes of a strip: seven vectors of 16 bytes each, and half of the fifteenth. So the data of all
 * threads but the last of each line are aligned to 16 bytes, if the strip is:
 *
 *	line 0	vectors 0 to 6, first half of vector 14, number
 *	line 1	vectors 7 to 13, second half of vector 14, number
 *
 * A warp takes four lines at a time, or where all warps have as many, AT_ONCE times four. It polls those of each
 * source, and stores at once what it makes of them. Warps meet only at the ends of a strip. As with packets, nobody
 * waits in a circle. A thread of a twin takes a line whole. */
#ifndef BLINK_KERNELS_LINES_H
#define BLINK_KERNELS_LINES_H

#include "kernels/packets.h"

#if !HAS_LINES
#define move_lines move_packets
#else

enum {
	TWO_LINES = 2 * GPU_LINE_DATA,
	LINE_LAST = GPU_LINE / VECTOR - 1,	/* a line's last vector has the number */
	WARP = ON_GPU ? 32 : 1,
	WARP_LINES = ON_GPU ? 4 : 1,		/* of which each thread has a vector */
	WARP_DATA = 2 * TWO_LINES,		/* in four */
	LINE_VECTORS = ON_GPU ? AT_ONCE : LINE_LAST + 1		/* that a thread has under way */
};

/* Of a thread's vectors of n times four lines, all that there are. */
#define OF_LINES(u, n) for (int u = 0; u < LINE_VECTORS; u++) if (u < (ON_GPU ? (n) : LINE_VECTORS))

/* Which of its line is vector u of the thread? */
FN int
place_in_line(int u)
{
	return ON_GPU ? (int)(this_thread() % (LINE_LAST + 1)) : u;
}

FN int
data_bytes(int u)
{
	return place_in_line(u) < LINE_LAST ? VECTOR : 8;
}

/* Where its data are in the strip; `first` is the first of the warp's lines, even. */
FN int
data_at(int first, int u)
{
	int line = ON_GPU ? (int)(this_thread() % WARP / (LINE_LAST + 1)) : 0, place = place_in_line(u);
	int second = (first + line) % 2, two = (first + line) / 2 * TWO_LINES + (ON_GPU ? u * WARP_DATA : 0);
	return two + (place < LINE_LAST ? (second * LINE_LAST + place) * VECTOR : 2 * LINE_LAST * VECTOR + 8 * second);
}

/* n times four lines, of a lane whose lines begin there. */
FN void
load_lines(const char *lines, int first, int n, struct vector v[LINE_VECTORS])
{
#if ON_GPU
	lines += first * GPU_LINE + (int)(this_thread() % WARP) * VECTOR;
	UNROLLED
	OF_LINES(u, n)
		v[u] = load16_fresh(lines + u * WARP * VECTOR);
#else
	(void)n;
	virtual_gpu_load_line(lines + first * GPU_LINE, v, GPU_LINE);
#endif
}

FN void
store_lines(char *lines, int first, int n, const struct vector v[LINE_VECTORS])
{
#if ON_GPU
	lines += first * GPU_LINE + (int)(this_thread() % WARP) * VECTOR;
	UNROLLED
	OF_LINES(u, n)
		store16_fresh(lines + u * WARP * VECTOR, v[u]);
#else
	(void)n;
	virtual_gpu_store_line(lines + first * GPU_LINE, v, GPU_LINE);
#endif
}

FN bool
lines_are_there(const struct vector v[LINE_VECTORS], int n, uint64_t number)
{
	bool there = true;
	UNROLLED
	OF_LINES(u, n)
		there = there && (place_in_line(u) != LINE_LAST || tail_is_there(&v[u], number));
	return there;
}

/* By all threads of the warp: wait for these lines of source l. */
FN bool
await_lines(const struct block *b, const struct strip *s, int l, int first, int n, struct waiting *w,
    struct vector v[LINE_VECTORS])
{
	NOT_UNROLLED
	for (int polls = 1;; polls++) {
		load_lines(b->place[l] + GPU_LINE, first, n, v);
		if (!warp_any(!lines_are_there(v, n, b->number)))
			break;
		if (polls % POLLS == 0 && warp_any(!may_wait(b, s, l, w)))
			return false;
		pause_thread();
	}
	waits_no_more(b->call.status, w);
	return true;
}

FN void
combine_lines(enum operation op, struct vector v[LINE_VECTORS], const struct vector more[LINE_VECTORS], int n)
{
	UNROLLED
	OF_LINES(u, n)
		v[u] = combine(op, v[u], more[u], 4);
}

FN void
combine_lines_any(enum operation op, struct vector v[LINE_VECTORS], const struct vector more[LINE_VECTORS], int n)
{
#ifdef KERNEL_TYPE
	if (!LONG)
		switch (op) {
		case PROD:
			combine_lines(PROD, v, more, n);
			return;
		case MAX:
			combine_lines(MAX, v, more, n);
			return;
		case MIN:
			combine_lines(MIN, v, more, n);
			return;
		default:
			combine_lines(SUM, v, more, n);
			return;
		}
#endif
	combine_lines(op, v, more, n);
}

/* The caller's data of a vector, up to the end of the strip. */
FN struct vector
load_data(const struct strip *s, int first, int u, unsigned unit)
{
	int at = data_at(first, u), bytes = (int)least(data_bytes(u), s->bytes - at);
	struct vector v = { { 0, 0, 0, 0 } };
	if (unit != VECTOR || bytes == VECTOR) {
		v = load_user(s->own + at, bytes, unit);
	} else if (bytes == 8) {
		uint64_t x = load8(s->own + at);
		v.w[0] = (uint32_t)x;
		v.w[1] = (uint32_t)(x >> 32);
	}
	return v;
}

FN void
store_data(const struct strip *s, int first, int u, unsigned unit, struct vector v)
{
	int at = data_at(first, u), bytes = (int)least(data_bytes(u), s->bytes - at);
	if (unit != VECTOR || bytes == VECTOR)
		store_user(s->output + at, v, bytes, unit);
	else if (bytes == 8)
		store8(s->output + at, v.w[0] | (uint64_t)v.w[1] << 32);
}

/* Whole ones of n times four lines, on a GPU, where all vectors of a thread are of one kind. The compiler knows the
 * unit. */
FN void
load_whole(const char *from, int n, unsigned unit, struct vector v[LINE_VECTORS])
{
	if (place_in_line(0) < LINE_LAST) {
		UNROLLED
		OF_LINES(u, n)
			v[u] = load_user(from + u * WARP_DATA, VECTOR, unit);
	} else {
		UNROLLED
		OF_LINES(u, n)
			v[u] = load_user(from + u * WARP_DATA, 8, unit < 8 ? unit : 8);
	}
}

FN void
store_whole(char *to, int n, unsigned unit, const struct vector v[LINE_VECTORS])
{
	if (place_in_line(0) < LINE_LAST) {
		UNROLLED
		OF_LINES(u, n)
			store_user(to + u * WARP_DATA, v[u], VECTOR, unit);
	} else {
		UNROLLED
		OF_LINES(u, n)
			store_user(to + u * WARP_DATA, v[u], 8, unit < 8 ? unit : 8);
	}
}

/* n times four lines from `first` on. whole: their data are, and are neither scaled nor divided; then the compiler
 * knows the unit. */
FN bool
move_some_lines(const struct block *b, const struct strip *s, int first, int n, bool whole, unsigned unit,
    enum operation op, struct waiting *w)
{
	struct vector v[LINE_VECTORS];
	int l = 0;
	if (!s->own && !await_lines(b, s, l++, first, n, w, v))
		return false;
	if (s->own && whole) {
		load_whole(s->own + data_at(first, 0), n, unit, v);
	} else if (s->own) {
		UNROLLED
		OF_LINES(u, n)
			v[u] = load_data(s, first, u, unit);
	}
	if (!MOVES && !whole && s->scales) {
		UNROLLED
		OF_LINES(u, n)
			v[u] = scale(v[u], b->call.scale);
	}
	NOT_UNROLLED
	for (; l < s->n_from && !MOVES; l++) {
		struct vector more[LINE_VECTORS];
		if (!await_lines(b, s, l, first, n, w, more))
			return false;
		combine_lines_any(op, v, more, n);
	}
	if (!MOVES && !whole && s->divides) {
		UNROLLED
		OF_LINES(u, n)
			v[u] = divide(v[u], b->call.divide);
	}
	if (s->output && whole) {
		store_whole(s->output + data_at(first, 0), n, unit, v);
	} else if (s->output) {
		UNROLLED
		OF_LINES(u, n)
			store_data(s, first, u, unit, v[u]);
	}
	UNROLLED
	OF_LINES(u, n)
		if (place_in_line(u) == LINE_LAST)
			v[u] = tail_of(v[u].w[0], v[u].w[1], b->number);
	NOT_UNROLLED
	for (l = s->n_from; l < s->n_from + s->n_to; l++)
		store_lines(b->place[l] + GPU_LINE, first, n, v);
	return true;
}

/* A strip whose lines have places, by all threads of the block. */
FN bool
move_lines(struct block *b, const struct strip *s, enum operation op, struct waiting *w)
{
	enum { FAST_LINES = AT_ONCE * WARP_LINES, SMALL = MOVES ? 4 : ELEMENT_BYTES };
	unsigned unit = unit_of(s->own, s->output, 0);
	int warps = (int)(all_threads() + WARP - 1) / WARP, warp = (int)this_thread() / WARP, first = 0;
	int whole = (int)s->bytes / TWO_LINES * 2, lines = ((int)s->bytes + TWO_LINES - 1) / TWO_LINES * 2;
	bool good = true, fast = ON_GPU && !s->scales && !s->divides && unit >= SMALL;
	NOT_UNROLLED
	for (; fast && first + warps * FAST_LINES <= whole && good; first += warps * FAST_LINES)
		good = unit == VECTOR
		    ? move_some_lines(b, s, first + warp * FAST_LINES, AT_ONCE, true, VECTOR, op, w)
		    : move_some_lines(b, s, first + warp * FAST_LINES, AT_ONCE, true, SMALL, op, w);
	unit = unit_of(s->own, s->output, s->bytes);
	NOT_UNROLLED
	for (first += warp * WARP_LINES; first < lines && good; first += warps * WARP_LINES)
		good = move_some_lines(b, s, first, 1, false, unit, op, w);
	if (barrier_any(!good || !publishers_agree(b, s, w)))
		return false;
	tell_publishers(b, s);
	return true;
}

#undef OF_LINES

#endif

#endif
