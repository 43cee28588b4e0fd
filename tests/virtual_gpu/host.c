/* Memory of the host, and what a pointer is. */
#include "memory.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGES_AT_ONCE = 1024 };

CUresult
cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
	ENTER_UNSAFE(cuMemHostAlloc, c);
	if (!memory || bytes == 0 || flags & ~(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP))
		return CUDA_ERROR_INVALID_VALUE;
	struct mapping m = { .kind = MAPPING_HOST, .bytes = bytes, .device = HOST, .context = c,
		.portable = flags & CU_MEMHOSTALLOC_PORTABLE, .page_bytes = round_to(bytes, page_size()) };
	memory_waits(c);
	m.base = m.pages = mmap(NULL, m.page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m.pages == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(m.base, JUNK, bytes < JUNK_BYTES ? bytes : JUNK_BYTES);
	memory_lock();
	CUresult result = mapping_add(&m);
	memory_unlock();
	if (result == CUDA_SUCCESS)
		*memory = m.base;
	else
		munmap(m.pages, m.page_bytes);
	return result;
}

CUresult
cuMemFreeHost(void *memory)
{
	ENTER_UNSAFE(cuMemFreeHost, c);
	(void)c;
	return mapping_drop_when_idle(memory, MAPPING_HOST);
}

/* Has the process memory at all these addresses? */
static bool
is_mapped(const char *at, size_t bytes)
{
	unsigned char pages[PAGES_AT_ONCE];
	uintptr_t page = page_size(), begin = (uintptr_t)at / page * page, end = (uintptr_t)at + bytes;
	if (end < begin)
		return false;
	for (uintptr_t some = PAGES_AT_ONCE * page; begin < end; begin += some)
		if (mincore((void *)begin, end - begin < some ? end - begin : some, pages) != 0)
			return false;
	return true;
}

CUresult
cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
	ENTER_UNSAFE(cuMemHostRegister_v2, c);
	struct mapping m = { .kind = MAPPING_REGISTERED, .base = memory, .bytes = bytes, .device = HOST, .context = c,
		.portable = flags & CU_MEMHOSTREGISTER_PORTABLE };
	if (!memory || bytes == 0 || flags & ~(unsigned)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP) ||
	    addresses_have(memory) || !is_mapped(memory, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	memory_waits(c);
	memory_lock();
	CUresult result = mapping_overlaps(memory, bytes) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
	    : mapping_add(&m);
	memory_unlock();
	return result;
}

CUresult
cuMemHostUnregister(void *memory)
{
	ENTER_UNSAFE(cuMemHostUnregister, c);
	(void)c;
	CUresult result = mapping_drop_when_idle(memory, MAPPING_REGISTERED);
	return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : result;
}

CUresult
cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *memory, unsigned flags)
{
	ENTER_CONTEXT(cuMemHostGetDevicePointer_v2, c);
	if (!device || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	memory_lock();
	int i = mapping_at(memory);
	const struct mapping *m = i >= 0 ? mapping_number(i) : NULL;
	bool good = m && m->device == HOST && mapping_allows(m, c->device, true, false);
	memory_unlock();
	if (!good)
		return CUDA_ERROR_INVALID_VALUE;
	*device = (CUdeviceptr)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

/* ---- what a pointer is ---- */

/* A device that is not visible has no number. */
static int
ordinal_of(const struct mapping *m)
{
	if (m->device == HOST || (m->device >= devices() && m->context))
		return m->context->device;
	return m->device < devices() ? m->device : -2;
}

/* m: NULL: CUDA knows nothing of it; then what cuPointerGetAttributes says. */
static CUresult
attribute_of(const struct mapping *m, CUpointer_attribute what, void *value)
{
	switch ((int)what) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)value = m && m->kind != MAPPING_VMM ? (CUcontext)m->context : NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)value = !m ? 0 : m->device == HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)value = m ? ordinal_of(m) : -2;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)value = m ? (CUdeviceptr)(uintptr_t)m->base : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)value = m ? m->bytes : 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult
cuPointerGetAttribute(void *value, CUpointer_attribute what, CUdeviceptr memory)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	ENTER(cuPointerGetAttribute);
	if (!value)
		return result;
	memory_lock();
	int i = mapping_at((const void *)(uintptr_t)memory);
	if (i >= 0)
		result = attribute_of(mapping_number(i), what, value);
	memory_unlock();
	return result;
}

CUresult
cuPointerGetAttributes(unsigned n, CUpointer_attribute *what, void **values, CUdeviceptr memory)
{
	CUresult result = CUDA_SUCCESS;
	ENTER(cuPointerGetAttributes);
	if (n == 0 || !what || !values)
		return CUDA_ERROR_INVALID_VALUE;
	memory_lock();
	int i = mapping_at((const void *)(uintptr_t)memory);
	for (unsigned k = 0; k < n && result == CUDA_SUCCESS; k++)
		result = attribute_of(i < 0 ? NULL : mapping_number(i), what[k], values[k]);
	memory_unlock();
	return result;
}
