/* What the parts of a call take on GPUs: a launch, a fence, a barrier, a flag to another GPU and back, copies by copy
 * engines and by kernels. These are what a call's time consists of, and what the simulator has as its parameters.
 *
 *	parts [-d DIVISOR] MODULE
 *
 * MODULE: parts.cu as PTX. Prints a line of JSON for each figure; a device that is "to" another has its memory mapped.
 * One device alone is measured as if it were two. -d: so many turns and bytes fewer, for virtual GPUs. Loops are timed
 * twice, with as many turns and with twice as many, so that what launches take is not in the difference. */
#include "driver/driver.h"
#include "parts.h"
#include "support/clock.h"
#include "support/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 16, THREADS = 512, REPEATS = 5, SPACE = 4096 };

#define MIB ((size_t)1 << 20)

#define NUMBER(name) PART_##name,
enum part_number { PART_LIST(NUMBER) PARTS };
#define NAME(name) "part_" #name,
static const char *const names[PARTS] = { PART_LIST(NAME) };

struct device {
	CUdevice number;
	CUcontext context;
	CUstream stream;
	CUfunction function[PARTS];
	CUdeviceptr memory;		/* flags, and then bytes to copy: twice so many */
	void *host;			/* pinned: as many as are copied */
};

static const struct driver *d;
static struct device devices[DEVICES];
static int n_devices;
static size_t bytes;
static uint64_t turns;

static void
check(CUresult r, const char *what)
{
	struct blink_error err = { 0 };
	if (driver_check(d, r, &err, "%s", what) == blinkSuccess)
		return;
	printf("{\"error\":\"%s\"}\n", err.text);
	exit(1);
}

#define CHECK(call) check(d->call, #call)

static double
now(void)
{
	return 1e-9 * (double)now_ns();
}

static void *
at(CUdeviceptr memory)
{
	return (void *)(uintptr_t)memory;
}

/* ---- launches ---- */

static void
start(struct device *on, enum part_number part, int blocks, int threads, struct part *what)
{
	void *parameters[] = { what };
	CHECK(context_set(on->context));
	CHECK(launch(on->function[part], (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, on->stream, parameters,
	    NULL));
}

static void
end(struct device *on)
{
	CHECK(context_set(on->context));
	CHECK(stream_synchronize(on->stream));
}

/* Seconds of the fastest of some calls. */
static double
fastest(struct device *on, enum part_number part, int blocks, int threads, struct part what)
{
	double best = 1e9;
	for (int i = 0; i < REPEATS; i++) {
		double began = now();
		start(on, part, blocks, threads, &what);
		end(on);
		double took = now() - began;
		best = took < best ? took : best;
	}
	return best;
}

/* Of a turn, in ns. */
static double
turn_ns(struct device *on, enum part_number part, int threads, struct part what)
{
	what.n = turns;
	double once = fastest(on, part, 1, threads, what);
	what.n = 2 * turns;
	return (fastest(on, part, 1, threads, what) - once) / (double)turns * 1e9;
}

/* ---- what is measured ---- */

static void
measure_launches(struct device *on)
{
	struct part none = { 0 };
	enum { IN_A_ROW = 200 };
	double one = fastest(on, PART_nothing, 1, THREADS, none), began = now();
	for (int i = 0; i < IN_A_ROW; i++)
		start(on, PART_nothing, 1, THREADS, &none);
	end(on);
	printf("{\"part\":\"launch\",\"device\":%d,\"us\":%.2f}\n", (int)on->number, one * 1e6);
	printf("{\"part\":\"launch in a row\",\"device\":%d,\"us\":%.2f}\n", (int)on->number,
	    (now() - began) / IN_A_ROW * 1e6);
}

/* Of one that the host makes n times, in ns. */
#define EACH(name, call) do { \
	enum { N = 200 }; \
	double best = 1e9; \
	for (int repeat = 0; repeat < REPEATS; repeat++) { \
		double began = now(); \
		for (int i = 0; i < N; i++) \
			CHECK(call); \
		double took = (now() - began) / N * 1e9; \
		best = took < best ? took : best; \
		end(on); \
	} \
	printf("{\"part\":\"host: " name "\",\"device\":%d,\"ns\":%.1f}\n", (int)on->number, best); \
} while (0)

