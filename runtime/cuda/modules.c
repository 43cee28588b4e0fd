/* Modules: the kernels, loaded into the context of a GPU when they are first needed. The driver translates their PTX,
 * and keeps what it made of it on disk. */
#include "blink_device.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "error.h"

#include <string.h>

static const char *const ops[] = { "sum", "prod", "max", "min" };
static const char *const moves[] = { "blink_move", "blink_messages", "blink_copies_begin", "blink_copies_end" };

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
	else
		snprintf(out, size, "blink_%s_%s", module, ops[which]);
}

static int
find_function(struct gpu *g, struct gpu_module *m, const char *module, int which, struct blink_error *err)
{
	char name[64];
	CUfunction found;
	entry_name(module, which, name, sizeof name);
	if (driver_check(g->d, g->d->module_function(&found, m->module, name), err, "find the kernel %s", name)
	    == blinkSuccess)
		m->function[which] = found;
	return err->code;
}

/* A context is current, and calls are allowed that a capture forbids. */
int
gpu_function(struct gpu *g, const char *module, int which, CUfunction *out, struct blink_error *err)
{
	const struct kernel_module *from = find_module(module, err);
	if (!from)
		return err->code;
	struct gpu_module *m = &g->launches->module[from - kernel_modules];
	if (!m->module && driver_check(g->d, g->d->module_load(&m->module, from->ptx), err, "load the kernels for %s",
	    module) != blinkSuccess)
		return err->code;
	if (!m->function[which] && find_function(g, m, module, which, err) != blinkSuccess)
		return err->code;
	*out = m->function[which];
	return blinkSuccess;
}

void
gpu_modules_close(struct gpu *g)
{
	for (int i = 0; i < GPU_MODULES; i++)
		if (g->launches->module[i].module)
			g->d->module_unload(g->launches->module[i].module);
}
