/* Modules and launches. The image of a module is the PTX that a GPU would get, of which the names of the entries are
 * taken, or a fat binary, which is asked for which GPUs it has code; it is compressed, so that it may have any entry.
 * Each has a twin in a library of VIRTUAL_GPU_KERNELS, which is what is executed.
 *
 * To load a module or a kernel waits for all that its context does, as it may on a GPU: a kernel is loaded when it is
 * asked for what it needs, by cuFuncLoad, or else at its first launch (CUDA_MODULE_LOADING=LAZY).
 *
 * A device executes VIRTUAL_GPU_BLOCKS blocks at once, of all streams; others wait, in order. A block that began ends
 * by itself, as on a GPU: blocks that wait for blocks which have no room wait forever. */
#include "grid.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCKS_OTHERWISE = 64,
	REGISTERS = 32,
	GRID_X_MOST = 0x7fffffff,
	FUNCTION_ATTRIBUTE_SHARED = 1, FUNCTION_ATTRIBUTE_CONST, FUNCTION_ATTRIBUTE_LOCAL
};

/* ---- twins ---- */

static struct {
	const struct virtual_kernel **kernel;
	size_t n;
} twins;
static pthread_once_t twins_once = PTHREAD_ONCE_INIT;

static void
load_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct virtual_kernel *k = library ? dlsym(library, "virtual_gpu_kernels") : NULL;
	if (!k) {
		fprintf(stderr, "virtual GPU: VIRTUAL_GPU_KERNELS: %s\n", dlerror());
		return;
	}
	for (; k->name; k++) {
		twins.kernel = grown(twins.kernel, (twins.n + 1) * sizeof *twins.kernel);
		twins.kernel[twins.n++] = k;
	}
}

static void
load_twins(void)
{
	const char *paths = getenv("VIRTUAL_GPU_KERNELS");
	char *copy = paths ? strdup(paths) : NULL, *rest;
	for (char *path = copy ? strtok_r(copy, ":", &rest) : NULL; path; path = strtok_r(NULL, ":", &rest))
		load_library(path);
	free(copy);
}

static const struct virtual_kernel *
twin_of(const char *name)
{
	for (size_t i = 0; i < twins.n; i++)
		if (strcmp(twins.kernel[i]->name, name) == 0)
			return twins.kernel[i];
	return NULL;
}

/* ---- modules ---- */

struct function {
	void *handle;
	struct function *next;
	struct module *module;
	const struct virtual_kernel *kernel;
	bool loaded;
};

struct module {
	void *handle;
	struct context *c;
	_Atomic int holders;		/* operations with its kernels, and 1 while it is loaded */
	_Atomic bool unloaded;
	char **entry;
	size_t n_entries;
	bool any;			/* of a fat binary */
	struct function *functions;
};

static void
module_drop(struct module *m)
{
	if (atomic_fetch_sub(&m->holders, 1) > 1)
		return;
	for (size_t i = 0; i < m->n_entries; i++)
		free(m->entry[i]);
	free(m->entry);
	free(m);
}

static bool
directive(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	return at && isspace((unsigned char)at[strlen(name)]);
}

/* 70 of "sm_70"; 0: it is written otherwise. */
static int
target_of(const char *text)
{
	int capability = 0;
	sscanf(strstr(text, ".target"), ".target sm_%d", &capability);
	return capability;
}

/* What follows each ".entry". */
static CUresult
read_entries(struct module *m, const char *text)
{
	static const char entry[] = ".entry";
	for (const char *at = text; (at = strstr(at, entry));) {
		at += strlen(entry);
		size_t blank = strspn(at, " \t\r\n");
		size_t bytes = strcspn(at + blank, " \t\r\n(){;,");
		if (blank == 0 || bytes == 0)
			return CUDA_ERROR_INVALID_PTX;
		m->entry = grown(m->entry, (m->n_entries + 1) * sizeof *m->entry);
		m->entry[m->n_entries++] = strndup(at + blank, bytes);
	}
	return CUDA_SUCCESS;
}

/* As fatbinary writes it: a header, then images, each with one of its own. */
struct fat_header {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t bytes;
};

struct fat_image {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t bytes;
	uint32_t unknown[3], capability;
};

enum { FAT_ELF = 2 };

/* No text begins so. */
static bool
is_fat(const void *image)
{
	return strncmp(image, "\x50\xed\x55\xba", 4) == 0;
}

/* Has it code that this GPU executes? That of its generation, for no more than it has. */
static bool
fat_serves(const char *image, int capability)
{
	const struct fat_header *fat = (const void *)image;
	const char *at = image + fat->header_bytes, *end = at + fat->bytes;
	while (at < end) {
		const struct fat_image *i = (const void *)at;
		int built = (int)i->capability;
		if (i->kind == FAT_ELF && built / 10 == capability / 10 && built <= capability)
			return true;
		at += i->header_bytes + i->bytes;
	}
	return false;
}

