/* Copies: a call that only moves, by the copy engines of the GPUs. Its data then take no multiprocessor from what else
 * the GPU computes, and long ones cross links in larger packets than a kernel's stores.
 *
 * Between two kernels of one block, which give the call its place among the others (device.h), each chunk that comes in
 * takes these steps, and of what the rank sends itself the ones in the middle:
 *
 *	stream of the lane that comes	stream of each lane that goes
 *	wait: ready >= c + 1
 *	event --------------------->	wait: event
 *					wait: done >= c + 1 - slots	once all slots have been used
 *	copy to the output		copy to the reader's window
 *					copy of 4 bytes: the reader's ready = c + 1
 *	wait: events <--------------	event
 *	copy of 4 bytes: done = c + 1 of the publisher
 *
 * The last two are said together with the next chunk's first, so that they do not hold it up. A stream waits for memory
 * of its own GPU only (of the host, where the lane goes through the host), and a flag follows its data in one stream,
 * so that it arrives after them.
 *
 * Batches. Of trees that share a stream, as many hops from who has the value at first, the copies of one chunk number
 * may go to the driver as one batch, and the flags after them as another (cuda/batch.h): two calls for all, in place of
 * two for each. Then all data go before the first flag, which costs each hop the time of a chunk for each tree more; so
 * long chunks, where that is more than what the calls cost, go one by one. A batch has no order in itself. Such trees
 * have one event for all, too.
 *
 * Streams. A stream belongs to a peer, a direction, a route and a position: how many hops a tree is from who has the
 * value at first. Trees that use a link at the same position share its stream, so that their chunks take turns on the
 * link and each gets its share (Wang et al., Blink, MLSys 2020, 4.2.2); those at other positions must not wait for
 * one another. Streams branch from the caller's and come back to it.
 *
 * A driver may execute streams one after the other where it has fewer queues than they are, in the order in which their
 * work was given to it; it does not know what a wait for memory waits for. So work is given in an order in which it
 * could also be done by one stream: chunk by chunk, of these by the number of hops, and of these by segment. All ranks
 * do so, and what an operation waits for comes before it in that order, on this rank or another. A graph may be
 * executed in another order; so in a capture all of it goes into the caller's stream, one after the other, and without
 * batches, which CUDA does not capture. What is captured is the same each time: flags begin at 0 in every call.
 *
 * Ends. A wait in a stream cannot be asked to end. Once a communicator has failed, its watcher sets all flags of its
 * own GPU to more than anything waits for, again and again, until nothing is under way: peers and older copies may set
 * them back for a while. */
#include "cuda/batch.h"
#include "cuda/calls.h"
#include "cuda/sizes.h"
#include "support/debug.h"
#include "support/error.h"

#include <stdlib.h>

enum {
	LONG = 32 << 20,		/* bytes of a message that is long */
	BATCHED = 512 << 10,		/* bytes of a chunk, at most: it takes a link of 25 GB/s 20 us */
	WAYS = 64,
	BEGIN = 2, END = 3,		/* kernels of "move" */
	RELEASED = 1 << 30,		/* a flag, when a communicator has failed */
	FLAGS = 2 * GPU_COPY_LANES,	/* of a meeting */
	FLAG_BYTES = sizeof(uint32_t),
	FLAGS_OF_NEWS = 16		/* after this number of flags `progress` grows */
};

/* A stream of lanes. */
struct way {
	int peer, hops;
	enum gpu_route route;
	bool comes, used;		/* used: by this call */
	CUstream stream;
	CUevent end;
	CUevent mark;			/* of batches: where it was at the last record */
	uint64_t recorded, followed_at;	/* in which steps */
	uint64_t followed;		/* a bit for each way that it has followed in that step */
};

struct gpu_copier {
	CUdeviceptr number;		/* in memory of the GPU: 0, 1 ... GPU_COPY_CHUNKS, what flags are set to */
	CUdeviceptr released;		/* likewise, FLAGS times RELEASED */
	CUstream release;		/* shares no connection with what waits (store.c) */
	CUevent begun;
	struct way way[WAYS];
	int n_ways;
	uint64_t step;
	CUevent *event;
	int n_events;
	struct gpu_batch batch;		/* empty between calls */
};

