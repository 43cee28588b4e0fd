#include "support/give.h"
#include "base/printable.h"

#include <stdio.h>

blinkResult_t
give_error(blinkError_t *error, Status status, const char *text)
{
	if (error)
		snprintf(error->text, sizeof error->text, "%s", text);
	/* It may have been cut inside a character. */
	if (error)
		make_printable(error->text);
	return (blinkResult_t)status;
}
