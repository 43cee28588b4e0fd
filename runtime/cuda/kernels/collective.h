/* A collective on one GPU: a rank's program, interpreted by the blocks of one kernel. cuda/device.h has the protocols.
 *
 * A strip of a task belongs to one block. Its value is made in one pass: every thread loads vectors of its own input
 * and of each source's ring, combines them in registers, and stores the result to the output and into the ring of each
 * reader. What a thread has loaded it combines at once, so that a sum costs no more traffic than a copy. Own input and
 * output lie where the caller wants them; rings begin at multiples of 16 bytes, and so does every chunk in them, so
 * that only accesses to the caller's memory care about alignment. Rings are loaded and stored in whole vectors, also
 * where a chunk ends within one.
 *
 * Flags. The lanes of a strip, sources and then readers, are numbered; thread l looks after lanes l, l + threads ... :
 * it waits for the source's `ready`, or for the reader's `done` of the chunk that had the slot, and puts the address of
 * the slot into a table for all. A barrier that tells every thread whether all lanes are there ends the wait; another
 * one ends the work, after which the same threads set the flags, each after a fence of its own:
 *
 *	thread l			all threads
 *	wait for flag of lane l, fence
 *	----------------------- barrier: all there? -----
 *					load, combine, store
 *	----------------------- barrier -----------------
 *	fence, set flag of lane l
 *
 * The second fence orders what the whole block has stored, since the barrier comes before it; the first one what the
 * whole block loads, since the barrier comes after it. Rings are loaded past the first-level cache, which may hold what
 * was in the slot before.
 *
 * A block has a list of strips and goes round: those whose lanes are there move on by a chunk, the others are passed
 * over. Mostly the list has one strip, which is polled for long; with `turns` it has several, and then nothing that one
 * of them waits for holds up another. The block's share of the own block is the list's last entry: without lanes it is
 * always ready, and fills the first gap.
 *
 * Packets. A thread takes packets i, i + threads ...: it polls the packet of each source, several sources at once, and
 * stores at once what it makes of them. There are no barriers but at the ends of a strip. Strips of a block come one
 * after the other; nobody waits in a circle, since all ranks have their tasks in the same order of segments and a
 * segment's tasks before those that hang on them.
 *
 * Ends. Whoever waits for long reads status->stop, and says in status->awaits for whom. A rank that finds another
 * signature than its own sets `stop` itself. Whether the kernel stops is asked at a barrier, so that the threads of a
 * block leave together. It leaves word for those behind it in the stream, which may be many: they end at once. */
#ifndef BLINK_KERNELS_COLLECTIVE_H
#define BLINK_KERNELS_COLLECTIVE_H

#ifdef KERNEL_TYPE
#include "kernels/element.h"
enum { MOVES = 0, ELEMENT_BYTES = sizeof(element) };
#else
#include "kernels/portable.h"
enum operation { SUM };
enum { MOVES = 1, ELEMENT_BYTES = 16 };
#define combine(op, a, b, words) ((void)(op), (void)(b), (void)(words), a)
#define combine_any combine
#define scale(a, factor) (a)
#define factor_at(scalar) 0
#define divide(a, by) (a)
#endif

/* Loops over lanes: where their number is known, the compiler sees whether to unroll them. The one over the sources of
 * AT_ONCE vectors it never unrolls: it would take more registers than a block of GPU_THREADS has. */
#ifdef GENERATED
#define LANES
#else
#define LANES NOT_UNROLLED
#endif

enum {
	VECTOR = 16,
	/* Vectors of each operand that a thread has under way. Types whose arithmetic is long are bound by that. */
	AT_ONCE = ELEMENT_BYTES == 1 ? 2 : 4,
	SOURCES_AT_ONCE = 4,		/* packets */
	/* Of a flag, before `stop` is looked at. A pause of a twin may be a sleep of 10 ms. */
	POLLS = ON_GPU ? 1 << 10 : 1 << 5,
	LOOKS = 4,			/* at a flag, before others of the list */
	NS_LONG = 1000000
};

/* A strip of a task, or the block's share of the own block. Sizes in bytes. */
struct strip {
	const char *own;		/* NULL: none */
	char *output;			/* NULL: none */
	int64_t bytes, chunk_bytes;
	int32_t from, to;		/* lanes of the program */
	int32_t n_from, n_to;
	int32_t number;			/* which strip of the segment */
	int32_t publishes;
	int32_t chunk, n_chunks;	/* done, and in all */
	bool scales, divides;
	uint8_t shape;			/* of the task; 0: any */
};

