/* A collective whose trees are for a switch that adds and copies (RankProgram.switched), by memory of all ranks at one
 * address (cuda/multicast.c). Tasks, strips, chunks and flags are those of the protocol of flags (flags.h); what
 * differs is where values are. All lanes of a tree, up and down, are slots at the same place in the memory of every
 * rank:
 *
 *	not the root, up	its own input into its slot
 *	root, up		the same; then one load, by which the switch adds up what all ranks have in their slots
 *	root, down		one store, which the switch copies into the slots of all ranks
 *	not the root, down	its slot to the output
 *
 * So each value crosses a rank's link once, the root's own, too. A rank's kernel ends when the roots have loaded what
 * it has in its slots: afterwards its memory may go.
 *
 * A slot has two addresses, and the hardware may not know that they are one place: between accesses by one and by the
 * other some thread on the way executes a fence for that. It is a long one, so that one thread of a block does. */
#ifndef BLINK_KERNELS_MULTICAST_H
#define BLINK_KERNELS_MULTICAST_H

#include "cuda/multicast_call.h"
#include "kernels/pass.h"

/* Of flags.h: the pass over a chunk. */
#undef program_chunk
#define program_chunk multicast_chunk
FN void multicast_chunk(const struct block *b, const struct strip *s, int32_t chunk, enum operation op);

#include "kernels/collective.h"

/* Shared by the threads of a block. */
struct multicast_block {
	struct block block;
	int64_t to_all;
	int32_t sum;
};

/* ---- the switch ---- */

#if ON_GPU

#define MULTIMEM "multimem.ld_reduce.relaxed.sys.global."

#define LOAD_WORDS(how) do { \
	UNROLLED \
	for (int i = 0; i < 4; i++) \
		asm volatile(MULTIMEM how " %0, [%1];" : "=r"(v.w[i]) : "l"((const uint32_t *)from + i) : "memory"); \
} while (0)

#define LOAD_PAIRS(how) do { \
	UNROLLED \
	for (int i = 0; i < 2; i++) { \
		uint64_t x; \
		asm volatile(MULTIMEM how " %0, [%1];" : "=l"(x) : "l"((const uint64_t *)from + i) : "memory"); \
		v.w[2 * i] = (uint32_t)x; \
		v.w[2 * i + 1] = (uint32_t)(x >> 32); \
	} \
} while (0)

#define LOAD_VECTOR(how, type) \
	asm volatile(MULTIMEM how ".v4." type " {%0, %1, %2, %3}, [%4];" \
		     : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3]) : "l"(from) : "memory")

FN void
store_all(void *to, struct vector v)
{
	asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};"
		     :: "l"(to), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3]) : "memory");
}

FN void
fence_addresses(void)
{
	asm volatile("fence.proxy.alias;" ::: "memory");
}

#else

#define LOAD_WORDS(how) do { \
	for (int i = 0; i < 4; i++) \
		virtual_gpu_multimem_load(how, (const uint32_t *)from + i, &v.w[i], sizeof v.w[i]); \
} while (0)
#define LOAD_PAIRS(how) do { \
	for (int i = 0; i < 2; i++) \
		virtual_gpu_multimem_load(how, (const uint64_t *)from + i, &v.w[2 * i], 2 * sizeof v.w[i]); \
} while (0)
#define LOAD_VECTOR(how, type) virtual_gpu_multimem_load(how "." type, from, &v, sizeof v)

FN void
store_all(void *to, struct vector v)
{
	virtual_gpu_multimem_store(to, &v);
}

#define fence_addresses fence

#endif

/* What all ranks have there, reduced. */
FN struct vector
load_sum(enum multicast_sum sum, const void *from)
{
	struct vector v = { { 0, 0, 0, 0 } };
	switch (sum) {
#define CASE(name, registers, ...) \
	case MULTICAST_##name: \
		LOAD_##registers(__VA_ARGS__); \
		break;
	MULTICAST_SUM_LIST(CASE)
#undef CASE
	default:
		break;
	}
	return v;
}

/* ---- the root's pass ---- */

/* A chunk of a root's strip, as its loops need it. */
struct root_chunk {
	const char *own;		/* the caller's */
	char *output;			/* NULL: none */
	char *up, *all_up;		/* its slot, and that of all ranks; NULL: the call does not reduce */
	char *all_down;			/* NULL: no rank gets the value */
	int64_t bytes, whole;		/* whole: vectors, 0 where own or output are not aligned to them */
	unsigned unit;			/* of what is not whole */
};

FN struct root_chunk
root_chunk_of(const struct multicast_block *m, const struct strip *s, int32_t chunk)
{
	int64_t at = chunk * s->chunk_bytes, to_all = m->to_all;
	char *const *place = m->block.place;
	struct root_chunk c;
	c.bytes = least(s->chunk_bytes, s->bytes - at);
	c.own = s->own + at;
	c.output = s->output ? s->output + at : s->output;
	c.up = s->n_from > 0 ? place[0] : (char *)0;
	c.all_up = s->n_from > 0 ? place[0] + to_all : (char *)0;
	c.all_down = s->n_to > 0 ? place[s->n_from] + to_all : (char *)0;
	c.unit = unit_of(s->own, s->output, c.bytes);
	c.whole = unit_of(s->own, s->output, 0) == VECTOR ? (int64_t)((uint64_t)c.bytes / VECTOR) : 0;
	return c;
}

