/* UCX as it is installed here, if it is.
 *
 * Its libucs changes the process as it is loaded: it takes over the signals of errors and SIGHUP, and writes jumps into
 * the C library's mmap, munmap and others, to hear of memory that goes. Neither is for a library within other people's
 * programs. What it reads before that is the environment, and nothing else: so while it is loaded, `environ` is a list
 * of this file, which has variables of UCX in front of those of the process; but none that is set there, so
 * that whoever wants all this can have it. Other threads that read a variable meanwhile find it in either list, which
 * therefore stays in memory. Where the program itself has loaded UCX, it is as the program wants it. */
#include "transport/ucx_inside.h"

#ifdef BLINK_UCX
#include "support/debug.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUIET = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of all below */
static struct ucx_api api;
static bool opened;

/* ---- the library ---- */

/* Its lines go to standard output or error in a form of their own: only where BLINK_DEBUG asks for some. */
static const char *
log_level(void)
{
	return debug_on(DEBUG_TRACE) ? "UCX_LOG_LEVEL=info" : debug_on(DEBUG_WARN) ? "UCX_LOG_LEVEL=error"
	    : "UCX_LOG_LEVEL=fatal";
}

/* As the environment, and before it what keeps UCX quiet, unless it is set. NULL: no memory. The last element, behind
 * the end of the list, is the list before. */
static char **
quiet_environment(char **before)
{
	static char **last;
	const char *quiet[QUIET] = { "UCX_MEM_EVENTS=n", "UCX_HANDLE_ERRORS=none", "UCX_DEBUG_SIGNO=", log_level() };
	size_t n = 0, at = 0;
	while (before && before[n])
		n++;
	char **list = calloc(n + QUIET + 2, sizeof *list);
	for (int i = 0; i < QUIET && list; i++) {
		size_t name = (size_t)(strchr(quiet[i], '=') - quiet[i]) + 1;
		bool set = false;
		for (size_t k = 0; k < n; k++)
			set = set || strncmp(before[k], quiet[i], name) == 0;
		if (!set)
			list[at++] = (char *)quiet[i];
	}
	for (size_t k = 0; k < n && list; k++)
		list[at++] = before[k];
	if (list) {
		list[n + QUIET + 1] = (char *)last;
		last = list;
	}
	return list;
}

/* The list stays, where somebody else has put another in its place, which may be made of it. */
static void *
open_quietly(void)
{
	char **before = environ, **quiet = quiet_environment(before);
	if (!quiet)
		return NULL;
	environ = quiet;
	void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
	if (environ == quiet)
		environ = before;
	return library;
}

static void
open_library(void *reason)
{
	char *why = reason;
	bool loaded = dlopen("libucs.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != NULL;
	void *library = loaded ? dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL) : open_quietly();
	if (!library) {
		const char *text = dlerror();
		snprintf(why, 256, "%s", text ? text : "libucp.so.0 cannot be opened");
		return;
	}
	why[0] = '\0';
#define FIND(name)                                                             \
	if (!(api.name##_ = (__typeof__(&name))dlsym(library, #name)) && !why[0]) \
		snprintf(why, 256, "libucp.so.0 has no %s: want UCX 1.11 or later", #name);
	UCX_FUNCTIONS(FIND)
#undef FIND
	opened = !why[0];
}

/* What has failed may pass, as a lack of descriptors, and is tried again. */
const struct ucx_api *
ucx_library(char why[256])
{
	pthread_mutex_lock(&lock);
	if (!opened && !run_aside(UCX_STACK, open_library, why))
		snprintf(why, 256, "cannot start a thread");
	bool good = opened;
	pthread_mutex_unlock(&lock);
	return good ? &api : NULL;
}
#endif