/* A lane while its chunks are given to its stream. */
struct track {
	CUstream stream;
	struct way *way;		/* NULL: of a capture, or none was to be had */
	CUdeviceptr window;
	CUdeviceptr awaited, set;	/* flags: here, and at the other end */
	CUevent event;			/* a chunk has come; or it has gone */
};

/* A task, likewise. */
struct errand {
	CUdeviceptr own, output;	/* 0: none */
	int64_t bytes;
	int n_chunks, n_to, hops;
	struct track *from, *to;	/* from: NULL: none */
};

/* A call, likewise. */
struct round {
	struct gpu *g;
	struct gpu_copier *c;
	const struct call *call;
	const struct gpu_call *p;
	const struct gpu_copy_sizes *sizes;
	const struct gpu_target *to;
	struct errand *errand;
	struct track *track;
	int n_tracks, n_events, n_flags, n_chunks;	/* n_chunks: the most of any errand */
	bool batches;
	struct blink_error *err;
};

bool
gpu_copies_serve(const struct gpu *g, const struct call *call, const struct gpu_asked *asked,
    struct gpu_copy_sizes *out)
{
	return g->copies && !collective_reduces(call->coll) && asked->n_ranks > 1 && asked->message > 0
	    && (g->copies == GPU_COPIES_ALL || asked->message >= LONG) && gpu_copy_sizes_choose(asked, out);
}

/* ---- operations: nothing after the first that fails ---- */

#define DO(r, call, ...)                                                       \
	((r)->err->code != blinkSuccess ? (r)->err->code                       \
	    : driver_check((r)->g->d, (r)->g->d->call, (r)->err, __VA_ARGS__))

static void
copy(struct round *r, CUdeviceptr to, CUdeviceptr from, int64_t bytes, CUstream stream)
{
	DO(r, copy_async(to, from, (size_t)bytes, stream), "copy %lld bytes", (long long)bytes);
}

/* As copy, but without an order among what is said until `put`. */
static void
say(struct round *r, CUdeviceptr to, CUdeviceptr from, int64_t bytes, CUstream stream)
{
	if (!r->batches)
		copy(r, to, from, bytes, stream);
	else if (r->err->code == blinkSuccess)
		gpu_batch_add(&r->c->batch, r->g->d, &(struct gpu_batched){ stream, to, from, (size_t)bytes }, r->err);
}

static void
put(struct round *r)
{
	gpu_batch_put(&r->c->batch, r->g->d, r->err);
}

static CUdeviceptr
number(const struct round *r, int value)
{
	return r->c->number + (CUdeviceptr)value * FLAG_BYTES;
}

static void
set_flag(struct round *r, CUdeviceptr at, int value, CUstream stream)
{
	say(r, at, number(r, value), FLAG_BYTES, stream);
	if (++r->n_flags % FLAGS_OF_NEWS == 0)
		copy(r, device_pointer(&r->p->status->progress),
		    number(r, 1 + r->n_flags / FLAGS_OF_NEWS % GPU_COPY_CHUNKS), FLAG_BYTES, stream);
}

static void
await_flag(struct round *r, CUdeviceptr at, int value, CUstream stream)
{
	DO(r, stream_wait_value(stream, at, (cuuint32_t)value, CU_STREAM_WAIT_VALUE_GEQ | r->g->flush),
	    "wait for a value");
}

/* Of streams that are one, the order is there. */
static void
record(struct round *r, CUevent event, CUstream stream)
{
	if (!r->to->capturing)
		DO(r, event_record(event, stream), "record an event");
}

static void
follow(struct round *r, CUstream stream, CUevent event)
{
	if (!r->to->capturing)
		DO(r, stream_wait_event(stream, event, 0), "wait for an event");
}