/* What a call of libblink asks of the driver. */
static void
measure_host_calls(struct device *on)
{
	CUevent event;
	CUcontext context;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstreamCaptureStatus status;
	struct part none = { 0 };
	void *parameters[] = { &none };
	CHECK(context_set(on->context));
	CHECK(event_create(&event, CU_EVENT_DISABLE_TIMING));
	EACH("launch", launch(on->function[PART_nothing], 1, 1, 1, THREADS, 1, 1, 0, on->stream, parameters, NULL));
	EACH("record an event", event_record(event, on->stream));
	EACH("wait for an event", stream_wait_event(on->stream, event, 0));
	EACH("query an event", event_query(event));
	EACH("is a capture there", stream_capturing(on->stream, &status));
	EACH("get the context", context_get(&context));
	EACH("set the context", context_set(on->context));
	EACH("mode of captures", capture_mode(&mode));
	CHECK(event_destroy(event));
}

static void
measure_block(struct device *on)
{
	struct part own = { .mine = at(on->memory) };
	printf("{\"part\":\"barrier\",\"device\":%d,\"ns\":%.1f}\n", (int)on->number,
	    turn_ns(on, PART_barriers, THREADS, own));
	printf("{\"part\":\"fence\",\"device\":%d,\"ns\":%.1f}\n", (int)on->number,
	    turn_ns(on, PART_fences, THREADS, own));
}

static void
measure_flags_to(struct device *on, struct device *to)
{
	struct part there = { .mine = at(to->memory) };
	printf("{\"part\":\"fence\",\"device\":%d,\"to\":%d,\"ns\":%.1f}\n", (int)on->number, (int)to->number,
	    turn_ns(on, PART_fences, THREADS, there));
	printf("{\"part\":\"flag\",\"device\":%d,\"to\":%d,\"ns\":%.1f}\n", (int)on->number, (int)to->number,
	    turn_ns(on, PART_stores, THREADS, there));
}

/* From one to the other and back, seconds of n turns. The flags: one in each memory; both 0 at first. */
static double
pass_token(struct device *a, struct device *b, uint64_t n)
{
	CUdeviceptr flags[2] = { a->memory, b->memory + 64 };
	struct part first = { .n = n, .mine = at(flags[0]), .theirs = at(flags[1]), .me = 1 };
	struct part second = { .n = n, .mine = at(flags[1]), .theirs = at(flags[0]), .me = 2 };
	struct device *both[2] = { a, b };
	for (int i = 0; i < 2; i++) {
		CHECK(context_set(both[i]->context));
		CHECK(set8_async(both[i]->memory, 0, SPACE, both[i]->stream));
		if (i == 1)	/* the token, wherever the first one's flag is */
			CHECK(set32_async(flags[0], 1, 1, b->stream));
		CHECK(stream_synchronize(both[i]->stream));
	}
	double began = now();
	start(a, PART_token, 1, 32, &first);
	start(b, PART_token, 1, 32, &second);
	end(a);
	end(b);
	return now() - began;
}

static void
measure_round_trip(struct device *a, struct device *b)
{
	double best[2] = { 1e9, 1e9 };
	for (int i = 0; i < REPEATS; i++) {
		for (int twice = 0; twice < 2; twice++) {
			double took = pass_token(a, b, turns << twice);
			best[twice] = took < best[twice] ? took : best[twice];
		}
	}
	printf("{\"part\":\"round trip of a flag\",\"device\":%d,\"to\":%d,\"ns\":%.1f}\n", (int)a->number,
	    (int)b->number, (best[1] - best[0]) / (double)turns * 2e9);
}

static double
copy_seconds(struct device *on, CUdeviceptr to, CUdeviceptr from)
{
	double best = 1e9;
	CHECK(context_set(on->context));
	for (int i = 0; i < REPEATS; i++) {
		double began = now();
		CHECK(copy_async(to, from, bytes, on->stream));
		CHECK(stream_synchronize(on->stream));
		double took = now() - began;
		best = took < best ? took : best;
	}
	return best;
}

