/* Sizes of a call on GPUs.
 *
 * Strips: a segment is cut into strips, each moved by a block of the kernel of its own, so that more of a GPU works.
 * All have the same length, whatever their segment's: blocks that send over the same link get equal shares of it, and
 * so each tree gets what the schedule gives it. A strip of less than a few KiB (packets) or some ten KiB (flags) does
 * not keep a block busy for longer than it takes to begin. All strips of a rank should be resident at once. Where every
 * rank has all segments, these say how short strips may be; else a rank's segments hold no more than `moved` elements,
 * and each ends with a strip that is not full.
 *
 * Hubs: where trees are stars, the task of a hub among n ranks has 2 (n - 1) lanes, and its rank's other tasks have one
 * each. A block would move as much for either, and the hub's few blocks would be at work when all others have ended.
 * So where blocks are few there are more strips than blocks, which take turns: as many of the hub's as blocks are its
 * part of the work. Where a hub has some blocks anyway, they do not: on virtual GPUs turns take 7 % of the rate.
 *
 * Turns: where segments alone are more than blocks, these have several strips in turn. A block that has three, where
 * others have two, is the last to end, a third of the time later. So strips are short enough for a block to have up
 * to 16 of them, as long as that takes a 20th off what the fullest block has to move. Likewise where segments
 * differ much in length: of segments of 5, 4, 3, 2, 1 and 1 sixteenths seven blocks would have strips of 4, 1, 4,
 * 3, 2, 1 and 1. All get equal shares of a link, so the short ones end early, and the links of the long ones idle
 * for half of the time.
 *
 * Packets carry as many bytes of flags as of data, but need neither fence nor room in a ring: they win as long as a
 * message takes less time to cross a link twice than a fence and a flag take, some 256 KiB at most. Lines carry a 15th
 * more than the data, and need no fence either. On an H100 they take as long as packets up to 64 KiB, and half the time
 * of chunks from 512 KiB to 2 MiB; from 4 MiB on chunks take less, since a block's threads look at each line, where
 * they are told of a chunk once.
 *
 * Chunks: a strip of S bytes over d hops in chunks of c takes the time of S / c + d - 1 chunks, since the last hop
 * begins when the first d - 1 have had one. A chunk takes c / R of the block's own, and t0 more: its flags are
 * looked at, and the block has two barriers; both are measured (measure.c). So c = sqrt(S t0 R / (d - 1)) takes least,
 * up to where other blocks' data hide t0: when c / R + t0 is no more than the time of c at the strip's share of the
 * links, which is the schedule's rate by what the strip, or all strips of the block, have of the message. That is taken
 * twice, as a block that is never idle waits for nothing, and all wait for flags of others; 3/5 of R where it is not
 * known: too short loses more than too long. A block that takes turns looks at the flags of all its strips at once, so
 * that t0 is less by as much, down to a 4th. Fences take no time of the blocks (kernels/flags.h), but chunks of less
 * than what passes during a quarter of one are told of together anyway. Chunks are multiples of what the pass over
 * vectors takes in a round (kernels/pass.h): 4 of all threads, or where that is too long one of all.
 *
 * Copies: each takes a copy engine some us to begin, and a driver to be told, so that chunks are longer, and few: what
 * is told of a call, 5 operations for a chunk of a lane, must not fill the driver's queue of a stream, of about 1000,
 * since a thread that then waits may be the one that serves the peer next. */
#include "cuda/sizes.h"
#include "support/error.h"

#include <string.h>

