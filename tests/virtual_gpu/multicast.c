/* Multicast objects: memory of several devices at one address, as NVSwitches that add and copy have it. A device is
 * added, then binds memory of its own; what is stored to the object's address is stored to the memory of all, and what
 * is loaded with a reduction is what all have there, reduced (switch.c).
 *
 * An object is a file as memory is (memory.c), so that other processes import it; behind its header it has a row for
 * each device, which all processes map: whether it is a member, and where the process that bound memory has that file
 * open. Who accesses the object maps all of them at its first access. A member's memory stays bound until it is
 * unbound, or its process has let go of the object; who then accesses it fails, unless the process has let go without
 * unbinding: such an object is in no order, and what it has there does not count. */
#include "memory.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MINIMUM = 2 << 20, RECOMMENDED = 4 << 20, LOOKS_US = 500 };

enum member_state { NONE, ADDED, BOUND, LEFT };

/* Of a device, by its number in the topology. */
struct member {
	_Atomic int state;		/* enum member_state; what follows is there once it is BOUND */
	int pid, fd;
	uint64_t secret;
	uint64_t bytes;
};

struct members {
	uint32_t n;			/* devices that the object is for */
	struct member of[DEVICES_MOST];
};

/* An object in this process. */
struct team {
	struct members *members;	/* mapped */
	char *bytes[DEVICES_MOST];	/* of each member's memory, mapped at its first access */
	struct block *own[DEVICES_MOST];	/* bound by this process */
};

/* ---- objects ---- */