/* The second half of a memory is copied into the first one of the other. */
static void
measure_copies(struct device *on, struct device *to)
{
	CUdeviceptr target = to->memory + SPACE, source = on->memory + SPACE + bytes;
	printf("{\"part\":\"copy by engine\",\"device\":%d,\"to\":%d,\"gb_per_s\":%.2f}\n", (int)on->number,
	    (int)to->number, (double)bytes / copy_seconds(on, target, source) / 1e9);
	for (int blocks = 1; blocks <= 64; blocks *= 2) {
		struct part copy = { .n = bytes, .to = at(target), .from = at(source) };
		printf("{\"part\":\"copy by kernel\",\"device\":%d,\"to\":%d,\"blocks\":%d,\"gb_per_s\":%.2f}\n",
		    (int)on->number, (int)to->number, blocks,
		    (double)bytes / fastest(on, PART_copy, blocks, THREADS, copy) / 1e9);
	}
}

static void
measure_host(struct device *on)
{
	CUdeviceptr host = (CUdeviceptr)(uintptr_t)on->host, own = on->memory + SPACE;
	printf("{\"part\":\"copy to the host\",\"device\":%d,\"gb_per_s\":%.2f}\n", (int)on->number,
	    (double)bytes / copy_seconds(on, host, own) / 1e9);
	printf("{\"part\":\"copy from the host\",\"device\":%d,\"gb_per_s\":%.2f}\n", (int)on->number,
	    (double)bytes / copy_seconds(on, own, host) / 1e9);
}

/* ---- devices ---- */

static void
open_device(struct device *on, int number, const char *image)
{
	CUmodule module;
	CHECK(device_get(&on->number, number));
	CHECK(primary_retain(&on->context, on->number));
	CHECK(context_set(on->context));
	CHECK(stream_create(&on->stream, CU_STREAM_NON_BLOCKING));
	CHECK(module_load(&module, image));
	for (int i = 0; i < PARTS; i++)
		CHECK(module_function(&on->function[i], module, names[i]));
	CHECK(memory_alloc(&on->memory, SPACE + 2 * bytes));
	CHECK(set8_async(on->memory, 0, SPACE + 2 * bytes, on->stream));
	CHECK(stream_synchronize(on->stream));
	CHECK(host_alloc(&on->host, bytes, CU_MEMHOSTALLOC_PORTABLE));
}

/* Both ways. */
static bool
connect(struct device *a, struct device *b)
{
	int there = 0, back = 0;
	if (a->number == b->number)
		return true;
	CHECK(device_can_access(&there, a->number, b->number));
	CHECK(device_can_access(&back, b->number, a->number));
	if (!there || !back)
		return false;
	CHECK(context_set(a->context));
	CHECK(peer_enable(b->context, 0));
	CHECK(context_set(b->context));
	CHECK(peer_enable(a->context, 0));
	return true;
}

static char *
read_image(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *image = NULL;
	size_t size = 0, room = 1 << 20;
	if (file && (image = calloc(1, room)))
		size = fread(image, 1, room - 1, file);
	if (file)
		fclose(file);
	return size > 0 && size < room - 1 ? image : NULL;
}

int
main(int argc, char **argv)
{
	struct blink_error err = { 0 };
	int divisor = 1;
	for (int o; (o = getopt(argc, argv, "d:")) != -1;)
		divisor = o == 'd' ? atoi(optarg) : 0;
	char *image = optind + 1 == argc && divisor > 0 ? read_image(argv[optind]) : NULL;
	if (!image)
		return 2;
	if (driver_open(&d, &err) != blinkSuccess)
		return printf("{\"error\":\"%s\"}\n", err.text), 1;
	bytes = 64 * MIB / (size_t)divisor / SPACE * SPACE;
	turns = 20000 / (uint64_t)divisor;
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(device_count(&n_devices));
	n_devices = n_devices < DEVICES ? n_devices : DEVICES;
	int n = n_devices > 1 ? n_devices : 2;
	for (int i = 0; i < n; i++)
		open_device(&devices[i], i % n_devices, image);
	for (int i = 0; i < n_devices; i++) {
		measure_launches(&devices[i]);
		measure_host_calls(&devices[i]);
		measure_block(&devices[i]);
		measure_host(&devices[i]);
		measure_copies(&devices[i], &devices[i]);
	}
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < i; k++) {
			if (!connect(&devices[k], &devices[i])) {
				printf("{\"part\":\"no access\",\"device\":%d,\"to\":%d}\n", k, i);
				continue;
			}
			measure_flags_to(&devices[k], &devices[i]);
			measure_round_trip(&devices[k], &devices[i]);
			measure_copies(&devices[k], &devices[i]);
		}
	}
	free(image);
	return 0;
}
