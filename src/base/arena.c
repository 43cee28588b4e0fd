#include "base/arena.h"

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

void *
arena_raw(Arena *arena, size_t n, size_t size)
{
	if (size && n > (SIZE_MAX / 2 - BLOCK_BYTES) / size)
		return NULL;
	size_t bytes = n * size, need = aligned(bytes ? bytes : 1);
	struct arena_block *block = arena->last;
	if (!block || block->size - block->used < need) {
		size_t size_of_block = need > BLOCK_BYTES ? need : BLOCK_BYTES;
		block = malloc(sizeof *block + size_of_block);
		if (!block)
			return NULL;
		*block = (struct arena_block){ .before = arena->last, .size = size_of_block };
		arena->last = block;
	}
	void *p = (char *)block->bytes + block->used;
	block->used += need;
	return p;
}

void *
arena_array(Arena *arena, size_t n, size_t size)
{
	void *p = arena_raw(arena, n, size);
	return p ? memset(p, 0, n * size) : NULL;
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
