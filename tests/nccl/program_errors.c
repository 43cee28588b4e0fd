/* What a mistake gives, and groups that fail. */
#include "program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- calls that are refused ---- */

/* The text of an error that no other call makes. */
static char last_text[512];

static const char *
other_text(void)
{
	ncclGroupEnd();
	return ncclGetLastError(NULL);
}

/* A call that has to fail with that result, and to say why. */
static bool
refused(ncclResult_t result, ncclResult_t want, const char *call)
{
	const char *text = ncclGetLastError(NULL);
	bool good = result == want && text[0] && strcmp(text, last_text) != 0;
	if (!good)
		printf("# %s: %d, \"%s\": want %d\n", call, (int)result, text, (int)want);
	snprintf(last_text, sizeof last_text, "%s", other_text());
	return good;
}
#define REFUSED(call, want) good &= refused(call, want, #call)

/* Of a communicator that is good: of one rank. */
static void
misuse(void)
{
	static char memory[8] __attribute__((aligned(8)));
	int zero = 0, none = 9, value;
	ncclUniqueId id;
	ncclComm_t comm = NULL, other = NULL;
	ncclRedOp_t op = ncclSum;
	ncclWindow_t window;
	void *handle;
	bool good = TRY_NCCL(ncclGetUniqueId(&id)) && TRY_NCCL(ncclCommInitRank(&comm, 1, id, 0));
	REFUSED(ncclCommInitRank(&other, 0, id, 0), ncclInvalidArgument);
	REFUSED(ncclCommInitRank(&other, 1, id, -1), ncclInvalidArgument);
	REFUSED(ncclCommInitRank(NULL, 1, id, 0), ncclInvalidArgument);
	REFUSED(ncclCommInitAll(&other, 0, NULL), ncclInvalidArgument);
	REFUSED(ncclCommInitRankScalable(&other, 1, 0, 0, &id, NULL), ncclInvalidArgument);
	REFUSED(ncclGetUniqueId(NULL), ncclInvalidArgument);
	REFUSED(ncclGetVersion(NULL), ncclInvalidArgument);
	REFUSED(ncclCommCount(comm, NULL), ncclInvalidArgument);
	REFUSED(ncclCommGetAsyncError(comm, NULL), ncclInvalidArgument);
	REFUSED(ncclCommSplit(comm, -2, 0, &other, NULL), ncclInvalidArgument);
	REFUSED(ncclCommSplit(comm, 0, 0, NULL, NULL), ncclInvalidArgument);
	REFUSED(ncclCommShrink(comm, NULL, 1, &other, NULL, 0), ncclInvalidArgument);
	REFUSED(ncclCommShrink(comm, &zero, 1, &other, NULL, 0), ncclInvalidArgument);
	REFUSED(ncclCommShrink(comm, &none, 0, &other, NULL, 0), ncclInvalidArgument);
	REFUSED(ncclCommShrink(comm, &none, 1, &other, NULL, 8), ncclInvalidArgument);
	REFUSED(ncclCommGrow(comm, 1, NULL, -1, &other, NULL), ncclInvalidArgument);
	REFUSED(ncclCommGrow(NULL, 2, NULL, 1, &other, NULL), ncclInvalidArgument);
	REFUSED(ncclCommRevoke(comm, 1), ncclInvalidArgument);
	REFUSED(ncclCommRegister(comm, NULL, 1, &handle), ncclInvalidArgument);
	REFUSED(ncclCommWindowRegister(comm, NULL, 1, &window, 0), ncclInvalidArgument);
	REFUSED(ncclRedOpCreatePreMulSum(NULL, memory, ncclInt8, ncclScalarHostImmediate, comm), ncclInvalidArgument);
	REFUSED(ncclRedOpCreatePreMulSum(&op, NULL, ncclInt8, ncclScalarDevice, comm), ncclInvalidArgument);
	REFUSED(ncclRedOpCreatePreMulSum(&op, memory, ncclInt8, (ncclScalarResidence_t)7, comm), ncclInvalidArgument);
	REFUSED(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument);
	REFUSED(ncclAllReduce(NULL, NULL, 1, ncclFloat32, ncclSum, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclAllReduce(NULL, NULL, 0, (ncclDataType_t)99, ncclSum, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclAllReduce(NULL, NULL, 0, ncclInt8, (ncclRedOp_t)99, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclBroadcast(NULL, NULL, 0, ncclInt8, 1, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclSend(NULL, 0, ncclInt8, 1, comm, NULL), ncclInvalidArgument);
	REFUSED(ncclMemAlloc(NULL, 1), ncclInvalidArgument);
	good = good && TRY_NCCL(ncclCommCount(comm, &value)) && value == 1 && TRY_NCCL(ncclCommFinalize(comm));
	REFUSED(ncclCommFinalize(comm), ncclInvalidArgument);
	REFUSED(ncclBroadcast(NULL, NULL, 0, ncclInt8, 0, comm, NULL), ncclInvalidUsage);
	ok(good && TRY_NCCL(ncclCommDestroy(comm)), "arguments that are not valid, each with a text");
}

/* What a mistake gives, and that its text is there. */
void
errors(struct rank *r)
{
	ncclComm_t comm = NULL;
	ncclUniqueId id;
	ncclConfig_t bad = { sizeof bad, 1, 22809, INT_MIN };
	use_device(0);
	bool alone = getenv("BLINK_NCCL") && strcmp(getenv("BLINK_NCCL"), "none") == 0;
	(void)r;
	ok(TRY_NCCL(ncclGetUniqueId(&id)) && ncclCommInitRank(&comm, 2, id, 2) == ncclInvalidArgument &&
	    strlen(ncclGetLastError(NULL)) > 0, "a rank that is none");
	ok(ncclCommInitRankConfig(&comm, 1, id, 0, &bad) == ncclInvalidArgument, "a configuration that is none");
	ok(ncclAllReduce(NULL, NULL, 0, ncclInt8, ncclSum, (ncclComm_t)&id, NULL) == ncclInvalidArgument,
	    "a communicator that is none");
	ok(ncclCommDestroy(NULL) == ncclSuccess && ncclCommFinalize(NULL) == ncclSuccess &&
	    ncclCommAbort(NULL) == ncclSuccess, "no communicator to end");
	bad = (ncclConfig_t){ sizeof bad, 0xcafebeef, 22809, 7 };
	ok(ncclCommInitRankConfig(&comm, 1, id, 0, &bad) == ncclInvalidArgument, "a configuration that does neither");
	if (alone)
		misuse();
	if (alone)
		ok(ncclCommSuspend((ncclComm_t)&id, 1) == ncclInvalidUsage &&
		    strstr(ncclGetLastError(NULL), "BLINK_NCCL"), "a function that only NCCL has");
	ok(strcmp(ncclGetErrorString((ncclResult_t)99), "") != 0, "the text of an unknown result");
}

/* ---- groups that fail ---- */

/* None of the calls of a group is made if one of them is refused, or if its communicator ends in between. */
static void *
failing_rank(void *rank)
{
	struct rank *r = rank;
	ncclComm_t comm = NULL;
	float first = 0;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) &&
	    open_buffers(r) && TRY_NCCL(ncclCommSplit(r->comm, 0, r->number, &comm, NULL)) &&
	    TRY_NCCL(ncclGroupStart()) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->send, COUNT, ncclFloat32, ncclSum, r->comm, r->stream)) &&
	    ncclBroadcast(r->send, r->send, COUNT, ncclFloat32, n_ranks, comm, r->stream) == ncclInvalidArgument &&
	    ncclGroupEnd() == ncclInvalidArgument && strstr(ncclGetLastError(NULL), "root") &&
	    TRY_NCCL(ncclGroupStart()) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->send, COUNT, ncclFloat32, ncclSum, comm, r->stream)) &&
	    TRY_NCCL(ncclCommDestroy(comm)) && ncclGroupEnd() == ncclInvalidArgument && finish(r->stream);
	if (r->good)
		copy(&first, r->send, sizeof first);
	r->good = r->good && first == value(r->number, 0) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, r->comm, r->stream)) &&
	    receives(r, COUNT, sum, "an allreduce after groups that failed");
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

