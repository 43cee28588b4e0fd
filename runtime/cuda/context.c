/* The context of a thread, while the library calls the driver. */
#include "cuda/gpu.h"
#include "support/error.h"

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
