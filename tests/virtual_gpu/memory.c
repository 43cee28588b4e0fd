/* Memory of devices, and all mappings.
 *
 * Bytes of a device are in a memfd, so that other processes can map them. A pointer of a device is an address that this
 * process has reserved and can never access: as with CUDA, the host that does so dies. Its bytes are mapped a fixed
 * distance above:
 *
 *	first               first + span                first + 2 span
 *	| pointers: no access | bytes, where mapped       |
 *
 * Addresses are taken in a circle, so that those of freed memory mean nothing for a long time. What a stream may still
 * touch of freed memory is replaced by empty memory in one step: who came between check and access reads zeros, and
 * disturbs nobody.
 *
 * All mappings are in one sorted array under a lock for readers and writers. Threads of devices ask millions of times
 * per second, and remember the last answers until the number of changes, `generation`, is another. */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = BLOCK_HEAD_BYTES, SMALL = 1 << 20, SKIP = 512 };
#define MAGIC UINT64_C(0x7571a1677566d656)
#define SPAN_MOST ((size_t)512 << 30)
#define SPAN_LEAST ((size_t)8 << 30)

struct addresses {
	char *begin, *end;
};

static struct {
	pthread_rwlock_t lock;
	pthread_once_t once;
	uint64_t generation;
	char *first;			/* of pointers */
	size_t span;
	size_t total;			/* bytes of each device */
	size_t used[DEVICES_MOST];
	int granted[DEVICES_MOST][DEVICES_MOST];	/* mappings of the second that the first may access */
	char *next;			/* where addresses are looked for */
	struct addresses *taken;	/* sorted */
	int n_taken, room_taken;
	struct mapping *mapping;	/* sorted */
	int n, room;
} all = { .lock = PTHREAD_RWLOCK_INITIALIZER, .once = PTHREAD_ONCE_INIT, .generation = 1 };

static void
start(void)
{
	all.total = (size_t)setting("VIRTUAL_GPU_MEMORY", INT64_C(16) << 30);
	for (all.span = SPAN_MOST; all.span >= SPAN_LEAST; all.span /= 2) {
		char *at = mmap(NULL, 2 * all.span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at != MAP_FAILED) {
			all.first = all.next = at;
			madvise(at, 2 * all.span, MADV_DONTFORK);
			return;
		}
	}
	all.span = 0;
}

void
memory_lock(void)
{
	pthread_once(&all.once, start);
	pthread_rwlock_wrlock(&all.lock);
}

void
memory_read_lock(void)
{
	pthread_rwlock_rdlock(&all.lock);
}

void
memory_unlock(void)
{
	pthread_rwlock_unlock(&all.lock);
}

void
memory_changed(void)
{
	__atomic_add_fetch(&all.generation, 1, __ATOMIC_ACQ_REL);
}

size_t
memory_total(void)
{
	pthread_once(&all.once, start);
	return all.total;
}

size_t
round_to(size_t bytes, size_t unit)
{
	return bytes > SIZE_MAX - unit ? SIZE_MAX : (bytes + unit - 1) / unit * unit;
}

size_t
page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Room for one more element of an array that grows. */
static bool
make_room(void **array, int n, int *room, size_t size)
{
	if (n < *room)
		return true;
	void *larger = realloc(*array, (size_t)(*room * 2 + 64) * size);
	if (!larger)
		return false;
	*array = larger;
	*room = *room * 2 + 64;
	return true;
}

/* ---- addresses ---- */

bool
addresses_have(const void *at)
{
	return (uintptr_t)at - (uintptr_t)all.first < 2 * all.span;
}

void *
memory_bytes(const void *at)
{
	bool device = (uintptr_t)at - (uintptr_t)all.first < all.span;
	return (void *)((uintptr_t)at + (device ? all.span : 0));
}

