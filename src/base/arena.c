#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 << 10 };

struct arena_block {
	struct arena_block *before;
	size_t size, used;
	max_align_t bytes[];
};

static size_t
aligned(size_t n)
{
	return (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
}

/* A block with room for `need` bytes. Zeroed ones are for one large array: calloc has pages that are zero already, and
 * that take memory only once they are written. */
static struct arena_block *
add_block(Arena *arena, size_t need, bool zeroed)
{
	size_t size = need > BLOCK_BYTES ? need : BLOCK_BYTES;
	struct arena_block *block = zeroed ? calloc(1, sizeof *block + size) : malloc(sizeof *block + size);
	if (!block)
		return NULL;
	block->before = arena->last;
	block->size = size;
	block->used = 0;
	arena->last = block;
	return block;
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
		free(arena->last);
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