EXPORT CUresult
cuModuleLoadData(CUmodule *module, const void *image)
{
	ENTER_UNSAFE(cuModuleLoadData, c);
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	bool fat = is_fat(image);
	if (fat && !fat_serves(image, device_capability(c->device)))
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (!fat && (!directive(image, ".version") || !directive(image, ".target")))
		return CUDA_ERROR_INVALID_IMAGE;
	if (!fat && target_of(image) > device_capability(c->device))
		return CUDA_ERROR_INVALID_PTX;
	pthread_once(&twins_once, load_twins);
	streams_finish(c);
	struct module *m = new_bytes(sizeof *m);
	m->c = c;
	atomic_init(&m->holders, 1);
	m->any = fat;
	CUresult r = fat ? CUDA_SUCCESS : read_entries(m, image);
	state_lock();
	if (r == CUDA_SUCCESS)
		*module = m->handle = handle_new(MODULE, m);
	else
		module_drop(m);
	return state_unlock(r);
}

static void
unload(struct module *m)
{
	for (struct function *f = m->functions, *next; f; f = next) {
		next = f->next;
		handle_end(f->handle);
		free(f);
	}
	handle_end(m->handle);
	atomic_store(&m->unloaded, true);
	module_drop(m);
}

static void
forget(void *module, void *context)
{
	if (((struct module *)module)->c == context)
		unload(module);
}

void
modules_forget(struct context *c)
{
	handle_each(MODULE, forget, c);
}

EXPORT CUresult
cuModuleUnload(CUmodule module)
{
	ENTER_UNSAFE(cuModuleUnload, c);
	state_lock();
	struct module *m = handle_find(MODULE, module);
	state_unlock(CUDA_SUCCESS);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (m->c != c)
		return CUDA_ERROR_INVALID_CONTEXT;
	streams_finish(c);
	state_lock();
	if (handle_find(MODULE, module))
		unload(m);
	return state_unlock(CUDA_SUCCESS);
}

static bool
has_entry(const struct module *m, const char *name)
{
	if (m->any)
		return true;
	for (size_t i = 0; i < m->n_entries; i++)
		if (strcmp(m->entry[i], name) == 0)
			return true;
	return false;
}

/* The function of a name is one, however often it is asked for. */
static CUresult
get_function(CUfunction *function, struct module *m, const char *name)
{
	const struct virtual_kernel *k = has_entry(m, name) ? twin_of(name) : NULL;
	if (!k)
		return CUDA_ERROR_NOT_FOUND;
	struct function *f = m->functions;
	while (f && f->kernel != k)
		f = f->next;
	if (!f) {
		f = new_bytes(sizeof *f);
		*f = (struct function){ handle_new(FUNCTION, f), m->functions, m, k, false };
		m->functions = f;
	}
	*function = f->handle;
	return CUDA_SUCCESS;
}

EXPORT CUresult
cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	ENTER_CONTEXT(cuModuleGetFunction, c);
	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	struct module *m = handle_find(MODULE, module);
	CUresult r = !m ? CUDA_ERROR_INVALID_HANDLE : m->c != c ? CUDA_ERROR_INVALID_CONTEXT :
	    get_function(function, m, name);
	return state_unlock(r);
}

/* ---- what a function needs ---- */

/* NULL: there is no such function. */
static const struct virtual_kernel *
kernel_of(CUfunction function)
{
	state_lock();
	struct function *f = handle_find(FUNCTION, function);
	const struct virtual_kernel *k = f ? f->kernel : NULL;
	struct context *c = f && !f->loaded ? f->module->c : NULL;
	if (f)
		f->loaded = true;
	state_unlock(CUDA_SUCCESS);
	if (c)
		streams_finish(c);
	return k;
}

EXPORT CUresult
cuFuncLoad(CUfunction function)
{
	ENTER_UNSAFE(cuFuncLoad, c);
	(void)c;
	return kernel_of(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult
cuFuncGetAttribute(int *value, CUfunction_attribute what, CUfunction function)
{
	ENTER_CONTEXT(cuFuncGetAttribute, c);
	(void)c;
	const struct virtual_kernel *k = kernel_of(function);
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (what) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = k->threads_most;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = REGISTERS;
		return CUDA_SUCCESS;
	case FUNCTION_ATTRIBUTE_SHARED:
	case FUNCTION_ATTRIBUTE_CONST:
	case FUNCTION_ATTRIBUTE_LOCAL:
		*value = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static unsigned
blocks_most(void)
{
	int64_t n = setting("VIRTUAL_GPU_BLOCKS", BLOCKS_OTHERWISE);
	return n < 1 ? 1 : (unsigned)n;
}

/* There are as many multiprocessors as blocks that a device executes at once. */
EXPORT CUresult
cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared)
{
	ENTER_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessor, c);
	(void)c;
	const struct virtual_kernel *k = kernel_of(function);
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!blocks || threads < 1 || threads > THREADS_MOST)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = threads <= k->threads_most && shared <= SHARED_BYTES;
	return CUDA_SUCCESS;
}

