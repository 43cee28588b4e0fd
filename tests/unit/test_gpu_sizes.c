/* Sizes of calls on GPUs: what is chosen fits into what there is, whatever is asked; and which protocol it is. Routes:
 * part of a hybrid schedule goes through the host. */
#include "cuda/device.h"
#include "cuda/calls.h"
#include "cuda/sizes.h"

#include "random.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static const int element_sizes[] = { 1, 2, 4, 8 };

static struct gpu_asked
random_asked(void)
{
	static int64_t segment[60];
	struct gpu_asked a = { .size = element_sizes[below(4)], .rings = below(below(4) ? 40 : GPU_FLAGS + 1),
	    .n_ranks = 1 + below(16), .blocks = 1 + below(300), .ring_bytes = (size_t)(256 + below(4000)) * KIB,
	    .packet_bytes = below(4) ? (size_t)(128 + below(500)) * KIB : 0 };
	a.line_bytes = a.packet_bytes && below(2) ? (size_t)(128 + below(2000)) * KIB : 0;
	a.protocol = (enum gpu_protocol)(below(2) ? GPU_CHOSEN : below(GPU_FLAGS_ALONE + 1));
	a.longest = (int64_t)below(1 << (1 + below(30)));
	a.moved = a.longest * (1 + below(8));
	a.message = a.moved * a.size;
	a.segments = below(60);
	a.stages = 1 + below(2);
	a.depth = below(20);
	if (below(2) && a.longest > 0) {
		a.segment = segment;
		a.n_segments = a.segments;
		a.rate = below(2) ? 1 + below(1 << 20) : 0;
		a.cost = (struct gpu_cost){ below(5000), below(5000), 1 + below(100000) };
	}
	for (int i = 0; i < a.n_segments; i++)
		segment[i] = i == 0 ? a.longest : below((int)a.longest) + 1;
	if (below(3) == 0)
		a.chunk_bytes = 1 + below(1 << (1 + below(22)));
	return a;
}

static bool
packets_fit(const struct gpu_asked *a, const struct gpu_sizes *s, int64_t strip, int64_t shares)
{
	if (a->protocol == GPU_CHOSEN && a->chunk_bytes)
		return false;
	if (s->lines)
		return s->lines == (int64_t)a->packet_bytes && s->packet_share % GPU_LINE == 0
		    && s->packet_share * shares <= (int64_t)a->line_bytes
		    && (strip * a->size + 119) / 120 * 128 + 128 <= s->packet_share
		    && (a->protocol == GPU_LINES || (a->protocol == GPU_CHOSEN && a->message <= 2 * MIB));
	return s->packet_share % 16 == 0 && s->packet_share * shares <= (int64_t)a->packet_bytes
	    && (1 + (strip * a->size + 7) / 8) * 16 <= s->packet_share
	    && (a->protocol == GPU_PACKETS || (a->protocol == GPU_CHOSEN && a->message <= 256 * KIB));
}

static bool
flags_fit(const struct gpu_asked *a, const struct gpu_sizes *s, int64_t strip, int64_t shares)
{
	return s->slots >= GPU_SLOTS_LEAST && s->slots <= GPU_SLOTS_MOST && s->slot_bytes % 16 == 0
	    && s->slots * s->slot_bytes <= s->ring_share && s->ring_share * shares <= (int64_t)a->ring_bytes
	    && s->chunk * a->size == s->slot_bytes && (strip + s->chunk - 1) / s->chunk <= GPU_CHUNKS_MAX
	    && (!a->chunk_bytes || s->slot_bytes < a->chunk_bytes + 16);
}

/* Both ranks of a pair give each strip of each lane a flag and a share of their own, and strips cover a segment. */
static int
fits(const struct gpu_asked *a)
{
	struct gpu_sizes s, again;
	struct blink_error err = { 0 };
	int64_t rings = a->rings ? a->rings : 1;
	if (gpu_sizes_choose(a, &s, &err) != blinkSuccess)
		return err.code != blinkLimit;
	int64_t strip = s.strip;
	bool good = gpu_sizes_choose(a, &again, &err) == blinkSuccess && again.width == s.width && again.strip == strip
	    && again.slots == s.slots && again.chunk == s.chunk && s.width >= 1 && s.width * rings <= GPU_FLAGS
	    && strip * s.width >= a->longest && strip % (128 / a->size) == 0;
	good = good && (s.slots ? flags_fit : packets_fit)(a, &s, strip, rings * s.width);
	if (!good)
		printf("# longest %lld of %d bytes, message %lld, %d rings, %d ranks, %d blocks, chunk %lld: width %d, "
		    "%d slots of %lld\n", (long long)a->longest, (int)a->size, (long long)a->message, a->rings,
		    a->n_ranks, a->blocks, (long long)a->chunk_bytes, s.width, s.slots, (long long)s.slot_bytes);
	return !good;
}

