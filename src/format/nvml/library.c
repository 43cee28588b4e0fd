#include "base/printable.h"
#include "format/nvml/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The words of the driver, which may be any. */
static const char *
words_of(const Nvml *nvml, NvmlResult result, char *room, size_t size)
{
	const char *text = nvml->nvmlErrorString ? nvml->nvmlErrorString(result) : NULL;
	if (text && *text)
		snprintf(room, size, "%.*s", (int)size - 1, text);
	else
		snprintf(room, size, "error %d", (int)result);
	make_printable(room);
	return room;
}

Status
nvml_fail(Ctx *ctx, const Nvml *nvml, const char *where, const char *function, NvmlResult result)
{
	char words[160];
	switch (result) {
	case NV_ERROR_DRIVER_NOT_LOADED:
		return fail(ctx, IO, NVML_SONAME ": the kernel module of NVIDIA's driver is not loaded: want it "
		    "loaded, by nvidia-smi or modprobe nvidia");
	case NV_ERROR_LIB_RM_VERSION_MISMATCH:
		return fail(ctx, IO, NVML_SONAME ": not of the version of the kernel module that is loaded: want both "
		    "of one driver, as after a reboot");
	case NV_ERROR_NO_PERMISSION:
		return fail(ctx, IO, "%s%sNVML: %s: no permission: want access to /dev/nvidia*", where,
		    *where ? ": " : "", function);
	case NV_ERROR_GPU_IS_LOST:
		return fail(ctx, IO, "%s: lost, as the driver cannot reach it (%s): want it reset, or this machine "
		    "rebooted", *where ? where : "a GPU", function);
	default:
		return fail(ctx, IO, "%s%sNVML: %s: %s", where, *where ? ": " : "", function,
		    words_of(nvml, result, words, sizeof words));
	}
}

static Status
fail_open(Ctx *ctx)
{
	char why[200];
	const char *text = dlerror();
	if (!text || strstr(text, "No such file"))
		return fail(ctx, IO, NVML_SONAME ": not found: want NVIDIA's driver on this machine, or in this "
		    "container");
	snprintf(why, sizeof why, "%.199s", text);
	make_printable(why);
	return fail(ctx, IO, "%s%s", strstr(why, NVML_SONAME) ? "" : NVML_SONAME ": ", why);
}

static Status
find_functions(Ctx *ctx, Nvml *nvml)
{
	*(void **)&nvml->nvmlErrorString = dlsym(nvml->handle, "nvmlErrorString");
#define X(needed, name, arguments)                                                                                     \
	*(void **)&nvml->name = dlsym(nvml->handle, #name);                                                            \
	if (!nvml->name && (needed))                                                                                   \
		return fail(ctx, IO, NVML_SONAME " has no " #name ": want a driver of CUDA 11 or later");
	NVML_FUNCTION_LIST(X)
#undef X
	return OK;
}

Status
nvml_open(Ctx *ctx, Nvml *out)
{
	Nvml nvml = { .handle = dlopen(NVML_SONAME, RTLD_NOW | RTLD_LOCAL) };
	if (!nvml.handle)
		return fail_open(ctx);
	Status status = find_functions(ctx, &nvml);
	NvmlResult result = status == OK ? nvml.nvmlInit_v2() : NV_SUCCESS;
	if (result != NV_SUCCESS)
		status = nvml_fail(ctx, &nvml, "", "nvmlInit_v2", result);
	if (status != OK) {
		dlclose(nvml.handle);
		return status;
	}
	*out = nvml;
	return OK;
}

void
nvml_close(Nvml *nvml)
{
	nvml->nvmlShutdown();
	dlclose(nvml->handle);
}
