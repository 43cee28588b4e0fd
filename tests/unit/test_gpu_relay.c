/* The relay of GPUs on several servers, without GPUs: a net that keeps what it is given, a driver whose memory is the
 * host's, and flags that the test sets as kernels would. Rank 0 of three on two servers; rank 1 is beside it. */
#include "cuda/calls.h"
#include "cuda/relay.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, BESIDE = 1, FAR = 2, MOST = 64, HALF = 64 << 10, CHANNELS = 2, SLOT = 1 << 10 };

static int n_failed;

static void
ok(bool good, const char *what)
{
	printf("%s %s\n", good ? "ok" : "not ok", what);
	n_failed += !good;
}

/* ---- what was sent ---- */

struct sent {
	int to;
	struct net_message m;
	const char *payload;
};

static struct {
	pthread_mutex_t lock;
	struct sent sent[MOST];
	int n;
} net = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int
keep(void *handle, int to, const struct net_message *m, const void *payload)
{
	(void)handle;
	pthread_mutex_lock(&net.lock);
	if (net.n < MOST)
		net.sent[net.n++] = (struct sent){ to, *m, payload };
	pthread_mutex_unlock(&net.lock);
	return blinkSuccess;
}

static const struct net_kind kind = { .name = "none", .send = keep };

/* ---- a driver ---- */