/* Index of the first taken range that ends behind an address. */
static int
taken_behind(const char *at)
{
	int low = 0, high = all.n_taken;
	while (low < high) {
		int middle = (low + high) / 2;
		if (all.taken[middle].end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static char *
align(char *at, size_t alignment)
{
	return (char *)round_to((uintptr_t)at, alignment);
}

/* The first free place from `from` on and before `limit`; NULL: there is none. *place: index in the array. */
static char *
find_free(char *from, char *limit, size_t bytes, size_t alignment, int *place)
{
	char *at = align(from, alignment);
	for (int i = taken_behind(from);; i++) {
		const char *end = i < all.n_taken && all.taken[i].begin < limit ? all.taken[i].begin : limit;
		*place = i;
		if (at < end && (size_t)(end - at) >= bytes)
			return at;
		if (i == all.n_taken || all.taken[i].begin >= limit)
			return NULL;
		at = align(all.taken[i].end, alignment);
	}
}

char *
addresses_take(size_t bytes, size_t alignment, char *wanted)
{
	char *limit = all.first + all.span, *at = NULL;
	int place = 0;
	if (bytes > all.span || !make_room((void **)&all.taken, all.n_taken, &all.room_taken, sizeof *all.taken))
		return NULL;
	if (wanted >= all.first && wanted < limit && bytes <= (size_t)(limit - wanted) &&
	    align(wanted, alignment) == wanted)
		at = find_free(wanted, wanted + bytes, bytes, alignment, &place);
	if (!at) {
		at = find_free(all.next, limit, bytes, alignment, &place);
		if (!at)
			at = find_free(all.first, limit, bytes, alignment, &place);
		if (!at)
			return NULL;
		all.next = at + bytes + page_size();
		if (all.next >= limit)
			all.next = all.first;
	}
	memmove(&all.taken[place + 1], &all.taken[place], (size_t)(all.n_taken++ - place) * sizeof *all.taken);
	all.taken[place] = (struct addresses){ at, at + bytes };
	return at;
}

void
addresses_give(char *at, size_t bytes)
{
	int i = taken_behind(at);
	(void)bytes;
	memmove(&all.taken[i], &all.taken[i + 1], (size_t)(--all.n_taken - i) * sizeof *all.taken);
}

CUresult
pages_map(char *at, size_t bytes, const struct block *block, size_t offset)
{
	void *to = at + all.span;
	if (mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, block->fd,
	    (off_t)(HEADER_BYTES + offset)) == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	madvise(to, bytes, MADV_DONTFORK);
	madvise(to, bytes, MADV_DONTDUMP);
	return CUDA_SUCCESS;
}

void
pages_unmap(char *at, size_t bytes)
{
	void *to = at + all.span;
	if (mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
	    MAP_FAILED)
		madvise(to, bytes, MADV_DONTFORK);
}

/* ---- blocks ---- */

/* Memory of devices is not zeroed, and nobody shall rely on it. */
static void
write_junk(int fd, size_t bytes)
{
	size_t n = bytes < JUNK_BYTES ? bytes : JUNK_BYTES;
	void *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, HEADER_BYTES);
	if (at == MAP_FAILED)
		return;
	memset(at, JUNK, n);
	munmap(at, n);
}

CUresult
block_create(int device, size_t bytes, enum block_use use, unsigned skip, struct block **out)
{
	struct block_header header = { .magic = MAGIC, .bytes = bytes, .use = (int)use,
		.device = device_number(device), .skip = skip };
	bool own = use != BLOCK_MULTICAST;	/* that has addresses and no memory */
	if (own && (bytes > all.total || all.used[device] > all.total - bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct block *block = malloc(sizeof *block);
	int fd = memfd_create("virtual-gpu", MFD_CLOEXEC);
	if (!block || fd < 0 || getrandom(&header.secret, sizeof header.secret, 0) != sizeof header.secret ||
	    ftruncate(fd, (off_t)(HEADER_BYTES + round_to(bytes, page_size()))) != 0 ||
	    pwrite(fd, &header, sizeof header, 0) != sizeof header) {
		free(block);
		if (fd >= 0)
			close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (own)
		write_junk(fd, bytes);
	*block = (struct block){ .refs = 1, .fd = fd, .device = device, .bytes = bytes, .own = own };
	all.used[device] += own ? bytes : 0;
	*out = block;
	return CUDA_SUCCESS;
}

bool
block_read_header(int fd, struct block_header *out)
{
	struct stat at;
	return fstat(fd, &at) == 0 && S_ISREG(at.st_mode) && pread(fd, out, sizeof *out, 0) == sizeof *out &&
	    out->magic == MAGIC && out->device >= 0;
}

CUresult
block_open(int fd, enum block_use use, struct block_header *header, struct block **out)
{
	if (!block_read_header(fd, header) || header->use != (int)use || header->freed ||
	    device_of_number(header->device) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct block *block = malloc(sizeof *block);
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (!block || own < 0) {
		free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*block = (struct block){ .refs = 1, .fd = own, .device = device_of_number(header->device),
		.bytes = header->bytes };
	*out = block;
	return CUDA_SUCCESS;
}

/* What is still open elsewhere stays; but nobody may open it any more. */
void
block_release(struct block *block)
{
	struct block_header header;
	if (--block->refs > 0)
		return;
	team_close(block);
	if (block->own) {
		struct flock opened = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		if (fcntl(block->fd, F_OFD_GETLK, &opened) == 0 && opened.l_type != F_UNLCK)
			call_list("freed while others have it open");
		all.used[block->device] -= block->bytes;
		if (block_read_header(block->fd, &header) && header.use == BLOCK_ALLOC) {
			header.freed = 1;
			while (pwrite(block->fd, &header, sizeof header, 0) < 0 && errno == EINTR)
				;
		}
	}
	close(block->fd);
	free(block);
}

/* ---- mappings ---- */

int
mapping_at(const void *at)
{
	int low = 0, high = all.n;
	while (low < high) {
		int middle = (low + high) / 2;
		if (all.mapping[middle].base + all.mapping[middle].bytes > (const char *)at)
			high = middle;
		else
			low = middle + 1;
	}
	return low < all.n && all.mapping[low].base <= (const char *)at ? low : -1;
}

/* Index of the first that is not below. */
static int
place_of(const char *at)
{
	int i = all.n;
	while (i > 0 && all.mapping[i - 1].base >= at)
		i--;
	return i;
}

int
mapping_count(void)
{
	return all.n;
}

struct mapping *
mapping_number(int i)
{
	return &all.mapping[i];
}

bool
mapping_overlaps(const void *at, size_t bytes)
{
	int i = place_of(at);
	return mapping_at(at) >= 0 || (i < all.n && all.mapping[i].base < (const char *)at + bytes);
}

CUresult
mapping_add(const struct mapping *m)
{
	if (!make_room((void **)&all.mapping, all.n, &all.room, sizeof *all.mapping))
		return CUDA_ERROR_OUT_OF_MEMORY;
	int i = place_of(m->base);
	memmove(&all.mapping[i + 1], &all.mapping[i], (size_t)(all.n++ - i) * sizeof *m);
	all.mapping[i] = *m;
	mapping_granted(m, 1);
	memory_changed();
	return CUDA_SUCCESS;
}

void
mapping_granted(const struct mapping *m, int by)
{
	if (m->device == HOST)
		return;
	for (int d = 0; d < devices(); d++)
		if ((m->reads | m->writes) >> d & 1)
			__atomic_add_fetch(&all.granted[d][m->device], by, __ATOMIC_RELAXED);
	memory_changed();
}

void
mapping_remove(int i)
{
	mapping_granted(&all.mapping[i], -1);
	memmove(&all.mapping[i], &all.mapping[i + 1], (size_t)(--all.n - i) * sizeof *all.mapping);
	memory_changed();
}

void
mapping_drop(int i)
{
	struct mapping m = all.mapping[i];
	mapping_remove(i);
	if (m.kind == MAPPING_HOST)
		munmap(m.pages, m.page_bytes);
	if (m.kind == MAPPING_ALLOC || m.kind == MAPPING_IPC) {
		pages_unmap(m.pages, m.page_bytes);
		addresses_give(m.pages, m.page_bytes);
		block_release(m.block);
	}
}

bool
memory_find(const void *at, size_t bytes, struct allocation *out)
{
	const char *end = (const char *)at + bytes;
	pthread_rwlock_rdlock(&all.lock);
	int first = mapping_at(at), i = first;
	const struct mapping *m = &all.mapping[first];
	while (first >= 0 && m[i - first].base + m[i - first].bytes < end && i + 1 < all.n &&
	    m[i + 1 - first].base == m[i - first].base + m[i - first].bytes && m[i + 1 - first].device == m->device)
		i++;
	bool found = first >= 0 && m[i - first].base + m[i - first].bytes >= end;
	if (found)
		*out = (struct allocation){ m->base, m->bytes, m->device, m->portable };
	pthread_rwlock_unlock(&all.lock);
	return found;
}

bool
memory_direct(int a, int b)
{
	return __atomic_load_n(&context_of(a)->peer[b], __ATOMIC_RELAXED) ||
	    __atomic_load_n(&context_of(b)->peer[a], __ATOMIC_RELAXED) ||
	    __atomic_load_n(&all.granted[a][b], __ATOMIC_RELAXED) > 0 ||
	    __atomic_load_n(&all.granted[b][a], __ATOMIC_RELAXED) > 0;
}

/* ---- access ---- */

bool
mapping_allows(const struct mapping *m, int device, bool writes, bool copy)
{
	switch (m->kind) {
	case MAPPING_VMM:
		return (writes ? m->writes : m->reads) >> device & 1;
	case MAPPING_MULTICAST:		/* for instructions of multicast objects alone (multicast.c) */
		return false;
	case MAPPING_ALLOC:
	case MAPPING_IPC:
		if (m->pool)	/* others' devices only by cuMemPoolSetAccess, which is not here */
			return m->ready && (copy || m->device == device);
		return copy || m->device == device || m->reads >> device & 1 ||
		    __atomic_load_n(&context_of(device)->peer[m->device], __ATOMIC_ACQUIRE);
	default:
		return copy || m->portable || m->context->device == device;
	}
}

static void
remember(struct memory_cache *cache, const struct mapping *m, int device, bool writes, bool copy)
{
	unsigned i = cache->next++ % (sizeof cache->hit / sizeof *cache->hit);
	cache->hit[i].begin = m->base;
	cache->hit[i].end = m->base + m->bytes;
	cache->hit[i].device = device;
	cache->hit[i].owner = m->device;
	cache->hit[i].writes = writes;
	cache->hit[i].copy = copy;
}

/* Bytes may lie in several mappings, one behind the other; the first one's owner counts. */
static CUresult
look_up(int device, const char *at, size_t bytes, bool writes, bool copy, struct memory_cache *cache, int *owner)
{
	for (bool first = true; bytes > 0; first = false) {
		int i = mapping_at(at);
		if (i < 0 && first && copy && !addresses_have(at)) {
			*owner = HOST;
			return CUDA_SUCCESS;
		}
		if (i < 0 || !mapping_allows(&all.mapping[i], device, writes, copy))
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		const struct mapping *m = &all.mapping[i];
		size_t here = (size_t)(m->base + m->bytes - at);
		if (first)
			*owner = m->device;
		if (first && here >= bytes)
			remember(cache, m, device, writes, copy);
		at += here;
		bytes -= here < bytes ? here : bytes;
	}
	return CUDA_SUCCESS;
}

CUresult
memory_access(int device, const void *at, size_t bytes, bool writes, bool copy, struct memory_cache *cache, int *owner)
{
	uint64_t generation = __atomic_load_n(&all.generation, __ATOMIC_ACQUIRE);
	const char *begin = at, *end = begin + bytes;
	if (cache->generation != generation)
		*cache = (struct memory_cache){ .generation = generation };
	for (size_t i = 0; i < sizeof cache->hit / sizeof *cache->hit; i++)
		if (begin >= cache->hit[i].begin && end <= cache->hit[i].end && cache->hit[i].device == device &&
		    cache->hit[i].writes == writes && cache->hit[i].copy == copy) {
			*owner = cache->hit[i].owner;
			return CUDA_SUCCESS;
		}
	*owner = device;
	pthread_rwlock_rdlock(&all.lock);
	CUresult result = look_up(device, at, bytes, writes, copy, cache, owner);
	pthread_rwlock_unlock(&all.lock);
	return result;
}

/* ---- memory of devices ---- */

/* Small allocations are aligned to 512 bytes and no more, as with CUDA. */
static CUresult
allocate(struct context *c, size_t bytes, struct memory_pool *pool, char **out)
{
	struct mapping m = { .kind = MAPPING_ALLOC, .bytes = bytes, .device = c->device, .context = c, .pool = pool };
	unsigned skip = bytes < SMALL ? SKIP : 0;
	if (bytes > all.total)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m.page_bytes = round_to(bytes + skip, page_size());
	CUresult result = block_create(c->device, bytes + skip, BLOCK_ALLOC, skip, &m.block);
	if (result != CUDA_SUCCESS)
		return result;
	m.pages = addresses_take(m.page_bytes, bytes < SMALL ? page_size() : 2 * SMALL, NULL);
	m.base = *out = m.pages + skip;
	result = m.pages ? pages_map(m.pages, m.page_bytes, m.block, 0) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = mapping_add(&m);
	if (result == CUDA_SUCCESS)
		return result;
	if (m.pages)
		addresses_give(m.pages, m.page_bytes);
	block_release(m.block);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
memory_allocate(struct context *c, size_t bytes, struct memory_pool *pool, char **out)
{
	memory_lock();
	CUresult result = allocate(c, bytes, pool, out);
	memory_unlock();
	return result;
}

void
memory_waits(struct context *c)
{
	streams_finish(c);
}

CUresult
cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes)
{
	char *at;
	ENTER_UNSAFE(cuMemAlloc_v2, c);
	if (!memory || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	memory_waits(c);
	CUresult result = memory_allocate(c, bytes, NULL, &at);
	if (result == CUDA_SUCCESS)
		*memory = (CUdeviceptr)(uintptr_t)at;
	return result;
}

/* The mapping of a kind that begins here; -1: none does. */
static int
mapping_from(const void *at, enum mapping_kind kind)
{
	int i = mapping_at(at);
	return i >= 0 && all.mapping[i].base == (const char *)at && all.mapping[i].kind == kind ? i : -1;
}

CUresult
mapping_drop_when_idle(const void *at, enum mapping_kind kind)
{
	struct context *user = NULL;
	bool pooled = false;
	memory_lock();
	int i = mapping_from(at, kind);
	if (i >= 0) {
		user = all.mapping[i].context;
		pooled = all.mapping[i].pool;
	}
	memory_unlock();
	if (!user)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = pooled ? CUDA_SUCCESS : streams_finish(user);
	memory_lock();
	i = mapping_from(at, kind);
	if (i >= 0)
		mapping_drop(i);
	memory_unlock();
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult
cuMemFree_v2(CUdeviceptr memory)
{
	ENTER_UNSAFE(cuMemFree_v2, c);
	(void)c;
	return mapping_drop_when_idle((const void *)(uintptr_t)memory, MAPPING_ALLOC);
}

CUresult
cuMemGetInfo_v2(size_t *left, size_t *total)
{
	ENTER_CONTEXT(cuMemGetInfo_v2, c);
	if (!left || !total)
		return CUDA_ERROR_INVALID_VALUE;
	memory_lock();
	*total = all.total;
	*left = all.total - all.used[c->device];
	memory_unlock();
	return CUDA_SUCCESS;
}

CUresult
cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr memory)
{
	struct allocation found;
	ENTER_CONTEXT(cuMemGetAddressRange_v2, c);
	(void)c;
	if (!memory_find((const void *)(uintptr_t)memory, 1, &found))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = (CUdeviceptr)(uintptr_t)found.base;
	if (bytes)
		*bytes = found.bytes;
	return CUDA_SUCCESS;
}

void
memory_forget(struct context *c)
{
	memory_lock();
	for (int i = all.n; i-- > 0; )
		if (all.mapping[i].context == c)
			mapping_drop(i);
	memory_unlock();
}
