/* Functions that need no handle. */
#include "base/status.h"
#include "blink.h"

_Static_assert((int)blinkInternalError == INTERNAL && (int)blinkInvalidArgument == USAGE
    && (int)blinkBadInput == BAD_INPUT && (int)blinkLimit == LIMIT && (int)blinkInfeasible == INFEASIBLE
    && (int)blinkUnverified == UNVERIFIED && (int)blinkOutOfMemory == NO_MEMORY && (int)blinkSystemError == IO,
    "a blinkResult_t is a Status");

const char *
blinkVersion(void)
{
	return BLINK_VERSION;
}

const char *
blinkGetErrorString(blinkResult_t result)
{
	switch (result) {
	case blinkInvalidArgument:
		return "an argument is not valid";
	case blinkInternalError:
		return "a defect of the library itself";
	case blinkInfeasible:
		return "the ranks are not connected by the links allowed, or an index has no schedule for them";
	case blinkSystemError:
		return "a file, a thread, a device or a network failed";
	case blinkRemoteError:
		return "another rank failed, ended or left";
	case blinkTimeout:
		return "another rank is late or stopped, or does not answer";
	case blinkMismatch:
		return "ranks made different calls, or have different schedules";
	case blinkAborted:
		return "blinkCommAbort was called";
	case blinkInProgress:
		return "not done yet";
	default:
		return status_text((Status)result);
	}
}

size_t
blinkTypeSize(blinkDataType_t type)
{
	switch (type) {
	case blinkInt8:
	case blinkUint8:
	case blinkFloat8e4m3:
	case blinkFloat8e5m2:
		return 1;
	case blinkFloat16:
	case blinkBfloat16:
		return 2;
	case blinkInt32:
	case blinkUint32:
	case blinkFloat32:
		return 4;
	case blinkInt64:
	case blinkUint64:
	case blinkFloat64:
		return 8;
	}
	return 0;
}
