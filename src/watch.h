/* What people see of long work on a terminal, and what is left of a budget. */
#ifndef BLINK_WATCH_H
#define BLINK_WATCH_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* From now on. terminal: somebody looks on. */
void watch_start(bool terminal);

/* Work ends so many ms after the start. */
void watch_limit(int64_t ms);

/* ms since the start. */
int64_t watch_ms(void);

/* ctx->step: what work is at, ten times a second, once it takes long; the ms that are left of the budget. */
int watch_step(void *of, const char *line);

/* n of so many are done: a bar, and the time that is left at this pace. what: the same pointer for the same work. */
void watch_bar(const char *what, int64_t n, int64_t all);

/* The line of the last step goes. */
void watch_hide(void);

#endif
