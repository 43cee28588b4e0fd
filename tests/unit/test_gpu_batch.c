/* Batches of copies: what is added goes once, into its stream; one copy of a stream alone is no batch; a driver that
 * fails is asked no more. */
#include "cuda/batch.h"
#include "support/error.h"

#include "random.h"

#include <string.h>

enum { STREAMS = 5, COPIES = 4000 };

/* What the driver got: of each copy its stream and the number of the call. */
static struct {
	int n, calls, batches, fails_at;
	int by[COPIES];
	CUstream stream[COPIES];
} got;

static CUresult
take(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	if (to >= COPIES || from != 2 * to || bytes != to + 1 || got.by[to])
		got.n = -COPIES;
	else
		got.by[to] = got.calls;
	got.stream[to % COPIES] = stream;
	got.n++;
	return CUDA_SUCCESS;
}

static CUresult
copy_one(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	if (++got.calls == got.fails_at)
		return CUDA_ERROR_INVALID_VALUE;
	return take(to, from, bytes, stream);
}

static CUresult
copy_several(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n, CUmemcpyAttributes *how, size_t *first,
    size_t n_how, size_t *failed, CUstream stream)
{
	got.batches++;
	if (++got.calls == got.fails_at)
		return CUDA_ERROR_INVALID_VALUE;
	if (n < 2 || n_how != 1 || *first != 0 || !failed || how->srcAccessOrder != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
		got.n = -COPIES;
	for (size_t i = 0; i < n; i++)
		take(to[i], from[i], bytes[i], stream);
	return CUDA_SUCCESS;
}

static CUresult
error_text(CUresult r, const char **text)
{
	(void)r;
	*text = "no";
	return CUDA_SUCCESS;
}

static const struct driver fake = { .copy_async = copy_one, .copy_batch = copy_several, .error_text = error_text };

static CUstream
stream_of(int number)
{
	return (CUstream)(uintptr_t)(16 + number * 7 % STREAMS);
}

static int
add(struct gpu_batch *b, int number, struct blink_error *err)
{
	const struct gpu_batched copy = { stream_of(number), (CUdeviceptr)number, 2 * (CUdeviceptr)number,
	    (size_t)number + 1 };
	return gpu_batch_add(b, &fake, &copy, err);
}

/* Puts of 0 to 199 copies: more than there is room for. */
static bool
adds_and_puts(void)
{
	static struct gpu_batch b;
	struct blink_error err = { 0 };
	bool good = true;
	memset(&got, 0, sizeof got);
	for (int number = 0; number < COPIES;) {
		for (int end = number + below(200); number < end && number < COPIES; number++)
			add(&b, number, &err);
		good = gpu_batch_put(&b, &fake, &err) == blinkSuccess && got.n == number && b.n == 0 && good;
	}
	for (int i = 0; i < COPIES; i++)
		good = got.stream[i] == stream_of(i) && good;
	return good;
}

static bool
alone(void)
{
	static struct gpu_batch b;
	struct blink_error err = { 0 };
	memset(&got, 0, sizeof got);
	add(&b, 0, &err);
	add(&b, 1, &err);
	add(&b, STREAMS, &err);
	return gpu_batch_put(&b, &fake, &err) == blinkSuccess && got.calls == 2 && got.batches == 1
	    && got.by[0] == got.by[STREAMS] && got.by[1] != got.by[0];
}

static bool
fails(void)
{
	static struct gpu_batch b;
	struct blink_error err = { 0 };
	memset(&got, 0, sizeof got);
	got.fails_at = 2;
	for (int i = 0; i < 4 * STREAMS; i++)
		add(&b, i, &err);
	return gpu_batch_put(&b, &fake, &err) == blinkSystemError && got.calls == 2 && b.n == 0
	    && strcmp(err.text, "cuda: copy by 4 in a batch: no") == 0;
}

int
main(void)
{
	int failed = report(!adds_and_puts(), "what is added is in its stream once after a put");
	failed |= report(!alone(), "a copy that is alone in its stream is no batch");
	failed |= report(!fails(), "after a failure no copy is made");
	failed |= report(!gpu_batch_works(&fake) || gpu_batch_works(&(struct driver){ .copy_async = copy_one }),
	    "a driver without batches");
	return failed;
}
