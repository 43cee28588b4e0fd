/* Threads, one on each core, that copy from one NUMA node to another, all at a time: each has buffers of its own, bound
 * to the nodes, and larger together than caches. The best of three runs counts, as others may use the machine. */
#include "format/hwloc/measure.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NODES_MOST = 128, THREADS_MOST = 64, RUNS = 3 };

/* Of all threads together, and of one at least, in each of its two buffers. */
#define BYTES_ALL ((size_t)256 << 20)
#define BYTES_LEAST ((size_t)4 << 20)

/* Of a run. */
#define SECONDS 0.03

struct crew;

struct copier {
	struct crew *crew;
	hwloc_obj_t core;
	pthread_t thread;
	double rate;			/* bytes/s */
	int error;			/* an errno; 0: none */
};

struct crew {
	hwloc_topology_t topology;
	hwloc_obj_t from, to;
	size_t bytes;
	pthread_mutex_t door;		/* closed until all threads are there */
	bool cancelled;
	pthread_barrier_t start;	/* of a run */
	int n;
	struct copier copier[THREADS_MOST];
};

static double
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *
memory_at(const struct crew *crew, hwloc_obj_t node)
{
	char *at = hwloc_alloc_membind(crew->topology, crew->bytes, node->nodeset, HWLOC_MEMBIND_BIND,
	    HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT);
	if (at)
		memset(at, 1, crew->bytes);
	return at;
}

static double
copy_for_a_while(char *to, const char *from, size_t bytes)
{
	double begin = now(), seconds = 0;
	size_t copied = 0;
	while (seconds < SECONDS) {
		memcpy(to, from, bytes);
		copied += bytes;
		seconds = now() - begin;
	}
	return (double)copied / seconds;
}

/* All wait for each other before each run, also one that cannot copy. */
static void *
work(void *of)
{
	struct copier *c = of;
	struct crew *crew = c->crew;
	char *from = NULL, *to = NULL;
	pthread_mutex_lock(&crew->door);
	pthread_mutex_unlock(&crew->door);
	if (crew->cancelled)
		return NULL;
	if (hwloc_set_cpubind(crew->topology, c->core->cpuset, HWLOC_CPUBIND_THREAD) != 0
	    || !(from = memory_at(crew, crew->from)) || !(to = memory_at(crew, crew->to)))
		c->error = errno ? errno : ENOMEM;
	for (int run = 0; run < RUNS; run++) {
		pthread_barrier_wait(&crew->start);
		double rate = c->error ? 0 : copy_for_a_while(to, from, crew->bytes);
		c->rate = rate > c->rate ? rate : c->rate;
	}
	if (from)
		hwloc_free(crew->topology, from, crew->bytes);
	if (to)
		hwloc_free(crew->topology, to, crew->bytes);
	return NULL;
}

static Status
run_crew(Ctx *ctx, struct crew *crew, int64_t *mbytes)
{
	double sum = 0;
	int n = 0, error = 0;
	pthread_mutex_init(&crew->door, NULL);
	pthread_mutex_lock(&crew->door);
	for (; n < crew->n && error == 0; n += error == 0) {
		struct copier *c = &crew->copier[n];
		c->crew = crew;
		c->rate = 0;
		c->error = 0;
		error = pthread_create(&c->thread, NULL, work, c);
	}
	if (error == 0)
		error = pthread_barrier_init(&crew->start, NULL, (unsigned)n);
	crew->cancelled = error != 0;
	pthread_mutex_unlock(&crew->door);
	for (int i = 0; i < n; i++) {
		pthread_join(crew->copier[i].thread, NULL);
		sum += crew->copier[i].rate;
		error = error ? error : crew->copier[i].error;
	}
	if (!crew->cancelled)
		pthread_barrier_destroy(&crew->start);
	pthread_mutex_destroy(&crew->door);
	if (error)
		return fail(ctx, IO, "this machine: NUMA nodes %u and %u: cannot bind threads and memory: %s",
		    crew->to->os_index, crew->from->os_index, strerror(error));
	*mbytes = (int64_t)(sum / 1e6);
	return OK;
}

/* What cores of `to` copy from the memory of `from`: all, or the first alone. */
static Status
measure(Ctx *ctx, struct crew *crew, hwloc_obj_t from, hwloc_obj_t to, bool all, int64_t *mbytes)
{
	hwloc_topology_t topology = crew->topology;
	int n = hwloc_get_nbobjs_inside_cpuset_by_type(topology, to->cpuset, HWLOC_OBJ_CORE);
	hwloc_obj_type_t type = n > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
	n = n > 0 ? n : hwloc_get_nbobjs_inside_cpuset_by_type(topology, to->cpuset, HWLOC_OBJ_PU);
	crew->from = from;
	crew->to = to;
	crew->n = !all ? 1 : n < THREADS_MOST ? n : THREADS_MOST;
	for (int i = 0; i < crew->n; i++)
		crew->copier[i].core = hwloc_get_obj_inside_cpuset_by_type(topology, to->cpuset, type, (unsigned)i);
	crew->bytes = BYTES_ALL / (size_t)crew->n > BYTES_LEAST ? BYTES_ALL / (size_t)crew->n : BYTES_LEAST;
	return run_crew(ctx, crew, mbytes);
}

/* Those with CPUs. */
static int
find_nodes(hwloc_topology_t topology, hwloc_obj_t *node)
{
	int n = 0;
	for (hwloc_obj_t at = NULL; (at = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, at)) != NULL;)
		if (!hwloc_bitmap_iszero(at->cpuset) && n++ < NODES_MOST)
			node[n - 1] = at;
	return n;
}

static Status
add_matrix(Ctx *ctx, hwloc_topology_t topology, int n, hwloc_obj_t *node, hwloc_uint64_t *value)
{
	const unsigned long kind = HWLOC_DISTANCES_KIND_FROM_USER | HWLOC_DISTANCES_KIND_MEANS_BANDWIDTH;
	hwloc_distances_add_handle_t handle = hwloc_distances_add_create(topology, "NUMABandwidth", kind, 0);
	if (!handle || hwloc_distances_add_values(topology, handle, (unsigned)n, node, value, 0) != 0
	    || hwloc_distances_add_commit(topology, handle, 0) != 0)
		return fail(ctx, IO, "this machine: libhwloc: takes no matrix of bandwidths: %s", strerror(errno));
	return OK;
}

Status
measure_memory(Ctx *ctx, hwloc_topology_t topology)
{
	hwloc_obj_t node[NODES_MOST];
	hwloc_uint64_t *value;
	struct crew *crew;
	int n = find_nodes(topology, node);
	if (n > NODES_MOST)
		return fail(ctx, LIMIT, "this machine: %d NUMA nodes: want at most %d", n, NODES_MOST);
	if (n == 0)
		return fail(ctx, IO, "this machine: libhwloc: has no NUMA nodes with CPUs");
	TRY(TEMP(ctx, value, n * n));
	TRY(TEMP(ctx, crew, 1));
	crew->topology = topology;
	for (int i = 0; i < n; i++) {
		char text[32];
		int64_t mbytes;
		TRY(measure(ctx, crew, node[i], node[i], false, &mbytes));
		snprintf(text, sizeof text, "%lld", (long long)mbytes);
		if (hwloc_obj_add_info(node[i], "CoreBandwidth", text) != 0)
			return fail_memory(ctx);
		for (int j = 0; j < n; j++) {
			TRY(measure(ctx, crew, node[j], node[i], true, &mbytes));
			value[i * n + j] = (hwloc_uint64_t)mbytes;
		}
	}
	return n > 1 ? add_matrix(ctx, topology, n, node, value) : OK;
}