enum {
	PACKET_MESSAGE = 256 << 10,	/* bytes: the longest that goes by packets */
	PACKET_MESSAGE_LINES = 64 << 10,	/* the same where there are lines */
	PACKET_STRIP = 4 << 10,		/* bytes that are worth a strip: 8 for each of 512 threads */
	LINE_MESSAGE = 2 << 20,
	LINE_STRIP = 2 * GPU_LINE_DATA * GPU_THREADS / 16,	/* a vector of each thread */
	FLAG_STRIP = 32 << 10,
	WIDTH_MOST = 16,
	HUB_STRIPS = 6,			/* of a hub, each with a block of its own, that are enough */
	MESSAGE_COST = 40 << 10,	/* bytes: t0 R of messages; assumed */
	COST_MOST = 4 << 20,
	CHUNK_ROUND = 4 * GPU_CHUNK_SHORT,
	CHUNK_MOST = 3 * CHUNK_ROUND,
	MESSAGE_STRIP = 128 << 10,	/* bytes that are worth a channel: less, and blocks take turns in alltoalls */
	MESSAGE_SHORT = GPU_CHUNK_SHORT,
	MESSAGE_ROUND = 4 * MESSAGE_SHORT,
	COPIES_OF_HOP = 8,
	COPY_CHUNK_LEAST = 256 << 10,
	SPARE_RATE = 2,			/* blocks can move this multiple of what their links carry: they also wait */
	TURNS = 16,			/* strips of a block, at most, unless segments are more */
	TURNS_GAIN = 20,		/* shorter strips are worth a 20th of the time */
	TURN_LOOKS = 4,			/* looks at flags are for all strips of a block: chunks cost a 4th, or more */
	ALONE_GAIN = 10,		/* turns are worth a 10th */
	UNIT = 16,			/* bytes that a thread moves at once */
	LINE_BYTES = 128
};

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t
greatest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t
between(int64_t least_of, int64_t x, int64_t most)
{
	return x < least_of ? least_of : least(x, most);
}

int64_t
gpu_longest(const RankProgram *prog, const int64_t *part_end)
{
	int64_t longest = 0;
	for (int i = 0; i < prog->n_parts; i++) {
		int64_t n = part_end[i] - (i > 0 ? part_end[i - 1] : 0);
		int64_t segment = n == 0 ? 0 : (int64_t)((Wide)prog->longest[i].num * n / prog->longest[i].den) + 1;
		longest = segment > longest ? segment : longest;
	}
	return longest;
}

/* An allreduce whose trees are stars, of which a rank is the hub of one and a leaf of the others? */
static bool
has_hubs(const struct gpu_asked *asked)
{
	return asked->stages == 2 && asked->depth == 2 && asked->n_ranks > 2 && asked->segments > 1;
}

/* Of such: elements of a strip, so that a hub's strips are as many of the blocks as its lanes are of its rank's. */
static int64_t
strip_of_hub(const struct gpu_asked *asked)
{
	int64_t hub = 2 * (int64_t)(asked->n_ranks - 1), lanes = hub + 2 * (int64_t)(asked->segments - 1);
	return (int64_t)((Wide)asked->longest * lanes / ((int64_t)asked->blocks * hub)) + 1;
}

/* Of a rank, of this length; where segments are not known, at least. */
static int64_t
strips_of(const struct gpu_asked *asked, int64_t strip)
{
	int64_t strips = asked->n_segments > 0 ? 0 : asked->segments;
	for (int i = 0; i < asked->n_segments; i++)
		strips += (asked->segment[i] + strip - 1) / strip;
	return strips * asked->stages;
}

/* The shortest strip of which there are no more than blocks, at most `enough`. */
static int64_t
shortest_strip(const struct gpu_asked *asked, int64_t enough)
{
	int64_t least_of = 1, most = enough;
	while (asked->n_segments > 0 && least_of < most) {
		int64_t middle = least_of + (most - least_of) / 2;
		if (strips_of(asked, middle) <= asked->blocks)
			most = middle;
		else
			least_of = middle + 1;
	}
	return most;
}

/* Elements that the fullest block has to move, where blocks take turns with strips of this length. */
static int64_t
fullest_block(const struct gpu_asked *asked, int64_t strip)
{
	return (strips_of(asked, strip) + asked->blocks - 1) / asked->blocks * strip;
}

/* Blocks take turns, and one that has one strip more than others ends last: the longest strip of which the fullest
 * block has little more to move than of any shorter one. */
static int64_t
strip_of_turns(const struct gpu_asked *asked, int64_t widest)
{
	int64_t segments = (int64_t)asked->n_segments * asked->stages, best = asked->longest, least_of = INT64_MAX;
	if (segments == 0 || best == 0)
		return best;
	for (int64_t width = 1; width <= least(widest, (int64_t)asked->blocks * TURNS / segments); width++) {
		int64_t strip = (asked->longest + width - 1) / width, moved = fullest_block(asked, strip);
		if (moved < least_of - least_of / TURNS_GAIN) {
			least_of = moved;
			best = strip;
		}
	}
	return best;
}

