/* A growing region: many allocations, one release. */
#ifndef BLINK_ARENA_H
#define BLINK_ARENA_H

#include <stddef.h>

struct arena_block;

typedef struct {
	struct arena_block *last;
} Arena;

typedef struct {
	struct arena_block *block;
	size_t used;
} ArenaMark;

/* n elements of `size` bytes, zeroed, aligned for any type; n = 0 gives a valid pointer. NULL: no memory, or
 * n * size overflows. */
void *arena_array(Arena *arena, size_t n, size_t size);
void *arena_raw(Arena *arena, size_t n, size_t size);	/* not zeroed: for large arrays that are written at once */

/* `length` bytes copied and ended by a NUL. NULL: no memory. */
char *arena_text(Arena *arena, const char *text, size_t length);

ArenaMark arena_mark(const Arena *arena);
void arena_release(Arena *arena, ArenaMark mark);	/* give back what came after the mark */
void arena_free(Arena *arena);

#endif
