/* Copies, also in batches, memory set to a value, waits for values and writes of them, functions of the host: all of a
 * stream.
 *
 * What is said of arguments is said by the call: memory that no device knows is the host's, and pageable. Whether a
 * device may access the memory is asked when the operation is executed, since memory may be gone by then: then the
 * context fails. Pageable memory has CUDA's rules: what is small is read before the call returns; what is large, and
 * all that is written to it, is waited for; a stream that captures refuses it. */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

enum {
	PIECE = 64 << 10,
	STAGED_MOST = 64 << 10,
	BATCH_MOST = 256
};

/* ---- copies ---- */

struct copy {
	struct operation operation;
	char *to;
	const char *from;
	char *staged;			/* a copy of pageable memory; NULL: none */
	size_t bytes;
};

static CUresult
access_bytes(const struct context *c, const void *at, size_t bytes, bool writes, int *owner)
{
	struct memory_cache cache = { 0 };
	return memory_access(c->device, at, bytes, writes, true, &cache, owner);
}

static void
cross(int from, int to, size_t bytes)
{
	if (from != to)
		link_cross(from, to, bytes);
}

/* A copy of a flag is one store: who polls sees all of it or nothing. */
static void
copy_bytes(char *to, const char *from, size_t bytes)
{
	bool aligned = (((uintptr_t)to | (uintptr_t)from) & (bytes - 1)) == 0;
	if (bytes == 4 && aligned) {
		uint32_t word = __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE);
		__atomic_store_n((uint32_t *)to, word, __ATOMIC_RELEASE);
	} else if (bytes == 8 && aligned) {
		uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
		__atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
	} else
		memmove(to, from, bytes);
	memory_stored(to, bytes);
}

static void
copy_run(struct operation *self, struct context *c)
{
	const struct copy *copy = (struct copy *)self;
	int from = HOST, to;
	CUresult r = copy->staged ? CUDA_SUCCESS : access_bytes(c, copy->from, copy->bytes, false, &from);
	if (r == CUDA_SUCCESS)
		r = access_bytes(c, copy->to, copy->bytes, true, &to);
	if (r != CUDA_SUCCESS)
		return context_fail(c, r);
	const char *source = copy->staged ? copy->staged : memory_bytes(copy->from);
	char *target = memory_bytes(copy->to);
	for (size_t at = 0; at < copy->bytes && !work_lost(c, work_now.gone); at += PIECE) {
		size_t bytes = copy->bytes - at < PIECE ? copy->bytes - at : PIECE;
		cross(from, to, bytes);
		if (!link_loses(c->device, to))
			copy_bytes(target + at, source + at, bytes);
	}
}

static void
copy_drop(struct operation *self)
{
	free(((struct copy *)self)->staged);
}

/* BROKEN: memory that has ended, or that goes on beyond its end. */
enum place { PAGEABLE, PINNED, DEVICE, BROKEN };

static enum place
place_of(const void *at, size_t bytes)
{
	struct allocation a;
	if (!memory_find(at, 1, &a))
		return memory_bytes(at) == at ? PAGEABLE : BROKEN;
	if (!memory_find(at, bytes, &a))
		return BROKEN;
	return a.device == HOST ? PINNED : DEVICE;
}

/* Wait for the newest item of a stream. */
static CUresult
wait_last(struct stream *s)
{
	struct moment *last = moment_hold(s->last);
	struct context *c = s->c;
	state_unlock(CUDA_SUCCESS);
	moment_wait(last, NULL);
	moment_drop(last);
	return __atomic_load_n(&c->error, __ATOMIC_ACQUIRE);
}

/* A copy for a stream. waits: until it is done. */
static CUresult
copy_put(CUstream stream, struct context *current, struct copy *copy, bool pageable, bool waits)
{
	struct stream *s;
	state_lock();
	CUresult r = stream_find(stream, current, &s);
	if (r == CUDA_SUCCESS && (pageable || waits) && s->capture)
		r = capture_forbids_wait(s);
	if (r == CUDA_SUCCESS)
		r = stream_put(s, &copy->operation);
	if (r == CUDA_SUCCESS)
		return waits ? wait_last(s) : state_unlock(CUDA_SUCCESS);
	copy_drop(&copy->operation);
	return state_unlock(r);
}