/* Of lanes that share a stream in a batch one record is enough, and one wait. */
static void
record_lane(struct round *r, const struct track *t)
{
	bool shares = r->batches && t->way;
	if (shares && t->way->recorded == r->c->step)
		return;
	record(r, t->event, t->stream);
	if (shares)
		t->way->recorded = r->c->step;
}

static void
follow_lane(struct round *r, const struct track *t, const struct track *other)
{
	struct way *way = t->way;
	if (r->batches && way && other->way) {
		uint64_t bit = UINT64_C(1) << (other->way - r->c->way);
		uint64_t before = way->followed_at == r->c->step ? way->followed : 0;
		way->followed_at = r->c->step;
		way->followed = before | bit;
		if (before & bit)
			return;
	}
	follow(r, t->stream, other->event);
}

static void
launch(struct round *r, int which)
{
	CUfunction kernel;
	struct gpu_call p = *r->p;
	void *parameters[] = { &p };
	p.width = 0;
	if (r->err->code == blinkSuccess && gpu_function(r->g, "move", which, &kernel, r->err) == blinkSuccess)
		DO(r, launch(kernel, 1, 1, 1, (unsigned)r->g->threads, 1, 1, 0, r->to->stream, parameters, NULL),
		    "launch a kernel of %s", collective_name(r->call->coll));
}

/* ---- streams and events ---- */

static CUevent
take_event(struct round *r)
{
	struct gpu_copier *c = r->c;
	if (r->n_events < c->n_events)
		return c->event[r->n_events++];
	CUevent *grown = realloc(c->event, (size_t)(c->n_events + 1) * sizeof *grown);
	if (!grown) {
		set_error_memory(r->err);
		return NULL;
	}
	c->event = grown;
	if (DO(r, event_create(&c->event[c->n_events], CU_EVENT_DISABLE_TIMING), "create an event") != blinkSuccess)
		return NULL;
	r->n_events = ++c->n_events;
	return c->event[c->n_events - 1];
}

static struct way *
new_way(struct round *r, const struct way *wanted)
{
	struct gpu_copier *c = r->c;
	struct way *way = &c->way[c->n_ways];
	*way = *wanted;
	if (DO(r, stream_create(&way->stream, CU_STREAM_NON_BLOCKING), "create a stream") != blinkSuccess)
		return NULL;
	c->n_ways++;
	DO(r, event_create(&way->end, CU_EVENT_DISABLE_TIMING), "create an event");
	return DO(r, event_create(&way->mark, CU_EVENT_DISABLE_TIMING), "create an event") == blinkSuccess ? way : NULL;
}

/* Where there are no more streams to be had, others share one: the order in which they get their work allows it. */
static struct way *
find_way(struct round *r, const struct way *wanted)
{
	struct gpu_copier *c = r->c;
	for (int i = 0; i < c->n_ways; i++) {
		struct way *w = &c->way[i];
		if (w->peer == wanted->peer && w->hops == wanted->hops && w->route == wanted->route
		    && w->comes == wanted->comes)
			return w;
	}
	if (c->n_ways < WAYS)
		return new_way(r, wanted);
	return &c->way[(wanted->peer * 2 + wanted->comes) % WAYS];
}

/* The lane gets a stream, and where it is another than the caller's, an event. */
static void
give_stream(struct round *r, const struct way *wanted, struct track *t)
{
	struct way *way = r->to->capturing ? NULL : find_way(r, wanted);
	t->stream = r->to->stream;
	if (!way)
		return;
	if (!way->used)
		follow(r, way->stream, r->c->begun);
	way->used = true;
	t->way = way;
	t->stream = way->stream;
	t->event = r->batches ? way->mark : take_event(r);
}

/* All streams of the call come back to the caller's, also where it has failed. */
static void
join(struct round *r)
{
	struct blink_error *first = r->err, also = { 0 };
	for (int i = 0; i < r->c->n_ways; i++) {
		struct way *way = &r->c->way[i];
		r->err = first->code == blinkSuccess ? first : &also;
		if (way->used) {
			record(r, way->end, way->stream);
			follow(r, r->to->stream, way->end);
		}
		way->used = false;
		also.code = blinkSuccess;
	}
	r->err = first;
}

