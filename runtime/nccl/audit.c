/* libblink-audit.so, for LD_AUDIT: whoever opens libnccl.so.2, by name or by path, gets libnccl.so.2 in the directory
 * of this library, which is libblink-nccl.so. What that one opens as the real NCCL is let through (real.c). */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static char ours[4096];

EXPORT unsigned la_version(unsigned version);
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag);

unsigned
la_version(unsigned version)
{
	Dl_info info;
	static const char file[] = "libnccl.so.2";
	if (dladdr((void *)la_version, &info) && strlen(info.dli_fname) + sizeof file < sizeof ours) {
		const char *slash = strrchr(info.dli_fname, '/');
		int directory = slash ? (int)(slash - info.dli_fname) + 1 : 0;
		snprintf(ours, sizeof ours, "%.*s%s", directory, info.dli_fname, file);
		if (access(ours, R_OK) != 0)
			ours[0] = 0;
	}
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

static bool
is_nccl(const char *name)
{
	static const char own[] = "/proc/self/root/";
	const char *slash = strrchr(name, '/');
	const char *base = slash ? slash + 1 : name;
	return strncmp(name, own, sizeof own - 1) != 0 &&
	    (strcmp(base, "libnccl.so.2") == 0 || strncmp(base, "libnccl.so.2.", 13) == 0);
}

char *
la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
	(void)cookie;
	(void)flag;
	return ours[0] && is_nccl(name) ? ours : (char *)name;
}
