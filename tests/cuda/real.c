/* What runtime/driver/driver.h declares, held against NVIDIA's cuda.h by the compiler: this file does not compile where
 * they differ. Without cuda.h it says so. */
#if __has_include(<cuda.h>)
#define BLINK_REAL_CUDA_H
#include "driver/driver.h"
#include "layout.h"

#define SAME(name, value) _Static_assert((long long)name == (value), #name);
DRIVER_CONSTANT_LIST(SAME)

/* Compiled with -Werror=incompatible-pointer-types: each member is of its function's type. The table is not used, since
 * there is no driver to link with. */
static inline __attribute__((unused)) struct driver
table_of_all(void)
{
#define ENTRY(member, name, must, parameters) .member = name,
	return (struct driver){ DRIVER_LIST(ENTRY) };
}

enum { VERSION = CUDA_VERSION };
#else
enum { VERSION = 0 };
#endif

/* Of the cuda.h that this was compiled with; 0: there is none. */
extern const int cuda_h_version;
const int cuda_h_version = VERSION;