/* wanted: places of source and target; PAGEABLE says: anywhere. */
static CUresult
copy_call(CUstream stream, struct context *c, void *to, const void *from, size_t bytes, enum place want_to,
    enum place want_from, bool waits)
{
	if (bytes == 0)
		return CUDA_SUCCESS;
	if (!to || !from)
		return CUDA_ERROR_INVALID_VALUE;
	enum place target = place_of(to, bytes), source = place_of(from, bytes);
	if (target == BROKEN || source == BROKEN || (want_to == DEVICE && target == PAGEABLE) ||
	    (want_from == DEVICE && source == PAGEABLE))
		return CUDA_ERROR_INVALID_VALUE;
	struct copy copy = { { copy_run, NULL, copy_drop, sizeof copy }, to, from, NULL, bytes };
	if (source == PAGEABLE && !waits && bytes <= STAGED_MOST)
		copy.staged = memcpy(new_bytes(bytes), from, bytes);
	waits = waits || target == PAGEABLE || (source == PAGEABLE && !copy.staged);
	return copy_put(stream, c, &copy, source == PAGEABLE || target == PAGEABLE, waits);
}

static void *
pointer(CUdeviceptr p)
{
	return (void *)(uintptr_t)p;
}

EXPORT CUresult
cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	ENTER_CONTEXT(cuMemcpyAsync, c);
	return copy_call(stream, c, pointer(to), pointer(from), bytes, PAGEABLE, PAGEABLE, false);
}

EXPORT CUresult
cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	ENTER_CONTEXT(cuMemcpyHtoDAsync_v2, c);
	return copy_call(stream, c, pointer(to), from, bytes, DEVICE, PAGEABLE, false);
}

EXPORT CUresult
cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	ENTER_CONTEXT(cuMemcpyDtoHAsync_v2, c);
	return copy_call(stream, c, to, pointer(from), bytes, PAGEABLE, DEVICE, false);
}

EXPORT CUresult
cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	ENTER_CONTEXT(cuMemcpyDtoDAsync_v2, c);
	return copy_call(stream, c, pointer(to), pointer(from), bytes, DEVICE, DEVICE, false);
}

EXPORT CUresult
cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
    CUstream stream)
{
	ENTER_CONTEXT(cuMemcpyPeerAsync, c);
	struct allocation a, b;
	if (bytes && (!memory_find(pointer(to), 1, &a) || !memory_find(pointer(from), 1, &b) || a.device == HOST ||
	    b.device == HOST || (CUcontext)context_of(a.device) != to_context ||
	    (CUcontext)context_of(b.device) != from_context))
		return CUDA_ERROR_INVALID_VALUE;
	return copy_call(stream, c, pointer(to), pointer(from), bytes, DEVICE, DEVICE, false);
}

EXPORT CUresult
cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	ENTER_UNSAFE(cuMemcpy, c);
	return copy_call(NULL, c, pointer(to), pointer(from), bytes, PAGEABLE, PAGEABLE, true);
}

EXPORT CUresult
cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	ENTER_UNSAFE(cuMemcpyHtoD_v2, c);
	return copy_call(NULL, c, pointer(to), from, bytes, DEVICE, PAGEABLE, true);
}

EXPORT CUresult
cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	ENTER_UNSAFE(cuMemcpyDtoH_v2, c);
	return copy_call(NULL, c, to, pointer(from), bytes, PAGEABLE, DEVICE, true);
}

EXPORT CUresult
cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	ENTER_UNSAFE(cuMemcpyDtoD_v2, c);
	return copy_call(NULL, c, pointer(to), pointer(from), bytes, DEVICE, DEVICE, true);
}

/* ---- batches of copies ---- */

struct batch {
	struct operation operation;
	struct copy *copy;
	size_t n;
};

/* A batch has no order in itself; whoever relies on that of its arrays finds the last one done first. */
static void
batch_run(struct operation *self, struct context *c)
{
	const struct batch *batch = (struct batch *)self;
	for (size_t i = batch->n; i-- > 0;) {
		copy_run(&batch->copy[i].operation, c);
		random_delay();
	}
}

static void
batch_drop(struct operation *self)
{
	free(((struct batch *)self)->copy);
}

