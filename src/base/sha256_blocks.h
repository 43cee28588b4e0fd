/* SHA-256 by instructions of the processor. */
#ifndef BLINK_SHA256_BLOCKS_H
#define BLINK_SHA256_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool sha256_has_instructions(void);

/* The state after n blocks of 64 bytes; only if the processor has the instructions. */
void sha256_blocks(uint32_t state[8], const uint8_t *data, size_t n_blocks);

#endif
