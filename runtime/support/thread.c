#include "support/thread.h"

#include <errno.h>
#include <signal.h>

int
start_thread(pthread_t *thread, size_t stack, void *(*run)(void *), void *of)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int failed = pthread_attr_init(&attr);
	if (failed)
		return failed;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_attr_setstacksize(&attr, stack);
	if (!failed)
		failed = pthread_create(thread, &attr, run, of);
	if (failed == EINVAL)
		failed = pthread_create(thread, NULL, run, of);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return failed;
}
