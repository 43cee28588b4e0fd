#include "format/nvml/driver.h"

#include <dlfcn.h>

static bool
is_there(const char *soname)
{
	void *handle = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
	if (handle)
		dlclose(handle);
	return handle;
}

Status
gpus_see(Ctx *ctx, SeenGpus *out)
{
	return !is_there(NVML_SONAME) && is_there(CUDA_SONAME) ? gpus_see_driver(ctx, out) : gpus_see_nvml(ctx, out);
}
