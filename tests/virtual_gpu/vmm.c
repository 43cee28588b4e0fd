/* Memory that the program itself maps: reserved addresses, memory by handle, access by device; also of other processes,
 * by file descriptor. */
#include "memory.h"
#include "more.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRANULARITY = 2 << 20, TEAM_LOOKS_US = 500 };

struct reservation {
	char *base;
	size_t bytes;
	struct reservation *next;
};

/* What a number of cuMemCreate, cuMemImportFromShareableHandle or cuMemRetainAllocationHandle means. Memory stays
 * while it is mapped, also without a handle. */
struct handle {
	CUmemGenericAllocationHandle number;
	struct block *block;
	int refs;
	struct handle *next;
};

/* Under memory_lock. Numbers are not used again. */
static struct reservation *reservations;
static struct handle *handles;
static CUmemGenericAllocationHandle last_number = UINT64_C(0x1000);

static bool
aligned(size_t value)
{
	return value % GRANULARITY == 0;
}

static struct handle **
find_handle(CUmemGenericAllocationHandle number)
{
	struct handle **h = &handles;
	while (*h && (*h)->number != number)
		h = &(*h)->next;
	return h;
}

struct block *
handle_block(CUmemGenericAllocationHandle number)
{
	const struct handle *h = *find_handle(number);
	return h ? h->block : NULL;
}

/* refs 1. */
CUresult
handle_add(struct block *block, CUmemGenericAllocationHandle *number)
{
	struct handle *h = malloc(sizeof *h);
	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*h = (struct handle){ .number = ++last_number, .block = block, .refs = 1, .next = handles };
	handles = h;
	*number = h->number;
	return CUDA_SUCCESS;
}

/* ---- addresses ---- */

