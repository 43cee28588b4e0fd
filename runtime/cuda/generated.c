/* A module's image is PTX or a cubin, whose names are text: what a module is for is found in the file, without a
 * driver. Its mark has the version of the kernels' sources, which is that of the protocol, too; its fingerprints are
 * those of the programs that it was compiled from, one for each rank. A plan whose ranks an index has renumbered has
 * other programs than the file, and is interpreted. All that a file has is loaded when a communicator opens, for the
 * reason that modules.c has.
 *
 * The library launches the module's kernel as it does its own. So it has to be resident as that is: one block, of as
 * many threads, on every multiprocessor. */
#include "cuda/generated.h"
#include "base/file_read.h"
#include "cuda/calls.h"
#include "cuda/kernels.h"
#include "support/debug.h"
#include "support/error.h"
#include "kernel_mark.h"
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

enum { HEX = 64 };

struct file {
	char *path;
	Text image;
	const char *collective, *hex;	/* in the image; of `collective_bytes` and HEX bytes */
	size_t collective_bytes;
	CUmodule module;
	CUfunction function[GPU_MODULES][4];	/* in the order of kernel_modules, and of gpu_ops; NULL: none */
};

/* What was found for a plan. module, op: as `function` of a file has them. */
struct found_kernel {
	const struct plan *plan;
	int module, op;
	CUfunction function;		/* NULL: it is interpreted */
	struct found_kernel *next;
};

struct gpu_generated {
	int n;
	struct file *file;
	struct found_kernel *found;
};

/* ---- files ---- */

static size_t
count_of(const char *at, const char *end, const char *set)
{
	size_t n = 0;
	while (at + n < end && at[n] && strchr(set, at[n]))
		n++;
	return n;
}

static bool
has_name(const struct file *f, const char *name)
{
	return memmem(f->image.data, f->image.size, name, strlen(name)) != NULL;
}

/* VERSION_COLLECTIVE_DIGEST, as the mark has it. */
static int
read_mark(struct file *f, struct blink_error *err)
{
	static const char any[] = "blink_kernels_";
	const char *end = f->image.data + f->image.size;
	const char *at = f->image.size ? memmem(f->image.data, f->image.size, any, strlen(any)) : NULL;
	if (!at)
		return set_error(err, blinkInvalidArgument, "BLINK_KERNELS: %.200s: want PTX or a cubin of what blinkc "
		    "--format cuda-kernel writes", f->path);
	if ((size_t)(end - at) < strlen(KERNEL_MARK) || memcmp(at, KERNEL_MARK, strlen(KERNEL_MARK)) != 0)
		return set_error(err, blinkInvalidArgument, "BLINK_KERNELS: %.200s: of another version of blinkc: want "
		    "that of this libblink: write and compile it again", f->path);
	f->collective = at + strlen(KERNEL_MARK);
	f->collective_bytes = count_of(f->collective, end, "abcdefghijklmnopqrstuvwxyz");
	f->hex = f->collective + f->collective_bytes + 1;
	if (f->hex >= end || f->hex[-1] != '_' || count_of(f->hex, end, "0123456789abcdef") < HEX)
		return set_error(err, blinkInvalidArgument, "BLINK_KERNELS: %.200s: no digest of a schedule", f->path);
	if (has_name(f, ".ftz."))
		return set_error(err, blinkInvalidArgument, "BLINK_KERNELS: %.200s: compiled with -ftz=true or "
		    "-use_fast_math, which changes results: want neither", f->path);
	return blinkSuccess;
}

static int
read_module(struct gpu *g, struct file *f, struct blink_error *err)
{
	Ctx *ctx = calloc(1, sizeof *ctx);	/* not on the stack: it has room for a message */
	if (!ctx)
		return set_error_memory(err);
	ctx_init(ctx);
	if (file_read_regular(ctx, f->path, &f->image) != OK)
		set_error(err, (int)ctx->error.status, "BLINK_KERNELS: %.500s", ctx->error.text);
	ctx_free(ctx);
	free(ctx);
	if (err->code == blinkSuccess && read_mark(f, err) == blinkSuccess)
		debug_say(DEBUG_INFO, g->self->rank, "%s: kernels for %.*s, schedule sha256:%.12s", f->path,
		    (int)f->collective_bytes, f->collective, f->hex);
	return err->code;
}

static int
check_resident(struct gpu *g, const struct file *f, CUfunction kernel, struct blink_error *err)
{
	int blocks = 0;
	if (driver_check(g->d, g->d->occupancy(&blocks, kernel, g->threads, 0), err, "blocks of %s", f->path)
	    == blinkSuccess && blocks < 1)
		set_error(err, blinkInvalidArgument, "BLINK_KERNELS: %.200s: too many registers: want what a block of "
		    "%d threads has, as with -maxrregcount=%d", f->path, g->threads, 65536 / g->threads);
	return err->code;
}

static int
load_kernel(struct gpu *g, struct file *f, const char *name, CUfunction *out, struct blink_error *err)
{
	if (driver_check(g->d, g->d->module_function(out, f->module, name), err, "find the kernel %s", name)
	    != blinkSuccess || (g->d->function_load && driver_check(g->d, g->d->function_load(*out), err,
	    "load the kernel %s", name) != blinkSuccess))
		return err->code;
	return check_resident(g, f, *out, err);
}