/* Are many strips of this length not full? */
static bool
is_uneven(const struct gpu_asked *asked, int64_t strip)
{
	int64_t room = strips_of(asked, strip) * strip, left = room;
	for (int i = 0; i < asked->n_segments; i++)
		left -= asked->segment[i] * asked->stages;
	return asked->n_segments > 0 && left > room / ALONE_GAIN;
}

/* Of flags. Each strip has a block of its own, if there are enough, unless lengths of segments differ by so much that
 * links would idle when short ones have ended, and turns leave the fullest block less to move. */
static int64_t
strip_of_blocks(const struct gpu_asked *asked, int64_t alone, int64_t widest)
{
	int64_t turns = strip_of_turns(asked, widest);
	bool better = alone == 0
	    || (is_uneven(asked, alone) && fullest_block(asked, turns) < alone - alone / ALONE_GAIN);
	return better ? turns : alone;
}

/* Elements of a strip: as many as leave each strip of a rank a block, and flags and lists room; at least `few` bytes.
 * Whole lines of memory, so that strips do not share one. */
static int64_t
strip_of(const struct gpu_asked *asked, int64_t rings, int64_t few)
{
	bool hubs = few == FLAG_STRIP && has_hubs(asked);
	int64_t most = between(1, least(GPU_FLAGS / rings, GPU_PENDING / (rings * asked->n_ranks)), WIDTH_MOST);
	int64_t left = asked->blocks - (int64_t)asked->stages * asked->segments, line = LINE_BYTES / asked->size;
	int64_t strip = (asked->longest + most - 1) / most;
	int64_t alone = left > 0 ? shortest_strip(asked, (asked->moved / left + 1) * asked->stages) : 0;
	int64_t each = few == FLAG_STRIP && !hubs ? strip_of_blocks(asked, alone, most)
	    : alone > 0 ? alone : asked->longest;
	if (hubs && each > asked->longest / HUB_STRIPS)
		each = least(each, strip_of_hub(asked));
	strip = greatest(greatest(strip, each), few / asked->size);
	return (greatest(1, least(strip, asked->longest)) + line - 1) / line * line;
}

/* Of the longest segment. */
static int64_t
width_of(const struct gpu_asked *asked, int64_t strip)
{
	return greatest(1, (asked->longest + strip - 1) / strip);
}

static int64_t
share(size_t bytes, int64_t parts)
{
	return (int64_t)bytes / parts / UNIT * UNIT;
}

/* Longest message that goes by that protocol: as asked, or as `chosen`. */
static int64_t
longest_by(const struct gpu_asked *asked, enum gpu_protocol protocol, int64_t chosen)
{
	bool chooses = asked->protocol == GPU_CHOSEN && asked->chunk_bytes == 0;
	return asked->protocol == protocol ? INT64_MAX : chooses ? chosen : -1;
}

static bool
take_packets(const struct gpu_asked *asked, int64_t rings, struct gpu_sizes *out)
{
	int64_t strip = strip_of(asked, rings, PACKET_STRIP), width = width_of(asked, strip);
	int64_t need = (1 + (strip * asked->size + 7) / 8) * (int64_t)sizeof(struct gpu_packet);
	int64_t most = asked->line_bytes > 0 ? PACKET_MESSAGE_LINES : PACKET_MESSAGE;
	if (asked->message > longest_by(asked, GPU_PACKETS, most) || need > share(asked->packet_bytes, rings * width))
		return false;
	*out = (struct gpu_sizes){ .width = (int)width, .strip = strip,
		.packet_share = share(asked->packet_bytes, rings * width) };
	return true;
}

/* The first line of a strip is its head; then an even number, in fours (kernels/lines.h). */
static int64_t
line_share(int64_t strip)
{
	int64_t pairs = (strip + 2 * GPU_LINE_DATA - 1) / (2 * GPU_LINE_DATA);
	return (1 + (pairs + 1) / 2 * 4) * GPU_LINE;
}

/* `longest` may be an element more than there are, which is worth no strip, nor room for one. */
static int64_t
without_rest(const struct gpu_asked *asked, int64_t strip)
{
	int64_t line = LINE_BYTES / asked->size, width = greatest(1, (asked->longest + strip - 2) / strip);
	return greatest(strip, ((asked->longest + width - 1) / width + line - 1) / line * line);
}