/* ---- blocks of a device ---- */

static struct {
	pthread_mutex_t lock;
	unsigned running;
	struct grid *first, **last;
} queues[DEVICES_MOST];
static pthread_once_t queues_once = PTHREAD_ONCE_INIT;

static void
make_queues(void)
{
	for (int i = 0; i < DEVICES_MOST; i++) {
		pthread_mutex_init(&queues[i].lock, NULL);
		queues[i].last = &queues[i].first;
	}
}

/* Under the queue's lock: begin blocks while there is room. */
static void
begin_blocks(int device)
{
	struct grid *g;
	while ((g = queues[device].first) && queues[device].running < blocks_most()) {
		unsigned number = g->begun++;
		if (g->begun == g->blocks) {
			queues[device].first = g->next;
			if (!g->next)
				queues[device].last = &queues[device].first;
		}
		queues[device].running++;
		block_start(g, number);
	}
}

void
block_ended(struct block *block)
{
	struct grid *g = block->grid;
	int device = g->c->device;
	pthread_mutex_destroy(&block->lock);
	for (int i = 0; i < 3; i++)
		pthread_cond_destroy(&block->barrier[i].all_there);
	free(block);
	if (atomic_fetch_sub(&g->left, 1) == 1)
		moment_reach(g->done);
	pthread_mutex_lock(&queues[device].lock);
	queues[device].running--;
	begin_blocks(device);
	pthread_mutex_unlock(&queues[device].lock);
}

static void
grid_run(struct grid *g)
{
	int device = g->c->device;
	pthread_once(&queues_once, make_queues);
	pthread_mutex_lock(&queues[device].lock);
	*queues[device].last = g;
	queues[device].last = &g->next;
	begin_blocks(device);
	pthread_mutex_unlock(&queues[device].lock);
	moment_wait(g->done, NULL);
}

/* ---- launches ---- */

struct launch {
	struct operation operation;
	struct module *module;
	const struct virtual_kernel *kernel;
	unsigned blocks, threads;
	_Alignas(16) char parameter[PARAMETER_BYTES_MOST];
};

static void
launch_run(struct operation *self, struct context *c)
{
	const struct launch *l = (struct launch *)self;
	if (atomic_load(&l->module->unloaded))
		return context_fail(c, CUDA_ERROR_LAUNCH_FAILED);
	int64_t threads = setting("VIRTUAL_GPU_THREADS", 1);
	struct grid g = {
		.kernel = l->kernel, .parameter = l->parameter, .c = c, .gone = work_now.gone, .blocks = l->blocks,
		.threads = threads < 1 ? 1 : threads < l->threads ? (unsigned)threads : l->threads,
		.done = moment_new(),
	};
	atomic_init(&g.left, l->blocks);
	pay_cost(COST_LAUNCH);
	grid_run(&g);
	moment_drop(g.done);
}

static void
launch_drop(struct operation *self)
{
	module_drop(((struct launch *)self)->module);
}

/* Under the lock. */
static CUresult
launch_make(CUfunction function, const struct stream *s, unsigned blocks, unsigned threads, void **parameters,
    struct launch *out)
{
	const struct function *f = handle_find(FUNCTION, function);
	if (!f || f->module->c != s->c)
		return CUDA_ERROR_INVALID_HANDLE;
	if (threads > (unsigned)f->kernel->threads_most || f->kernel->parameter_bytes > PARAMETER_BYTES_MOST ||
	    (f->kernel->parameter_bytes && (!parameters || !parameters[0])))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct launch){ .operation = { launch_run, NULL, launch_drop, sizeof *out }, .module = f->module,
		.kernel = f->kernel, .blocks = blocks, .threads = threads };
	if (f->kernel->parameter_bytes)
		memcpy(out->parameter, parameters[0], f->kernel->parameter_bytes);
	return CUDA_SUCCESS;
}

EXPORT CUresult
cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters, void **extra)
{
	ENTER_CONTEXT(cuLaunchKernel, c);
	struct stream *s;
	struct launch launch;
	/* Twins have one dimension, and their parameter is a struct. */
	if (!grid_x || grid_x > GRID_X_MOST || grid_y != 1 || grid_z != 1 || !block_x || block_x > THREADS_MOST ||
	    block_y != 1 || block_z != 1 || shared > SHARED_BYTES || extra)
		return CUDA_ERROR_INVALID_VALUE;
	kernel_of(function);
	state_lock();
	CUresult r = stream_find(stream, c, &s);
	if (r == CUDA_SUCCESS && s->c != c)
		r = CUDA_ERROR_INVALID_HANDLE;
	if (r == CUDA_SUCCESS)
		r = launch_make(function, s, grid_x, block_x, parameters, &launch);
	if (r != CUDA_SUCCESS)
		return state_unlock(r);
	atomic_fetch_add(&launch.module->holders, 1);
	r = stream_put(s, &launch.operation);
	if (r != CUDA_SUCCESS)
		launch_drop(&launch.operation);
	return state_unlock(r);
}
