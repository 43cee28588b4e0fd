/* The CUDA driver: what is declared of it is what NVIDIA declares, and what is said where there is none. Prints TAP. A
 * library is found by LD_LIBRARY_PATH, which a process reads as it starts, so each case is a process. */
#include "driver/driver.h"
#include "support/error.h"
#include "../cuda/layout.h"
#include "tap.h"

#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const int cuda_h_version;

/* ---- what a child does ---- */

/* Opened twice: what has failed may be tried again, and fails in the same way. */
static int
open_twice(void)
{
	const struct driver *d = NULL, *again = NULL;
	struct blink_error err = { 0 }, second = { 0 };
	int code = driver_open(&d, &err);
	if (driver_open(&again, &second) != code || again != d || strcmp(err.text, second.text) != 0)
		return printf("the second time: %s\n", second.text), 1;
	if (code != blinkSuccess)
		return printf("%d %s\n", code, err.text), 0;
	printf("optional %d\n", d->vmm_create || d->capture_info || d->stream_batch);
	if (driver_check(d, CUDA_ERROR_OUT_OF_MEMORY, &err, "allocate %d bytes", 64) != blinkOutOfMemory)
		return 1;
	printf("%d %s\n", err.code, err.text);
	return 0;
}

/* ---- cases ---- */

static char folder[] = "/tmp/test_driver.XXXXXX";

/* What the child prints, where libcuda.so.1 is that library. "": there is none. */
static const char *
with(const char *self, const char *library, const char *result)
{
	static char text[2000];
	char from[PATH_MAX + 100], to[100], command[PATH_MAX + 300];
	snprintf(from, sizeof from, "%s", self);
	char *place = dirname(from);
	snprintf(command, sizeof command, "%s/../cuda/%s", place, library);
	snprintf(to, sizeof to, "%s/libcuda.so.1", folder);
	unlink(to);
	if (*library && symlink(command, to) != 0)
		return "symlink failed";
	snprintf(command, sizeof command, "FAKE_DRIVER=%s LD_LIBRARY_PATH=%s '%s' open 2>&1", result, folder, self);
	FILE *child = popen(command, "r");
	size_t n = child ? fread(text, 1, sizeof text - 1, child) : 0;
	text[n] = '\0';
	if (!child || pclose(child) != 0)
		snprintf(text + n, sizeof text - n, " failed");
	return text;
}

static bool
says(const char *text, const char *wanted)
{
	bool good = strcmp(text, wanted) == 0;
	if (!good)
		printf("# found %s# want  %s", text, wanted);
	return good;
}

/* A machine may have a driver, which is then found where there is no other. */
static void
test_absent(const char *self)
{
	const char *text = with(self, "", "0");
	if (strncmp(text, "optional", 8) == 0)
		printf("skip %d - no driver: this machine has one\n", ++n_tests);
	else
		ok(strncmp(text, "8 cuda: libcuda.so.1: cannot open shared object file", 52) == 0, "no driver");
}

int
main(int argc, char **argv)
{
	char self[PATH_MAX] = "";
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(120);
	if (argc == 2 && strcmp(argv[1], "open") == 0)
		return open_twice();
	if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0 || !mkdtemp(folder))
		return 1;
	if (cuda_h_version > 0)
		ok(true, "constants, sizes and signatures are those of cuda.h");
	else
		printf("skip %d - constants, sizes and signatures: there is no cuda.h here\n", ++n_tests);
	test_absent(self);
	ok(says(with(self, "nothing.so", "0"), "8 cuda: libcuda.so.1: has no cuDriverGetVersion: want the driver of "
	    "CUDA 11.0 or later\n"), "a library that lacks functions");
	ok(says(with(self, "older.so", "100"), "8 cuda: start libcuda.so.1: error 100\n"),
	    "a driver that does not start");
	ok(says(with(self, "older.so", "0"), "optional 0\n7 cuda: allocate 64 bytes: error 2\n"),
	    "a driver without what is optional");
	char command[100];
	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		n_failed++;
	return end_tests();
}