/* ---- tasks ---- */

static void
lay_track(struct round *r, struct track *out, const RankLane *lane, const RankTask *task, bool comes)
{
	const RankProgram *prog = r->call->plan->prog;
	const struct gpu *g = r->g;
	int me = prog->rank, peer = lane->rank;
	struct gpu_pair pair;
	struct way wanted = { .peer = peer, .hops = task->hops - comes, .comes = comes,
	    .route = gpu_route_of(g, prog, prog->extent[task->extent].part, peer) };
	struct gpu_meeting *own = gpu_meeting_of(g, me, peer, wanted.route);
	struct gpu_meeting *theirs = gpu_meeting_of(g, peer, me, wanted.route);
	gpu_pair_of(g, comes ? peer : me, comes ? me : peer, wanted.route, &pair);
	*out = (struct track){ .window = device_pointer(pair.ring[0] + lane->lane * r->sizes->share),
	    .awaited = device_pointer(comes ? &own->ready[lane->lane] : &own->done[lane->lane]),
	    .set = device_pointer(comes ? &theirs->done[lane->lane] : &theirs->ready[lane->lane]) };
	give_stream(r, &wanted, out);
}

static void
lay_out(struct round *r, const RankTask *task, struct errand *out)
{
	const Extent *x = &r->call->plan->prog->extent[task->extent];
	const struct gpu_call *p = r->p;
	int64_t part = x->part > 0 ? p->part_end[x->part - 1] : 0, n = p->part_end[x->part] - part;
	int64_t first = frac_floor_mul(x->begin, n), length = frac_floor_mul(x->end, n) - first;
	*out = (struct errand){ .bytes = length * p->size, .n_to = task->n_to, .hops = task->hops,
	    .n_chunks = (int)((length + r->sizes->chunk - 1) / r->sizes->chunk) };
	if (task->own)
		out->own = device_pointer(p->send + (x->send_block * p->count + part + first) * p->size);
	if (task->output)
		out->output = device_pointer(p->recv + (x->recv_block * p->count + part + first) * p->size);
	if (task->n_from > 0) {
		out->from = &r->track[r->n_tracks++];
		lay_track(r, out->from, &task->from[0], task, true);
	}
	out->to = &r->track[r->n_tracks];
	for (int i = 0; i < task->n_to; i++)
		lay_track(r, &r->track[r->n_tracks++], &task->to[i], task, false);
	r->n_chunks = out->n_chunks > r->n_chunks ? out->n_chunks : r->n_chunks;
}

static CUdeviceptr
slot_of(const struct round *r, const struct track *t, int chunk)
{
	return t->window + (CUdeviceptr)(chunk % r->sizes->slots * r->sizes->slot_bytes);
}

/* The publisher hears that all has been read that came before `chunk`. */
static void
give_back(struct round *r, const struct errand *e, int chunk)
{
	for (int i = 0; i < e->n_to; i++)
		follow_lane(r, e->from, &e->to[i]);
	set_flag(r, e->from->set, chunk, e->from->stream);
}

/* Of a chunk of an errand: where it is in the segment, and its bytes; 0: it has none. */
static int64_t
bytes_of(const struct round *r, const struct errand *e, int chunk, CUdeviceptr *at)
{
	int64_t step = r->sizes->chunk * r->p->size, before = chunk * step, left = e->bytes - before;
	*at = (CUdeviceptr)before;
	return chunk >= e->n_chunks ? 0 : left < step ? left : step;
}

static void
await_chunk(struct round *r, const struct errand *e, int chunk)
{
	if (!e->from || chunk >= e->n_chunks)
		return;
	await_flag(r, e->from->awaited, chunk + 1, e->from->stream);
}

static void
record_came(struct round *r, const struct errand *e, int chunk)
{
	if (e->from && chunk < e->n_chunks)
		record_lane(r, e->from);
}