/* Each lane of a pair has a window of its own in the pair's two halves, and a segment has no more chunks than flags are
 * counted to. Refused: what no such chunk has room for. */
static int
copies_fit(const struct gpu_asked *a)
{
	struct gpu_copy_sizes s;
	int64_t rings = a->rings ? a->rings : 1, few = (a->longest + GPU_COPY_CHUNKS - 1) / GPU_COPY_CHUNKS;
	if (!gpu_copy_sizes_choose(a, &s))
		return rings <= GPU_COPY_LANES && a->longest > 0
		    && (few * a->size + 15) / 16 * 16 * GPU_SLOTS_LEAST + 64 < 2 * (int64_t)a->ring_bytes / rings;
	return !(s.slots >= GPU_SLOTS_LEAST && s.slots <= GPU_SLOTS_MOST && s.chunk * a->size <= s.slot_bytes
	    && s.chunk >= few && s.chunk <= a->longest && s.slots * s.slot_bytes <= s.share
	    && s.share * rings <= 2 * (int64_t)a->ring_bytes && s.share % 16 == 0 && rings <= GPU_COPY_LANES
	    && (!a->chunk_bytes || s.chunk == few || s.chunk * a->size <= a->chunk_bytes));
}

/* An allreduce of 2 MiB among the 8 GPUs of a DGX-1V: a pair has room for lines of four lanes of the longest segment, a
 * quarter, of which an element more is counted than there is. */
static bool
rest_is_no_strip(void)
{
	enum { ALL = 2 * MIB / 4 };
	static const int64_t segment[] = { ALL / 4, ALL * 5 / 24, ALL * 5 / 24, ALL / 6, ALL / 8, ALL / 24 };
	const struct gpu_asked a = { .message = 2 * MIB, .longest = ALL / 4 + 1, .size = 4, .rings = 4, .segments = 6,
	    .stages = 2, .moved = ALL, .segment = segment, .n_segments = 6, .n_ranks = 8, .blocks = 20,
	    .ring_bytes = 4 * MIB, .packet_bytes = 576 * KIB, .line_bytes = 2304 * KIB };
	struct gpu_sizes s = { 0 };
	struct blink_error err = { 0 };
	return gpu_sizes_choose(&a, &s, &err) == blinkSuccess && s.lines && s.width == 2 && !fits(&a);
}

static struct gpu_sizes
chosen(int64_t bytes, int64_t chunk_bytes)
{
	const struct gpu_asked a = { .message = bytes, .longest = bytes / 4 + 1, .size = 4, .rings = 2,
	    .segments = 1, .stages = 2, .moved = bytes / 4, .n_ranks = 8,
	    .blocks = 128, .chunk_bytes = chunk_bytes, .ring_bytes = 4 * MIB, .packet_bytes = 576 * KIB };
	struct gpu_sizes s = { 0 };
	struct blink_error err = { 0 };
	gpu_sizes_choose(&a, &s, &err);
	return s;
}

/* Times of a strip in chunks of so many bytes, in those of a byte of a block alone: 80 KiB are what a chunk costs
 * besides its own, and a byte takes two where blocks share the links. */
static double
strip_time(double strip, double chunk, int depth)
{
	double chunks = strip / chunk > 1 ? strip / chunk : 1;
	return (chunks + depth - 1) * (chunk > 80 * KIB ? 2 * chunk : chunk + 80 * KIB);
}

/* Chunks of the messages of an allreduce by 6 trees are multiples of what the kernels' pass over vectors takes, or of a
 * vector of each thread that moves data where a strip is short; and twice or half as long, a strip would take no less
 * time, but for that rounding. */