/* What is wrong with a file is not the system's fault: cut short, for a later GPU, by a later compiler. */
static int
load_image(struct gpu *g, struct file *f, struct blink_error *err)
{
	CUresult r = g->d->module_load(&f->module, f->image.data);
	const char *text = NULL;
	if (r != CUDA_ERROR_INVALID_IMAGE && r != CUDA_ERROR_INVALID_PTX && r != CUDA_ERROR_NO_BINARY_FOR_GPU
	    && r != CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
		return driver_check(g->d, r, err, "load %s", f->path);
	if (g->d->error_text(r, &text) != CUDA_SUCCESS || !text)
		text = "no module";
	return set_error(err, blinkInvalidArgument, "BLINK_KERNELS: %.200s: device %d does not take it: %.100s: want a "
	    "whole file, for this GPU and driver", f->path, (int)g->device, text);
}

static int
load_module(struct gpu *g, struct file *f, struct blink_error *err)
{
	bool has_kernel = false;
	if (load_image(g, f, err) != blinkSuccess)
		return err->code;
	for (int m = 0; kernel_modules[m].name; m++) {
		bool moves = strcmp(kernel_modules[m].name, "move") == 0;
		for (int op = 0; op < (moves ? 1 : 4); op++) {
			char name[64];
			snprintf(name, sizeof name, "blink_%.16s_%s%s%s", f->hex, kernel_modules[m].name,
			    moves ? "" : "_", moves ? "" : gpu_ops[op]);
			if (!has_name(f, name))
				continue;
			if (load_kernel(g, f, name, &f->function[m][op], err) != blinkSuccess)
				return err->code;
			has_kernel = true;
		}
	}
	return has_kernel ? blinkSuccess : set_error(err, blinkInvalidArgument, "BLINK_KERNELS: %.200s: no kernel of "
	    "its schedule: want a whole file", f->path);
}

static int
count_paths(const char *paths)
{
	int n = 1;
	for (const char *p = paths; *p; p++)
		n += *p == ':';
	return n;
}

int
gpu_generated_open(struct gpu *g, struct gpu_generated **out, struct blink_error *err)
{
	const char *paths = g->self->settings.kernels;
	if (!paths)
		return blinkSuccess;
	struct gpu_generated *all = *out = calloc(1, sizeof *all);
	if (!all || !(all->file = calloc((size_t)count_paths(paths), sizeof *all->file)))
		return set_error_memory(err);
	for (const char *at = paths; *at && err->code == blinkSuccess;) {
		size_t bytes = strcspn(at, ":");
		struct file *f = &all->file[all->n];
		if (bytes > 0) {
			all->n++;
			if (!(f->path = strndup(at, bytes)))
				return set_error_memory(err);
			if (read_module(g, f, err) == blinkSuccess)
				load_module(g, f, err);
		}
		at += bytes + (at[bytes] == ':');
	}
	return err->code;
}

void
gpu_generated_close(struct gpu *g, struct gpu_generated *all, bool forked)
{
	if (!all)
		return;
	for (int i = 0; i < all->n; i++) {
		struct file *f = &all->file[i];
		if (f->module && !forked)
			g->d->module_unload(f->module);
		text_free(&f->image);
		free(f->path);
	}
	while (all->found) {
		struct found_kernel *next = all->found->next;
		free(all->found);
		all->found = next;
	}
	free(all->file);
	free(all);
}

/* ---- kernels ---- */

static bool
is_of_collective(const struct file *f, Collective coll)
{
	const char *name = collective_name(coll);
	return strlen(name) == f->collective_bytes && memcmp(name, f->collective, f->collective_bytes) == 0;
}

static bool
is_of_schedule(const struct file *f, const struct plan *plan)
{
	return memcmp(strchr(plan->schedule, ':') + 1, f->hex, HEX) == 0;
}

/* Of the files one that has the kernel, compiled from this rank's program. */
static int
find_kernel(struct gpu *g, struct found_kernel *k, struct blink_error *err)
{
	struct gpu_generated *all = g->launches->generated;
	const RankProgram *prog = k->plan->prog;
	const struct file *other = NULL;
	bool has_schedule = false;
	char rank[48];
	snprintf(rank, sizeof rank, "blink_%016llx_rank%d", (unsigned long long)rank_program_fingerprint(prog),
	    prog->rank);
	for (int i = 0; i < all->n && !k->function; i++) {
		struct file *f = &all->file[i];
		has_schedule |= is_of_schedule(f, k->plan);
		if (is_of_schedule(f, k->plan) && f->function[k->module][k->op] && has_name(f, rank)) {
			k->function = f->function[k->module][k->op];
			debug_say(DEBUG_INFO, g->self->rank, "%s: its kernel is used", f->path);
		} else if (!is_of_schedule(f, k->plan) && is_of_collective(f, prog->coll)) {
			other = f;
		}
	}
	if (other && !has_schedule)
		set_error(err, blinkInvalidArgument, "BLINK_KERNELS: %.200s: for schedule sha256:%.12s: want one for "
		    "%.19s, by which this %s goes", other->path, other->hex, k->plan->schedule,
		    collective_name(prog->coll));
	return err->code;
}

int
gpu_generated_function(struct gpu *g, const struct plan *plan, const char *module, int op, CUfunction *out,
    struct blink_error *err)
{
	struct gpu_generated *all = g->launches->generated;
	struct found_kernel *k = all ? all->found : NULL;
	int m = 0;
	*out = NULL;
	if (!all || !plan->schedule[0])
		return blinkSuccess;
	while (kernel_modules[m].name && strcmp(kernel_modules[m].name, module) != 0)
		m++;
	if (!kernel_modules[m].name)
		return blinkSuccess;
	while (k && !(k->plan == plan && k->module == m && k->op == op))
		k = k->next;
	if (!k) {
		if (!(k = calloc(1, sizeof *k)))
			return set_error_memory(err);
		*k = (struct found_kernel){ .plan = plan, .module = m, .op = op, .next = all->found };
		if (find_kernel(g, k, err) != blinkSuccess) {
			free(k);
			return err->code;
		}
		all->found = k;
	}
	*out = k->function;
	return blinkSuccess;
}
