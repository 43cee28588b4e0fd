/* Strips of a rank's tasks, and their lanes. */
#ifndef BLINK_KERNELS_STRIPS_H
#define BLINK_KERNELS_STRIPS_H

#include "kernels/block.h"

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
	const struct gpu_task *from = b->call.program.task + task_number;
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

/* Where a strip's data are, and how long it is. */
FN void
place_strip(const struct block *b, const struct gpu_task *t, struct strip *s)
{
	const struct gpu_call *c = &b->call;
	int64_t part = t->part > 0 ? c->part_end[t->part - 1] : 0, n = c->part_end[t->part] - part;
	int64_t begin = part_of(t->begin, t->begin_of, n), end = part_of(t->end, t->end_of, n);
	int64_t first = least(begin + s->number * c->strip, end), last = least(first + c->strip, end);
	s->own = t->own ? c->send + (t->send_block * c->count + part + first) * c->size : NULL;
	s->output = t->output ? c->recv + (t->recv_block * c->count + part + first) * c->size : NULL;
	s->bytes = (last - first) * c->size;
	s->chunk_bytes = c->slots ? c->chunk * c->size : s->bytes;
	s->n_chunks = s->bytes == 0 ? 0 : c->slots == 0 ? 1
	    : (int32_t)quotient_of((uint64_t)(s->bytes + s->chunk_bytes - 1), (uint64_t)s->chunk_bytes);
}

#ifdef TAKES_BLOCKS
/* Of blocks that differ in length. Both ends of a lane find the same strips and chunks, since these follow from the
 * length of the block alone. */
FN void
cut_strip(const struct block *b, const struct gpu_task *t, int64_t count, struct strip *s)
{
	enum { LINE = 128, CHUNKS = 8, CHUNK = GPU_CHUNK_SHORT };
	const struct gpu_call *c = &b->call;
	int64_t begin = part_of(t->begin, t->begin_of, count), end = part_of(t->end, t->end_of, count);
	int64_t line = LINE / c->size, strip = quotient_of((uint64_t)(end - begin + c->width - 1), (uint64_t)c->width);
	strip = (int64_t)quotient_of((uint64_t)(strip + line - 1), (uint64_t)line) * line;
	int64_t first = least(begin + s->number * strip, end), last = least(first + strip, end);
	int64_t chunk = (int64_t)quotient_of((uint64_t)(strip * c->size), (uint64_t)CHUNKS * CHUNK) * CHUNK;
	s->own = t->own ? c->send + ((int64_t)load8(&c->blocks->send_at[t->send_block]) + first) * c->size : NULL;
	s->output = t->output ? c->recv + ((int64_t)load8(&c->blocks->recv_at[t->recv_block]) + first) * c->size : NULL;
	s->bytes = (last - first) * c->size;
	s->chunk_bytes = least(chunk > CHUNK ? chunk : CHUNK, c->chunk * c->size);
	s->n_chunks = (int32_t)quotient_of((uint64_t)(s->bytes + s->chunk_bytes - 1), (uint64_t)s->chunk_bytes);
	s->n_chunks = s->n_chunks > 0 ? s->n_chunks : 1;
	s->count = count;
}

/* What is passed on is not known before it comes. */
FN void
place_uneven(const struct block *b, int task_number, const struct gpu_task *t, struct strip *s)
{
	const struct gpu_blocks *blocks = b->call.blocks;
	s->task = task_number;
	if (t->own || t->output) {
		const int64_t *count = t->own ? &blocks->sent[t->send_block] : &blocks->received[t->recv_block];
		cut_strip(b, t, (int64_t)load8(count), s);
		return;
	}
	s->own = NULL;
	s->output = NULL;
	s->bytes = s->chunk_bytes = 0;
	s->n_chunks = 1;
	s->count = -1;
}
#define is_uneven(b) ((b)->call.blocks != NULL)
#else
#define is_uneven(b) false
#define place_uneven(b, task_number, t, s) ((void)(task_number))
#endif

