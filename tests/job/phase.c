/* One rank of a phase in which several groups call at the same time: ranks meet by a file.
 *
 *	phase RANK N DIRECTORY CALLS TIMES
 *
 * An alltoallv is of all ranks, without BYTES; a line with the elements from each rank to each follows.
 *
 * Rank 0 writes the unique id to DIRECTORY/id. CALLS is a file, a line for each call: COLLECTIVE ROOT BYTES REPEAT
 * GROUP..., with the number of each rank's group, -1: in none; BYTES as blink-schedule(5) counts M. Each rank makes a
 * communicator for each call. TIMES times all ranks begin together, make all calls, and wait; rank 0 prints the least
 * time until the last rank was done: "0.123 s". Elements of allreduces are checked in the first of them. With
 * BLINK_BACKEND=cuda buffers are on GPUs, and each call has a stream. */
#include "device.h"
#include "meet.h"

#include <string.h>

enum { MOST_CALLS = 16, MOST_RANKS = 64 };

struct call {
	char collective[32];
	int root, repeat, group, n, rank;	/* of this rank: its group, the ranks of that, and its own there */
	size_t count;
	size_t sends[MOST_RANKS], send_at[MOST_RANKS], recvs[MOST_RANKS], recv_at[MOST_RANKS];	/* of an alltoallv */
	float *in, *out;
	void *from, *to, *stream;	/* what is sent and received: these, or their mirrors on the rank's GPU */
	blinkComm_t comm;
};

static struct rank me;

/* Of an alltoallv, what this rank sends and receives; its buffers are the longer of both. */
static void
read_elements(FILE *f, const char *path, int rank, int n, struct call *c)
{
	size_t sent = 0, received = 0;
	for (int i = 0; i < n * n; i++) {
		size_t count;
		if (fscanf(f, "%zu", &count) != 1)
			need(blinkInvalidArgument, "elements", path);
		if (i / n == rank) {
			c->sends[i % n] = count;
			c->send_at[i % n] = sent;
			sent += count;
		}
		if (i % n == rank) {
			c->recvs[i / n] = count;
			c->recv_at[i / n] = received;
			received += count;
		}
	}
	c->count = sent > received ? sent : received;
}

/* Returns how many. */
static int
read_calls(const char *path, int rank, int n, struct call *call)
{
	FILE *f = fopen(path, "r");
	int calls = 0;
	long bytes;
	if (!f)
		need(blinkSystemError, "calls", path);
	for (; calls < MOST_CALLS; calls++) {
		struct call *c = &call[calls];
		int group[MOST_RANKS];
		if (fscanf(f, "%31s %d %ld %d", c->collective, &c->root, &bytes, &c->repeat) != 4)
			break;
		for (int r = 0; r < n && r < MOST_RANKS; r++)
			if (fscanf(f, "%d", &group[r]) != 1)
				need(blinkInvalidArgument, "calls", path);
		c->group = group[rank];
		for (int r = 0; r < n; r++) {
			c->rank = r == rank ? c->n : c->rank;
			c->n += group[r] == c->group;
		}
		c->count = (size_t)bytes / sizeof(float) / (size_t)c->n * (size_t)c->n;
		if (strcmp(c->collective, "alltoallv") == 0)
			read_elements(f, path, rank, n, c);
	}
	fclose(f);
	return calls;
}

static void
open_call(struct call *c, blinkComm_t world)
{
	blinkError_t error = { "" };
	need(blinkCommSplit(world, c->group, 0, &c->comm, NULL, &error), "split", error.text);
	c->in = calloc(c->count, sizeof *c->in);
	c->out = calloc(c->count, sizeof *c->out);
	if (!c->in || !c->out)
		need(blinkOutOfMemory, "memory", "");
	for (size_t i = 0; i < c->count; i++)
		c->in[i] = (float)((i % 97) + (size_t)c->rank);
	c->from = c->in;
	c->to = c->out;
	if (!device_wanted() || c->group < 0)
		return;
	c->stream = device_stream(&me);
	c->from = device_memory(&me, c->comm, c->count * sizeof *c->in);
	c->to = device_memory(&me, c->comm, c->count * sizeof *c->out);
	device_in(&me, c->comm, c->from, c->in, c->count * sizeof *c->in);
}