/* Shared by the threads of a block. */
struct block {
#if !ON_GPU
	struct answers answers;
#endif
	struct gpu_call call;
	struct gpu_program program;
	uint64_t number;		/* of the call */
	uint32_t stopped;		/* a kernel before */
	int32_t n_strips;
	struct strip strip[GPU_TASKS_OF_BLOCK + 1];
	char *place[GPU_LANES];		/* of each lane of the strip at work: its slot, or its packets */
};

/* A thread's own. */
struct waiting {
	uint64_t since;			/* ns; 0: not */
	bool said;			/* in status->awaits */
};

FN int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- waits ---- */

FN bool
poll_flag(const uint64_t *at, uint64_t value, int polls)
{
	NOT_UNROLLED
	for (int i = 0; i < polls; i++) {
		if (load8_fresh(at) >= value)
			return true;
		pause_thread();
	}
	return false;
}

/* Of several flags, by who pauses when it has looked at all of them. */
FN bool
look_at_flag(const uint64_t *at, uint64_t value)
{
	NOT_UNROLLED
	for (int i = 0; i < LOOKS; i++)
		if (load8_fresh(at) >= value)
			return true;
	return false;
}

/* A round of waiting is over, without effect. Every ms it is said again, since others say that they wait no more. */
FN void
still_waits(struct gpu_status *status, struct waiting *w, int32_t peer)
{
	uint64_t now = time_now();
	if (w->since == 0) {
		w->since = now;
	} else if (now - w->since > NS_LONG) {
		store4_fresh(&status->awaits, (uint32_t)peer);
		w->since = now;
		w->said = true;
	}
}

FN void
waits_no_more(struct gpu_status *status, struct waiting *w)
{
	if (w->said)
		store4_fresh(&status->awaits, (uint32_t)-1);
	w->since = 0;
	w->said = false;
}

/* For all threads of the block, after a round without effect. */
FN bool
all_stop(struct gpu_status *status)
{
	return barrier_any(this_thread() == 0 && load4_fresh(&status->stop) != 0);
}

FN void
peer_differs(struct gpu_status *status, int32_t peer)
{
	store4_fresh(&status->differs, (uint32_t)peer + 1);
	fence();
	store4_fresh(&status->stop, 1);
}

/* The readers of a call that has this list. */
FN bool
wait_for_list(struct block *b, unsigned list, struct waiting *w)
{
	const struct gpu_state *state = b->call.state;
	unsigned n = load4_fresh(&state->n_pending[list]);
	for (;;) {
		bool late = false;
		for (unsigned i = this_thread(); i < n && !late; i += all_threads()) {
			const struct gpu_pending *p = &state->pending[list][i];
			uint64_t value = load8(&p->value);
			if (value != 0 && !poll_flag((const uint64_t *)load8(&p->done), value, POLLS)) {
				still_waits(b->call.status, w, (int32_t)load4(&p->peer));
				late = true;
			}
		}
		if (!late) {
			waits_no_more(b->call.status, w);
			if (this_thread() < n)
				fence();
		}
		if (!barrier_any(late))
			return true;
		if (all_stop(b->call.status))
			return false;
	}
}

/* The readers of the call before the last: nothing of its half is needed any more. */
FN bool
wait_for_readers(struct block *b, struct waiting *w)
{
	return wait_for_list(b, (unsigned)((b->number + 1) % GPU_LISTS), w);
}

/* ---- strips ---- */

#ifdef GENERATED
/* The program is code (kernels/generated.h): each task in constants, and passes whose lanes are counted. */
FN void program_task(int rank, int task_number, struct gpu_task *t);
FN void program_chunk(const struct block *b, const struct strip *s, int32_t chunk, enum operation op);
#define load_task(b, number, t) program_task((b)->call.rank, number, t)
#else
#define program_chunk move_chunk

