/* The twins of libblink's kernels, for the virtual GPUs. */
#include "blink_types.h"
#include "cuda/multicast_call.h"
#include "virtual_gpu/twin.h"

#define DECLARE(code, name, T, U, kind, read, write, with) \
	void blink_##name##_sum(const void *parameter); \
	void blink_##name##_prod(const void *parameter); \
	void blink_##name##_max(const void *parameter); \
	void blink_##name##_min(const void *parameter);
BLINK_TYPE_LIST(DECLARE, 0)
void blink_move(const void *parameter);
void blink_copies_begin(const void *parameter);
void blink_copies_end(const void *parameter);
void blink_messages(const void *parameter);
void blink_measure(const void *parameter);
void blink_multicast(const void *parameter);

#define COLLECTIVE(name) { #name, sizeof(struct gpu_call), GPU_THREADS, name },
#define LIST(code, name, T, U, kind, read, write, with) \
	COLLECTIVE(blink_##name##_sum) \
	COLLECTIVE(blink_##name##_prod) \
	COLLECTIVE(blink_##name##_max) \
	COLLECTIVE(blink_##name##_min)

const struct virtual_kernel virtual_gpu_kernels[] = {
	BLINK_TYPE_LIST(LIST, 0)
	COLLECTIVE(blink_move)
	COLLECTIVE(blink_copies_begin)
	COLLECTIVE(blink_copies_end)
	{ "blink_messages", sizeof(struct gpu_exchange), GPU_THREADS, blink_messages },
	{ "blink_measure", sizeof(struct gpu_measure), GPU_THREADS, blink_measure },
	{ "blink_multicast", sizeof(struct gpu_multicast_call), GPU_THREADS, blink_multicast },
	{ NULL, 0, 0, NULL },
};
