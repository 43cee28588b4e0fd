#include "support/thread.h"

#include <errno.h>
#include <signal.h>

int
start_thread(pthread_t *thread, size_t stack, void *(*run)(void *), void *of)
{
	pthread_attr_t attr;
	pthread_t detached;
	sigset_t all, before;
	int failed = pthread_attr_init(&attr);
	if (failed)
		return failed;
	if (!thread)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_attr_setstacksize(&attr, stack);
	if (!failed)
		failed = pthread_create(thread ? thread : &detached, &attr, run, of);
	if (failed == EINVAL && (failed = pthread_attr_setstacksize(&attr, 64 * stack)) == 0)
		failed = pthread_create(thread ? thread : &detached, &attr, run, of);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return failed;
}

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
run_aside(size_t stack, void (*run)(void *), void *of)
{
	struct errand e = { run, of };
	pthread_t thread;
	if (start_thread(&thread, stack, run_errand, &e) != 0)
		return false;
	pthread_join(thread, NULL);
	return true;
}
