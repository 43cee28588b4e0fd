/* The backends: the one file that knows all of them by name. */
#include "cuda/gpu.h"
#include "engine/engine.h"

const struct backend *const backends[] = { &host_backend, &cuda_backend, NULL };