static bool
take_lines(const struct gpu_asked *asked, int64_t rings, struct gpu_sizes *out)
{
	int64_t strip = without_rest(asked, strip_of(asked, rings, LINE_STRIP)), width = width_of(asked, strip);
	int64_t room = (int64_t)asked->line_bytes / (rings * width) / GPU_LINE * GPU_LINE;
	if (asked->message > longest_by(asked, GPU_LINES, LINE_MESSAGE) || line_share(strip * asked->size) > room)
		return false;
	*out = (struct gpu_sizes){ .width = (int)width, .strip = strip, .packet_share = room,
		.lines = (int64_t)asked->packet_bytes };
	return true;
}

/* The greatest integer of which the square is at most x. */
static int64_t
root_of(int64_t x)
{
	int64_t root = 0;
	for (int64_t bit = (int64_t)1 << 31; bit > 0; bit >>= 1)
		if ((root + bit) * (root + bit) <= x)
			root += bit;
	return root;
}

/* A multiple of rounds, or for short strips of vectors of all threads; at most `most`, where that is not less. */
static int64_t
chunk_of(const struct gpu_asked *asked, int64_t strip, int64_t most)
{
	const struct gpu_cost *cost = &asked->cost;
	int64_t alone = greatest(5, cost->rate), hops = asked->depth > 2 ? asked->depth - 1 : 1;
	int64_t own = alone / 5 * 3;
	if (asked->rate > 0)
		own = (int64_t)((Wide)strip * asked->rate * SPARE_RATE / greatest(1, asked->message));
	int64_t all = asked->rate * asked->stages * SPARE_RATE / greatest(1, asked->blocks);	/* strips of a block */
	int64_t share = between(1, greatest(own, all), alone / 5 * 4);
	int64_t turns = strips_of(asked, strip / asked->size) / greatest(1, asked->blocks);
	int64_t t0 = cost->chunk_ns / between(1, turns, TURN_LOOKS);
	int64_t free = least(t0 * alone / 1000, COST_MOST);
	int64_t best = root_of(least(strip, (int64_t)1 << 40) / hops * free);
	best = least(best, t0 * share / 1000 * alone / (alone - share));
	best = greatest(best, cost->fence_ns * share / 4000);
	int64_t of = least(best, most) < CHUNK_ROUND ? GPU_CHUNK_SHORT : CHUNK_ROUND;
	return between(GPU_CHUNK_SHORT, (best + of / 2) / of * of, least(CHUNK_MOST, most / of * of));
}

/* Rings and packets are of other memory: `ring_share` is what slots have to fit into. */
static int
take_flags(const struct gpu_asked *asked, int64_t rings, struct gpu_sizes *out, struct blink_error *err)
{
	int64_t elements = strip_of(asked, rings, FLAG_STRIP), width = width_of(asked, elements);
	int64_t strip = elements * asked->size;
	int64_t room = share(asked->ring_bytes, rings * width), slot = asked->chunk_bytes;
	if (slot == 0)
		slot = chunk_of(asked, strip, room / GPU_SLOTS_LEAST);
	slot = (least(slot, strip) + UNIT - 1) / UNIT * UNIT;
	slot = between(UNIT, slot, room / GPU_SLOTS_LEAST / UNIT * UNIT);
	if (room < GPU_SLOTS_LEAST * UNIT || strip / slot >= GPU_CHUNKS_MAX)
		return set_error(err, blinkLimit, "%lld bytes of a segment in chunks of %lld: want less than %d chunks",
		    (long long)strip, (long long)slot, (int)GPU_CHUNKS_MAX);
	*out = (struct gpu_sizes){ .width = (int)width, .strip = elements,
		.slots = (int)between(GPU_SLOTS_LEAST, room / slot, GPU_SLOTS_MOST), .chunk = slot / asked->size,
		.slot_bytes = slot, .ring_share = room };
	return blinkSuccess;
}

int64_t
gpu_length(const Extent *x, const int64_t *part_end)
{
	int64_t n = part_end[x->part] - (x->part > 0 ? part_end[x->part - 1] : 0);
	return frac_floor_mul(x->end, n) - frac_floor_mul(x->begin, n);
}