static int
chunks_wrong(int64_t bytes, int blocks, int depth)
{
	const struct gpu_asked a = { .message = bytes, .longest = bytes / 24 + 1, .size = 4, .rings = 2, .segments = 6,
	    .stages = 2, .moved = bytes / 4, .n_ranks = 8, .blocks = blocks, .depth = depth, .ring_bytes = 4 * MIB,
	    .cost = { .chunk_ns = 4096, .rate = 20000 } };
	struct gpu_sizes s;
	struct blink_error err = { 0 };
	if (gpu_sizes_choose(&a, &s, &err) != blinkSuccess)
		return 1;
	double strip = (double)s.strip * 4, chunk = (double)s.slot_bytes, time = strip_time(strip, chunk, depth);
	const int64_t few = 16 * (GPU_THREADS - GPU_SETTERS), round = 4 * few;
	bool most = s.slot_bytes == 3 * round || (s.slot_bytes + round) * GPU_SLOTS_LEAST > s.ring_share;
	bool right = (s.slot_bytes % few == 0 && (s.slot_bytes < round || s.slot_bytes % round == 0))
	    || s.slot_bytes == s.strip * 4;
	right = right && time < 1.05 * strip_time(strip, chunk / 2, depth)
	    && (time < 1.05 * strip_time(strip, chunk * 2, depth) || most);
	if (!right)
		printf("# %lld bytes, %d blocks, depth %d: strips of %.0f in chunks of %.0f\n", (long long)bytes,
		    blocks, depth, strip, chunk);
	return !right;
}

/* An allreduce of 8 ranks by 8 stars: a hub has 14 of the 28 lanes of its rank, and so half of 33 blocks. With 132 each
 * strip has a block, as where trees are no stars. */
static bool
hubs_have_blocks(void)
{
	struct gpu_asked a = { .message = 64 * MIB, .longest = 2 * MIB + 1, .size = 4, .rings = 2, .segments = 8,
	    .stages = 2, .moved = 16 * MIB, .n_ranks = 8, .blocks = 33, .depth = 2, .ring_bytes = 4 * MIB,
	    .cost = { .chunk_ns = 1500, .rate = 20000 } };
	struct gpu_sizes few, many, chains;
	struct blink_error err = { 0 };
	gpu_sizes_choose(&a, &few, &err);
	a.blocks = 132;
	gpu_sizes_choose(&a, &many, &err);
	a.depth = 14;
	gpu_sizes_choose(&a, &chains, &err);
	return few.width >= 15 && few.width <= 18 && many.width == 8 && few.slot_bytes >= 28 * KIB
	    && chains.width * 15 <= 132;
}

/* Strips cover a message, no more of them than there are channels, and a chunk fits into a slot. */
static int
message_unfit(int64_t bytes, int channels, int64_t slot)
{
	struct gpu_message_sizes s;
	gpu_message_sizes_choose(bytes, channels, slot, &s);
	bool good = s.channels >= 1 && s.channels <= channels && s.strip * s.channels >= bytes
	    && s.strip * (s.channels - 1) < bytes && s.strip % 16 == 0 && s.chunk % 16 == 0 && s.chunk > 0
	    && s.chunk <= slot;
	if (!good)
		printf("# %lld bytes, %d channels, slots of %lld: %d strips of %lld in chunks of %lld\n",
		    (long long)bytes, channels, (long long)slot, s.channels, (long long)s.strip, (long long)s.chunk);
	return !good;
}

static bool
messages_fit(void)
{
	int wrong = 0;
	for (int64_t bytes = 1; bytes < (int64_t)1 << 40; bytes += 1 + bytes / 3 + below(7))
		for (int channels = 1; channels <= GPU_CHANNELS; channels++)
			wrong += message_unfit(bytes, channels, (int64_t)(8 << below(6)) * KIB);
	return wrong == 0;
}

/* Short ones are not divided; long ones take all channels, and the longest their slots whole. */
static bool
messages_divided(void)
{
	struct gpu_message_sizes few, some, many;
	gpu_message_sizes_choose(8 * KIB, GPU_CHANNELS, 256 * KIB, &few);
	gpu_message_sizes_choose(256 * KIB, GPU_CHANNELS, 256 * KIB, &some);
	gpu_message_sizes_choose(256 * MIB, GPU_CHANNELS, 256 * KIB, &many);
	return few.channels == 1 && some.channels == 2 && many.channels == GPU_CHANNELS && many.chunk <= 256 * KIB
	    && many.chunk > 256 * KIB - GPU_CHUNK_SHORT;
}

