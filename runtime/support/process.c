#include "support/process.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* A page of its own: a forked child finds zeros there. */
static union {
	_Atomic pid_t id;
	char page[PAGE];
} here __attribute__((aligned(PAGE)));

pid_t
process_id(void)
{
	static _Atomic int wiped;	/* 1: in children; -1: not by this kernel, or its pages are larger */
	pid_t id = atomic_load_explicit(&here.id, memory_order_relaxed);
	if (id != 0)
		return id;
	if (atomic_load(&wiped) == 0)
		atomic_store(&wiped, madvise(&here, sizeof here, MADV_WIPEONFORK) == 0 ? 1 : -1);
	id = getpid();
	if (atomic_load(&wiped) > 0)
		atomic_store_explicit(&here.id, id, memory_order_relaxed);
	return id;
}
