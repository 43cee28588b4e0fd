/* index.lookup: the entries of an index in a form that is searched where it lies (blink-index(5), Lookup files).
 *
 * All numbers are little-endian. The file is a header, and then these sections:
 *
 *   head        the index in JSON without entries: names, digests, GPUs, changes, the machine
 *   groups      of each number of GPUs n that entries have, ascending: u32 n, u32 entries, u64 where its first record
 *               is in `records`
 *   records     of each entry, in the order of index_order: its GPUs, its ranks, u16 root (65535: none),
 *               u8 collective, u8 0, u32 value. GPUs and ranks take `width` bytes each: 1 up to 256 GPUs, else 2
 *   values      what many entries share: VALUE_BYTES each (enum value_field)
 *   files       u16 length, and the path
 *   candidates  by number of GPUs, collective, path, place: the first entry of each form of a file, for isomorphic
 *               jobs: u32 n, u32 collective, u32 value, u32 its place in its group
 *
 * A record of 8 GPUs takes 24 bytes, where its line of JSON has 200; 589,791 entries take 19 reads to find one. */
#ifndef BLINK_FORMAT_LOOKUP_H
#define BLINK_FORMAT_LOOKUP_H

#include "base/digest.h"
#include "base/text.h"
#include "model/index.h"

#define LOOKUP_MAGIC "blink-lookup\r\n\032\n"	/* changed by whatever takes the file for text */

enum {
	LOOKUP_MAGIC_BYTES = 16,
	LOOKUP_VERSION = 1,
	LOOKUP_NO_ROOT = 0xffff,
	GROUP_BYTES = 16,
	VALUE_BYTES = 64,
	CANDIDATE_BYTES = 16,
	RECORD_TAIL = 8,		/* of a record, behind its GPUs and ranks */
};

#define LOOKUP_SECTIONS(X) X(HEAD) X(GROUPS) X(RECORDS) X(VALUES) X(FILES) X(CANDIDATES)

enum lookup_section {
#define X(name) LOOKUP_##name,
	LOOKUP_SECTIONS(X)
#undef X
	N_LOOKUP_SECTIONS
};

/* Offsets in the header. */
enum lookup_header {
	HEADER_VERSION = LOOKUP_MAGIC_BYTES,			/* u32 */
	HEADER_WIDTH = HEADER_VERSION + 4,			/* u32 */
	HEADER_SIZE = HEADER_WIDTH + 4,				/* u64, of the file */
	HEADER_JSON_SIZE = HEADER_SIZE + 8,			/* u64, of the index in JSON that it was made from */
	HEADER_DIGEST = HEADER_JSON_SIZE + 8,			/* its digest, DIGEST_ROOM bytes */
	HEADER_ENTRIES = HEADER_DIGEST + DIGEST_ROOM,		/* u64 */
	HEADER_SECTIONS = HEADER_ENTRIES + 8,			/* of each: u64 where it begins, u64 bytes */
	HEADER_BYTES = HEADER_SECTIONS + N_LOOKUP_SECTIONS * 16
};

/* Offsets in a value. */
enum value_field {
	VALUE_FILE = 0,			/* u32, in files */
	VALUE_TREES = 4,		/* u32 */
	VALUE_DEPTH = 8,		/* u32 */
	VALUE_SIZED = 12,		/* u32, 0 or 1 */
	VALUE_RATE = 16,		/* the bits of a double */
	VALUE_BOUND = 24,
	VALUE_FORM = 32,		/* u64 */
	VALUE_FROM = 40,		/* u64 */
	VALUE_TO = 48,			/* and eight bytes of 0 */
};

static inline uint64_t
lookup_get(const unsigned char *from, int bytes)
{
	uint64_t value = 0;
	for (int i = bytes - 1; i >= 0; i--)
		value = value << 8 | from[i];
	return value;
}

static inline void
lookup_put(unsigned char *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++, value >>= 8)
		to[i] = (unsigned char)value;
}

static inline size_t
lookup_record_bytes(int n, int width)
{
	return 2 * (size_t)n * (size_t)width + RECORD_TAIL;
}

#endif
