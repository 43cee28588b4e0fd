/* What programs call: each function under NCCL's two names. */
#include "nccl/shim.h"

#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

#define ENTRY(name, parameters, result)                                        \
	EXPORT ncclResult_t nccl##name parameters;                             \
	EXPORT ncclResult_t pnccl##name parameters __attribute__((alias("nccl" #name))); \
	ncclResult_t nccl##name parameters                                     \
	{                                                                      \
		return result;                                                 \
	}
#define BESIDE(name, parameters, arguments, ...)                               \
	ENTRY(name, parameters, inside_real() ? real_nccl()->name arguments : served_##name arguments)
#define ALONE(name, parameters, arguments)                                     \
	ENTRY(name, parameters, real_nccl()->path ? REAL(name, arguments) : served_##name arguments)
NCCL_BESIDE_LIST(BESIDE)
NCCL_COLLECTIVE_LIST(BESIDE)
NCCL_CONFIG_LIST(BESIDE)
NCCL_ALONE_LIST(ALONE)
NCCL_LATER_LIST(ALONE)

/* By this name the library knows itself. */
EXPORT extern const char blink_nccl_is_this;
const char blink_nccl_is_this = 1;

static const char *
error_text(ncclResult_t result)
{
	static const char *const texts[] = {
		"no error", "unhandled cuda error", "unhandled system error", "internal error",
		"invalid argument", "invalid usage", "remote process exited or there was a network error",
		"operation in progress", "operation timed out",
	};
	size_t i = (size_t)result;
	return i < sizeof texts / sizeof texts[0] ? texts[i] : "unknown result code";
}

EXPORT const char *ncclGetErrorString(ncclResult_t result);
EXPORT const char *pncclGetErrorString(ncclResult_t result) __attribute__((alias("ncclGetErrorString")));
EXPORT const char *ncclGetLastError(ncclComm_t comm);
EXPORT const char *pncclGetLastError(ncclComm_t comm) __attribute__((alias("ncclGetLastError")));

const char *
ncclGetErrorString(ncclResult_t result)
{
	return real_nccl()->path && !inside_real() ? real_nccl()->GetErrorString(result) : error_text(result);
}

/* Ours, or the real one's if this thread has had none here. */
const char *
ncclGetLastError(ncclComm_t comm)
{
	const char *text = last_error();
	return text[0] || !real_nccl()->path ? text : real_nccl()->GetLastError(comm);
}
