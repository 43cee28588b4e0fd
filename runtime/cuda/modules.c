/* Modules: the kernels, loaded into the context of a GPU: as code for that kind of GPU, where the library was built
 * with it, else as PTX. The driver translates PTX, some 20 s of a core, and keeps what it made of it on disk. There is
 * one for all GPUs and one for those of capability 7.0 and later, whose fences are shorter.
 *
 * All are loaded when the first communicator of a process on a GPU opens, whatever its calls will need; the last one
 * unloads them. To load a module may wait for all that its
 * context does, while that waits for a peer whose call this very thread would make next. Where the driver is lazy
 * (CUDA_MODULE_LOADING), a module is an empty shell, and a kernel is loaded at its first launch, which may wait as
 * well: so each is told to load. */
#include "blink_device.h"
#include "cuda/kernels.h"
#include "cuda/calls.h"
#include "support/clock.h"
#include "support/debug.h"
#include "support/error.h"

#include <pthread.h>
#include <string.h>

const char *const gpu_ops[] = { "sum", "prod", "max", "min" };
static const char *const moves[] = { "blink_move", "blink_messages", "blink_copies_begin", "blink_copies_end",
	"blink_measure" };

enum { SLOW_SECONDS = 2 };

/* What a process has loaded for a device, in its primary context. */
struct loaded {
	pthread_mutex_t lock;		/* while modules are loaded or unloaded */
	int uses;			/* communicators */
	struct gpu_module module[GPU_MODULES];
	struct gpu_module multicast;
	int resident;
};

static struct loaded of_device[GPU_DEVICES] = {
	[0 ... GPU_DEVICES - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER }
};

static const struct kernel_module *
find_module(const char *name, struct blink_error *err)
{
	const struct kernel_module *m = kernel_modules;
	while (m->name && strcmp(m->name, name) != 0)
		m++;
	if (!m->name)
		set_error(err, blinkInternalError, "cuda: %s: no such kernels", name);
	return m->name ? m : NULL;
}

static void
entry_name(const char *module, int which, char *out, size_t size)
{
	if (strcmp(module, "move") == 0)
		snprintf(out, size, "%s", moves[which]);
	else if (strcmp(module, "multicast") == 0)
		snprintf(out, size, "blink_multicast");
	else
		snprintf(out, size, "blink_%s_%s", module, gpu_ops[which]);
}

/* The least of all kernels counts. To answer, a driver without cuFuncLoad has to load the kernel. */
static int
ask_blocks(struct gpu *g, struct loaded *l, CUfunction kernel, const char *name, struct blink_error *err)
{
	int blocks = 0;
	if (driver_check(g->d, g->d->occupancy(&blocks, kernel, g->threads, 0), err, "blocks of %s on device %d", name,
	    (int)g->device) != blinkSuccess)
		return err->code;
	if (blocks < 1)
		set_error(err, blinkSystemError, "cuda: device %d has no room for %d threads of %s", (int)g->device,
		    g->threads, name);
	l->resident = blocks < l->resident ? blocks : l->resident;
	return err->code;
}

static int
find_function(struct gpu *g, struct loaded *l, struct gpu_module *m, const char *module, int which,
    struct blink_error *err)
{
	char name[64];
	CUfunction found;
	entry_name(module, which, name, sizeof name);
	if (driver_check(g->d, g->d->module_function(&found, m->module, name), err, "find the kernel %s", name)
	    != blinkSuccess || (g->d->function_load && driver_check(g->d, g->d->function_load(found), err,
	    "load the kernel %s", name) != blinkSuccess) || ask_blocks(g, l, found, name, err) != blinkSuccess)
		return err->code;
	m->function[which] = found;
	return blinkSuccess;
}

/* Code may be for other GPUs, or of a compiler that is newer than the driver: PTX tells what is wrong then. */
static bool
load_cubins(struct gpu *g, struct gpu_module *m, const struct kernel_module *k)
{
	return k->cubins && g->d->module_load(&m->module, k->cubins) == CUDA_SUCCESS;
}