CUresult
cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags)
{
	ENTER(cuMemAddressReserve);
	if (!address || bytes == 0 || !aligned(bytes) || alignment & (alignment - (alignment != 0)) || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct reservation *r = malloc(sizeof *r);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory_lock();
	r->bytes = bytes;
	r->base = addresses_take(bytes, alignment < GRANULARITY ? GRANULARITY : alignment,
	    (char *)(uintptr_t)wanted);
	if (r->base) {
		r->next = reservations;
		reservations = r;
	}
	memory_unlock();
	if (!r->base) {
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*address = (CUdeviceptr)(uintptr_t)r->base;
	return CUDA_SUCCESS;
}

/* All of one reservation, and nothing mapped in it. */
CUresult
cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	struct reservation **at = &reservations, *r = NULL;
	ENTER(cuMemAddressFree);
	memory_lock();
	while (*at && ((*at)->base != (char *)(uintptr_t)address || (*at)->bytes != bytes))
		at = &(*at)->next;
	if (*at && !mapping_overlaps((*at)->base, (*at)->bytes)) {
		r = *at;
		*at = r->next;
		addresses_give(r->base, r->bytes);
	}
	memory_unlock();
	free(r);
	return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- memory ---- */

static CUresult
check_properties(const CUmemAllocationProp *what)
{
	if (!what || (int)what->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    (int)what->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (what->location.id < 0 || what->location.id >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	return (int)what->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ?
	    CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult
cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *what, CUmemAllocationGranularity_flags which)
{
	ENTER(cuMemGetAllocationGranularity);
	if (!bytes || ((int)which != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
	    (int)which != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = GRANULARITY;
	return check_properties(what);
}

CUresult
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *what,
    unsigned long long flags)
{
	struct block *block;
	ENTER(cuMemCreate);
	CUresult result = check_properties(what);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || bytes == 0 || !aligned(bytes) || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	memory_lock();
	result = block_create(what->location.id, bytes, BLOCK_VMM, 0, &block);
	if (result == CUDA_SUCCESS) {
		block->shareable = what->requestedHandleTypes != 0;
		result = handle_add(block, handle);
		if (result != CUDA_SUCCESS)
			block_release(block);
	}
	memory_unlock();
	return result;
}

CUresult
cuMemRelease(CUmemGenericAllocationHandle handle)
{
	ENTER(cuMemRelease);
	memory_lock();
	struct handle **at = find_handle(handle), *h = *at;
	if (h && --h->refs == 0) {
		*at = h->next;
		block_release(h->block);
		free(h);
	}
	memory_unlock();
	return h ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	ENTER(cuMemRetainAllocationHandle);
	if (!handle)
		return result;
	memory_lock();
	int i = mapping_at(address);
	if (i >= 0 && mapping_number(i)->kind == MAPPING_VMM) {
		struct block *block = mapping_number(i)->block;
		struct handle *h = handles;
		while (h && h->block != block)
			h = h->next;
		result = h ? CUDA_SUCCESS : handle_add(block, handle);
		if (h) {
			h->refs++;
			*handle = h->number;
		} else if (result == CUDA_SUCCESS) {
			block->refs++;
		}
	}
	memory_unlock();
	return result;
}

CUresult
cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *what, CUmemGenericAllocationHandle handle)
{
	ENTER(cuMemGetAllocationPropertiesFromHandle);
	memory_lock();
	const struct block *block = what ? handle_block(handle) : NULL;
	if (block)
		*what = (CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		    .requestedHandleTypes = block->shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
		    .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = block->device } };
	memory_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- mappings ---- */

static bool
reserved(const char *at, size_t bytes)
{
	for (const struct reservation *r = reservations; r; r = r->next)
		if (at >= r->base && at + bytes <= r->base + r->bytes)
			return true;
	return false;
}

static CUresult
map_block(char *at, size_t bytes, size_t offset, struct block *block)
{
	struct mapping m = { .base = at, .bytes = bytes, .kind = block->team ? MAPPING_MULTICAST : MAPPING_VMM,
		.device = block->team ? HOST : block->device, .block = block };
	if (!reserved(at, bytes) || mapping_overlaps(at, bytes) || bytes > block->bytes || offset != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = pages_map(at, bytes, block, offset);
	if (result == CUDA_SUCCESS)
		result = mapping_add(&m);
	if (result == CUDA_SUCCESS)
		block->refs++;
	else
		pages_unmap(at, bytes);
	return result;
}

/* Of a multicast object: as CUDA does, for ever if a device is never added. */
static void
wait_for_team(CUmemGenericAllocationHandle handle)
{
	for (bool complete = false; !complete;) {
		memory_lock();
		const struct block *block = handle_block(handle);
		complete = !block || !block->team || team_complete(block);
		memory_unlock();
		if (!complete)
			usleep(TEAM_LOOKS_US);
	}
}

CUresult
cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
    unsigned long long flags)
{
	ENTER(cuMemMap);
	if (bytes == 0 || !aligned(address) || !aligned(bytes) || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	wait_for_team(handle);
	memory_lock();
	struct block *block = handle_block(handle);
	CUresult result = block ? map_block((char *)(uintptr_t)address, bytes, offset, block) :
	    CUDA_ERROR_INVALID_VALUE;
	memory_unlock();
	return result;
}

/* The mappings that make up a range: from *first on, *n of them. false: it has gaps, or ends within one. */
static bool
mappings_of(CUdeviceptr address, size_t bytes, int *first, int *n)
{
	char *at = (char *)(uintptr_t)address, *end = at + bytes;
	*first = mapping_at(at);
	for (*n = 0; at < end; (*n)++) {
		int i = *first + *n;
		if (*first < 0 || i >= mapping_count() || mapping_number(i)->base != at ||
		    (mapping_number(i)->kind != MAPPING_VMM && mapping_number(i)->kind != MAPPING_MULTICAST))
			return false;
		at += mapping_number(i)->bytes;
	}
	return at == end && *n > 0;
}

CUresult
cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	int first, n;
	ENTER(cuMemUnmap);
	memory_lock();
	bool good = mappings_of(address, bytes, &first, &n);
	for (int i = 0; good && i < n; i++) {
		struct mapping m = *mapping_number(first);
		mapping_remove(first);
		pages_unmap(m.base, m.bytes);
		block_release(m.block);
	}
	memory_unlock();
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
check_access(const struct mapping *m, const CUmemAccessDesc *access)
{
	int device = access->location.id, flags = (int)access->flags;
	if ((int)access->location.type != CU_MEM_LOCATION_TYPE_DEVICE || (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
	    flags != CU_MEM_ACCESS_FLAGS_PROT_READ && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
		return CUDA_ERROR_INVALID_VALUE;
	if (m->kind == MAPPING_MULTICAST)
		return device_valid(device) && team_has(m->block, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	return device >= 0 && device < devices() && (device == m->device || linked(device, m->device)) ?
	    CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static void
set_access(struct mapping *m, const CUmemAccessDesc *access)
{
	unsigned bit = 1u << access->location.id;
	mapping_granted(m, -1);
	m->reads = access->flags & CU_MEM_ACCESS_FLAGS_PROT_READ ? m->reads | bit : m->reads & ~bit;
	m->writes = (int)access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? m->writes | bit : m->writes & ~bit;
	mapping_granted(m, 1);
}

CUresult
cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
	int first, n_mappings;
	ENTER(cuMemSetAccess);
	if (!access || n == 0)
		return CUDA_ERROR_INVALID_VALUE;
	memory_lock();
	CUresult result = mappings_of(address, bytes, &first, &n_mappings) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; result == CUDA_SUCCESS && i < n_mappings; i++)
		for (size_t k = 0; k < n && result == CUDA_SUCCESS; k++)
			result = check_access(mapping_number(first + i), &access[k]);
	for (int i = 0; result == CUDA_SUCCESS && i < n_mappings; i++)
		for (size_t k = 0; k < n; k++)
			set_access(mapping_number(first + i), &access[k]);
	memory_unlock();
	return result;
}

/* ---- to and from other processes ---- */

CUresult
cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
    unsigned long long flags)
{
	int fd = -1;
	ENTER(cuMemExportToShareableHandle);
	if (!out || (int)type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	memory_lock();
	const struct handle *h = *find_handle(handle);
	bool good = h && h->block->shareable;
	if (good)
		fd = fcntl(h->block->fd, F_DUPFD_CLOEXEC, 0);
	memory_unlock();
	if (!good)
		return CUDA_ERROR_INVALID_VALUE;
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

CUresult
cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *in, CUmemAllocationHandleType type)
{
	struct block_header header;
	struct block *block;
	ENTER(cuMemImportFromShareableHandle);
	if (!handle || (int)type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	memory_lock();
	CUresult result = block_open((int)(intptr_t)in, BLOCK_VMM, &header, &block);
	bool is_team = result != CUDA_SUCCESS;
	if (is_team)
		result = block_open((int)(intptr_t)in, BLOCK_MULTICAST, &header, &block);
	if (result == CUDA_SUCCESS) {
		block->shareable = true;
		result = is_team ? team_open(block) : CUDA_SUCCESS;
		if (result == CUDA_SUCCESS)
			result = handle_add(block, handle);
		if (result != CUDA_SUCCESS)
			block_release(block);
	}
	memory_unlock();
	return result;
}