static CUresult
alloc(void **out, size_t bytes, unsigned flags)
{
	(void)flags;
	*out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	memset(*out, 0x5a, bytes);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
give_back(void *memory)
{
	free(memory);
	return CUDA_SUCCESS;
}

static CUresult
no_context(CUcontext *out)
{
	*out = NULL;
	return CUDA_SUCCESS;
}

static CUresult
any_context(CUcontext context)
{
	(void)context;
	return CUDA_SUCCESS;
}

static CUresult
any_mode(CUstreamCaptureMode *mode)
{
	(void)mode;
	return CUDA_SUCCESS;
}

static const struct driver driver = { .host_alloc = alloc, .host_free = give_back, .context_get = no_context,
	.context_set = any_context, .capture_mode = any_mode };

/* ---- a rank ---- */

static struct rank {
	struct rank_state self;
	struct gpu gpu;
	struct gpu_peer peer[RANKS];
	struct gpu_launches launches;
	struct gpu_status status;
	int server[RANKS];
	struct gpu_pair to, from;	/* of the rank on the other server */
} rank;

static bool
open_rank(void)
{
	struct gpu *g = &rank.gpu;
	struct blink_error err = { 0 };
	memset(&rank, 0, sizeof rank);
	net.n = 0;
	rank.server[FAR] = 1;
	rank.self.server = rank.server;
	rank.self.n_ranks = RANKS;
	rank.self.net = &kind;
	pthread_mutex_init(&rank.self.lock, NULL);
	pthread_mutex_init(&rank.launches.lock, NULL);
	rank.launches.has_captured = true;
	rank.peer[BESIDE].local = 1;
	rank.peer[FAR].local = -1;
	*g = (struct gpu){ .d = &driver, .self = &rank.self, .peer = rank.peer, .status = &rank.status,
	    .launches = &rank.launches };
	g->layout.n_local = 2;
	g->layout.ring_bytes = HALF;
	g->layout.channels = CHANNELS;
	g->layout.slot_bytes = SLOT;
	g->layout.channel_bytes = GPU_CHANNEL_SLOTS * SLOT;
	if (gpu_relay_open(g, &err) != blinkSuccess)
		return false;
	gpu_remote_pair(g, 0, FAR, &rank.to);
	gpu_remote_pair(g, FAR, 0, &rank.from);
	gpu_relay_expect(g, 4);
	return true;
}

static bool
start(void)
{
	struct blink_error err = { 0 };
	return gpu_relay_start(&rank.gpu, &err) == blinkSuccess;
}

/* Until so many messages have been sent: how many there are. */
static int
wait_for_sent(int n)
{
	int got = 0;
	for (int i = 0; i < 5000 && got < n; i++) {
		usleep(i > 0 ? 1000 : 0);
		pthread_mutex_lock(&net.lock);
		got = net.n;
		pthread_mutex_unlock(&net.lock);
	}
	return got;
}

static void
close_rank(void)
{
	gpu_relay_end(&rank.gpu);
	gpu_relay_close(&rank.gpu, false);
}

/* As a kernel leaves it: a strip of so many bytes in chunks of 100, in slots of 112. */
static void
leave_chunks(int strip, uint64_t call, uint64_t bytes, uint64_t chunks)
{
	rank.to.letter[2 * strip + (int)(call & 1)] = (struct gpu_letter){ .call = call, .at = (uint64_t)strip * 1024,
	    .bytes = bytes, .chunk_bytes = 100, .slot_bytes = 112, .slots = 3 };
	rank.to.ready[strip].signature[call & 1] = 1000 + call;
	__atomic_store_n(&rank.to.ready[strip].value, GPU_FLAG(call, chunks), __ATOMIC_RELEASE);
}

/* Message i is that chunk of the strip, and lies where the ring has it on both sides. */
static bool
is_chunk(int i, int strip, uint64_t call, uint64_t chunk, uint64_t bytes)
{
	const struct sent *s = &net.sent[i];
	uint64_t at = (uint64_t)strip * 1024 + chunk % 3 * 112;
	bool good = i < net.n && s->to == FAR && s->m.lane == (uint32_t)strip && s->m.flag == GPU_FLAG(call, chunk + 1)
	    && s->m.bytes == bytes && s->m.signature == 1000 + call && s->m.place * 16 == at
	    && s->payload == rank.to.ring[call & 1] + at;
	if (!good)
		printf("# message %d of %d: lane %x, flag %llx, %llu bytes\n", i, net.n, s->m.lane,
		    (unsigned long long)s->m.flag, (unsigned long long)s->m.bytes);
	return good;
}

/* ---- tests ---- */

static void
test_chunks(void)
{
	bool good = open_rank();
	leave_chunks(2, 5, 250, 2);
	good = good && start() && wait_for_sent(2) == 2 && is_chunk(0, 2, 5, 0, 100) && is_chunk(1, 2, 5, 1, 100);
	leave_chunks(2, 5, 250, 3);
	ok(good && wait_for_sent(3) == 3 && is_chunk(2, 2, 5, 2, 50), "chunks go as they are published");
	leave_chunks(2, 8, 100, 1);
	ok(wait_for_sent(4) == 4 && is_chunk(3, 2, 8, 0, 100), "calls in which a strip has nothing are passed over");
	close_rank();
	ok(net.n == 4, "nothing is sent twice");
}

/* Nothing is seen of call 7 before call 8 begins; and of call 9 only a part. */
static void
test_calls_before(void)
{
	bool good = open_rank();
	leave_chunks(0, 7, 450, 5);
	leave_chunks(0, 8, 150, 1);
	good = good && start() && wait_for_sent(6) == 6;
	for (int i = 0; i < 5; i++)
		good = good && is_chunk(i, 0, 7, (uint64_t)i, i == 4 ? 50 : 100);
	ok(good && is_chunk(5, 0, 8, 0, 100), "a call that was over before it was seen goes before the next one");
	leave_chunks(0, 9, 10, 1);
	ok(wait_for_sent(8) == 8 && is_chunk(6, 0, 8, 1, 50) && is_chunk(7, 0, 9, 0, 10),
	    "and what is left of the one that was seen");
	close_rank();
}

/* What kernels leave at their end is sent before the thread ends. */
static void
test_end(void)
{
	bool good = open_rank() && start();
	leave_chunks(1, 1, 100, 1);
	__atomic_store_n(&rank.from.done[3], GPU_FLAG(1, 4), __ATOMIC_RELEASE);
	close_rank();
	good = good && net.n == 2 && is_chunk(0, 1, 1, 0, 100);
	ok(good && net.sent[1].m.lane == (3 | NET_DONE) && net.sent[1].m.flag == GPU_FLAG(1, 4)
	    && net.sent[1].m.bytes == 0, "the end sends what is left, and what was read");
}

static void
test_messages(void)
{
	struct gpu_channels to, from;
	bool good = open_rank();
	gpu_remote_channels(&rank.gpu, 0, FAR, &to);
	gpu_remote_channels(&rank.gpu, FAR, 0, &from);
	struct gpu_channel *out = &to.in[1], *in = &from.in[1];
	uint64_t *done = (uint64_t *)(void *)((char *)to.done + sizeof *out), *read = &in->done;
	char *slot[] = { to.slots + 2 * SLOT, to.slots + 3 * SLOT };
	out->bytes[0] = SLOT;
	out->bytes[1] = 7;
	out->ready.signature[0] = 70;
	out->ready.signature[1] = 71;
	__atomic_store_n(&out->ready.value, 2, __ATOMIC_RELEASE);
	good = good && start() && wait_for_sent(2) == 2;
	for (int i = 0; i < 2 && good; i++)
		good = net.sent[i].m.lane == (1 | NET_CHANNEL) && net.sent[i].m.flag == (uint64_t)i + 1
		    && net.sent[i].payload == slot[i] && net.sent[i].m.signature == (uint64_t)(70 + i);
	ok(good && net.sent[0].m.bytes == SLOT && net.sent[1].m.bytes == 7,
	    "messages go slot by slot, as long as they are");
	__atomic_store_n(read, 9, __ATOMIC_RELEASE);
	ok(wait_for_sent(3) == 3 && net.sent[2].m.lane == (1 | NET_CHANNEL | NET_DONE) && net.sent[2].m.flag == 9,
	    "what has been received is told");
	const struct net_message ready = { .lane = 1 | NET_CHANNEL, .flag = 6, .signature = 77, .bytes = SLOT },
	    told = { .lane = 1 | NET_CHANNEL | NET_DONE, .flag = 2 };
	good = gpu_relay_place(&rank.gpu, FAR, &ready) == from.slots + 3 * SLOT;
	gpu_relay_arrived(&rank.gpu, FAR, &ready);
	gpu_relay_arrived(&rank.gpu, FAR, &told);
	ok(good && in->ready.value == 6 && in->ready.signature[1] == 77 && *done == 2, "what comes in a channel");
	close_rank();
}

static void
test_arrivals(void)
{
	bool good = open_rank();
	struct net_message m = { .lane = 3, .place = 7, .flag = GPU_FLAG(5, 2), .signature = 77, .bytes = 100 };
	const struct net_message done = { .lane = 2 | NET_DONE, .flag = GPU_FLAG(4, 1) };
	good = good && gpu_relay_place(&rank.gpu, FAR, &m) == rank.from.ring[1] + 112;
	gpu_relay_arrived(&rank.gpu, FAR, &m);
	gpu_relay_arrived(&rank.gpu, FAR, &done);
	ok(good && rank.from.ready[3].value == m.flag && rank.from.ready[3].signature[1] == 77
	    && rank.to.done[2] == done.flag, "chunks and flags get to where the kernel waits for them");
	m.place = HALF / 16 - 6;
	ok(gpu_relay_place(&rank.gpu, FAR, &m) == NET_REFUSED, "a chunk past the end of the ring");
	m.bytes = 96;
	ok(gpu_relay_place(&rank.gpu, FAR, &m) == rank.from.ring[1] + HALF - 96, "the last one of it");
	m.lane = GPU_FLAGS;
	ok(gpu_relay_place(&rank.gpu, FAR, &m) == NET_REFUSED, "a strip that is not");
	m.lane = 3 | NET_DONE;
	ok(gpu_relay_place(&rank.gpu, FAR, &m) == NET_REFUSED, "a flag with data");
	m = (struct net_message){ .lane = NET_CHANNEL, .flag = 1, .bytes = SLOT + 1 };
	ok(gpu_relay_place(&rank.gpu, FAR, &m) == NET_REFUSED, "more than a slot holds");
	m.bytes = 8;
	m.lane = CHANNELS | NET_CHANNEL;
	ok(gpu_relay_place(&rank.gpu, FAR, &m) == NET_REFUSED, "a channel that is not");
	m.lane = NET_CHANNEL;
	ok(gpu_relay_place(&rank.gpu, BESIDE, &m) == NET_REFUSED, "a rank on this server");
	close_rank();
	ok(gpu_relay_place(&rank.gpu, FAR, &m) == NET_REFUSED, "after the end");
}

int
main(void)
{
	alarm(60);
	test_chunks();
	test_calls_before();
	test_end();
	test_messages();
	test_arrivals();
	return n_failed != 0;
}
