/* Errors of the runtime. */
#ifndef BLINK_ERROR_H
#define BLINK_ERROR_H

#include "blink_program.h"

/* Keep the first error and return its code, a blinkResult_t. The text: where: what was found: what is wanted.
 * (blink_fail of blink_device.h does the same in generated programs, which need nothing of libblink.) */
__attribute__((format(printf, 3, 4))) int set_error(struct blink_error *err, int code, const char *format, ...);
int set_error_memory(struct blink_error *err);

#endif