static int
load_ptx(struct gpu *g, struct gpu_module *m, const struct kernel_module *k, int capability, struct blink_error *err)
{
	if (k->ptx_70 && capability >= 7 && g->d->module_load(&m->module, k->ptx_70) == CUDA_SUCCESS)
		return blinkSuccess;
	return driver_check(g->d, g->d->module_load(&m->module, k->ptx), err, "load the kernels for %s", k->name);
}

static void
unload(struct gpu *g, struct loaded *l)
{
	for (int i = 0; i < GPU_MODULES; i++)
		if (l->module[i].module)
			g->d->module_unload(l->module[i].module);
	memset(l->module, 0, sizeof l->module);
	if (l->multicast.module)
		g->d->module_unload(l->multicast.module);
	memset(&l->multicast, 0, sizeof l->multicast);
}

/* A driver may be too old for its instructions: then the rank does without. */
static void
load_multicast(struct gpu *g, struct loaded *l)
{
	struct blink_error why = { 0 };
	struct gpu_module *m = &l->multicast;
	if (driver_check(g->d, g->d->module_load(&m->module, kernel_multicast), &why, "load the kernel for multicast "
	    "objects") != blinkSuccess || find_function(g, l, m, "multicast", 0, &why) != blinkSuccess)
		debug_say(DEBUG_INFO, g->self->rank, "%s", why.text);
}

static void
load(struct gpu *g, struct loaded *l, struct blink_error *err)
{
	struct gpu_module *m = l->module;
	int n = 0, n_cubins = 0, capability = 0;
	int64_t began = now_ns();
	l->resident = 1;
	driver_check(g->d, g->d->device_attribute(&capability, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, g->device),
	    err, "the capability of device %d", (int)g->device);
	for (const struct kernel_module *k = kernel_modules; k->name && err->code == blinkSuccess; k++, m++) {
		n++;
		if (load_cubins(g, m, k))
			n_cubins++;
		else
			load_ptx(g, m, k, capability, err);
		int functions = strcmp(k->name, "move") == 0 ? GPU_FUNCTIONS : 4;
		for (int i = 0; i < functions && err->code == blinkSuccess; i++)
			find_function(g, l, m, k->name, i, err);
	}
	if (err->code == blinkSuccess && g->can_multicast)
		load_multicast(g, l);
	double took = 1e-9 * (double)(now_ns() - began);
	debug_say(DEBUG_INFO, g->self->rank, "kernels: %d modules, %d of them as code for device %d, loaded in %.1f s",
	    n, n_cubins, (int)g->device, took);
	if (took > SLOW_SECONDS && n_cubins < n)
		debug_say(DEBUG_WARN, g->self->rank, "cuda: the driver took %.1f s to translate kernels for device %d: "
		    "build libblink with CUBINS=native, or let the driver keep what it makes (CUDA_CACHE_PATH)", took,
		    (int)g->device);
}

int
gpu_modules_open(struct gpu *g, struct blink_error *err)
{
	struct loaded *l = &of_device[g->device];
	pthread_mutex_lock(&l->lock);
	if (l->uses == 0)
		load(g, l, err);
	if (err->code == blinkSuccess) {
		l->uses++;
		g->launches->module = l->module;
		g->launches->multicast = l->multicast.function[0];
		g->launches->resident = l->resident;
	} else {
		unload(g, l);
	}
	pthread_mutex_unlock(&l->lock);
	return err->code;
}

int
gpu_function(const struct gpu *g, const char *module, int which, CUfunction *out, struct blink_error *err)
{
	const struct kernel_module *from = find_module(module, err);
	if (from)
		*out = g->launches->module[from - kernel_modules].function[which];
	return err->code;
}

void
gpu_modules_close(struct gpu *g)
{
	struct loaded *l = &of_device[g->device];
	if (!g->launches->module)
		return;
	pthread_mutex_lock(&l->lock);
	if (--l->uses == 0)
		unload(g, l);
	pthread_mutex_unlock(&l->lock);
}
