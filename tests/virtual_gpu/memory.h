/* What memory is where: between memory.c, host.c, vmm.c and ipc.c. */
#ifndef VIRTUAL_GPU_MEMORY_H
#define VIRTUAL_GPU_MEMORY_H

#include "virtual_gpu.h"

/* Bytes of a device, in a memfd behind a header; counted by who uses them. Nothing is left of it when the last process
 * ends that has it. */
struct block {
	int refs, fd, device;
	size_t bytes;
	bool own;			/* of this process: counts against the device's memory */
	bool shareable;			/* may be exported by file descriptor */
	struct team *team;		/* of a multicast object, in this process; NULL: it is none */
};

/* The byte that fills new memory, at most its first JUNK_BYTES. */
enum { JUNK = 0xdb, JUNK_BYTES = 1 << 20 };

enum block_use { BLOCK_ALLOC, BLOCK_VMM, BLOCK_MULTICAST };

/* Bytes of a file before its memory: the header, and of a multicast object its members (multicast.c). */
enum { BLOCK_HEAD_BYTES = 64 << 10, BLOCK_MEMBERS_AT = 4 << 10 };

/* The header: who opens the file finds what it is. */
struct block_header {
	uint64_t magic, secret, bytes;
	int32_t device, use, freed;
	uint32_t skip;			/* of cuMemAlloc: where its pointer is, behind the header */
};

CUresult block_create(int device, size_t bytes, enum block_use use, unsigned skip, struct block **out);

/* Of a file of whatever process. Fails: INVALID_VALUE: it is no block, or a freed one, or of another use. Takes a
 * duplicate of fd. */
CUresult block_open(int fd, enum block_use use, struct block_header *header, struct block **out);
void block_release(struct block *block);
bool block_read_header(int fd, struct block_header *out);

enum mapping_kind { MAPPING_ALLOC, MAPPING_IPC, MAPPING_VMM, MAPPING_HOST, MAPPING_REGISTERED, MAPPING_MULTICAST };

/* What an address of the process means to devices. */
struct mapping {
	char *base;
	size_t bytes;
	enum mapping_kind kind;
	int device;			/* whose memory; HOST */
	struct context *context;	/* of whom it is; NULL: of none */
	bool portable;
	struct memory_pool *pool;	/* MAPPING_ALLOC: NULL: of none */
	bool ready;			/* of a pool: its stream has come to it */
	unsigned reads, writes;		/* bits of the devices that may; MAPPING_IPC, MAPPING_VMM */
	struct block *block;		/* NULL: of the host */
	char *pages;			/* addresses that were taken for it; NULL: by others */
	size_t page_bytes;
	uint64_t secret;		/* MAPPING_IPC: of its block */
	int opened;
};

/* New memory of a device, of a pool (NULL: none); *out: where it is. */
CUresult memory_allocate(struct context *c, size_t bytes, struct memory_pool *pool, char **out);

/* cuMemAlloc and cuMemHostAlloc: of two commands of different streams, between which one is called, CUDA says that they
 * cannot run at the same time. So the calling thread waits for all that the context does. */
void memory_waits(struct context *c);

/* The mapping of a kind that begins here goes; work that may use it ends first, but for memory of a pool. */
CUresult mapping_drop_when_idle(const void *at, enum mapping_kind kind);

/* All below is called between these two. */
void memory_lock(void);
void memory_read_lock(void);		/* to look alone */
void memory_unlock(void);

/* Index of the mapping that has this address, -1: none. */
int mapping_at(const void *at);
int mapping_count(void);
struct mapping *mapping_number(int i);
bool mapping_overlaps(const void *at, size_t bytes);
CUresult mapping_add(const struct mapping *m);
void mapping_remove(int i);		/* devices cannot access it any more; block and addresses stay */
void mapping_drop(int i);		/* and these go, too */
void mapping_granted(const struct mapping *m, int by);	/* reads or writes were given (1), or are taken (-1) */

/* May a device access it? copy: as memory_access has it. */
bool mapping_allows(const struct mapping *m, int device, bool writes, bool copy);

/* ---- vmm.c: handles ---- */

/* NULL: the number means nothing. */
struct block *handle_block(CUmemGenericAllocationHandle number);

/* The handle takes the reference to the block. */
CUresult handle_add(struct block *block, CUmemGenericAllocationHandle *number);

/* ---- multicast.c ---- */

/* Open the members of a block that is a multicast object, and close them. */
CUresult team_open(struct block *object);
void team_close(struct block *object);

/* Of such an object: have all devices been added? Is this one a member? */
bool team_complete(const struct block *object);
bool team_has(const struct block *object, int device);

/* ---- */

/* Addresses for memory of devices, `alignment` of a power of two at least of a page; at `wanted`, if that is free.
 * NULL: there are none. They are used again late. */
char *addresses_take(size_t bytes, size_t alignment, char *wanted);
void addresses_give(char *at, size_t bytes);
bool addresses_have(const void *at);

/* Bytes of a block appear at such an address, or disappear. */
CUresult pages_map(char *at, size_t bytes, const struct block *block, size_t offset);
void pages_unmap(char *at, size_t bytes);
size_t round_to(size_t bytes, size_t unit);
size_t page_size(void);

#endif