int
gpu_deal_of(const RankTask *task)
{
	return task->n_to > 1 ? 0 : task->n_to == 1 ? 1 : 2;
}

/* Each task has one, so that it is seen. */
void
gpu_count_strips(const RankProgram *prog, const uint16_t *order, struct gpu_call *call)
{
	int64_t strips = 0;
	memset(call->first, 0, sizeof call->first);
	memset(call->dealt, 0, sizeof call->dealt);
	call->counted = prog->n_tasks > 0 && prog->n_tasks <= GPU_COUNTED;
	for (int t = 0; t < prog->n_tasks && call->counted; t++) {
		const RankTask *task = &prog->task[order ? order[t] : t];
		int64_t length = gpu_length(&prog->extent[task->extent], call->part_end);
		strips += between(1, (length + call->strip - 1) / call->strip, call->width);
		call->first[(t + 1) / 4] |= (uint64_t)strips << 16 * ((t + 1) % 4);
		for (int deal = gpu_deal_of(task); deal < GPU_DEALS - 1; deal++)
			call->dealt[deal] = (int32_t)strips;
	}
}

int
gpu_sizes_choose(const struct gpu_asked *asked, struct gpu_sizes *out, struct blink_error *err)
{
	int64_t rings = asked->rings > 0 ? asked->rings : 1;
	if (rings > GPU_FLAGS)
		return set_error(err, blinkLimit, "a rank of this schedule publishes %lld values: want at most %d on "
		    "GPUs", (long long)rings, (int)GPU_FLAGS);
	if (take_packets(asked, rings, out) || take_lines(asked, rings, out))
		return blinkSuccess;
	return take_flags(asked, rings, out, err);
}

/* Both halves of a pair's rings are one window. */
bool
gpu_copy_sizes_choose(const struct gpu_asked *asked, struct gpu_copy_sizes *out)
{
	int64_t rings = asked->rings > 0 ? asked->rings : 1, depth = asked->depth > 0 ? asked->depth : 1;
	int64_t room = share(2 * asked->ring_bytes, rings), few = (asked->longest - 1) / GPU_COPY_CHUNKS + 1;
	int64_t bytes = asked->chunk_bytes, most = room / GPU_SLOTS_LEAST / UNIT * UNIT / asked->size;
	if (rings > GPU_COPY_LANES || asked->longest <= 0 || few > most)
		return false;
	if (bytes == 0)
		bytes = greatest(COPY_CHUNK_LEAST, asked->longest / (COPIES_OF_HOP * depth) * asked->size);
	int64_t chunk = least(between(few, bytes / asked->size, most), asked->longest);
	int64_t slot = (chunk * asked->size + UNIT - 1) / UNIT * UNIT;
	*out = (struct gpu_copy_sizes){ .slots = (int)between(GPU_SLOTS_LEAST, room / slot, GPU_SLOTS_MOST),
	    .chunk = chunk, .slot_bytes = slot, .share = room };
	return true;
}

static int64_t
parts_of(int64_t whole, int64_t part)
{
	return (whole + part - 1) / part;
}

/* Over one hop, in equal chunks. */
void
gpu_message_sizes_choose(int64_t bytes, int channels, int64_t slot_bytes, struct gpu_message_sizes *out)
{
	int64_t strip = parts_of(greatest(MESSAGE_STRIP, parts_of(bytes, channels)), MESSAGE_SHORT) * MESSAGE_SHORT;
	int64_t best = root_of(least(strip, (int64_t)1 << 40) * MESSAGE_COST);
	int64_t chunks = parts_of(strip, between(MESSAGE_ROUND, best, slot_bytes));
	int64_t chunk = least(parts_of(parts_of(strip, chunks), MESSAGE_SHORT) * MESSAGE_SHORT, slot_bytes);
	*out = (struct gpu_message_sizes){ .strip = strip, .chunk = chunk,
	    .channels = (int)parts_of(bytes, strip) };
}

/* The first blocks have one more, where queues cannot be divided. */
int
gpu_queue_place(int number, int queues, int blocks)
{
	int each = queues / blocks, more = queues % blocks, of_more = more * (each + 1);
	if (number < of_more)
		return number / (each + 1) + number % (each + 1) * blocks;
	return more + (number - of_more) / each + (number - of_more) % each * blocks;
}
