/* UCX as it is installed here, if it is.
 *
 * libucs, on which the rest of UCX stands, changes the process as it is loaded: it takes over the signals of errors, and
 * libuct, which comes with libucp, has it write jumps into the C library's mmap, munmap and others, to hear of memory
 * that goes. Neither is for a library within other people's programs. So libucs is opened alone, first; it gives the
 * signals back, and is told to leave memory alone; then libucp is opened. All this only where the program has not
 * loaded UCX itself, and the user has not asked for something else by UCX's own variables. */
#include "transport/ucx.h"

#ifdef BLINK_UCX
#include "debug.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucm/api/ucm.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

enum { SIGNALS = 32, STACK = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of all below */
static struct ucx_api api;
static bool opened;

/* ---- a thread ---- */

struct errand {
	void (*run)(void *);
	void *of;
};

static void *
run_errand(void *of)
{
	struct errand *e = of;
	e->run(e->of);
	return NULL;
}

bool
ucx_aside(void (*run)(void *), void *of)
{
	struct errand e = { run, of };
	pthread_t thread;
	if (tcp_start_thread(&thread, STACK, run_errand, &e) != 0)
		return false;
	pthread_join(thread, NULL);
	return true;
}

/* ---- the library ---- */

typedef void (*signal_handler)(int);

static signal_handler
handler_of(int number)
{
	struct sigaction now;
	return sigaction(number, NULL, &now) == 0 ? now.sa_handler : SIG_DFL;
}

/* What libucs has taken: the ones that it had not taken before it was loaded. */
static void
give_back_signals(void *library, const signal_handler before[SIGNALS])
{
	__typeof__(&ucs_debug_disable_signal) disable =
	    (__typeof__(&ucs_debug_disable_signal))dlsym(library, "ucs_debug_disable_signal");
	for (int i = 1; i < SIGNALS && disable; i++)
		if (handler_of(i) != before[i])
			disable(i);
}

static void
leave_memory_alone(void *library)
{
	const ucm_global_config_t *now = dlsym(library, "ucm_global_opts");
	__typeof__(&ucm_set_global_opts) set = (__typeof__(&ucm_set_global_opts))dlsym(library, "ucm_set_global_opts");
	if (!now || !set || getenv("UCX_MEM_EVENTS"))
		return;
	ucm_global_config_t quiet = *now;
	quiet.enable_events = 0;
	set(&quiet);
}

/* Its lines are of a form of their own, and go to the standard output or error: only where BLINK_DEBUG asks for some. */
static void
choose_log(void *library)
{
	__typeof__(&ucs_global_opts_set_value) set =
	    (__typeof__(&ucs_global_opts_set_value))dlsym(library, "ucs_global_opts_set_value");
	if (set && !getenv("UCX_LOG_LEVEL"))
		set("LOG_LEVEL", debug_on(DEBUG_TRACE) ? "info" : debug_on(DEBUG_WARN) ? "error" : "fatal");
}

static void
open_base(void)
{
	signal_handler before[SIGNALS];
	void *library = dlopen("libucs.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (library)
		return;
	for (int i = 1; i < SIGNALS; i++)
		before[i] = handler_of(i);
	library = dlopen("libucs.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	if (!getenv("UCX_HANDLE_ERRORS") && !getenv("UCX_ERROR_SIGNALS"))
		give_back_signals(library, before);
	leave_memory_alone(library);
	choose_log(library);
}

static void
open_library(void *reason)
{
	char *why = reason;
	open_base();
	void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
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
	if (!opened && !ucx_aside(open_library, why))
		snprintf(why, 256, "cannot start a thread");
	bool good = opened;
	pthread_mutex_unlock(&lock);
	return good ? &api : NULL;
}
#endif
