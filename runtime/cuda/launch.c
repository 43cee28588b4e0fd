/* Launches: a call becomes one kernel in the caller's stream; or copies, where copy engines serve it.
 *
 *	tables.c	the rank's program, uploaded when a plan is first used
 *	sizes.c		protocol, strips and chunks, the same on all ranks
 *	generated.c	kernels compiled from a schedule, which take the place of the interpreter
 *	uneven.c	an alltoall whose blocks differ in length
 *	here		parameters, and the launch
 *	flights.c	the kernel's place among the others
 *	multicast.c	a kernel that has switches add and copy, in its place
 *	copies.c	copies in its place
 *	watch.c		looks at what kernels report, and ends them
 *
 * Nothing waits. A call returns when its kernel is in the stream; the kernel finds by itself what peers have done, in
 * memory (device.h). So one thread may drive many GPUs, one after the other, and a stream may be captured: what is
 * captured is the same as what is executed, and works as often as it is replayed.
 *
 * Order. Kernels of a rank share its flags, so they must not overlap. Calls in one stream do not. For those in several,
 * an event is recorded after each launch, and the next launch waits for it; a capture has an event of its own, since
 * events inside and outside must not wait for each other. Between graphs and calls outside of them, and between
 * several graphs, the caller sees to the order, as by launching all of them in one stream: when a graph runs, nobody
 * asks the library.
 *
 * In a capture nothing may be asked or awaited in the capturing stream, and other calls are forbidden to other streams,
 * too, unless the thread says that it knows what it does: gpu_enter does. Uploads go through a stream of the library.
 * What a captured kernel refers to stays until the communicator closes.
 *
 * Memory. To allocate, to free or to load a module may wait for all that its GPU does, while that waits for a peer
 * whose calls this very thread would make next. So what programs need is there when a communicator opens: a slab for
 * programs, tables of messages, all kernels (modules.c).
 *
 * In place. Where a tree may write what another still reads, the input is copied to memory of the library first, in
 * the stream. An allreduce needs none: what overwrites an element descends from it, on its own strip. */
#include "blink_device.h"
#include "cuda/calls.h"
#include "cuda/generated.h"
#include "cuda/multicast.h"
#include "cuda/relay.h"
#include "cuda/sizes.h"
#include "support/debug.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

enum {
	OWN_BYTES = 256 << 10,		/* of the own block, for each block of the kernel that helps to copy it */
	OWN_BLOCKS = 16
};

/* ---- streams and order ---- */

