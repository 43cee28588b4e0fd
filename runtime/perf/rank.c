/* A rank of a job: its communicator, and on a GPU its stream and its graphs. */
#include "driver/driver.h"
#include "perf/meet.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

enum { AHEAD = 200 };	/* calls or replays that are not waited for: a failure leaves no more in the stream */

struct device {
	const struct driver *driver;
	CUdevice number;
	CUcontext context;
	CUstream stream;
	CUgraphExec graph;	/* NULL: calls are made one by one */
	char name[256];
};

/* ---- the GPU ---- */

/* Report a failure of the driver. */
static int
device_failed(struct perf *p, CUresult r, const char *what)
{
	struct blink_error error = { 0 };
	int code = driver_check(p->device->driver, r, &error, "%s", what);
	return code ? p->code = complain(code, "rank %d: %s", p->first, error.text) : 0;
}

#define TRY(call, what) device_failed(p, p->device->driver->call, what)

/* The device that libblink has chosen is that of its memory. */
static int
open_device(struct perf *p)
{
	struct blink_error error = { 0 };
	int ordinal = 0;
	p->device = calloc(1, sizeof *p->device);
	if (!p->device)
		return p->code = complain(blinkOutOfMemory, "out of memory");
	struct device *d = p->device;
	p->device_name = d->name;
	if (driver_open(&d->driver, &error))
		return p->code = complain(error.code, "rank %d: %s", p->first, error.text);
	CUdeviceptr memory = (CUdeviceptr)(uintptr_t)p->send[p->first].memory;
	return TRY(pointer_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory), "the device of memory") ||
	    TRY(device_get(&d->number, ordinal), "a device") ||
	    TRY(device_name(d->name, sizeof d->name, d->number), "the name of a device") ||
	    TRY(primary_retain(&d->context, d->number), "a context") ||
	    TRY(context_set(d->context), "the thread's context") ||
	    TRY(stream_create(&d->stream, CU_STREAM_NON_BLOCKING), "a stream");
}

static void
close_device(struct perf *p)
{
	struct device *d = p->device;
	if (d && d->stream)
		d->driver->stream_destroy(d->stream);
	if (d && d->context) {
		d->driver->context_set(NULL);
		d->driver->primary_release(d->number);
	}
	free(d);
	p->device = NULL;
	p->device_name = NULL;
}

/* ---- calls ---- */

static blinkResult_t
call(struct perf *p)
{
	const void *from = p->from[p->first];
	void *to = p->to[p->first], *stream = p->device ? p->device->stream : NULL;
	blinkDataType_t type = p->type->code;
	blinkRedOp_t op = p->op ? p->op->code : blinkSum;
	switch (p->info.collective) {
	case blinkCollBroadcast:
		return blinkBroadcast(from, to, p->count, type, p->info.root, p->comm, stream);
	case blinkCollReduce:
		return blinkReduce(from, to, p->count, type, op, p->info.root, p->comm, stream);
	case blinkCollAllReduce:
		return blinkAllReduce(from, to, p->count, type, op, p->comm, stream);
	case blinkCollGather:
		return blinkGather(from, to, p->count, type, p->info.root, p->comm, stream);
	case blinkCollScatter:
		return blinkScatter(from, to, p->count, type, p->info.root, p->comm, stream);
	case blinkCollAllGather:
		return blinkAllGather(from, to, p->count, type, p->comm, stream);
	case blinkCollReduceScatter:
		return blinkReduceScatter(from, to, p->count, type, op, p->comm, stream);
	default:
		return blinkAlltoAll(from, to, p->count, type, p->comm, stream);
	}
}

static int
calls(struct perf *p, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		blinkResult_t result = call(p);
		if (result)
			return comm_failed(p, result);
	}
	return 0;
}

/* Nobody launches before all graphs are there: to make one may wait for what its GPU does, and that for peers. */
static int
begin(struct perf *p, int64_t n)
{
	CUgraph graph = NULL;
	struct device *d = p->device;
	if (!p->opt.graph)
		return 0;
	if (!d->driver->graph_instantiate)
		return p->code = complain(blinkSystemError, "--graph: the driver has no "
		    "cuGraphInstantiateWithFlags: want that of CUDA 11.4 or later");
	if (TRY(capture_begin(d->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "begin a graph"))
		return 1;
	int failed = calls(p, n);
	failed |= TRY(capture_end(d->stream, &graph), "end a graph");
	failed = failed || TRY(graph_instantiate(&d->graph, graph, 0), "make a graph executable");
	if (!failed && d->driver->graph_upload)
		failed = TRY(graph_upload(d->graph, d->stream), "upload a graph")
		    || TRY(stream_synchronize(d->stream), "upload a graph");
	if (graph)
		d->driver->graph_destroy(graph);
	return failed || job_meet(p);
}

static int
replays(struct perf *p, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (TRY(graph_launch(p->device->graph, p->device->stream), "launch a graph"))
			return 1;
	return 0;
}

static int
wait_for_all(struct perf *p)
{
	CUresult r = p->device ? p->device->driver->stream_synchronize(p->device->stream) : CUDA_SUCCESS;
	blinkResult_t result = blinkCommWait(p->comm, 0);
	return result ? comm_failed(p, result) : p->device ? device_failed(p, r, "wait for a stream") : 0;
}

static int
runs(struct perf *p, int64_t n)
{
	for (int64_t at = 0; at < n; at += AHEAD) {
		int64_t some = n - at < AHEAD ? n - at : AHEAD;
		if (p->opt.graph ? replays(p, some) : calls(p, some))
			return 1;
		if (wait_for_all(p))
			return 1;
	}
	return 0;
}

static void
end(struct perf *p)
{
	struct device *d = p->device;
	if (!d || !d->graph)
		return;
	d->driver->graph_exec_destroy(d->graph);
	d->graph = NULL;
}

/* ---- the rank ---- */

static int
join(struct perf *p, int64_t chunk, blinkComm_t *comm)
{
	blinkError_t error = { "" };
	blinkConfig_t config = { .chunkBytes = (size_t)chunk, .schedules = p->opt.path, .gpu = p->gpu,
		.backend = p->opt.backend };
	blinkUniqueId_t *id = &p->job->id;
	blinkResult_t result = p->first == 0 ? blinkGetUniqueId(id, &error) : blinkSuccess;
	if (result)
		return complain((int)result, "rank 0: %s", error.text);
	if (job_meet(p))
		return p->code;
	result = blinkCommInitRank(comm, p->info.nRanks, id, p->first, &config, &error);
	return result ? complain((int)result, "rank %d: %s", p->first, error.text) : 0;
}

static const struct mode one_rank = { .join = join, .runs = runs, .begin = begin, .end = end };

int
rank_perf(struct perf *p)
{
	p->mode = &one_rank;
	int code = join(p, p->opt.chunk, &p->home);
	p->comm = p->home;
	if (!code)
		code = perf_allocate(p);
	if (!code && p->opt.backend && strcmp(p->opt.backend, "cuda") == 0 && open_device(p))
		code = p->code;
	if (!code)
		code = perf_table(p);
	close_device(p);
	return code;
}
