/* Memory of cuMemAlloc for other processes. A handle says where the owner has the file open: process, descriptor, and
 * the secret in the file's header, by which one that is stale is known. */
#include "memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x69706368616e646c)

struct ipc_handle {
	uint64_t magic, secret;
	int32_t pid, fd;
};
_Static_assert(sizeof(struct ipc_handle) <= sizeof(CUipcMemHandle), "fits");

CUresult
cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr memory)
{
	struct ipc_handle h = { .magic = MAGIC, .pid = getpid() };
	struct block_header header;
	ENTER_UNSAFE(cuIpcGetMemHandle, c);
	(void)c;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	memory_lock();
	int i = mapping_at((const void *)(uintptr_t)memory);
	const struct mapping *m = i < 0 ? NULL : mapping_number(i);
	bool good = m && m->kind == MAPPING_ALLOC && !m->pool && m->base == (char *)(uintptr_t)memory &&
	    block_read_header(m->block->fd, &header);
	if (good)
		h.fd = m->block->fd;
	memory_unlock();
	if (!good)
		return CUDA_ERROR_INVALID_VALUE;
	h.secret = header.secret;
	memset(handle, 0, sizeof *handle);
	memcpy(handle, &h, sizeof h);
	return CUDA_SUCCESS;
}

/* The owner's file; -1: it is none of ours, or not there any more. */
static int
open_of_owner(const struct ipc_handle *h)
{
	char path[64], target[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)h->pid, (int)h->fd);
	ssize_t n = readlink(path, target, sizeof target - 1);
	if (n < 0)
		return -1;
	target[n] = '\0';
	return strncmp(target, "/memfd:virtual-gpu", 18) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

static int
opened_already(const struct context *c, uint64_t secret)
{
	for (int i = 0; i < mapping_count(); i++)
		if (mapping_number(i)->kind == MAPPING_IPC && mapping_number(i)->context == c &&
		    mapping_number(i)->secret == secret)
			return i;
	return -1;
}

static CUresult
map_opened(struct context *c, const struct block_header *header, struct block *block, CUdeviceptr *memory)
{
	struct mapping m = { .kind = MAPPING_IPC, .bytes = block->bytes - header->skip, .device = block->device,
		.context = c, .block = block, .reads = 1u << c->device, .writes = 1u << c->device,
		.secret = header->secret, .opened = 1, .page_bytes = round_to(block->bytes, page_size()) };
	if (c->device != block->device && !linked(c->device, block->device))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	m.pages = addresses_take(m.page_bytes, page_size(), NULL);
	m.base = m.pages + header->skip;
	/* Seen by who frees the memory (block_release). */
	fcntl(block->fd, F_OFD_SETLK, &(struct flock){ .l_type = F_RDLCK, .l_whence = SEEK_SET });
	CUresult result = m.pages ? pages_map(m.pages, m.page_bytes, block, 0) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = mapping_add(&m);
	if (result == CUDA_SUCCESS)
		*memory = (CUdeviceptr)(uintptr_t)m.base;
	else if (m.pages)
		addresses_give(m.pages, m.page_bytes);
	return result;
}

/* A handle that this context has open is counted, at the same address. */
static CUresult
open_file(struct context *c, const struct ipc_handle *h, int fd, CUdeviceptr *memory)
{
	struct block_header header;
	struct block *block;
	CUresult result = block_open(fd, BLOCK_ALLOC, &header, &block);
	if (result != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_HANDLE;
	int i = opened_already(c, header.secret);
	if (header.secret != h->secret) {
		result = CUDA_ERROR_INVALID_HANDLE;
	} else if (i >= 0) {
		mapping_number(i)->opened++;
		*memory = (CUdeviceptr)(uintptr_t)mapping_number(i)->base;
		block_release(block);
		return CUDA_SUCCESS;
	} else {
		result = map_opened(c, &header, block, memory);
	}
	if (result != CUDA_SUCCESS)
		block_release(block);
	return result;
}

CUresult
cuIpcOpenMemHandle_v2(CUdeviceptr *memory, CUipcMemHandle handle, unsigned flags)
{
	struct ipc_handle h;
	ENTER_UNSAFE(cuIpcOpenMemHandle_v2, c);
	memcpy(&h, &handle, sizeof h);
	if (!memory || h.magic != MAGIC || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (h.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	int fd = open_of_owner(&h);
	if (fd < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	memory_lock();
	CUresult result = open_file(c, &h, fd, memory);
	memory_unlock();
	close(fd);
	return result;
}

CUresult
cuIpcCloseMemHandle(CUdeviceptr memory)
{
	ENTER_UNSAFE(cuIpcCloseMemHandle, c);
	memory_lock();
	int i = mapping_at((const void *)(uintptr_t)memory);
	struct mapping *m = i < 0 ? NULL : mapping_number(i);
	bool good = m && m->kind == MAPPING_IPC && m->context == c && m->base == (char *)(uintptr_t)memory;
	if (good && --m->opened == 0)
		mapping_drop(i);
	memory_unlock();
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