FN void
load_task(const struct block *b, int task_number, struct gpu_task *t)
{
	const struct gpu_task *from = b->program.task + task_number;
	t->send_block = (int64_t)load8(&from->send_block);
	t->recv_block = (int64_t)load8(&from->recv_block);
	t->begin = (int64_t)load8(&from->begin);
	t->begin_of = (int64_t)load8(&from->begin_of);
	t->end = (int64_t)load8(&from->end);
	t->end_of = (int64_t)load8(&from->end_of);
	t->part = (int32_t)load4(&from->part);
	t->n_from = (int32_t)load4(&from->n_from);
	t->n_to = (int32_t)load4(&from->n_to);
	t->from = (int32_t)load4(&from->from);
	t->to = (int32_t)load4(&from->to);
	t->publishes = (int32_t)load4(&from->publishes);
	t->own = (uint8_t)load1(&from->own);
	t->output = (uint8_t)load1(&from->output);
	t->complete = (uint8_t)load1(&from->complete);
	t->shape = 0;
}
#endif

/* Strip `number` of a task. */
FN void
make_strip(const struct block *b, int task_number, int number, struct strip *s)
{
	const struct gpu_call *c = &b->call;
	struct gpu_task t;
	load_task(b, task_number, &t);
	int64_t part = t.part > 0 ? c->part_end[t.part - 1] : 0, n = c->part_end[t.part] - part;
	int64_t begin = part_of(t.begin, t.begin_of, n), end = part_of(t.end, t.end_of, n);
	int64_t first = least(begin + number * c->strip, end), last = least(first + c->strip, end);
	s->own = t.own ? c->send + (t.send_block * c->count + part + first) * c->size : NULL;
	s->output = t.output ? c->recv + (t.recv_block * c->count + part + first) * c->size : NULL;
	s->bytes = (last - first) * c->size;
	s->chunk_bytes = c->slots ? c->chunk * c->size : s->bytes;
	s->from = t.from;
	s->to = t.to;
	s->n_from = t.n_from;
	s->n_to = t.n_to;
	s->number = number;
	s->publishes = t.publishes;
	s->chunk = 0;
	s->n_chunks = s->bytes == 0 ? 0 : (int32_t)((s->bytes + s->chunk_bytes - 1) / s->chunk_bytes);
	s->scales = t.own && c->scales;
	s->divides = t.complete && c->divide != 0 && (t.own || t.n_from > 1);
	s->shape = t.shape;
}

/* This block's share of the own block, in vectors. */
FN void
make_share(const struct block *b, struct strip *s)
{
	const struct gpu_call *c = &b->call;
	int64_t vectors = (c->own_bytes + VECTOR - 1) / VECTOR, each = (vectors + all_blocks() - 1) / all_blocks();
	int64_t first = least(each * VECTOR * this_block(), c->own_bytes);
	s->own = c->own_from + first;
	s->output = c->own_to + first;
	s->bytes = s->chunk_bytes = least(each * VECTOR, c->own_bytes - first);
	s->from = s->to = s->n_from = s->n_to = s->number = s->publishes = 0;
	s->chunk = 0;
	s->n_chunks = s->bytes > 0;
	s->scales = c->scales != 0;
	s->divides = c->divide != 0;
	s->shape = 0;
}

/* A lane of a strip, as the call needs it. */
struct lane {
	int32_t peer;
	uint64_t *ready, *signature, *done;
	char *data;			/* its ring, or packets */
};

/* Lane l of a strip: its sources' first, then its readers'. */
FN const struct gpu_lane *
lane_at(const struct block *b, const struct strip *s, int l)
{
	return b->program.lane + (l < s->n_from ? s->from + l : s->to + l - s->n_from);
}

FN struct lane
lane_of(const struct block *b, const struct strip *s, int l)
{
	const struct gpu_call *c = &b->call;
	const struct gpu_lane *at = lane_at(b, s, l);
	int64_t strip = (int64_t)load4(&at->lane) * c->width + s->number, half = (int64_t)(b->number & 1);
	struct gpu_flag *ready = (struct gpu_flag *)load8(&at->pair.ready) + strip;
	char *data = (char *)load8(c->slots ? &at->pair.ring[half] : &at->pair.packets[half]);
	struct lane lane;
	lane.peer = (int32_t)load4(&at->peer);
	lane.ready = &ready->value;
	lane.signature = &ready->signature[half];
	lane.done = (uint64_t *)load8(&at->pair.done) + strip;
	lane.data = data + strip * (c->slots ? c->ring_share : c->packet_share);
	return lane;
}

FN struct gpu_pending *
pending_of(const struct block *b, const struct strip *s, int reader)
{
	return &b->call.state->pending[b->number % GPU_LISTS]
	    [(int64_t)(s->publishes + reader) * b->call.width + s->number];
}

