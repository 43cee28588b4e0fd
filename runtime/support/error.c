#include "support/error.h"

#include <stdarg.h>
#include <stdio.h>

int
set_error(struct blink_error *err, int code, const char *format, ...)
{
	va_list args;
	if (err->code == blinkSuccess) {
		va_start(args, format);
		vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		err->code = code;
	}
	return err->code;
}

int
set_error_memory(struct blink_error *err)
{
	return set_error(err, blinkOutOfMemory, "out of memory");
}
