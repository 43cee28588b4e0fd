/* Threads of the library. */
#ifndef BLINK_THREAD_H
#define BLINK_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Start a thread with a stack of `stack` bytes, or 64 times as many where thread-local data of the program do not fit
 * into it; all signals are blocked: they are for the threads of the program. thread: NULL: nobody waits for its end.
 * Returns an errno. */
int start_thread(pthread_t *thread, size_t stack, void *(*run)(void *), void *of);

/* Run it on a thread of its own, and wait for its end: for what needs more stack than a call of libblink may take.
 * False: there is no such thread. */
bool run_aside(size_t stack, void (*run)(void *), void *of);

#endif