/* Strip `number` of a task. */
FN void
make_strip(const struct block *b, int task_number, int number, struct strip *s)
{
	const struct gpu_call *c = &b->call;
	struct gpu_task t;
	load_task(b, task_number, &t);
	s->number = number;
	if (is_uneven(b))
		place_uneven(b, task_number, &t, s);
	else
		place_strip(b, &t, s);
	s->from = t.from;
	s->to = t.to;
	s->n_from = t.n_from;
	s->n_to = t.n_to;
	s->publishes = t.publishes;
	s->chunk = s->done = s->set = s->next = s->missed = 0;
	s->scales = t.own && c->scales;
	s->divides = t.complete && c->divide != 0 && (t.own || t.n_from > 1);
	s->shape = t.shape;
	s->held = -1;
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
	s->chunk = s->done = s->set = s->next = s->missed = 0;
	s->n_chunks = s->bytes > 0;
	s->scales = c->scales != 0;
	s->divides = c->divide != 0;
	s->shape = 0;
	s->held = -1;
}

/* Lane l of a strip: its sources' first, then its readers'. */
FN const struct gpu_lane *
lane_at(const struct block *b, const struct strip *s, int l)
{
	return b->call.program.lane + (l < s->n_from ? s->from + l : s->to + l - s->n_from);
}

FN struct lane
load_lane(const struct block *b, const struct strip *s, int l)
{
	const struct gpu_call *c = &b->call;
	const struct gpu_lane *at = lane_at(b, s, l);
	int64_t strip = (int64_t)load4(&at->lane) * c->width + s->number, half = (int64_t)(b->number & 1);
	struct gpu_flag *ready = (struct gpu_flag *)load8(&at->pair.ready) + strip;
	char *data = (char *)load8(c->slots ? &at->pair.ring[half] : &at->pair.packets[half]) + c->lines;
	struct lane lane;
	lane.peer = (int32_t)load4(&at->peer);
	lane.ready = &ready->value;
	lane.done = (uint64_t *)load8(&at->pair.done) + strip;
	lane.data = data + strip * (c->slots ? c->ring_share : c->packet_share);
	return lane;
}

FN struct lane
lane_of(const struct block *b, const struct strip *s, int l)
{
	return s->held >= 0 ? b->held[s->held + l] : load_lane(b, s, l);
}

/* Of the call, which goes with the first chunk of a lane. */
FN uint64_t *
signature_of(const struct block *b, const struct lane *lane)
{
	return &((struct gpu_flag *)lane->ready)->signature[b->number & 1];
}

/* Of strip i of the list, of which `chunk` chunks are done. How many a strip has of a block that is passed on, is
 * written while others may ask this for its first chunk; it has one at least. */
FN bool
strip_is_done(const struct block *b, int i, int32_t chunk)
{
	if (is_uneven(b) && chunk == 0 && i < b->n_tasks)
		return false;
	return chunk == b->strip[i].n_chunks;
}

#ifdef TAKES_BLOCKS
/* With the signature comes the length of the block. Each strip has one source at most, so that one thread is here. */
FN bool
length_fits(const struct block *b, struct strip *s, uint64_t found, int32_t peer)
{
	struct gpu_task t;
	uint64_t count = found ^ b->call.signature;
	if (count >> GPU_COUNT_BITS != 0) {
		peer_differs(b->call.status, peer);
		return false;
	}
	if (s->count == (int64_t)count)
		return true;
	load_task(b, s->task, &t);
	if (s->count >= 0) {
		peer_differs(b->call.status, GPU_DIFFERS_MESSAGE + (int32_t)t.recv_block);
		return false;
	}
	cut_strip(b, &t, (int64_t)count, s);
	return true;
}