FN void
put_own(const struct root_chunk *c)
{
	int64_t step = workers(), i = this_thread();
	NOT_UNROLLED
	for (; i + (AT_ONCE - 1) * step < c->whole; i += AT_ONCE * step) {
		struct vector v[AT_ONCE];
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			v[u] = load16(c->own + (i + u * step) * VECTOR);
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			store16(c->up + (i + u * step) * VECTOR, v[u]);
	}
	NOT_UNROLLED
	for (; i * VECTOR < c->bytes; i += step)
		store16(c->up + i * VECTOR, i < c->whole ? load16(c->own + i * VECTOR) :
		    load_user(c->own + i * VECTOR, least(VECTOR, c->bytes - i * VECTOR), c->unit));
}

/* Vectors of which the caller's are whole and aligned, in all or where there is no output. */
FN void
put_vector(const struct root_chunk *c, int64_t i, struct vector v)
{
	if (c->output)
		store16(c->output + i * VECTOR, v);
	if (c->all_down)
		store_all(c->all_down + i * VECTOR, v);
}

/* `vectors` of them, from the first. */
FN void
sum_vectors(const struct root_chunk *c, enum multicast_sum sum, int64_t vectors)
{
	int64_t step = workers(), i = this_thread();
	NOT_UNROLLED
	for (; i + (AT_ONCE - 1) * step < vectors; i += AT_ONCE * step) {
		struct vector v[AT_ONCE];
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			v[u] = load_sum(sum, c->all_up + (i + u * step) * VECTOR);
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			put_vector(c, i + u * step, v[u]);
	}
	NOT_UNROLLED
	for (; i < vectors; i += step)
		put_vector(c, i, load_sum(sum, c->all_up + i * VECTOR));
}

/* Where the compiler knows the instruction, for a loop each. */
FN void
sum_vectors_any(const struct root_chunk *c, enum multicast_sum sum, int64_t vectors)
{
	switch (sum) {
#define CASE(name, registers, ...) \
	case MULTICAST_##name: \
		sum_vectors(c, MULTICAST_##name, vectors); \
		break;
	MULTICAST_SUM_LIST(CASE)
#undef CASE
	default:
		break;
	}
}

/* From vector i on, whose bytes the caller may not have at multiples of 16, nor all of them. */
FN void
put_rest(const struct root_chunk *c, enum multicast_sum sum, int64_t i)
{
	NOT_UNROLLED
	for (i += this_thread(); i * VECTOR < c->bytes; i += workers()) {
		int64_t bytes = least(VECTOR, c->bytes - i * VECTOR);
		struct vector v = sum == MULTICAST_NONE ? load_user(c->own + i * VECTOR, bytes, c->unit)
		    : load_sum(sum, c->all_up + i * VECTOR);
		if (c->output)
			store_user(c->output + i * VECTOR, v, bytes, c->unit);
		if (c->all_down)
			store_all(c->all_down + i * VECTOR, v);
	}
}

/* ---- tasks ---- */

FN bool
is_root(const struct multicast_block *m, const struct strip *s)
{
	return s->own && (m->sum == MULTICAST_NONE ? s->n_to > 0 : s->n_from > 0);
}

/* For workers: what came before the last barrier by one address of a slot is seen by all of them by its other one. */
FN void
join_addresses(void)
{
	if (this_thread() == 0)
		fence_addresses();
	barrier_of(WORKERS, workers());
}

FN void
multicast_chunk(const struct block *b, const struct strip *s, int32_t chunk, enum operation op)
{
	const struct multicast_block *m = (const struct multicast_block *)b;
	if (!is_root(m, s)) {
		if (s->n_from > 0)
			join_addresses();
		move_chunk(b, s, chunk, op);
		return;
	}
	struct root_chunk c = root_chunk_of(m, s, chunk);
	enum multicast_sum sum = (enum multicast_sum)m->sum;
	int64_t whole = sum == MULTICAST_NONE ? 0 : c.whole;
	if (sum != MULTICAST_NONE) {
		put_own(&c);
		barrier_of(WORKERS, workers());
		join_addresses();
	}
	sum_vectors_any(&c, sum, whole);
	put_rest(&c, sum, whole);
}

/* Has the root loaded all of a strip that this rank has put into its slots? */
FN bool
strip_is_read(struct block *b, const struct strip *s, struct waiting *w)
{
	if (!s->own || s->n_from > 0 || s->n_to == 0 || s->n_chunks == 0)
		return true;
	struct lane lane = lane_of(b, s, 0);
	if (poll_flag(lane.done, GPU_FLAG(b->number, s->n_chunks), POLLS))
		return true;
	still_waits(b->call.status, w, lane.peer);
	return false;
}

FN bool
wait_until_read(struct multicast_block *m, struct waiting *w)
{
	struct block *b = &m->block;
	for (bool late = m->sum != MULTICAST_NONE; late;) {
		late = false;
		for (int i = (int)this_thread(); i < b->n_strips && !late; i += (int)all_threads())
			late = !strip_is_read(b, &b->strip[i], w);
		if (!late)
			waits_no_more(b->call.status, w);
		late = barrier_any(late);
		if (late && all_stop(b->call.status))
			return false;
	}
	return true;
}

FN void
run_multicast(struct multicast_block *m, const struct gpu_multicast_call *given)
{
	struct block *b = &m->block;
	struct waiting w = { 0, false };
	if (this_thread() == 0) {
		m->to_all = given->to_all;
		m->sum = given->sum;
	}
	struct past p = enter_call(b, &given->call, true);
	bool late = begin_call(b, &p, true);
	if (b->stopped)
		return;
	bool good = open_strips(b, late, &w) && !barrier_any(!run_list(b, SUM, &w)) && wait_until_read(m, &w);
	if (!good && this_thread() == 0)
		store4_fresh(&b->call.state->stopped, 1);
	end_call(b);
}

#if ON_GPU
SHARED_OF(multicast_block);
#endif

#endif
