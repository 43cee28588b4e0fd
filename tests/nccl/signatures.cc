/* Compiled with a real nccl.h: the parameters of what this library serves are those that it declares. */
#define BLINK_REAL_NCCL_H
#include "nccl/nccl.h"

#include <cstddef>

#define CHECK(name, parameters, ...) ncclResult_t (*check_##name) parameters = nccl##name;
#define CHECK_TEXT(name, parameters, ...) const char *(*check_##name) parameters = nccl##name;
#if NCCL_VERSION_CODE >= 22809
NCCL_SERVED_LIST(CHECK)
#endif
#if NCCL_VERSION_CODE >= 23000
NCCL_LATER_LIST(CHECK)
#endif
#if NCCL_VERSION_CODE >= 23200
NCCL_CONFIG_LIST(CHECK)
#endif
NCCL_TEXT_LIST(CHECK_TEXT)

static_assert(sizeof(ncclUniqueId) == 128, "ids have the size of libblink's");
static_assert(offsetof(ncclConfig_t, blocking) == 16, "what is read of a configuration lies where it did");
#ifdef NCCL_API_MAGIC
static_assert(NCCL_API_MAGIC == (unsigned)NCCL_API_MAGIC_NUMBER, "the mark of a configuration");
#endif
#if NCCL_VERSION_CODE >= 23000
static_assert(ncclTimeout == 8, "results have the same numbers");
#endif
static_assert(ncclInProgress == 7 && ncclRemoteError == 6 && ncclInvalidUsage == 5, "results");
static_assert(ncclFloat8e5m2 == 11 && ncclBfloat16 == 9 && ncclAvg == 4 && ncclNumOps == 5, "types, operations");
