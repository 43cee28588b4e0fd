/* The CUDA driver, as far as a process has one. */
#include "driver/driver.h"
#include "support/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define LIBRARY "libcuda.so.1"

/* Written once, under the lock; whoever has been given it reads it without. */
static struct driver table;
static bool opened;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The exported name of a function that must be there and is not; NULL: all are. */
static const char *
find_functions(void *library)
{
	const char *missing = NULL;
#define FIND(member, name, must, parameters)                                   \
	*(void **)&table.member = dlsym(library, #name);                       \
	if (must && !table.member && !missing)                                 \
		missing = #name;
	DRIVER_LIST(FIND)
#undef FIND
	return missing;
}

/* One that is of no use is closed again: what lacks here may be there the next time. */
static int
open_library(struct blink_error *err)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *why = dlerror();
		return set_error(err, blinkSystemError, "cuda: %.300s", why ? why : LIBRARY ": cannot be opened");
	}
	const char *missing = find_functions(library);
	if (missing)
		set_error(err, blinkSystemError, "cuda: " LIBRARY ": has no %s: want the driver of CUDA 11.0 or later",
		    missing);
	else
		driver_check(&table, table.init(0), err, "start " LIBRARY);
	if (err->code != blinkSuccess)
		dlclose(library);
	return err->code;
}

int
driver_open(const struct driver **out, struct blink_error *err)
{
	pthread_mutex_lock(&lock);
	if (opened || open_library(err) == blinkSuccess) {
		opened = true;
		*out = &table;
	}
	pthread_mutex_unlock(&lock);
	return err->code;
}

int
driver_check(const struct driver *d, CUresult r, struct blink_error *err, const char *format, ...)
{
	const char *text = NULL;
	char what[256];
	va_list arguments;
	if (r == CUDA_SUCCESS)
		return blinkSuccess;
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	int code = r == CUDA_ERROR_OUT_OF_MEMORY ? blinkOutOfMemory : blinkSystemError;
	if (d->error_text(r, &text) == CUDA_SUCCESS && text)
		set_error(err, code, "cuda: %s: %s", what, text);
	else
		set_error(err, code, "cuda: %s: error %d", what, (int)r);
	return code;
}