/* What a reader's `done` will be in the end, for the kernel after the next. */
FN void
leave_pending(const struct block *b, const struct strip *s, int reader, const struct lane *lane)
{
	struct gpu_pending *p = pending_of(b, s, reader);
	store8(&p->done, (uint64_t)lane->done);
	store8(&p->value, GPU_FLAG(b->number, s->n_chunks));
	store4(&p->peer, (uint32_t)lane->peer);
}

/* For one thread. An empty strip leaves nothing to wait for. */
FN void
take_strip(const struct block *b, int i, struct strip *s)
{
	make_strip(b, i / b->call.width, i % b->call.width, s);
	for (int l = 0; l < s->n_to && s->n_chunks == 0; l++)
		store8(&pending_of(b, s, l)->value, 0);
}

/* ---- the pass over data ---- */

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

/* n vectors from vector i on, `step` apart: of a chunk at `at` of the strip, or of a slot at `place`. */
#define OF_USER(p, i) ((p) + at + (i) * VECTOR)
#define OF_SLOT(l, i) (b->place[l] + (i) * VECTOR)

/* Whole vectors of a chunk, AT_ONCE by each thread, aligned and not divided: returns where it ended. */
FN int64_t
move_fast(const struct block *b, const struct strip *s, int64_t at, int64_t vectors, enum operation op)
{
	int64_t step = all_threads(), whole = vectors - vectors % (AT_ONCE * step);
	NOT_UNROLLED
	for (int64_t i = this_thread(); i < whole; i += AT_ONCE * step) {
		struct vector v[AT_ONCE], more[AT_ONCE];
		UNROLLED
		for (int u = 0; u < AT_ONCE; u++)
			v[u] = s->own ? load16(OF_USER(s->own, i + u * step)) : load16_fresh(OF_SLOT(0, i + u * step));
		if (!MOVES && s->scales) {
			UNROLLED
			for (int u = 0; u < AT_ONCE; u++)
				v[u] = scale(v[u], b->call.scale);
		}
		NOT_UNROLLED
		for (int l = s->own ? 0 : 1; l < s->n_from && !MOVES; l++) {
			UNROLLED
			for (int u = 0; u < AT_ONCE; u++)
				more[u] = load16_fresh(OF_SLOT(l, i + u * step));
			UNROLLED
			for (int u = 0; u < AT_ONCE; u++)
				v[u] = combine(op, v[u], more[u], 4);
		}
		if (s->output) {
			UNROLLED
			for (int u = 0; u < AT_ONCE; u++)
				store16(OF_USER(s->output, i + u * step), v[u]);
		}
		LANES
		for (int l = s->n_from; l < s->n_from + s->n_to; l++) {
			UNROLLED
			for (int u = 0; u < AT_ONCE; u++)
				store16(OF_SLOT(l, i + u * step), v[u]);
		}
	}
	return whole;
}

FN int64_t
move_fast_any(const struct block *b, const struct strip *s, int64_t at, int64_t vectors, enum operation op)
{
#ifdef KERNEL_TYPE
	if (!LONG)
		switch (op) {
		case PROD:
			return move_fast(b, s, at, vectors, PROD);
		case MAX:
			return move_fast(b, s, at, vectors, MAX);
		case MIN:
			return move_fast(b, s, at, vectors, MIN);
		default:
			return move_fast(b, s, at, vectors, SUM);
		}
#endif
	return move_fast(b, s, at, vectors, op);
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
	unsigned unit = unit_of(s->own, s->output, bytes);
	if (!s->divides && unit_of(s->own, s->output, 0) == VECTOR)
		from = move_fast_any(b, s, at, bytes / VECTOR, op);
	NOT_UNROLLED
	for (int64_t i = from + this_thread(); i * VECTOR < bytes; i += all_threads())
		move_vector(b, s, at, i, least(VECTOR, bytes - i * VECTOR), unit, op);
}

/* ---- flags ---- */

/* Is the flag of lane l there for this chunk? If so, the lane's slot is in the table. */
FN bool
lane_is_there(struct block *b, const struct strip *s, int l, int32_t chunk, struct waiting *w)
{
	const struct gpu_call *c = &b->call;
	struct lane lane = lane_of(b, s, l);
	bool reads = l < s->n_from;
	int32_t need = reads ? chunk + 1 : chunk + 1 - c->slots;
	uint64_t *flag = reads ? lane.ready : lane.done, value = GPU_FLAG(b->number, need);
	b->place[l] = lane.data + chunk % c->slots * c->slot_bytes;
	if (need > 0 && !(b->n_strips > 1 ? look_at_flag(flag, value) : poll_flag(flag, value, POLLS))) {
		still_waits(c->status, w, lane.peer);
		return false;
	}
	if (need > 0)
		fence();
	if (reads && chunk == 0 && load8_fresh(lane.signature) != c->signature) {
		peer_differs(c->status, lane.peer);
		return false;
	}
	return true;
}

