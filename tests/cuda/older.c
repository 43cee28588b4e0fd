/* A driver that has only what it must have, and does nothing: cuInit returns FAKE_DRIVER, and the rest fails. */
#include "driver/driver.h"

#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define DEFINE_0(name, parameters)
#define DEFINE_1(name, parameters)                                             \
	CUresult name parameters;                                              \
	CUresult name parameters                                               \
	{                                                                      \
		return result(#name);                                          \
	}
#define DEFINE(member, name, must, parameters) DEFINE_##must(name, parameters)

static CUresult
result(const char *name)
{
	const char *value = getenv("FAKE_DRIVER");
	return name[2] == 'I' && name[3] == 'n' && value ? atoi(value) : CUDA_ERROR_UNKNOWN;
}

DRIVER_LIST(DEFINE)
