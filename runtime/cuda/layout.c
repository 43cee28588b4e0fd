/* What is where in a region, and in memory of the host for ranks on other servers. */
#include "cuda/relay.h"
#include "model/line_room.h"

/* Of what belongs to a peer: flags, packets and lines, rings, whose halves are one window of copies, and slots of
 * messages. All begin at multiples of LINE_BYTES. */
enum {
	LINE_BYTES = 128,
	READY_AT = 0,
	DONE_AT = GPU_FLAGS * (int)sizeof(struct gpu_flag),
	CHANNEL_AT = DONE_AT + GPU_FLAGS * 8,
	MEETING_AT = CHANNEL_AT + GPU_CHANNELS * (int)sizeof(struct gpu_channel),
	PACKETS_AT = (MEETING_AT + (int)sizeof(struct gpu_meeting) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES
};

#define MIB ((size_t)1 << 20)
#define KIB ((size_t)1 << 10)

/* Pages of the host, on any machine: parts of a region are registered by themselves. */
#define PAGE (64 * KIB)

/* Of a message: fewer channels rather than smaller slots, where many ranks leave a pair little memory. */
#define SLOT_LEAST (64 * KIB)

/* total, divided by the number of peers; but not more than most nor less than least. */
static size_t
share(size_t total, int n, size_t least, size_t most)
{
	size_t each = total / (size_t)n / (4 * KIB) * (4 * KIB);
	return each < least ? least : each < most ? each : most;
}

void
gpu_layout_of(int n_local, int n_ranks, struct gpu_layout *out)
{
	out->n_local = n_local;
	out->packet_bytes = n_local < n_ranks ? 0 : share(16 * MIB, n_ranks, 128 * KIB, 576 * KIB);
	out->line_bytes = n_local < n_ranks ? 0 : (size_t)line_room(n_ranks);
	out->ring_bytes = share(64 * MIB, n_ranks, 256 * KIB, 4 * MIB);
	size_t slots = share(64 * MIB, n_ranks, 256 * KIB, 8 * MIB), channels = slots / GPU_CHANNEL_SLOTS / SLOT_LEAST;
	out->channels = channels < GPU_CHANNELS ? (int)channels : GPU_CHANNELS;
	out->slot_bytes = slots / (size_t)out->channels / GPU_CHANNEL_SLOTS / LINE_BYTES * LINE_BYTES;
	out->channel_bytes = GPU_CHANNEL_SLOTS * out->slot_bytes;
	out->rings_at = PACKETS_AT + 2 * (out->packet_bytes + out->line_bytes);
	out->peer_bytes = (out->rings_at + 2 * out->ring_bytes + slots + PAGE - 1) / PAGE * PAGE;
	out->bytes = (size_t)n_local * out->peer_bytes;
}

/* What rank `owner` has for rank `other`, as this rank's GPU sees it. */
static char *
part_of(const struct gpu *g, int owner, int other, enum gpu_route route)
{
	char *region = owner == g->self->rank ? g->own[route] : g->peer[owner].region[route];
	return region + (size_t)g->peer[other].local * g->layout.peer_bytes;
}

void
gpu_pair_of(const struct gpu *g, int publisher, int reader, enum gpu_route route, struct gpu_pair *out)
{
	const struct gpu_layout *l = &g->layout;
	if (route == GPU_ROUTE_NET) {
		gpu_remote_pair(g, publisher, reader, out);
		return;
	}
	char *at = part_of(g, reader, publisher, route);
	out->ready = (void *)(at + READY_AT);
	out->done = (void *)(part_of(g, publisher, reader, route) + DONE_AT);
	out->letter = NULL;
	for (int half = 0; half < 2; half++) {
		out->packets[half] = at + PACKETS_AT + (size_t)half * (l->packet_bytes + l->line_bytes);
		out->ring[half] = at + l->rings_at + (size_t)half * l->ring_bytes;
	}
}

void
gpu_channels_of(const struct gpu *g, int publisher, int reader, enum gpu_route route, struct gpu_channels *out)
{
	if (route == GPU_ROUTE_NET) {
		gpu_remote_channels(g, publisher, reader, out);
		return;
	}
	char *at = part_of(g, reader, publisher, route), *back = part_of(g, publisher, reader, route);
	*out = (struct gpu_channels){ .in = (void *)(at + CHANNEL_AT),
	    .done = &((struct gpu_channel *)(void *)(back + CHANNEL_AT))->done,
	    .slots = at + g->layout.rings_at + 2 * g->layout.ring_bytes };
}

struct gpu_meeting *
gpu_meeting_of(const struct gpu *g, int owner, int other, enum gpu_route route)
{
	return (void *)(part_of(g, owner, other, route) + MEETING_AT);
}