static void
close_call(struct call *c)
{
	if (device_wanted() && c->group >= 0) {
		device_free(&me, c->comm, c->from);
		device_free(&me, c->comm, c->to);
		device_stream_end(&me, c->stream);
	}
	blinkCommDestroy(c->comm);
}

static void
start(struct call *c)
{
	const char *name = c->collective;
	size_t block = c->count / (size_t)c->n, own = block * (size_t)c->rank;
	float *in = c->from, *out = c->to;
	blinkResult_t result = blinkInvalidArgument;
	if (strcmp(name, "allreduce") == 0)
		result = blinkAllReduce(in, out, c->count, blinkFloat32, blinkSum, c->comm, c->stream);
	else if (strcmp(name, "broadcast") == 0)
		result = blinkBroadcast(in, out, c->count, blinkFloat32, c->root, c->comm, c->stream);
	else if (strcmp(name, "allgather") == 0)
		result = blinkAllGather(in + own, out, block, blinkFloat32, c->comm, c->stream);
	else if (strcmp(name, "reducescatter") == 0)
		result = blinkReduceScatter(in, out + own, block, blinkFloat32, blinkSum, c->comm, c->stream);
	else if (strcmp(name, "alltoall") == 0)
		result = blinkAlltoAll(in, out, block, blinkFloat32, c->comm, c->stream);
	else if (strcmp(name, "alltoallv") == 0)
		result = blinkAlltoAllv(in, c->sends, c->send_at, out, c->recvs, c->recv_at, blinkFloat32,
		    c->comm, c->stream);
	need_call(result, name, c->comm);
}

static void
check(const struct call *c)
{
	size_t wrong = 0;
	if (device_wanted())
		device_out(&me, c->comm, c->out, c->to, c->count * sizeof *c->out);
	for (size_t i = 0; i < c->count && strcmp(c->collective, "allreduce") == 0; i++)
		wrong += c->out[i] != (float)(i % 97) * (float)c->n + (float)(c->n * (c->n - 1) / 2);
	if (wrong)
		need(blinkUnverified, c->collective, "a wrong element");
}

/* one: a number, on the GPU where buffers are. */
static void
together(blinkComm_t world, float *one)
{
	need_call(blinkAllReduce(one, one, 1, blinkFloat32, blinkMax, world, NULL), "allreduce", world);
	need_call(blinkCommWait(world, 0), "wait", world);
}

int
main(int argc, char **argv)
{
	static struct call call[MOST_CALLS];
	blinkUniqueId_t id;
	blinkComm_t world = NULL;
	blinkError_t error = { "" };
	double least = 1e9;
	if (argc != 6)
		return 2;
	int rank = atoi(argv[1]), n = atoi(argv[2]), times = atoi(argv[5]);
	float number = 1, *one = &number;
	me = (struct rank){ .rank = rank, .n = n };
	device_take(&me);
	meet(rank, argv[3], &id);
	need(blinkCommInitRank(&world, n, &id, rank, NULL, &error), "init", error.text);
	if (device_wanted())
		one = (float *)device_memory(&me, world, sizeof *one);
	int n_calls = read_calls(argv[4], rank, n, call);
	for (int c = 0; c < n_calls; c++)
		open_call(&call[c], world);
	for (int t = 0; t < times; t++) {
		together(world, one);
		double begin = seconds(CLOCK_MONOTONIC);
		for (int c = 0; c < n_calls; c++)
			for (int i = 0; i < call[c].repeat && call[c].group >= 0; i++)
				start(&call[c]);
		for (int c = 0; c < n_calls; c++)
			if (call[c].group >= 0)
				need_call(blinkCommWait(call[c].comm, 0), "wait", call[c].comm);
		together(world, one);
		double took = seconds(CLOCK_MONOTONIC) - begin;
		least = took < least ? took : least;
		for (int c = 0; c < n_calls && t == 0; c++)
			if (call[c].group >= 0)
				check(&call[c]);
	}
	if (rank == 0)
		printf("%.4f s\n", least);
	for (int c = 0; c < n_calls; c++)
		close_call(&call[c]);
	if (device_wanted())
		device_free(&me, world, (char *)one);
	blinkCommDestroy(world);
	return 0;
}
