#include "format/nvml/gpus.h"

static Status
ask(Ctx *ctx, const Nvml *nvml, const char *address, const char *const *peer, int n, bool *joined)
{
	NvmlGpu own, other;
	if (!nvml->nvmlDeviceGetHandleByPciBusId_v2 || !nvml->nvmlDeviceGetP2PStatus)
		return fail(ctx, IO, NVML_SONAME " does not say which GPUs NVLink joins: want a driver of CUDA 11 or "
		    "later");
	NvmlResult result = nvml->nvmlDeviceGetHandleByPciBusId_v2(address, &own);
	if (result != NV_SUCCESS)
		return nvml_fail(ctx, nvml, address, "nvmlDeviceGetHandleByPciBusId_v2", result);
	for (int i = 0; i < n; i++) {
		unsigned status = NV_P2P_STATUS_NOT_SUPPORTED;
		if (nvml->nvmlDeviceGetHandleByPciBusId_v2(peer[i], &other) != NV_SUCCESS)
			continue;
		result = nvml->nvmlDeviceGetP2PStatus(own, other, NV_P2P_CAPS_INDEX_NVLINK, &status);
		if (result != NV_SUCCESS)
			return nvml_fail(ctx, nvml, address, "nvmlDeviceGetP2PStatus", result);
		joined[i] = status == NV_P2P_STATUS_OK;
	}
	return OK;
}

Status
gpus_joined_nvml(Ctx *ctx, const char *address, const char *const *peer, int n, bool *joined)
{
	Nvml nvml;
	TRY(nvml_open(ctx, &nvml));
	for (int i = 0; i < n; i++)
		joined[i] = false;
	Status status = ask(ctx, &nvml, address, peer, n, joined);
	nvml_close(&nvml);
	return status;
}
