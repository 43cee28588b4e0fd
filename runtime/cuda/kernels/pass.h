/* The pass over data: loads of own input and of the sources' slots, combined in registers, and stores to the output and
 * the readers' slots.
 *
 * What a thread has loaded it combines at once, so that a sum costs no more traffic than a copy. Own input and output
 * lie where the caller wants them; rings begin at multiples of 16 bytes, and so does every chunk in them, so that only
 * accesses to the caller's memory care about alignment. Rings are loaded and stored in whole vectors, also where a
 * chunk ends within one. */
#ifndef BLINK_KERNELS_PASS_H
#define BLINK_KERNELS_PASS_H

#include "kernels/strips.h"

/* The caller's memory, in units that both its addresses and its length are multiples of. */
FN struct vector
load_user(const char *from, int64_t bytes, unsigned unit)
{
	struct vector v = { { 0, 0, 0, 0 } };
	if (unit == VECTOR)
		return load16(from);
	if (unit == 8) {
		UNROLLED
		for (int i = 0; i < 2; i++)
			if (8 * i < bytes) {
				uint64_t x = load8(from + 8 * i);
				v.w[2 * i] = (uint32_t)x;
				v.w[2 * i + 1] = (uint32_t)(x >> 32);
			}
	} else if (unit == 4) {
		UNROLLED
		for (int i = 0; i < 4; i++)
			if (4 * i < bytes)
				v.w[i] = load4(from + 4 * i);
	} else if (unit == 2) {
		UNROLLED
		for (int i = 0; i < 8; i++)
			if (2 * i < bytes)
				v.w[i / 2] |= (uint32_t)load2(from + 2 * i) << 16 * (i % 2);
	} else {
		UNROLLED
		for (int i = 0; i < 16; i++)
			if (i < bytes)
				v.w[i / 4] |= (uint32_t)load1(from + i) << 8 * (i % 4);
	}
	return v;
}

FN void
store_user(char *to, struct vector v, int64_t bytes, unsigned unit)
{
	if (unit == VECTOR) {
		store16(to, v);
	} else if (unit == 8) {
		UNROLLED
		for (int i = 0; i < 2; i++)
			if (8 * i < bytes)
				store8(to + 8 * i, v.w[2 * i] | (uint64_t)v.w[2 * i + 1] << 32);
	} else if (unit == 4) {
		UNROLLED
		for (int i = 0; i < 4; i++)
			if (4 * i < bytes)
				store4(to + 4 * i, v.w[i]);
	} else if (unit == 2) {
		UNROLLED
		for (int i = 0; i < 8; i++)
			if (2 * i < bytes)
				store2(to + 2 * i, (uint16_t)(v.w[i / 2] >> 16 * (i % 2)));
	} else {
		UNROLLED
		for (int i = 0; i < 16; i++)
			if (i < bytes)
				store1(to + i, (uint8_t)(v.w[i / 4] >> 8 * (i % 4)));
	}
}

/* What two addresses and a length are multiples of: 1, 2, 4, 8 or 16. */
FN unsigned
unit_of(const char *own, const char *output, int64_t bytes)
{
	unsigned all = (unsigned)(uintptr_t)own | (unsigned)(uintptr_t)output | (unsigned)bytes | VECTOR;
	return all & (0 - all);
}

/* Vector i: of a chunk at `at` of the strip, or of a slot at `place`. */
#define OF_USER(p, i) ((p) + at + (i) * VECTOR)
#define OF_SLOT(l, i) (b->place[l] + (i) * VECTOR)

/* n vectors of the caller's memory, `step` vectors apart, by units that the compiler knows. */
FN void
load_vectors(const char *from, int64_t step, int n, unsigned unit, struct vector v[AT_ONCE])
{
	UNROLLED
	for (int u = 0; u < AT_ONCE; u++)
		if (u < n)
			v[u] = load_user(from + u * step * VECTOR, VECTOR, unit);
}

FN void
store_vectors(char *to, int64_t step, int n, unsigned unit, const struct vector v[AT_ONCE])
{
	UNROLLED
	for (int u = 0; u < AT_ONCE; u++)
		if (u < n)
			store_user(to + u * step * VECTOR, v[u], VECTOR, unit);
}

/* A segment may begin at any element. One look at the unit serves n vectors. */
#define BY_UNIT(unit, what, ...) do { \
	if ((unit) == VECTOR) \
		what(__VA_ARGS__, VECTOR, v); \
	else if (!MOVES) \
		what(__VA_ARGS__, ELEMENT_BYTES, v); \
	else if ((unit) >= 4) \
		what(__VA_ARGS__, 4, v); \
	else if ((unit) == 2) \
		what(__VA_ARGS__, 2, v); \
	else \
		what(__VA_ARGS__, 1, v); \
} while (0)

/* n vectors of each of `sources` lanes from l on, combined with v. All are under way at once. */
FN void
add_sources(const struct block *b, int l, int sources, int64_t i, int n, enum operation op, struct vector v[AT_ONCE])
{
	int64_t step = workers();
	struct vector more[AT_ONCE][AT_ONCE];
	UNROLLED
	for (int k = 0; k < AT_ONCE; k++) {
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			if (k < sources && u < n)
				more[k][u] = load16_fresh(OF_SLOT(l + k, i + u * step));
	}
	UNROLLED
	for (int k = 0; k < AT_ONCE; k++) {
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			if (k < sources && u < n)
				v[u] = combine(op, v[u], more[k][u], 4);
	}
}