/* After the last chunk, too, what is left of it: nothing to take in. */
static void
take_in(struct round *r, const struct errand *e, int chunk)
{
	CUdeviceptr at;
	int64_t bytes = bytes_of(r, e, chunk, &at);
	if (!e->from)
		return;
	if (chunk > 0 && chunk <= e->n_chunks && e->n_to > 0)
		give_back(r, e, chunk);
	if (e->output && bytes > 0)
		say(r, e->output + at, slot_of(r, e->from, chunk), bytes, e->from->stream);
}

/* What nobody else reads is given back at once. */
static void
let_go(struct round *r, const struct errand *e, int chunk)
{
	if (e->from && e->n_to == 0 && chunk < e->n_chunks)
		give_back(r, e, chunk + 1);
}

static void
pass_on(struct round *r, const struct errand *e, int chunk)
{
	CUdeviceptr at;
	int64_t bytes = bytes_of(r, e, chunk, &at);
	CUdeviceptr from = e->from ? slot_of(r, e->from, chunk) : e->own + at;
	for (const struct track *t = e->to; t < e->to + e->n_to && bytes > 0; t++) {
		if (e->from)
			follow_lane(r, t, e->from);
		if (chunk >= r->sizes->slots)
			await_flag(r, t->awaited, chunk + 1 - r->sizes->slots, t->stream);
		say(r, slot_of(r, t, chunk), from, bytes, t->stream);
	}
}

static void
say_passed(struct round *r, const struct errand *e, int chunk)
{
	for (int i = 0; i < e->n_to && chunk < e->n_chunks; i++)
		set_flag(r, e->to[i].set, chunk + 1, e->to[i].stream);
}

static void
record_passed(struct round *r, const struct errand *e, int chunk)
{
	for (int i = 0; i < e->n_to && e->from && chunk < e->n_chunks; i++)
		record_lane(r, &e->to[i]);
}

/* A chunk of each of n errands that are as many hops away: a step of all, then the next. */
static void
go(struct round *r, const struct errand *first, int n, int chunk)
{
	const struct errand *e, *end = first + n;
#define STEP(what)                                                             \
	for (r->c->step++, e = first; e < end; e++)                            \
		what(r, e, chunk)
	STEP(await_chunk);
	STEP(record_came);
	STEP(take_in);
	put(r);
	STEP(let_go);
	STEP(pass_on);
	put(r);
	STEP(say_passed);
	put(r);
	STEP(record_passed);
#undef STEP
}

static void
go_chunk(struct round *r, int chunk, int n_errands)
{
	for (int first = 0, n = 1; first < n_errands; first += n, n = 1) {
		while (r->batches && first + n < n_errands && r->errand[first + n].hops == r->errand[first].hops)
			n++;
		go(r, &r->errand[first], n, chunk);
	}
}

/* Windows are free when the call ends. */
static void
await_readers(struct round *r, const struct errand *e)
{
	for (int i = 0; i < e->n_to && e->n_chunks > 0; i++)
		await_flag(r, e->to[i].awaited, e->n_chunks, e->to[i].stream);
}

/* ---- calls ---- */

static int
lanes_of(const RankProgram *prog)
{
	int n = 0;
	for (int t = 0; t < prog->n_tasks; t++)
		n += prog->task[t].n_from + prog->task[t].n_to;
	return n;
}

static void
go_round(struct round *r)
{
	const RankProgram *prog = r->call->plan->prog;
	const struct gpu_call *p = r->p;
	launch(r, BEGIN);
	record(r, r->c->begun, r->to->stream);
	for (int hops = 0, n = 0; n < prog->n_tasks; hops++)
		for (int t = 0; t < prog->n_tasks; t++)
			if (prog->task[t].hops == hops)
				lay_out(r, &prog->task[t], &r->errand[n++]);
	if (p->own_bytes > 0)
		copy(r, device_pointer(p->own_to), device_pointer(p->own_from), p->own_bytes, r->to->stream);
	for (int chunk = 0; chunk <= r->n_chunks; chunk++)
		go_chunk(r, chunk, prog->n_tasks);
	for (int t = 0; t < prog->n_tasks; t++)
		await_readers(r, &r->errand[t]);
	join(r);
	launch(r, END);
}