/* For all threads of the block. */
FN bool
chunk_is_there(struct block *b, const struct strip *s, int32_t chunk, struct waiting *w)
{
	bool there = true;
	for (int l = (int)this_thread(); l < s->n_from + s->n_to && there; l += (int)all_threads())
		there = lane_is_there(b, s, l, chunk, w);
	return !barrier_any(!there);
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

/* Tell peers that a chunk is done; after the last one, who has to tell when. */
FN void
set_flags(const struct block *b, const struct strip *s, int32_t chunk)
{
	for (int l = (int)this_thread(); l < s->n_from + s->n_to; l += (int)all_threads()) {
		struct lane lane = lane_of(b, s, l);
		bool reads = l < s->n_from;
		if (!reads && chunk == 0) {
			store8_fresh(lane.signature, b->call.signature);
			leave_letter(b, s, l);
		}
		fence();
		store8_fresh(reads ? lane.done : lane.ready, GPU_FLAG(b->number, chunk + 1));
		if (!reads && chunk == 0)
			leave_pending(b, s, l - s->n_from, &lane);
	}
}

/* The host sees that the call goes on. */
FN void
say_progress(struct gpu_status *status, uint64_t *last)
{
	uint64_t now = this_thread() == 0 ? time_now() : 0;
	if (now > *last + NS_LONG) {
		store8_fresh(&status->progress, now);
		*last = now;
	}
}

/* Go round the list until all is done; false: stopped. */
FN bool
run_list(struct block *b, enum operation op, struct waiting *w)
{
	uint64_t said = time_now();
	for (bool left = true, moved; left;) {
		left = moved = false;
		for (int i = 0; i < b->n_strips; i++) {
			struct strip *s = &b->strip[i];
			int32_t chunk = s->chunk;
			if (chunk == s->n_chunks)
				continue;
			left = true;
			if (!chunk_is_there(b, s, chunk, w))
				continue;
			if (this_thread() == 0)
				s->chunk = chunk + 1;
			waits_no_more(b->call.status, w);
			program_chunk(b, s, chunk, op);
			barrier();
			set_flags(b, s, chunk);
			say_progress(b->call.status, &said);
			moved = true;
		}
		if (left && !moved && w->since != 0)
			pause_thread();
		if (left && !moved && all_stop(b->call.status))
			return false;
	}
	return true;
}

/* ---- packets ---- */

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

/* While a packet is waited for: false, where the call will not go on, or the source is in another one. */
FN bool
may_wait(const struct block *b, const struct strip *s, int l, struct waiting *w)
{
	struct lane lane = lane_of(b, s, l);
	struct vector first = load16_fresh(b->place[l]);
	still_waits(b->call.status, w, lane.peer);
	if (packet_is_there(&first, b->number) && (first.w[0] | (uint64_t)first.w[2] << 32) != b->call.signature)
		peer_differs(b->call.status, lane.peer);
	return load4_fresh(&b->call.status->stop) == 0;
}

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

/* Packets of each lane; those that say which call it is go at once. */
FN void
place_packets(struct block *b, const struct strip *s)
{
	for (int l = (int)this_thread(); l < s->n_from + s->n_to; l += (int)all_threads()) {
		struct lane lane = lane_of(b, s, l);
		uint64_t sign = b->call.signature;
		b->place[l] = lane.data;
		if (l >= s->n_from) {
			store16_fresh(b->place[l], packet_of((uint32_t)sign, (uint32_t)(sign >> 32), b->number));
			leave_pending(b, s, l - s->n_from, &lane);
		}
	}
}

/* Of a strip that is read: is its publisher in the same call? Then it is told that all is read. */
FN bool
end_packets(const struct block *b, const struct strip *s, struct waiting *w)
{
	for (int l = (int)this_thread(); l < s->n_from; l += (int)all_threads()) {
		struct vector p[SOURCES_AT_ONCE];
		struct lane lane = lane_of(b, s, l);
		if (!load_packets(b, s, l, 1, 0, w, p))
			return false;
		if ((p[0].w[0] | (uint64_t)p[0].w[2] << 32) != b->call.signature) {
			peer_differs(b->call.status, lane.peer);
			return false;
		}
		fence();
		store8_fresh(lane.done, GPU_FLAG(b->number, 1));
	}
	return true;
}

/* A strip, by all threads of the block. */
FN bool
move_packets(struct block *b, const struct strip *s, enum operation op, struct waiting *w)
{
	unsigned unit = unit_of(s->own, s->output, s->bytes | 8);
	bool good = true;
	place_packets(b, s);
	barrier();
	NOT_UNROLLED
	for (int64_t i = this_thread(); i * 8 < s->bytes && good; i += all_threads())
		good = move_packet(b, s, i, least(8, s->bytes - i * 8), unit, op, w);
	if (barrier_any(!good))
		return false;
	return !barrier_any(!end_packets(b, s, w));
}

/* ---- the call ---- */

FN int
strips_of(const struct block *b)
{
	return b->program.n_tasks * b->call.width;
}

/* Every strip of this block, one after the other. */
FN bool
run_packets(struct block *b, enum operation op, struct waiting *w)
{
	struct strip *s = &b->strip[0];
	for (int i = (int)this_block(); i < strips_of(b); i += (int)all_blocks()) {
		barrier();
		if (this_thread() == 0)
			take_strip(b, i, s);
		barrier();
		if (s->n_chunks > 0 && !move_packets(b, s, op, w))
			return false;
	}
	return true;
}

/* The list: strips of the protocol of flags, and a share of the own block. */
FN void
make_list(struct block *b)
{
	int n = b->call.slots == 0 ? 0 : (strips_of(b) - (int)this_block() + (int)all_blocks() - 1) / (int)all_blocks();
	n = n > 0 ? n : 0;
	barrier();
	for (int i = (int)this_thread(); i < n; i += (int)all_threads())
		take_strip(b, (int)this_block() + i * (int)all_blocks(), &b->strip[i]);
	if (this_thread() == 0) {
		make_share(b, &b->strip[n]);
		b->n_strips = n + (b->call.own_bytes > 0);
	}
	barrier();
}

FN void
take_call(struct block *b, const struct gpu_call *call)
{
	if (this_thread() == 0) {
		b->call = *call;
		if (!MOVES && call->scalar)
			b->call.scale = factor_at(call->scalar);
		b->program.n_tasks = (int32_t)load4(&call->program->n_tasks);
		b->program.n_publishes = (int32_t)load4(&call->program->n_publishes);
		b->program.task = (const struct gpu_task *)load8(&call->program->task);
		b->program.lane = (const struct gpu_lane *)load8(&call->program->lane);
		b->number = load8_fresh(&call->state->call) + 1;
		b->stopped = load4_fresh(&call->state->stopped);
	}
	barrier();
}

FN void
begin_call(struct block *b, const struct gpu_call *call)
{
	take_call(b, call);
	if (this_thread() == 0 && this_block() == 0) {
		store8_fresh(&call->status->signature[b->number & 1], call->signature);
		store8_fresh(&call->status->begun, b->number);
	}
}

/* The last block counts the call. */
FN void
end_call(const struct block *b)
{
	struct gpu_state *state = b->call.state;
	barrier();
	if (this_thread() != 0)
		return;
	fence();
	if (add4(&state->blocks_done, 1) != all_blocks() - 1)
		return;
	store4_fresh(&state->blocks_done, 0);
	store4_fresh(&state->n_pending[b->number % GPU_LISTS],
	    (uint32_t)(b->program.n_publishes * b->call.width));
	store8_fresh(&state->call, b->number);
	fence();
	if (load4_fresh(&b->call.status->stop) == 0)
		store8_fresh(&b->call.status->done, b->number);
}

/* For all operations of a type: most of it is the same. */
CALLED void
run_call(struct block *b, enum operation op)
{
	struct waiting w = { 0, false };
	bool good = wait_for_readers(b, &w) && (b->call.slots != 0 || run_packets(b, op, &w));
	if (good) {
		make_list(b);
		good = run_list(b, op, &w);
	}
	if (!good && this_thread() == 0)
		store4_fresh(&b->call.state->stopped, 1);
	end_call(b);
}

FN void
run_collective(struct block *b, const struct gpu_call *call, enum operation op)
{
	begin_call(b, call);
	if (!b->stopped)
		run_call(b, op);
}

#undef OF_USER
#undef OF_SLOT

#endif