/* Each block has a run of queues, and none two more than another. */
static bool
queues_dealt(void)
{
	int wrong = 0;
	for (int queues = 1; queues <= 500; queues += queues % 7 + 1)
		for (int blocks = 1; blocks <= 33 && blocks <= queues; blocks++) {
			int number = 0;
			for (int b = 0; b < blocks; b++)
				for (int at = b; at < queues; at += blocks)
					wrong += gpu_queue_place(number++, queues, blocks) != at;
		}
	return wrong == 0;
}

/* Memory of a pair for messages: the same on all its ranks, and less where there are many. */
static bool
layouts_fit(void)
{
	bool good = true;
	for (int n = 1; n <= GPU_RANKS; n++) {
		struct gpu_layout l, far;
		gpu_layout_of(n, n, &l);
		gpu_layout_of((n + 1) / 2, n, &far);
		size_t bytes = (size_t)l.channels * l.channel_bytes;
		good = good && l.channels >= 1 && l.channels <= GPU_CHANNELS && l.slot_bytes % 128 == 0
		    && l.slot_bytes >= 64 * KIB && l.slot_bytes <= 256 * KIB && bytes <= 8 * MIB
		    && (bytes * (size_t)n <= 64 * MIB || bytes == 256 * KIB) && far.channels == l.channels
		    && far.slot_bytes == l.slot_bytes && l.rings_at + 2 * l.ring_bytes + bytes <= l.peer_bytes
		    && l.rings_at % 128 == 0;
		if (n == 8)
			good = good && l.channels == GPU_CHANNELS && l.slot_bytes == 256 * KIB;
	}
	return good;
}

/* Trees of an allreduce over a DGX-1V, in 24ths of the message: the number of strips, for this number of blocks. *most:
 * elements that the fullest block moves, divided by the mean of all blocks. */
static int
strips_on(int blocks, double *most)
{
	const int64_t unit = MIB, segment[] = { 6 * unit, 5 * unit, 5 * unit, 4 * unit, 3 * unit, unit };
	const struct gpu_asked a = { .message = 96 * unit, .longest = 6 * unit + 1, .size = 4, .rings = 2,
	    .segments = 6, .stages = 2, .moved = 24 * unit, .n_ranks = 8, .blocks = blocks, .depth = 8,
	    .ring_bytes = 4 * MIB, .segment = segment, .n_segments = 6 };
	struct gpu_sizes s;
	struct blink_error err = { 0 };
	int strips = 0;
	if (gpu_sizes_choose(&a, &s, &err) != blinkSuccess)
		return 0;
	for (int i = 0; i < 6; i++)
		strips += 2 * (int)((segment[i] + s.strip - 1) / s.strip);
	*most = (double)((strips + blocks - 1) / blocks * s.strip) / (2.0 * 24 * (double)unit / blocks);
	return strips;
}

/* As many strips as blocks where that can be, and no more. Of 13 blocks, with a tree for each, one would have 1.6 times
 * the average, and of 20 one 1.25 times: there they take turns. */
static bool
strips_right(void)
{
	double most;
	bool alone = strips_on(64, &most) == 62;
	return alone && strips_on(13, &most) > 13 && most < 1.2 && strips_on(20, &most) > 20 && most < 1.1;
}

/* 24 segments of one length: of 14 blocks some have twice what others have, unless strips are shorter; of 12 all have
 * two. Each block has to be twice as fast as its share of the links, at half of the cost of a chunk alone. */
static bool
turns_right(void)
{
	enum { SEGMENTS = 24 };
	int64_t segment[SEGMENTS];
	struct gpu_asked a = { .message = 64 * MIB, .longest = 16 * MIB / SEGMENTS + 1, .size = 4, .rings = 8,
	    .segments = SEGMENTS, .stages = 1, .moved = 16 * MIB, .n_ranks = 8, .blocks = 14, .depth = 3,
	    .ring_bytes = 8 * MIB, .segment = segment, .n_segments = SEGMENTS, .rate = 91430,
	    .cost = { .chunk_ns = 1360, .fence_ns = 2020, .rate = 22596 } };
	struct gpu_sizes odd, even;
	struct blink_error err = { 0 };
	for (int i = 0; i < SEGMENTS; i++)
		segment[i] = 16 * MIB / SEGMENTS;
	gpu_sizes_choose(&a, &odd, &err);
	int64_t turns = (SEGMENTS * odd.width + a.blocks - 1) / a.blocks;
	a.blocks = 12;
	gpu_sizes_choose(&a, &even, &err);
	double share = (double)a.rate / a.blocks, own = (double)even.slot_bytes / (even.slot_bytes / 22.596 + 680);
	return odd.width > 1 && turns * a.blocks <= 16 * 14 && (double)turns * 14 < 1.1 * SEGMENTS * odd.width
	    && even.width == 1 && own * 1000 > 1.8 * share;
}