/* One whose other ranks would never come. */
static bool
fails_to_make(void)
{
	ncclUniqueId id;
	ncclComm_t comm = NULL, other = NULL, all[2] = { NULL, NULL };
	const int devices[2] = { 0, 9999 };
	time_t begin = time(NULL);
	bool good = use_device(0) && TRY_NCCL(ncclGetUniqueId(&id)) && TRY_NCCL(ncclGroupStart()) &&
	    TRY_NCCL(ncclCommInitRank(&comm, 2, id, 0)) && ncclCommInitRank(&other, 2, id, 2) == ncclInvalidArgument &&
	    ncclGroupEnd() == ncclInvalidArgument && !comm;
	if (good && driver)
		good = ncclCommInitAll(all, 2, devices) == ncclInvalidArgument &&
		    strstr(ncclGetLastError(NULL), "device 9999") && !all[0];
	return good && time(NULL) - begin < 30;
}

/* What a child of fork hears about its parent's communicator. */
static bool
fails_forked(void)
{
	ncclUniqueId id;
	ncclComm_t comm = NULL;
	int status = 1;
	if (!use_device(0) || !TRY_NCCL(ncclGetUniqueId(&id)) || !TRY_NCCL(ncclCommInitRank(&comm, 1, id, 0)))
		return false;
	pid_t child = fork();
	if (child == 0) {
		ncclResult_t error = ncclSuccess;
		_exit(ncclCommGetAsyncError(comm, &error) != ncclSuccess || error != ncclInvalidArgument ||
		    !strstr(ncclGetLastError(comm), "fork"));
	}
	return waitpid(child, &status, 0) == child && status == 0 && TRY_NCCL(ncclCommDestroy(comm));
}

/* A group that is simulated is not executed, and is over. */
static void *
simulated_rank(void *rank)
{
	struct rank *r = rank;
	char last[512] = "";
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) &&
	    open_buffers(r) && TRY_NCCL(ncclGroupStart()) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->send, COUNT, ncclFloat32, ncclSum, r->comm, r->stream)) &&
	    ncclGroupSimulateEnd(NULL) == ncclInvalidUsage;
	snprintf(last, sizeof last, "%s", ncclGetLastError(NULL));
	r->good = r->good && strstr(last, "needs NCCL") && ncclGroupSimulateEnd(NULL) == ncclInvalidUsage &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, r->comm, r->stream)) &&
	    receives(r, COUNT, sum, "an allreduce after a group that was simulated");
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

void
failing(struct rank *r)
{
	on_threads(r, failing_rank, "groups that fail");
	on_threads(r, simulated_rank, "a group that is simulated");
	ok(fails_to_make(), "a communicator in a group that fails");
	ok(fails_forked(), "a communicator of the parent of this process");
}