static bool
overlap(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

/* Does one of the first i copies write what the next reads or writes, or read what that writes? */
static bool
depends(const struct copy *copy, size_t i)
{
	const struct copy *b = &copy[i];
	for (const struct copy *a = copy; a < b; a++)
		if (overlap(a->to, a->bytes, b->to, b->bytes) || overlap(a->to, a->bytes, b->from, b->bytes) ||
		    overlap(a->from, a->bytes, b->to, b->bytes))
			return true;
	return false;
}

/* Pageable memory a batch of CUDA may have; this one may not. */
static CUresult
batch_fill(struct batch *batch, const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes)
{
	for (size_t i = 0; i < batch->n; i++) {
		struct copy *copy = &batch->copy[i];
		*copy = (struct copy){ .to = pointer(to[i]), .from = pointer(from[i]), .bytes = bytes[i] };
		if (!copy->to || !copy->from || copy->bytes == 0 || place_of(copy->to, copy->bytes) == BROKEN ||
		    place_of(copy->from, copy->bytes) == BROKEN || depends(batch->copy, i))
			return CUDA_ERROR_INVALID_VALUE;
		if (place_of(copy->to, copy->bytes) == PAGEABLE || place_of(copy->from, copy->bytes) == PAGEABLE)
			return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

/* Each of the attributes begins at a copy; the first one at the first. */
static bool
attributes_good(const CUmemcpyAttributes *how, const size_t *first, size_t n_how, size_t n)
{
	for (size_t i = 0; i < n_how; i++)
		if (how[i].srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
		    how[i].srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY ||
		    how[i].flags > CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE || first[i] >= n ||
		    (i == 0 ? first[i] != 0 : first[i] <= first[i - 1]))
			return false;
	return n_how > 0;
}

/* CUDA refuses to capture a batch, and goes on with the capture. */
static CUresult
batch_put(CUstream stream, struct context *c, const struct batch *batch)
{
	struct stream *s;
	state_lock();
	CUresult r = stream_find(stream, c, &s);
	if (r == CUDA_SUCCESS && s->legacy)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS && s->capture)
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return state_unlock(r == CUDA_SUCCESS ? stream_put(s, &batch->operation) : r);
}

EXPORT CUresult
cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n, CUmemcpyAttributes *how,
    size_t *first_of_how, size_t n_how, size_t *failed, CUstream stream)
{
	ENTER_CONTEXT(cuMemcpyBatchAsync, c);
	if (!to || !from || !bytes || n == 0 || !how || !first_of_how || !failed ||
	    !attributes_good(how, first_of_how, n_how, n))
		return CUDA_ERROR_INVALID_VALUE;
	struct batch batch = { { batch_run, NULL, batch_drop, sizeof batch }, new_bytes(n * sizeof *batch.copy), n };
	CUresult r = batch_fill(&batch, to, from, bytes);
	if (r == CUDA_SUCCESS)
		r = batch_put(stream, c, &batch);
	if (r != CUDA_SUCCESS)
		batch_drop(&batch.operation);
	return r;
}

/* ---- memory set to a value ---- */

struct set_to {
	struct operation operation;
	char *to;
	size_t n;
	unsigned size, value;
};

static void
set_run(struct operation *self, struct context *c)
{
	const struct set_to *set = (struct set_to *)self;
	int owner;
	CUresult r = access_bytes(c, set->to, set->n * set->size, true, &owner);
	if (r != CUDA_SUCCESS)
		return context_fail(c, r);
	char *to = memory_bytes(set->to);
	if (set->size == 1)
		memset(to, (int)set->value, set->n);
	else
		for (size_t i = 0; i < set->n; i++)
			__atomic_store_n((uint32_t *)to + i, set->value, __ATOMIC_RELEASE);
	memory_stored(to, set->n * set->size);
	cross(c->device, owner, set->n * set->size);
}

/* An operation for a stream of the current context. */
static CUresult
put(CUstream stream, struct context *current, const struct operation *operation)
{
	struct stream *s;
	state_lock();
	CUresult r = stream_find(stream, current, &s);
	if (r == CUDA_SUCCESS && s->c != current)
		r = CUDA_ERROR_INVALID_HANDLE;
	return state_unlock(r == CUDA_SUCCESS ? stream_put(s, operation) : r);
}

static CUresult
set_call(CUstream stream, struct context *c, CUdeviceptr to, unsigned size, unsigned value, size_t n)
{
	struct set_to set = { { set_run, NULL, NULL, sizeof set }, pointer(to), n, size, value };
	if (n == 0)
		return CUDA_SUCCESS;
	if (to % size || n > SIZE_MAX / size || place_of(set.to, n * size) == PAGEABLE ||
	    place_of(set.to, n * size) == BROKEN)
		return CUDA_ERROR_INVALID_VALUE;
	return put(stream, c, &set.operation);
}

EXPORT CUresult
cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream)
{
	ENTER_CONTEXT(cuMemsetD8Async, c);
	return set_call(stream, c, to, 1, value, n);
}

EXPORT CUresult
cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream)
{
	ENTER_CONTEXT(cuMemsetD32Async, c);
	return set_call(stream, c, to, 4, value, n);
}

/* Those without a stream are of the legacy one, and not waited for. */
EXPORT CUresult
cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n)
{
	ENTER_UNSAFE(cuMemsetD8_v2, c);
	return set_call(NULL, c, to, 1, value, n);
}

EXPORT CUresult
cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n)
{
	ENTER_UNSAFE(cuMemsetD32_v2, c);
	return set_call(NULL, c, to, 4, value, n);
}

/* ---- values that streams write and wait for ---- */

struct value {
	struct operation operation;
	struct context *c;
	void *at;
	uint64_t value;
	unsigned bytes;
	bool equal;
};

static bool
value_access(const struct value *v, bool writes, int *owner)
{
	struct memory_cache cache = { 0 };
	CUresult r = memory_access(v->c->device, v->at, v->bytes, writes, false, &cache, owner);
	if (r != CUDA_SUCCESS)
		context_fail(v->c, r);
	return r == CUDA_SUCCESS;
}