static bool
is_misuse(CUresult r)
{
	return r == CUDA_ERROR_INVALID_HANDLE || r == CUDA_ERROR_INVALID_CONTEXT
	    || (r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

static int
check_context(struct gpu *g, CUstream stream, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	CUcontext context = NULL;
	if (l->has_checked && l->checked == stream)
		return blinkSuccess;
	CUresult r = g->d->stream_context(stream, &context);
	if (is_misuse(r))
		return set_error(err, blinkInvalidArgument, "stream: not a CUDA stream, or its capture is not valid");
	if (driver_check(g->d, r, err, "the context of a stream") != blinkSuccess)
		return err->code;
	if (context != g->context)
		return set_error(err, blinkInvalidArgument, "stream: of another context: want the primary one of "
		    "device %d", (int)g->device);
	l->checked = stream;
	l->has_checked = true;
	return blinkSuccess;
}

/* Whose stream it is, and whether it captures. */
static int
find_target(struct gpu *g, CUstream stream, struct gpu_target *to, struct blink_error *err)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t capture = 0;
	CUresult r;
	if (check_context(g, stream, err) != blinkSuccess)
		return err->code;
	if (g->d->capture_info)
		r = g->d->capture_info(stream, &status, &capture, NULL, NULL, NULL);
	else
		r = g->d->stream_capturing(stream, &status);
	if (is_misuse(r) || status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		return set_error(err, blinkInvalidArgument, "stream: its capture, or one that it would break, is not "
		    "valid");
	*to = (struct gpu_target){ stream, status == CU_STREAM_CAPTURE_STATUS_ACTIVE, capture };
	return driver_check(g->d, r, err, "whether a stream captures");
}

/* ---- parameters ---- */

/* Its number is not in it, since a graph may be replayed. Not 0, which would not be compared. */
static uint64_t
signature_of(const struct rank_state *self, const struct call *call)
{
	uint64_t h = call_signature(call, self->chunk_bytes, 0);
	return h ? h : 1;
}

/* So that the hub's verdict names the call. */
static void
remember_text(struct gpu_launches *l, const struct call *call, uint64_t signature)
{
	int i = 0;
	pthread_mutex_lock(&l->lock);
	while (i < GPU_TEXTS && l->text[i].signature != signature)
		i++;
	if (i == GPU_TEXTS) {
		i = l->next_text++ % GPU_TEXTS;
		l->text[i].signature = signature;
		call_describe(call, l->text[i].text, sizeof l->text[i].text);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Of collectives whose data all ranks have or need; 0: there are too many. A schedule of a file has the same segments
 * on all ranks; of one that is built in a rank knows its own, but how many there are, and the longest. */
static int
segments_of(const struct call *call, const struct gpu_call *p, int64_t segment[GPU_SEGMENTS])
{
	const RankProgram *prog = call->plan->prog;
	bool all = call->coll == ALLREDUCE || call->coll == ALLGATHER || call->coll == REDUCESCATTER
	    || call->coll == BROADCAST || call->coll == REDUCE;
	bool known = call->plan->rate > 0;
	int n = known ? prog->n_extents : prog->segments_max;
	if (!all || n > GPU_SEGMENTS)
		return 0;
	for (int i = 0; i < n; i++)
		segment[i] = known ? gpu_length(&prog->extent[i], p->part_end) : gpu_longest(prog, p->part_end);
	return n;
}

static struct gpu_asked
asked_of(const struct gpu *g, const struct call *call, const struct gpu_call *p)
{
	const struct rank_state *self = g->self;
	const RankProgram *prog = call->plan->prog;
	int64_t message = call->count * blink_message_blocks(&call->plan->parts);
	int64_t *segment = g->launches->segment;
	enum gpu_protocol protocol = call->uneven ? GPU_FLAGS_ALONE : g->protocol;
	return (struct gpu_asked){ .message = message * p->size,
	    .longest = gpu_longest(prog, p->part_end), .size = p->size, .chunk_bytes = self->chunk_bytes,
	    .rings = prog->pair_lanes_max, .depth = prog->depth,
	    .segments = prog->segments_max, .stages = call->coll == ALLREDUCE ? 2 : 1,
	    .moved = message * (call->coll == ALLTOALL ? 2 : 1), .n_ranks = self->n_ranks, .blocks = g->blocks,
	    .ring_bytes = g->layout.ring_bytes, .packet_bytes = g->layout.packet_bytes, .protocol = protocol,
	    .segment = segment, .n_segments = segments_of(call, p, segment),
	    .rate = call->plan->rate, .cost = g->cost };
}

static int
choose_sizes(const struct gpu_asked *asked, const RankProgram *prog, struct gpu_call *p, struct blink_error *err)
{
	struct gpu_sizes s;
	if (gpu_sizes_choose(asked, &s, err) != blinkSuccess)
		return err->code;
	p->width = s.width;
	p->strip = s.strip;
	p->slots = s.slots;
	p->chunk = s.chunk;
	p->slot_bytes = s.slot_bytes;
	p->ring_share = s.ring_share;
	p->packet_share = s.packet_share;
	p->lines = s.lines;
	gpu_count_strips(prog, NULL, p);
	return blinkSuccess;
}

/* Memory that holds an input sent in place. What is replaced stays: graphs may use it. */
static int
keep_input(struct gpu *g, struct gpu_call *p, size_t bytes, const struct gpu_target *to, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	CUdeviceptr from = (CUdeviceptr)(uintptr_t)p->send;
	if (bytes > l->kept_bytes) {
		size_t grown = bytes > 2 * l->kept_bytes ? bytes : 2 * l->kept_bytes;
		if (gpu_keep(g, grown, &l->kept, err) != blinkSuccess)
			return err->code;
		l->kept_bytes = grown;
	}
	p->send = (const char *)(uintptr_t)l->kept;
	return driver_check(g->d, g->d->copy_async(l->kept, from, bytes, to->stream), err,
	    "copy %zu bytes that are sent in place", bytes);
}

/* The same cases as the host's. */
static int
take_buffers(struct gpu *g, const struct call *call, struct gpu_call *p, const struct gpu_target *to,
    struct blink_error *err)
{
	const struct rank_state *self = g->self;
	struct blink_layout l = blink_layout_at((int)call->coll, call->root, self->n_ranks, self->rank);
	size_t block = (size_t)call->count * (size_t)p->size;
	bool reduces = collective_reduces(call->coll);
	p->send = l.send ? call->send : NULL;
	p->recv = l.recv ? call->recv : NULL;
	if (!p->send || !p->recv || block == 0)
		return blinkSuccess;
	const char *from = p->send + (size_t)l.own_send * block;
	char *own = p->recv + (size_t)l.own_recv * block;
	if (reduces ? self->n_ranks == 1 : from != own) {
		p->own_from = from;
		p->own_to = own;
		p->own_bytes = (int64_t)block;
	}
	if (from == own && self->n_ranks > 1 && call->coll != ALLREDUCE && call->plan->prog->keep_input)
		return keep_input(g, p, (size_t)l.send * block, to, err);
	return blinkSuccess;
}

/* Blocks of the kernel, which is 1 before, and whether they take turns. Packets go strip by strip, in the order of the
 * tasks. */
static int
choose_blocks(const struct gpu *g, const struct gpu_table *table, struct gpu_call *p, unsigned *out,
    struct blink_error *err)
{
	int64_t strips = p->counted ? GPU_FIRST(p, p->program.n_tasks) : (int64_t)p->program.n_tasks * p->width;
	int64_t help = (p->own_bytes + OWN_BYTES - 1) / OWN_BYTES;
	int64_t blocks = strips + (help < OWN_BLOCKS ? help : OWN_BLOCKS);
	p->turns = strips > g->blocks;
	if ((int64_t)p->program.n_publishes * p->width > GPU_PENDING
	    || (strips + g->blocks - 1) / g->blocks > GPU_TASKS_OF_BLOCK)
		return set_error(err, blinkLimit, "a schedule of %d tasks on this rank: too many for %d blocks of a "
		    "GPU", p->program.n_tasks, g->blocks);
	if (p->turns && p->counted && p->slots > 0) {
		p->order = table->order_at;
		gpu_count_strips(table->plan->prog, table->order, p);
	}
	blocks = blocks < g->blocks ? blocks : g->blocks;
	if (blocks > 0)
		*out = (unsigned)blocks;
	return blinkSuccess;
}

static int
find_kernel(struct gpu *g, const struct call *call, CUfunction *out, struct blink_error *err)
{
#define TYPE_NAME(code, name, T, U, kind, read, write, with) [code] = #name,
	static const char *const types[] = { BLINK_TYPE_LIST(TYPE_NAME, 0) };
#undef TYPE_NAME
	const struct reduction *r = &call->reduction;
	bool reduces = collective_reduces(call->coll);
	const char *module = reduces ? types[r->type] : "move";
	int op = reduces ? r->op : 0;
	if (!call->uneven && (gpu_generated_function(g, call->plan, module, op, out, err) != blinkSuccess || *out))
		return err->code;
	return gpu_function(g, module, op, out, err);
}

/* By a kernel: where the table is switched, that of multicast objects, whose parameter begins with p. Sizes, order and
 * buffers come first in any case. */
static int
submit_kernel(struct gpu *g, const struct call *call, const struct gpu_table *table, const struct gpu_asked *asked,
    struct gpu_call *p, const struct gpu_target *to, struct blink_error *err)
{
	CUfunction kernel;
	unsigned blocks = 1;
	void *parameters[] = { p };
	struct gpu_sheet *uneven = NULL;
	if (table->switched)
		kernel = g->launches->multicast;
	else if (find_kernel(g, call, &kernel, err) != blinkSuccess)
		return err->code;
	if (choose_sizes(asked, call->plan->prog, p, err) != blinkSuccess)
		return err->code;
	gpu_relay_expect(g, (int64_t)call->plan->prog->lanes_max * p->width);
	if (gpu_order(g, to, err) != blinkSuccess
	    || (call->uneven ? gpu_uneven_blocks(g, call, p, to->capturing, &uneven, err)
	    : take_buffers(g, call, p, to, err)) != blinkSuccess
	    || choose_blocks(g, table, p, &blocks, err) != blinkSuccess
	    || driver_check(g->d, g->d->launch(kernel, blocks, 1, 1, (unsigned)g->threads, 1, 1, 0, to->stream,
	    parameters, NULL), err, "launch the kernel of %s", collective_name(call->coll)) != blinkSuccess)
		return err->code;
	debug_say(DEBUG_TRACE, p->rank, "%s of %lld: %u blocks, %d strips, %s of %lld bytes%s",
	    collective_name(call->coll), (long long)call->count, blocks, p->width,
	    p->slots ? "slots" : p->lines ? "lines" : "packets",
	    (long long)(p->slots ? p->slot_bytes : p->packet_share), table->switched ? ", by the switch"
	    : call->uneven ? ", or blocks of other lengths" : "");
	return gpu_launched(g, to, call->number, 0, uneven, err);
}

/* By copies. What has come into streams before one fails is waited for like any call: it uses the caller's memory. */
static int
submit_copies(struct gpu *g, const struct call *call, const struct gpu_copy_sizes *sizes, struct gpu_call *p,
    const struct gpu_target *to, struct blink_error *err)
{
	struct blink_error also = { 0 };
	if (gpu_order(g, to, err) != blinkSuccess || take_buffers(g, call, p, to, err) != blinkSuccess)
		return err->code;
	gpu_copies_submit(g, call, p, sizes, to, err);
	gpu_launched(g, to, call->number, 0, NULL, err->code == blinkSuccess ? err : &also);
	return err->code;
}

static int
submit_collective(struct gpu *g, struct call *call, const struct gpu_target *to, struct blink_error *err)
{
	struct rank_state *self = g->self;
	const struct gpu_table *table;
	struct gpu_copy_sizes sizes;
	struct gpu_multicast_call multicast = { .sum = MULTICAST_NONE };
	struct gpu_call *p = &multicast.call;
	*p = (struct gpu_call){ .state = g->state, .status = g->status, .count = call->count,
	    .size = (int32_t)call->reduction.size, .rank = self->rank, .n_ranks = self->n_ranks,
	    .relays = g->relay != NULL,
	    .scale = call->reduction.scale.bits, .scalar = call->reduction.scalar,
	    .scales = call->reduction.scales,
	    .divide = call->reduction.divide };
	if (!call->plan && self->events.plan(self->events.context, call, &call->plan, err) != blinkSuccess)
		return err->code;
	blink_part_ends(&call->plan->parts, call->count, p->size, p->part_end);
	struct gpu_asked asked = asked_of(g, call, p);
	bool switched = gpu_multicast_serves(g, call, &asked, &multicast);
	if (gpu_table_of(g, call->plan, switched, &table, err) != blinkSuccess)
		return err->code;
	if (table->has_lines && !switched)
		asked.line_bytes = g->layout.line_bytes;
	p->program = table->program;
	p->partner = table->partner;
	p->n_partners = table->n_partners;
	p->n_parts = call->plan->prog->n_parts;
	p->signature = signature_of(self, call);
	remember_text(g->launches, call, p->signature);
	if (switched)
		asked.rings = table->roots_trees * gpu_multicast_stages(call->coll);
	else if (!call->uneven && gpu_copies_serve(g, call, &asked, &sizes))
		return submit_copies(g, call, &sizes, p, to, err);
	return submit_kernel(g, call, table, &asked, p, to, err);
}

/* ---- calls ---- */

static int
submit(struct gpu *g, struct call *call, CUstream stream, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	struct gpu_target to;
	bool by_messages = call->n_messages > 0;
	if (find_target(g, stream, &to, err) != blinkSuccess) {
		if (err->code != blinkInvalidArgument)
			gpu_fail(g, err);
		return err->code;
	}
	pthread_mutex_lock(&l->lock);
	call->number = ++l->n_made;
	pthread_mutex_unlock(&l->lock);
	if ((call->uneven && gpu_uneven_plan(g, call, &by_messages, err) != blinkSuccess)
	    || (by_messages ? gpu_submit_messages(g, call, &to, err) : submit_collective(g, call, &to, err))
	    != blinkSuccess)
		gpu_fail(g, err);
	return err->code;
}

int
gpu_submit(void *of, struct call *call, blinkStream_t stream, struct blink_error *err)
{
	struct gpu *g = of;
	struct gpu_entry entry;
	rank_error(g->self, err);
	if (err->code == blinkSuccess && gpu_enter(g, &entry, err) == blinkSuccess) {
		submit(g, call, stream, err);
		gpu_leave(g, &entry);
	}
	call_free(call);
	return err->code;
}

/* ---- open and close ---- */

int
gpu_launches_open(struct gpu *g, struct blink_error *err)
{
	struct gpu_launches *l = g->launches = calloc(1, sizeof *l);
	struct gpu_entry entry;
	if (!l)
		return set_error_memory(err);
	pthread_mutex_init(&l->lock, NULL);
	if (gpu_enter(g, &entry, err) != blinkSuccess)
		return err->code;
	CUdeviceptr first;
	if (gpu_keep(g, 1, &first, err) == blinkSuccess && gpu_flights_open(g, err) == blinkSuccess
	    && gpu_modules_open(g, err) == blinkSuccess)
		gpu_generated_open(g, &l->generated, err);
	if (err->code == blinkSuccess && g->copies)
		gpu_copies_open(g, err);
	gpu_leave(g, &entry);
	if (err->code == blinkSuccess && gpu_watch_open(g, err) == blinkSuccess)
		gpu_relay_start(g, err);
	return err->code;
}

void
gpu_launches_close(struct gpu *g, bool forked)
{
	struct gpu_launches *l = g->launches;
	struct gpu_entry entry;
	struct blink_error err = { 0 };
	if (!l)
		return;
	bool entered = !forked && gpu_enter(g, &entry, &err) == blinkSuccess;
	gpu_flights_close(g, !entered);
	gpu_copies_close(g, !entered);
	gpu_tables_close(g);
	gpu_slabs_close(g, !entered);
	if (entered) {
		if (l->captured)
			g->d->event_destroy(l->captured);
		gpu_modules_close(g);
		gpu_generated_close(g, l->generated, false);
		gpu_leave(g, &entry);
	} else {
		gpu_generated_close(g, l->generated, true);
	}
	free(l);
	g->launches = NULL;
}