CUresult
team_open(struct block *object)
{
	struct team *team = calloc(1, sizeof *team);
	void *at = mmap(NULL, sizeof(struct members), PROT_READ | PROT_WRITE, MAP_SHARED, object->fd, BLOCK_MEMBERS_AT);
	if (!team || at == MAP_FAILED) {
		free(team);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	team->members = at;
	object->team = team;
	return CUDA_SUCCESS;
}

/* What it has bound goes with it. */
void
team_close(struct block *object)
{
	struct team *team = object->team;
	if (!team)
		return;
	for (int i = 0; i < DEVICES_MOST; i++) {
		if (team->own[i]) {
			atomic_store(&team->members->of[i].state, LEFT);
			block_release(team->own[i]);
		}
		if (team->bytes[i])
			munmap(team->bytes[i], object->bytes);
	}
	munmap(team->members, sizeof *team->members);
	free(team);
}

static int
count(const struct block *object, enum member_state least)
{
	int n = 0;
	for (int i = 0; i < DEVICES_MOST; i++)
		n += atomic_load(&object->team->members->of[i].state) >= (int)least;
	return n;
}

bool
team_complete(const struct block *object)
{
	return count(object, ADDED) == (int)object->team->members->n;
}

bool
team_has(const struct block *object, int device)
{
	return atomic_load(&object->team->members->of[device_number(device)].state) != NONE;
}

static CUresult
check_object(const CUmulticastObjectProp *what)
{
	if (!what || what->numDevices == 0 || what->numDevices > DEVICES_MOST || what->size == 0 || what->flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return what->handleTypes & ~(unsigned long long)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ?
	    CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult
cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *what, CUmulticastGranularity_flags which)
{
	ENTER(cuMulticastGetGranularity);
	if (!bytes || ((int)which != CU_MULTICAST_GRANULARITY_MINIMUM &&
	    (int)which != CU_MULTICAST_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = (int)which == CU_MULTICAST_GRANULARITY_MINIMUM ? MINIMUM : RECOMMENDED;
	return check_object(what);
}

CUresult
cuMulticastCreate(CUmemGenericAllocationHandle *object, const CUmulticastObjectProp *what)
{
	struct block *block;
	ENTER(cuMulticastCreate);
	CUresult result = check_object(what);
	if (result != CUDA_SUCCESS || !device_multicasts(0))
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_SUPPORTED;
	if (!object || what->size % MINIMUM != 0)
		return CUDA_ERROR_INVALID_VALUE;
	memory_lock();
	result = block_create(0, what->size, BLOCK_MULTICAST, 0, &block);
	if (result == CUDA_SUCCESS) {
		block->shareable = what->handleTypes != 0;
		result = team_open(block);
		if (result == CUDA_SUCCESS) {
			block->team->members->n = what->numDevices;
			result = handle_add(block, object);
		}
		if (result != CUDA_SUCCESS)
			block_release(block);
	}
	memory_unlock();
	return result;
}

CUresult
cuMulticastAddDevice(CUmemGenericAllocationHandle object, CUdevice device)
{
	ENTER(cuMulticastAddDevice);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memory_lock();
	struct block *block = handle_block(object);
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	if (block && block->team && !team_complete(block)) {
		int none = NONE;
		struct member *member = &block->team->members->of[device_number(device)];
		if (atomic_compare_exchange_strong(&member->state, &none, ADDED))
			result = CUDA_SUCCESS;
	}
	memory_unlock();
	return result;
}

/* ---- memory of members ---- */

static CUresult
bind(struct block *object, size_t at, struct block *memory, size_t offset, size_t bytes)
{
	struct block_header header;
	int number = device_number(memory->device);
	struct member *member = &object->team->members->of[number];
	/* One range, from the beginning. */
	if (at != 0 || offset != 0 || bytes > memory->bytes || bytes > object->bytes || bytes % MINIMUM != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (atomic_load(&member->state) != ADDED || !block_read_header(memory->fd, &header))
		return CUDA_ERROR_INVALID_VALUE;
	memory->refs++;
	object->team->own[number] = memory;
	member->pid = getpid();
	member->fd = memory->fd;
	member->secret = header.secret;
	member->bytes = bytes;
	atomic_store(&member->state, BOUND);
	return CUDA_SUCCESS;
}

/* Waits until all devices have been added, as CUDA does. */
CUresult
cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t at, CUmemGenericAllocationHandle memory, size_t offset,
    size_t bytes, unsigned long long flags)
{
	CUresult result = CUDA_ERROR_NOT_READY;
	ENTER(cuMulticastBindMem);
	if (bytes == 0 || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	while (result == CUDA_ERROR_NOT_READY) {
		memory_lock();
		struct block *block = handle_block(object), *bound = handle_block(memory);
		if (!block || !block->team || !bound || bound->team)
			result = CUDA_ERROR_INVALID_VALUE;
		else if (team_complete(block))
			result = bind(block, at, bound, offset, bytes);
		memory_unlock();
		if (result == CUDA_ERROR_NOT_READY)
			usleep(LOOKS_US);
	}
	return result;
}

CUresult
cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device, size_t at, size_t bytes)
{
	ENTER(cuMulticastUnbind);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memory_lock();
	struct block *block = handle_block(object);
	int number = device_number(device);
	bool good = block && block->team && block->team->own[number] && at == 0 &&
	    block->team->members->of[number].bytes == bytes;
	if (good) {
		atomic_store(&block->team->members->of[number].state, ADDED);
		block_release(block->team->own[number]);
		block->team->own[number] = NULL;
	}
	memory_unlock();
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- access ---- */

/* The file of a member, as its process has it open. NULL: it is not there any more. */
static char *
map_member(const struct member *member, size_t bytes)
{
	char path[64];
	struct block_header header;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", member->pid, member->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = MAP_FAILED;
	if (fd >= 0 && block_read_header(fd, &header) && header.secret == member->secret)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, BLOCK_HEAD_BYTES);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* The same bytes of all members, under the lock. *missing: some are not mapped yet. */
static CUresult
find_bytes(const struct mapping *m, size_t at, size_t bytes, char *out[DEVICES_MOST], int owner[DEVICES_MOST], int *n,
    bool *missing)
{
	const struct team *team = m->block->team;
	*n = 0;
	*missing = false;
	for (int i = 0; i < DEVICES_MOST; i++) {
		struct member *member = &team->members->of[i];
		int state = atomic_load(&member->state);
		if (state == NONE || state == LEFT)
			continue;
		if (state != BOUND || at + bytes > member->bytes)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		*missing = *missing || !team->bytes[i];
		owner[*n] = device_of_number(i);
		out[(*n)++] = team->bytes[i] + at;
	}
	return CUDA_SUCCESS;
}

static void
map_members(struct block *object)
{
	for (int i = 0; i < DEVICES_MOST; i++) {
		struct member *member = &object->team->members->of[i];
		if (atomic_load(&member->state) != BOUND || object->team->bytes[i])
			continue;
		object->team->bytes[i] = map_member(member, object->bytes);
		if (!object->team->bytes[i])	/* its process has ended */
			atomic_store(&member->state, LEFT);
	}
}

CUresult
multicast_access(int device, const void *at, size_t bytes, bool writes, char *out[DEVICES_MOST],
    int owner[DEVICES_MOST], int *n)
{
	bool missing = true;
	CUresult result = CUDA_SUCCESS;
	while (missing && result == CUDA_SUCCESS) {
		memory_read_lock();
		int i = mapping_at(at);
		const struct mapping *m = i < 0 ? NULL : mapping_number(i);
		size_t offset = m ? (size_t)((const char *)at - m->base) : 0;
		if (!m || m->kind != MAPPING_MULTICAST || offset + bytes > m->bytes ||
		    !((writes ? m->writes : m->reads) >> device & 1))
			result = CUDA_ERROR_ILLEGAL_ADDRESS;
		else
			result = find_bytes(m, offset, bytes, out, owner, n, &missing);
		memory_unlock();
		if (result != CUDA_SUCCESS || !missing)
			continue;
		memory_lock();
		i = mapping_at(at);
		if (i >= 0 && mapping_number(i)->kind == MAPPING_MULTICAST)
			map_members(mapping_number(i)->block);
		memory_unlock();
	}
	return result;
}
