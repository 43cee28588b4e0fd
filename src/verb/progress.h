/* What a terminal shows of long work, and what is left of a budget. */
#ifndef BLINK_VERB_PROGRESS_H
#define BLINK_VERB_PROGRESS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Time counts from now on. terminal: standard error is a tty. */
void progress_start(bool terminal);

/* Work ends that long after the start: before it is called, after an hour. */
void progress_limit(int64_t ms);
int64_t progress_budget(void);

/* ms since the start. */
int64_t progress_ms(void);

/* For ctx->step: shows the current step, up to ten times a second, once work takes long. Returns the ms that are left
 * of the budget. */
int progress_step(void *of, const char *line);

/* n of `all` are done: a bar, and the time that is left at this pace. what: the same pointer for the same work. */
void progress_bar(const char *what, int64_t n, int64_t all);

/* Erase the line of the last step. */
void progress_hide(void);

#endif
