/* What parts.c asks of the kernels of parts.cu, and of their twins. */
#ifndef CHECK_GPU_PARTS_H
#define CHECK_GPU_PARTS_H

#include <stdint.h>

struct part {
	uint64_t n;			/* turns; of a copy: bytes, a multiple of 16 */
	uint64_t *mine, *theirs;	/* flags */
	char *to;
	const char *from;
	uint64_t me;			/* of two kernels that pass a token: the first turn, 1 or 2 */
};

#define PART_LIST(X) X(nothing) X(barriers) X(fences) X(stores) X(token) X(copy)

#endif