/* n vectors of a chunk, from i on, not divided. n is known to the compiler, once it has put this in place: loops of
 * AT_ONCE turns are unrolled before. Several sources are loaded at once, as far as there are registers: SUMMANDS, or of
 * one vector AT_ONCE. */
FN void
move_vectors(const struct block *b, const struct strip *s, int64_t at, int64_t i, int n, enum operation op,
    unsigned unit)
{
	int64_t step = workers();
	struct vector v[AT_ONCE];
	if (s->own) {
		BY_UNIT(unit, load_vectors, OF_USER(s->own, i), step, n);
	} else {
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			if (u < n)
				v[u] = load16_fresh(OF_SLOT(0, i + u * step));
	}
	if (!MOVES && s->scales) {
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			if (u < n)
				v[u] = scale(v[u], b->call.scale);
	}
	bool few = ELEMENT_BYTES == 2 && op != SUM;	/* their arithmetic takes the registers */
	int l = s->own ? 0 : 1, sources = few ? 1 : n == 1 ? AT_ONCE : SUMMANDS;
	NOT_UNROLLED
	for (; l + sources <= s->n_from && !MOVES; l += sources)
		add_sources(b, l, sources, i, n, op, v);
	NOT_UNROLLED
	for (; l < s->n_from && !MOVES; l++)
		add_sources(b, l, 1, i, n, op, v);
	if (s->output)
		BY_UNIT(unit, store_vectors, OF_USER(s->output, i), step, n);
	LANES
	for (l = s->n_from; l < s->n_from + s->n_to; l++) {
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			if (u < n)
				store16(OF_SLOT(l, i + u * step), v[u]);
	}
}

/* Whole vectors of a chunk, not divided: AT_ONCE by each thread, as long as all have as many, and the rest one by
 * one. */
FN void
move_fast(const struct block *b, const struct strip *s, int64_t at, int64_t vectors, enum operation op, unsigned unit)
{
	int64_t round = AT_ONCE * (int64_t)workers(), i = 0;
	NOT_UNROLLED
	for (; i + round <= vectors; i += round)
		move_vectors(b, s, at, i + this_thread(), AT_ONCE, op, unit);
	NOT_UNROLLED
	for (i += this_thread(); i < vectors; i += workers())
		move_vectors(b, s, at, i, 1, op, unit);
}

FN void
move_fast_any(const struct block *b, const struct strip *s, int64_t at, int64_t vectors, enum operation op,
    unsigned unit)
{
#ifdef KERNEL_TYPE
	if (!LONG)
		switch (op) {
		case PROD:
			move_fast(b, s, at, vectors, PROD, unit);
			return;
		case MAX:
			move_fast(b, s, at, vectors, MAX, unit);
			return;
		case MIN:
			move_fast(b, s, at, vectors, MIN, unit);
			return;
		default:
			move_fast(b, s, at, vectors, SUM, unit);
			return;
		}
#endif
	move_fast(b, s, at, vectors, op, unit);
}

/* Vector i of a chunk, of which `bytes` are the caller's. */
FN void
move_vector(const struct block *b, const struct strip *s, int64_t at, int64_t i, int64_t bytes, unsigned unit,
    enum operation op)
{
	struct vector v = s->own ? load_user(OF_USER(s->own, i), bytes, unit) : load16_fresh(OF_SLOT(0, i));
	if (!MOVES && s->scales)
		v = scale(v, b->call.scale);
	LANES
	for (int l = s->own ? 0 : 1; l < s->n_from && !MOVES; l++)
		v = combine_any(op, v, load16_fresh(OF_SLOT(l, i)), 4);
	if (!MOVES && s->divides)
		v = divide(v, b->call.divide);
	if (s->output)
		store_user(OF_USER(s->output, i), v, bytes, unit);
	LANES
	for (int l = s->n_from; l < s->n_from + s->n_to; l++)
		store16(OF_SLOT(l, i), v);
}

/* The next chunk of a strip. */
FN void
move_chunk(const struct block *b, const struct strip *s, int32_t chunk, enum operation op)
{
	int64_t at = chunk * s->chunk_bytes, bytes = least(s->chunk_bytes, s->bytes - at), from = 0;
	unsigned unit = unit_of(s->own, s->output, bytes), all = unit_of(s->own, s->output, 0);
	if (!s->divides && (MOVES || all >= ELEMENT_BYTES)) {
		from = (int64_t)((uint64_t)bytes / VECTOR);
		move_fast_any(b, s, at, from, op, all);
	}
	NOT_UNROLLED
	for (int64_t i = from + this_thread(); i * VECTOR < bytes; i += workers())
		move_vector(b, s, at, i, least(VECTOR, bytes - i * VECTOR), unit, op);
}

#undef BY_UNIT
#undef OF_USER
#undef OF_SLOT

#endif
