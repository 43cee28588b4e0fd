/* Results of NCCL's interface, and texts of errors. */
#include "nccl/shim.h"
#include "support/debug.h"

#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of texts */

char *
last_error(void)
{
	static __thread char text[512];
	return text;
}

/* What libblink returns, in NCCL's words; what the table leaves out is a wrong use. */
ncclResult_t
result_of(blinkResult_t result)
{
	static const struct {
		blinkResult_t blink;
		ncclResult_t nccl;
	} results[] = {
		{blinkSuccess, ncclSuccess},
		{blinkInvalidArgument, ncclInvalidArgument},
		{blinkInProgress, ncclInProgress},
		{blinkRemoteError, ncclRemoteError},
		{blinkTimeout, ncclRemoteError},
		{blinkAborted, ncclRemoteError},
		{blinkOutOfMemory, ncclSystemError},
		{blinkSystemError, ncclSystemError},
		{blinkInternalError, ncclInternalError},
	};

	for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
		if (results[i].blink == result)
			return results[i].nccl;
	return ncclInvalidUsage;
}

ncclResult_t
comm_error(struct shim_comm *c, ncclResult_t result, const char *text)
{
	snprintf(last_error(), 512, "%.511s", text);
	if (c) {
		pthread_mutex_lock(&lock);
		snprintf(c->text, sizeof c->text, "%.511s", text);
		pthread_mutex_unlock(&lock);
	}
	debug_say(DEBUG_WARN, c ? c->rank : -1, "nccl: %s", text);
	return result;
}

void
comm_keeps_error(struct shim_comm *c)
{
	pthread_mutex_lock(&lock);
	snprintf(c->text, sizeof c->text, "%.511s", last_error());
	pthread_mutex_unlock(&lock);
}