/* ">=" is of the difference, so that counters may wrap around. */
static bool
value_ready(const struct operation *self)
{
	const struct value *v = (const struct value *)self;
	int owner;
	if (!value_access(v, false, &owner))
		return true;
	const void *at = memory_bytes(v->at);
	if (v->bytes == 4) {
		uint32_t difference = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE) - (uint32_t)v->value;
		return v->equal ? difference == 0 : (int32_t)difference >= 0;
	}
	uint64_t difference = __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE) - v->value;
	return v->equal ? difference == 0 : (int64_t)difference >= 0;
}

static void
value_waited(struct operation *self, struct context *c)
{
	(void)self, (void)c;
}

static void
value_write(struct operation *self, struct context *c)
{
	const struct value *v = (struct value *)self;
	int owner;
	if (!value_access(v, true, &owner))
		return;
	void *at = memory_bytes(v->at);
	cross(c->device, owner, v->bytes);
	if (v->bytes == 4)
		__atomic_store_n((uint32_t *)at, (uint32_t)v->value, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint64_t *)at, v->value, __ATOMIC_SEQ_CST);
	memory_stored(at, v->bytes);
}

static CUresult
value_make(struct context *c, const CUstreamBatchMemOpParams *what, struct value *out)
{
	bool waits = what->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
	    what->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
	bool wide = what->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
	    what->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
	if (!waits && !wide && what->operation != CU_STREAM_MEM_OP_WRITE_VALUE_32)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned bytes = wide ? 8 : 4;
	struct allocation a;
	void *at = pointer(what->waitValue.address);
	unsigned condition = what->waitValue.flags & ~(waits ? (unsigned)CU_STREAM_WAIT_VALUE_FLUSH : 0);
	if (waits && condition != what->waitValue.flags)
		call_list("flush");
	if (condition & ~1u || what->waitValue.address % bytes || !memory_find(at, bytes, &a))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct value){
		.operation = { waits ? value_waited : value_write, waits ? value_ready : NULL, NULL, sizeof *out },
		.c = c, .at = at, .value = wide ? what->waitValue.value64 : what->waitValue.value, .bytes = bytes,
		.equal = condition == CU_STREAM_WAIT_VALUE_EQ,
	};
	return CUDA_SUCCESS;
}

/* All or nothing: arguments are checked before the first of them is put into the stream. */
static CUresult
values_call(CUstream stream, struct context *c, unsigned n, const CUstreamBatchMemOpParams *what)
{
	struct value *values = new_bytes(n * sizeof *values);
	CUresult r = setting("VIRTUAL_GPU_VALUES", 1) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
	for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++)
		r = value_make(c, &what[i], &values[i]);
	for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++)
		r = put(stream, c, &values[i].operation);
	free(values);
	return r;
}

EXPORT CUresult
cuStreamBatchMemOp_v2(CUstream stream, unsigned n, CUstreamBatchMemOpParams *operation, unsigned flags)
{
	ENTER_CONTEXT(cuStreamBatchMemOp_v2, c);
	if (n == 0 || n > BATCH_MOST || !operation || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return values_call(stream, c, n, operation);
}

static CUresult
value_call(CUstream stream, struct context *c, int operation, CUdeviceptr address, uint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams what = { .waitValue = { .operation = operation, .address = address, .flags = flags } };
	what.waitValue.value64 = value;
	return values_call(stream, c, 1, &what);
}

#define VALUE_CALL(name, type, operation)                                      \
	EXPORT CUresult name(CUstream stream, CUdeviceptr address, type value, unsigned flags) \
	{                                                                      \
		ENTER_CONTEXT(name, c);                                        \
		return value_call(stream, c, operation, address, value, flags); \
	}
VALUE_CALL(cuStreamWaitValue32_v2, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32)
VALUE_CALL(cuStreamWriteValue32_v2, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32)
VALUE_CALL(cuStreamWaitValue64_v2, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64)
VALUE_CALL(cuStreamWriteValue64_v2, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64)

/* ---- functions of the host ---- */

struct host_call {
	struct operation operation;
	CUhostFn function;
	void *data;
};

static void
host_run(struct operation *self, struct context *c)
{
	const struct host_call *call = (struct host_call *)self;
	(void)c;
	work_now.host_function = true;
	call->function(call->data);
	work_now.host_function = false;
}

EXPORT CUresult
cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	ENTER_CONTEXT(cuLaunchHostFunc, c);
	struct host_call call = { { host_run, NULL, NULL, sizeof call }, function, data };
	struct stream *s;
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	CUresult r = stream_find(stream, c, &s);
	return state_unlock(r == CUDA_SUCCESS ? stream_put(s, &call.operation) : r);
}