#define signature_to_set(b, s) ((b)->call.signature ^ (is_uneven(b) ? (uint64_t)(s)->count : 0))
#else
#define length_fits(b, s, found, peer) ((void)(s), true)
#define signature_to_set(b, s) ((b)->call.signature)
#endif

FN bool
signature_fits(const struct block *b, struct strip *s, uint64_t found, int32_t peer)
{
	if (is_uneven(b))
		return length_fits(b, s, found, peer);
	if (found != b->call.signature)
		peer_differs(b->call.status, peer);
	return found == b->call.signature;
}

/* Lanes of the first `n` strips, as many strips as have room, by all threads. A barrier comes after. */
FN void
hold_lanes(struct block *b, int n)
{
	for (int k = (int)this_thread_from_last(); k < HELD; k += (int)all_threads()) {
		int i = 0, first = 0, lanes = n > 0 ? b->strip[0].n_from + b->strip[0].n_to : 0;
		while (i < n && first + lanes <= k) {
			first += lanes;
			if (++i < n)
				lanes = b->strip[i].n_from + b->strip[i].n_to;
		}
		if (i == n || first + lanes > HELD)
			break;
		b->held[k] = load_lane(b, &b->strip[i], k - first);
		if (k == first)
			b->strip[i].held = first;
	}
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

FN int
strips_of(const struct block *b)
{
	return b->call.counted ? GPU_FIRST(&b->call, b->call.program.n_tasks)
	    : b->call.program.n_tasks * b->call.width;
}

/* Strip k of this block, of all. A block that writes over one link after the other leaves it to chance whether each
 * link has a block at any time: of n blocks over l links, n / (n + l - 1) of the time. So tasks are in the order of
 * their first reader, and each deal, of tasks with as many readers, gives a block a run of strips: its lists have
 * few links, and each link has blocks of its own. A deal begins where the one before ended, so that no block has two
 * strips more than another. */
FN int
strip_of_block(const struct block *b, int k)
{
	const struct gpu_call *c = &b->call;
	int blocks = (int)all_blocks(), me = (int)this_block(), begin = 0, from = 0;
	if (c->order == NULL)
		return me + k * blocks;
	NOT_UNROLLED
	for (int deal = 0; ; deal++) {
		int end = deal < GPU_DEALS - 1 ? c->dealt[deal] : strips_of(b), each = (end - begin) / blocks;
		int more = end - begin - each * blocks, round = from + more - blocks;	/* past the last block */
		int before = (int)(least(me > from ? me - from : 0, round > 0 ? blocks - from : more)
		    + least(me, round > 0 ? round : 0));
		int mine = each + ((me >= from ? me - from : me - from + blocks) < more);
		if (k < mine || deal == GPU_DEALS - 1)
			return begin + me * each + before + k;
		k -= mine;
		begin = end;
		from = round >= 0 ? round : from + more;
	}
}

/* For one thread: strip i of all. */
FN void
take_strip(const struct block *b, int i, struct strip *s)
{
	const struct gpu_call *c = &b->call;
	int place = c->counted ? 0 : i / c->width, number = i - place * c->width;
	while (c->counted && GPU_FIRST(c, place + 1) <= i)
		place++;
	if (c->counted)
		number = i - GPU_FIRST(c, place);
	make_strip(b, c->order ? (int)load2(c->order + place) : place, number, s);
	s->empty = s->n_chunks > 0 ? number + 1 : number;
	s->empty_end = c->counted ? c->width : number + 1;
	if (c->counted && i + 1 < GPU_FIRST(c, place + 1) && s->n_chunks > 0)
		s->empty_end = s->empty;
}

/* An empty strip leaves nothing to wait for, nor do those that are not counted. */
FN void
leave_empty(const struct block *b, const struct strip *s)
{
	for (int k = s->empty; k < s->empty_end; k++)
		for (int l = 0; l < s->n_to; l++)
			store8(&(pending_of(b, s, l) + (k - s->number))->value, 0);
}

#endif
