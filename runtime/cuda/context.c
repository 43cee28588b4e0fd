/* The context of a thread, while the library calls the driver, and the stream that the library has there.
 *
 * Streams share the connections of a device to the host, of which there are 8 unless CUDA_DEVICE_MAX_CONNECTIONS says
 * otherwise. Behind a kernel in the stream of one rank, which waits for another rank, a copy of that rank may then wait
 * for the kernel. So the library has one stream on a device for all communicators of the process, whose work is short
 * and waits for nobody. */
#include "cuda/gpu.h"
#include "support/error.h"

#include <pthread.h>

static struct {
	CUstream stream;
	int uses;
} own[GPU_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int
gpu_stream_open(struct gpu *g, struct blink_error *err)
{
	if (g->device < 0 || g->device >= GPU_DEVICES)
		return set_error(err, blinkLimit, "cuda: device %d: want one below %d", (int)g->device,
		    (int)GPU_DEVICES);
	pthread_mutex_lock(&lock);
	if (own[g->device].uses > 0 || driver_check(g->d, g->d->stream_create(&own[g->device].stream,
	    CU_STREAM_NON_BLOCKING), err, "make a stream") == blinkSuccess) {
		own[g->device].uses++;
		g->stream = own[g->device].stream;
	}
	pthread_mutex_unlock(&lock);
	return err->code;
}

void
gpu_stream_close(struct gpu *g, bool entered)
{
	if (!g->stream)
		return;
	pthread_mutex_lock(&lock);
	if (--own[g->device].uses == 0 && entered)
		g->d->stream_destroy(g->stream);
	pthread_mutex_unlock(&lock);
}

int
gpu_enter(struct gpu *g, struct gpu_entry *entry, struct blink_error *err)
{
	entry->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	if (driver_check(g->d, g->d->context_get(&entry->before), err, "the current context") != blinkSuccess
	    || driver_check(g->d, g->d->context_set(g->context), err, "enter the context of device %d",
	    (int)g->device) != blinkSuccess)
		return err->code;
	if (driver_check(g->d, g->d->capture_mode(&entry->mode), err, "the thread's mode of captures") != blinkSuccess)
		g->d->context_set(entry->before);
	return err->code;
}

void
gpu_leave(struct gpu *g, const struct gpu_entry *entry)
{
	CUstreamCaptureMode mode = entry->mode;
	g->d->capture_mode(&mode);
	g->d->context_set(entry->before);
}
