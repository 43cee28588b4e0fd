/* Twins of the kernels that a communicator asks about when it is made; they do nothing. */
#include "cuda/device.h"
#include "twin.h"

static void
do_nothing(const void *parameter)
{
	(void)parameter;
}

const struct virtual_kernel virtual_gpu_kernels[] = {
	{ "blink_move", sizeof(struct gpu_call), GPU_THREADS, do_nothing },
	{ "blink_messages", sizeof(struct gpu_exchange), GPU_THREADS, do_nothing },
	{ "blink_measure", sizeof(struct gpu_measure), GPU_THREADS, do_nothing },
	{ "blink_copies_begin", sizeof(struct gpu_call), GPU_THREADS, do_nothing },
	{ "blink_copies_end", sizeof(struct gpu_call), GPU_THREADS, do_nothing },
	{ .name = 0 }
};
