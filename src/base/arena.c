#include "base/arena.h"
#include "base/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of a first block, and of the largest; in between a block has twice the bytes of the one before. SPARSE_LEAST: of
 * larger arrays of zeros only what is written is to take memory; the others are in large pages all the same. */
enum { BLOCK_BYTES = 64 << 10, BLOCK_SMALL = 256 << 10, BLOCK_MOST = 4 << 20, SPARSE_LEAST = 32 << 20 };

struct arena_block {
	struct arena_block *before;
	size_t size, used;
	size_t mapped;		/* bytes of pages_new; 0: from malloc */
	max_align_t bytes[];
};

static size_t
aligned(size_t n)
{
	return (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
}

/* sparse: for one large array, which is zero already, and takes memory only where it is written. */
static struct arena_block *
new_block(size_t *bytes, bool zeroed, bool sparse, size_t *mapped)
{
	if (*bytes < PAGES_LEAST)
		return zeroed ? calloc(1, *bytes) : malloc(*bytes);
	struct arena_block *block = pages_new(bytes, sparse);
	*mapped = *bytes;
	return block;
}

/* A block with room for `need` bytes. */
static struct arena_block *
add_block(Arena *arena, size_t need, bool zeroed)
{
	size_t bytes = BLOCK_BYTES, mapped = 0, least = sizeof(struct arena_block) + need;
	while (bytes < BLOCK_MOST && arena->last && bytes < 2 * arena->last->size)
		bytes *= 2;
	if (bytes > BLOCK_SMALL && bytes < PAGES_LEAST)
		bytes = PAGES_LEAST;
	if (bytes < least)
		bytes = least;
	struct arena_block *block = new_block(&bytes, zeroed, zeroed && need >= SPARSE_LEAST, &mapped);
	if (!block)
		return NULL;
	block->before = arena->last;
	block->size = bytes - sizeof *block;
	block->used = 0;
	block->mapped = mapped;
	arena->last = block;
	return block;
}

static void
free_block(struct arena_block *block)
{
	if (block->mapped)
		pages_free(block, block->mapped);
	else
		free(block);
}

/* *zeroed: the bytes are to be zero; false on return: they are not. */
static void *
take(Arena *arena, size_t n, size_t size, bool *zeroed)
{
	if (size && n > (SIZE_MAX / 2 - BLOCK_BYTES) / size)
		return NULL;
	size_t bytes = n * size, need = aligned(bytes ? bytes : 1);
	struct arena_block *block = arena->last;
	*zeroed = *zeroed && need > BLOCK_BYTES && !(block && block->size - block->used >= need);
	if (!block || block->size - block->used < need) {
		block = add_block(arena, need, *zeroed);
		if (!block)
			return NULL;
	}
	void *p = (char *)block->bytes + block->used;
	block->used += need;
	return p;
}

void *
arena_raw(Arena *arena, size_t n, size_t size)
{
	bool zeroed = false;
	return take(arena, n, size, &zeroed);
}

void *
arena_array(Arena *arena, size_t n, size_t size)
{
	bool zeroed = true;
	void *p = take(arena, n, size, &zeroed);
	return p && !zeroed ? memset(p, 0, n * size) : p;
}

char *
arena_text(Arena *arena, const char *text, size_t length)
{
	char *copy = arena_raw(arena, length + 1, 1);
	if (!copy)
		return NULL;
	if (length)
		memcpy(copy, text, length);
	copy[length] = 0;
	return copy;
}

ArenaMark
arena_mark(const Arena *arena)
{
	return (ArenaMark){ arena->last, arena->last ? arena->last->used : 0 };
}

void
arena_release(Arena *arena, ArenaMark mark)
{
	while (arena->last != mark.block) {
		struct arena_block *before = arena->last->before;
		free_block(arena->last);
		arena->last = before;
	}
	if (arena->last)
		arena->last->used = mark.used;
}

void
arena_free(Arena *arena)
{
	arena_release(arena, (ArenaMark){ 0 });
}