int
gpu_copies_submit(struct gpu *g, const struct call *call, struct gpu_call *p, const struct gpu_copy_sizes *sizes,
    const struct gpu_target *to, struct blink_error *err)
{
	const RankProgram *prog = call->plan->prog;
	struct round r = { .g = g, .c = g->launches->copier, .call = call, .p = p, .sizes = sizes, .to = to,
	    .err = err };
	r.batches = gpu_batch_works(g->d) && !to->capturing && sizes->slot_bytes <= BATCHED;
	r.errand = calloc((size_t)prog->n_tasks + 1, sizeof *r.errand);
	r.track = calloc((size_t)lanes_of(prog) + 1, sizeof *r.track);
	if (r.errand && r.track)
		go_round(&r);
	else
		set_error_memory(err);
	free(r.errand);
	free(r.track);
	debug_say(DEBUG_TRACE, p->rank, "%s of %lld: copy engines, %d chunks, %d slots of %lld bytes",
	    collective_name(call->coll), (long long)call->count, r.n_chunks, sizes->slots,
	    (long long)sizes->slot_bytes);
	return err->code;
}

void
gpu_copies_release(struct gpu *g)
{
	const struct gpu_copier *c = g->launches->copier;
	for (int i = 0; c && i < 2 * g->layout.n_local; i++) {
		enum gpu_route route = (enum gpu_route)(i % 2);
		if (g->own[route])
			g->d->copy_async(device_pointer(gpu_meeting_of(g, g->self->rank, i / 2, route)->ready),
			    c->released, FLAGS * FLAG_BYTES, c->release);
	}
}

/* ---- open and close ---- */

/* n values in memory of the GPU: first, first + step ... */
static int
put_values(struct gpu *g, int n, uint32_t first, uint32_t step, CUdeviceptr *out, struct blink_error *err)
{
	size_t bytes = (size_t)n * FLAG_BYTES;
	uint32_t *value = malloc(bytes);
	if (!value)
		return set_error_memory(err);
	for (int i = 0; i < n; i++)
		value[i] = first + (uint32_t)i * step;
	if (gpu_keep(g, bytes, out, err) == blinkSuccess)
		gpu_upload(g, *out, value, bytes, err);
	free(value);
	return err->code;
}

int
gpu_copies_open(struct gpu *g, struct blink_error *err)
{
	struct gpu_copier *c = calloc(1, sizeof *c);
	CUfunction kernel;
	if (!c)
		return set_error_memory(err);
	g->launches->copier = c;
	if (put_values(g, GPU_COPY_CHUNKS + 1, 0, 1, &c->number, err) == blinkSuccess
	    && put_values(g, FLAGS, RELEASED, 0, &c->released, err) == blinkSuccess
	    && driver_check(g->d, g->d->event_create(&c->begun, CU_EVENT_DISABLE_TIMING), err, "create an event")
	    == blinkSuccess && driver_check(g->d, g->d->stream_create_priority(&c->release, CU_STREAM_NON_BLOCKING, -1),
	    err, "create a stream") == blinkSuccess && gpu_function(g, "move", BEGIN, &kernel, err) == blinkSuccess)
		gpu_function(g, "move", END, &kernel, err);
	return err->code;
}

void
gpu_copies_close(struct gpu *g, bool forked)
{
	struct gpu_copier *c = g->launches->copier;
	if (!c)
		return;
	for (int i = 0; i < c->n_events && !forked; i++)
		g->d->event_destroy(c->event[i]);
	for (int i = 0; i < c->n_ways && !forked; i++) {
		if (c->way[i].end)
			g->d->event_destroy(c->way[i].end);
		if (c->way[i].mark)
			g->d->event_destroy(c->way[i].mark);
		g->d->stream_destroy(c->way[i].stream);
	}
	if (c->begun && !forked)
		g->d->event_destroy(c->begun);
	if (c->release && !forked)
		g->d->stream_destroy(c->release);
	free(c->event);
	free(c);
	g->launches->copier = NULL;
}
