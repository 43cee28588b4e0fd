/* Batches of copies. Each costs the driver and the copy engine less than it would alone. */
#include "cuda/batch.h"
#include "support/error.h"

bool
gpu_batch_works(const struct driver *d)
{
	return d->copy_batch;
}

/* Of several copies: in the stream's order as a whole, and rather by copy engines than by multiprocessors. */
static CUresult
put_stream(struct gpu_batch *b, const struct driver *d, int n, CUstream stream)
{
	CUmemcpyAttributes how = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
	    .flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE };
	size_t from_first = 0, failed = 0;
	if (n == 1)
		return d->copy_async(b->to[0], b->from[0], b->bytes[0], stream);
	return d->copy_batch(b->to, b->from, b->bytes, (size_t)n, &how, &from_first, 1, &failed, stream);
}

/* Take what is of that stream to the arrays; what is not stays, in its order. Returns how many. */
static int
gather(struct gpu_batch *b, CUstream stream)
{
	int n = 0, left = 0;
	for (int i = 0; i < b->n; i++) {
		const struct gpu_batched *copy = &b->copy[i];
		if (copy->stream != stream) {
			b->copy[left++] = *copy;
			continue;
		}
		b->to[n] = copy->to;
		b->from[n] = copy->from;
		b->bytes[n++] = copy->bytes;
	}
	b->n = left;
	return n;
}

int
gpu_batch_put(struct gpu_batch *b, const struct driver *d, struct blink_error *err)
{
	while (b->n > 0 && err->code == blinkSuccess) {
		CUstream stream = b->copy[0].stream;
		int n = gather(b, stream);
		driver_check(d, put_stream(b, d, n, stream), err, "copy by %d in a batch", n);
	}
	b->n = 0;
	return err->code;
}

int
gpu_batch_add(struct gpu_batch *b, const struct driver *d, const struct gpu_batched *copy, struct blink_error *err)
{
	if (b->n == GPU_BATCH_COPIES && gpu_batch_put(b, d, err) != blinkSuccess)
		return err->code;
	b->copy[b->n++] = *copy;
	return blinkSuccess;
}
