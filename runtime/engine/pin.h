/* Pinning of threads to cores. */
#ifndef BLINK_PIN_H
#define BLINK_PIN_H

#include <stdbool.h>
#include <stddef.h>

/* Bind the calling thread to the share of the process's cores that belongs to rank number `index` of `n_local` on this
 * server. text: what was done, for people. False: nothing was. Takes about 10 ms. */
bool pin_thread(int index, int n_local, char *text, size_t size);

#endif
