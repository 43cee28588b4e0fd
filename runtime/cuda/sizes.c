/* Sizes of a call on GPUs.
 *
 * Strips: a segment is cut into `width` of them, each moved by a block of the kernel of its own. More of them use more
 * of a GPU, but less than a few KiB (packets) or some ten KiB (flags) do not keep a block busy for longer than it takes
 * to begin. All tasks of a rank have to be resident at once, or take turns, so that width times tasks should not be
 * above the blocks that a rank may have; what is known of the tasks of all ranks is that each has at most two for each
 * ring that it publishes or reads.
 *
 * Packets carry as many bytes of flags as of data, but need neither fence nor room in a ring: they win as long as a
 * message takes less time to cross a link twice than a fence and a flag take, some 256 KiB at most.
 *
 * Chunks: eight of a strip fill the pipeline along a tree of usual depth well enough; from 8 KiB on a chunk takes
 * longer to move than its flag, and above 128 KiB nothing is gained. */
#include "cuda/sizes.h"
#include "cuda/device.h"
#include "error.h"

enum {
	PACKET_MESSAGE = 256 << 10,	/* bytes: the longest that goes by packets */
	PACKET_STRIP = 4 << 10,		/* bytes that are worth a strip: 8 for each of 512 threads */
	FLAG_STRIP = 32 << 10,
	WIDTH_MOST = 16,
	CHUNKS_WANTED = 8,
	CHUNK_LEAST = 8 << 10,
	CHUNK_MOST = 128 << 10,
	UNIT = 16			/* bytes that a thread moves at once */
};

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
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

/* Strips that flags, lists and blocks have room for. */
static int64_t
width_most(const struct gpu_asked *asked, int64_t rings)
{
	int64_t most = least(GPU_FLAGS / rings, GPU_PENDING / (rings * asked->n_ranks));
	return between(1, least(most, asked->blocks / (2 * rings)), WIDTH_MOST);
}

static int64_t
share(size_t bytes, int64_t parts)
{
	return (int64_t)bytes / parts / UNIT * UNIT;
}

static bool
take_packets(const struct gpu_asked *asked, int64_t rings, int64_t most, struct gpu_sizes *out)
{
	int64_t width = between(1, (asked->longest * asked->size + PACKET_STRIP - 1) / PACKET_STRIP, most);
	int64_t strip = GPU_STRIP(asked->longest, width, asked->size) * asked->size;
	int64_t need = (1 + (strip + 7) / 8) * (int64_t)sizeof(struct gpu_packet);
	if (asked->message > PACKET_MESSAGE || asked->chunk_bytes || need > share(asked->packet_bytes, rings * width))
		return false;
	*out = (struct gpu_sizes){ .width = (int)width, .packet_share = share(asked->packet_bytes, rings * width) };
	return true;
}

/* Rings and packets are of other memory: `ring_share` is what slots have to fit into. */
static int
take_flags(const struct gpu_asked *asked, int64_t rings, int64_t most, struct gpu_sizes *out, struct blink_error *err)
{
	int64_t width = between(1, asked->longest * asked->size / FLAG_STRIP, most);
	int64_t strip = GPU_STRIP(asked->longest, width, asked->size) * asked->size;
	int64_t room = share(asked->ring_bytes, rings * width), slot = asked->chunk_bytes;
	if (slot == 0)
		slot = between(CHUNK_LEAST, strip / CHUNKS_WANTED, CHUNK_MOST);
	slot = (least(slot, strip) + UNIT - 1) / UNIT * UNIT;
	slot = between(UNIT, slot, room / GPU_SLOTS_LEAST / UNIT * UNIT);
	if (room < GPU_SLOTS_LEAST * UNIT || strip / slot >= GPU_CHUNKS_MAX)
		return set_error(err, blinkLimit, "%lld bytes of a segment in chunks of %lld: want less than %d chunks",
		    (long long)strip, (long long)slot, (int)GPU_CHUNKS_MAX);
	*out = (struct gpu_sizes){ .width = (int)width, .slots = (int)between(GPU_SLOTS_LEAST, room / slot,
	    GPU_SLOTS_MOST), .chunk = slot / asked->size, .slot_bytes = slot, .ring_share = room };
	return blinkSuccess;
}

int
gpu_sizes_choose(const struct gpu_asked *asked, struct gpu_sizes *out, struct blink_error *err)
{
	int64_t rings = asked->rings > 0 ? asked->rings : 1;
	if (rings > GPU_FLAGS)
		return set_error(err, blinkLimit, "a rank of this schedule publishes %lld values: want at most %d on "
		    "GPUs", (long long)rings, (int)GPU_FLAGS);
	int64_t most = width_most(asked, rings);
	if (take_packets(asked, rings, most, out))
		return blinkSuccess;
	return take_flags(asked, rings, most, out, err);
}
