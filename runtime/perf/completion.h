/* Completion of blink-perf's command line by shells. */
#ifndef BLINK_PERF_COMPLETION_H
#define BLINK_PERF_COMPLETION_H

#include <stdbool.h>

/* Print the script for a shell; false: there is none. */
bool print_completion(const char *shell);

#endif
