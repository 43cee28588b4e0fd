/* Pinning: the worker of a rank stays near one part of the machine, and so does the memory that it touches first.
 *
 * The cores on which the process may run are dealt out to the ranks of the server in order, so that ranks with
 * neighbouring numbers have neighbouring cores. Only where there are two cores or more for each: a worker beside the
 * thread that computes. libhwloc is opened at run time, and where it is not installed the kernel places threads. */
#include "engine/pin.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <stdio.h>

#define CALLS(X)                                                               \
	X(hwloc_topology_init)                                                 \
	X(hwloc_topology_load)                                                 \
	X(hwloc_topology_destroy)                                              \
	X(hwloc_get_type_depth)                                                \
	X(hwloc_get_nbobjs_by_depth)                                           \
	X(hwloc_get_obj_by_depth)                                              \
	X(hwloc_get_proc_cpubind)                                              \
	X(hwloc_set_cpubind)                                                   \
	X(hwloc_bitmap_alloc)                                                  \
	X(hwloc_bitmap_free)                                                   \
	X(hwloc_bitmap_or)                                                     \
	X(hwloc_bitmap_intersects)

/* libhwloc's functions, by the names that its header gives them. */
struct calls {
#define MEMBER(name) __typeof__(&name) name##_;
	CALLS(MEMBER)
#undef MEMBER
};

static bool
find_calls(void *library, struct calls *c)
{
	bool all = true;
#define FIND(name) all = (c->name##_ = (__typeof__(&name))dlsym(library, #name)) && all;
	CALLS(FIND)
#undef FIND
	return all;
}

/* Cores of the topology on which the process may run: how many, and, if `slice` is not NULL, those from number `from`
 * up to, not including, `to` are added to it. */
static int
allowed_cores(const struct calls *c, hwloc_topology_t topology, hwloc_bitmap_t allowed, int from, int to,
    hwloc_bitmap_t slice)
{
	int depth = c->hwloc_get_type_depth_(topology, HWLOC_OBJ_CORE), n = 0;
	if (depth < 0)
		return 0;
	for (unsigned i = 0; i < c->hwloc_get_nbobjs_by_depth_(topology, depth); i++) {
		hwloc_obj_t core = c->hwloc_get_obj_by_depth_(topology, depth, i);
		if (!c->hwloc_bitmap_intersects_(core->cpuset, allowed))
			continue;
		if (slice && n >= from && n < to)
			c->hwloc_bitmap_or_(slice, slice, core->cpuset);
		n++;
	}
	return n;
}

static bool
bind(const struct calls *c, hwloc_topology_t topology, int index, int n_local, char *text, size_t size)
{
	hwloc_bitmap_t allowed = c->hwloc_bitmap_alloc_(), slice = c->hwloc_bitmap_alloc_();
	bool bound = false;
	if (allowed && slice && c->hwloc_get_proc_cpubind_(topology, getpid(), allowed, HWLOC_CPUBIND_PROCESS) == 0) {
		int cores = allowed_cores(c, topology, allowed, 0, 0, NULL);
		int from = cores * index / n_local, to = cores * (index + 1) / n_local;
		snprintf(text, size, "%d cores for %d ranks: not pinned", cores, n_local);
		if (cores >= 2 * n_local) {
			allowed_cores(c, topology, allowed, from, to, slice);
			bound = c->hwloc_set_cpubind_(topology, slice, HWLOC_CPUBIND_THREAD) == 0;
			snprintf(text, size, "cores %d to %d of %d%s", from, to - 1, cores,
			    bound ? "" : ": not possible");
		}
	}
	c->hwloc_bitmap_free_(allowed);
	c->hwloc_bitmap_free_(slice);
	return bound;
}

bool
pin_thread(int index, int n_local, char *text, size_t size)
{
	struct calls c;
	hwloc_topology_t topology;
	void *library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
	bool bound = false;
	snprintf(text, size, "libhwloc is not installed: not pinned");
	if (library && find_calls(library, &c) && c.hwloc_topology_init_(&topology) == 0) {
		snprintf(text, size, "libhwloc does not know this machine: not pinned");
		if (c.hwloc_topology_load_(topology) == 0)
			bound = bind(&c, topology, index, n_local, text, size);
		c.hwloc_topology_destroy_(topology);
	}
	if (library)
		dlclose(library);
	return bound;
}