/* Where a peer's memory is mapped on both routes, that it can be accessed decides for all but what avoids NVLink. */
static bool
routes_right(void)
{
	char memory;
	unsigned classes[] = { 1u << LINK_NVLINK, 1u << LINK_PCIE | 1u << LINK_QPI };
	struct gpu_peer peer[] = { { .direct = true, .region = { &memory, &memory } },
	    { .direct = false, .region = { NULL, &memory } }, { .direct = true, .region = { &memory, NULL } } };
	const struct gpu g = { .peer = peer };
	const RankProgram hybrid = { .n_parts = 2, .classes = classes }, whole = { .n_parts = 1 };
	return gpu_route_of(&g, &whole, 0, 0) == GPU_ROUTE_DIRECT && gpu_route_of(&g, &whole, 0, 1) == GPU_ROUTE_HOST
	    && gpu_route_of(&g, &hybrid, 0, 0) == GPU_ROUTE_DIRECT
	    && gpu_route_of(&g, &hybrid, 1, 0) == GPU_ROUTE_HOST
	    && gpu_route_of(&g, &hybrid, 0, 1) == GPU_ROUTE_HOST
	    && gpu_route_of(&g, &hybrid, 1, 2) == GPU_ROUTE_DIRECT;
}

int
main(void)
{
	int wrong = 0, failed = 0, copies_wrong = 0;
	for (int i = 0; i < 20000; i++) {
		const struct gpu_asked a = random_asked();
		wrong += fits(&a);
		copies_wrong += copies_fit(&a);
	}
	failed |= report(wrong, "what is chosen fits");
	failed |= report(copies_wrong, "what is chosen for copies fits");
	failed |= report(chosen(4, 0).slots != 0 || chosen(100 * KIB, 0).slots != 0 || chosen(MIB, 0).slots == 0,
	    "packets for short messages, flags for long ones");
	failed |= report(!rest_is_no_strip(), "an element more than there is takes no room for lines");
	failed |= report(chosen(4, 0).width != 1 || chosen(64 * KIB, 0).width < 8 || chosen(64 * MIB, 0).width != 16,
	    "strips grow with the message");
	failed |= report(chosen(4, 64).slots == 0 || chosen(MIB, 4096).slot_bytes != 4096 ||
	    chosen(MIB, 4097).slot_bytes != 4112 || chosen(64 * MIB, 0).slot_bytes > 96 * KIB, "chunks as asked");
	int chunks = 0;
	for (int64_t bytes = 512 * KIB; bytes <= 256 * MIB; bytes += bytes / 3 / 256 * 256)
		for (int depth = 2; depth < 12; depth++)
			for (int blocks = 16; blocks <= 132; blocks += 29)
				chunks += chunks_wrong(bytes, blocks, depth);
	failed |= report(!strips_right(),
	    "as many strips of segments that are known as there are blocks");
	failed |= report(!turns_right(), "strips that blocks take turns with, so that all have as much to move");
	failed |= report(chunks, "chunks of whole rounds, of about the best length");
	const struct gpu_asked many = { .message = 4, .longest = 1, .size = 4, .rings = GPU_FLAGS + 1, .n_ranks = 2,
	    .blocks = 64, .ring_bytes = MIB, .packet_bytes = MIB };
	struct gpu_sizes s;
	struct blink_error err = { 0 };
	failed |= report(gpu_sizes_choose(&many, &s, &err) != blinkLimit, "more rings than flags are refused");
	failed |= report(!hubs_have_blocks(), "blocks of a hub, by its lanes");
	failed |= report(!messages_fit(), "strips and chunks of messages fit");
	failed |= report(!messages_divided(), "long messages take all channels of a pair");
	failed |= report(!queues_dealt(), "blocks have runs of queues");
	failed |= report(!layouts_fit(), "memory of a pair for messages");
	failed |= report(!routes_right(), "what was planned for PCIe goes through the host");
	return failed;
}
