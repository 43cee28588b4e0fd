/* Memory of other processes, and processes that have some of the devices. */
#include "unit/virtual_memory/virtual_memory.h"

#include <sys/socket.h>
#include <sys/wait.h>

enum { CHILD = 77 };		/* exit code of an owner */

struct offer {
	CUipcMemHandle handle[2];
	CUresult interior, vmm;
};

static bool
send_offer(const struct offer *offer, int fd)
{
	char space[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec part = { (void *)offer, sizeof *offer };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = space,
		.msg_controllen = sizeof space };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	return sendmsg(SOCKET, &message, 0) == (ssize_t)sizeof *offer;
}

static bool
receive_offer(int socket, struct offer *offer, int *fd)
{
	char space[CMSG_SPACE(sizeof *fd)];
	struct iovec part = { offer, sizeof *offer };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = space,
		.msg_controllen = sizeof space };
	if (recvmsg(socket, &message, MSG_WAITALL) != (ssize_t)sizeof *offer || !CMSG_FIRSTHDR(&message))
		return false;
	memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *fd);
	return true;
}

/* A process that has devices 3 and 0 alone; memory of device 1 comes from outside. */
bool
role_visible(void)
{
	struct offer offer;
	CUcontext c;
	CUdeviceptr a, v;
	CUmemGenericAllocationHandle h;
	CUmemAccessDesc here = access_of(0, 3);
	char id[32];
	int n, fd = -1, device, can;
	return GOOD(cuInit(0)) && GOOD(cuDeviceGetCount(&n)) && WANT(n == 2) &&
	    GOOD(cuDeviceGetPCIBusId(id, sizeof id, 0)) && WANT(!strcmp(id, "0000:13:00.0")) &&
	    GOOD(cuDeviceCanAccessPeer(&can, 0, 1)) && WANT(can) && IS(cuDeviceGet(&n, 2), CUDA_ERROR_INVALID_DEVICE) &&
	    GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && GOOD(cuCtxSetCurrent(c)) &&
	    receive_offer(SOCKET, &offer, &fd) && GOOD(cuIpcOpenMemHandle_v2(&a, offer.handle[0], 1)) &&
	    WANT(get(a + 992) == 11) && GOOD(access_by(0, a, 8, true)) && IS(access_by(1, a, 8, true), ILLEGAL) &&
	    GOOD(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a)) && WANT(device == 0) &&
	    GOOD(cuMemImportFromShareableHandle(&h, pointer((CUdeviceptr)fd), 1)) &&
	    GOOD(cuMemAddressReserve(&v, UNIT, 0, 0, 0)) && GOOD(cuMemMap(v, UNIT, 0, h, 0)) &&
	    GOOD(cuMemSetAccess(v, UNIT, &here, 1)) && WANT(get(v + MIB) == 33) && GOOD(cuIpcCloseMemHandle(a));
}

bool
role_no_device(void)
{
	int n;
	return IS(cuInit(0), CUDA_ERROR_NO_DEVICE) && IS(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
}

/* Frees memory, and takes other memory, which may be in what the first one left: a descriptor. */
static CUresult
free_and_take(CUdeviceptr memory)
{
	CUdeviceptr other;
	CUresult result = cuMemFree_v2(memory);
	return result == CUDA_SUCCESS ? cuMemAlloc_v2(&other, 3 * MIB) : result;
}

/* Owns memory on device 1. 'r': say what is in its first memory; 'f': free the second, and take other; 'q': end, as a
 * process that is killed does. */
bool
role_owner(void)
{
	CUcontext c;
	CUdeviceptr a = 0, b = 0, v = 0;
	CUmemGenericAllocationHandle h;
	CUmemAccessDesc own = access_of(1, 3);
	struct offer offer;
	int fd = -1;
	char ask;
	bool good = GOOD(cuInit(0)) && GOOD(cuDevicePrimaryCtxRetain(&c, 1)) && GOOD(cuCtxSetCurrent(c)) &&
	    GOOD(cuMemAlloc_v2(&a, 1000)) && GOOD(cuMemAlloc_v2(&b, 3 * MIB)) &&
	    GOOD(cuMemCreate(&h, UNIT, &on_device_1, 0)) && GOOD(cuMemAddressReserve(&v, UNIT, 0, 0, 0)) &&
	    GOOD(cuMemMap(v, UNIT, 0, h, 0)) && GOOD(cuMemSetAccess(v, UNIT, &own, 1)) && GOOD(put(a + 992, 11)) &&
	    GOOD(put(b + 2 * MIB, 22)) && GOOD(put(v + MIB, 33)) && GOOD(cuIpcGetMemHandle(&offer.handle[0], a)) &&
	    GOOD(cuIpcGetMemHandle(&offer.handle[1], b)) &&
	    GOOD(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	offer.interior = cuIpcGetMemHandle(&offer.handle[1], b + 512);
	offer.vmm = cuIpcGetMemHandle(&offer.handle[1], v);
	good = good && send_offer(&offer, fd);
	while (good && read(SOCKET, &ask, 1) == 1 && ask != 'q') {
		uint64_t said = ask == 'r' ? get(a) : (uint64_t)free_and_take(b);
		good = write(SOCKET, &said, sizeof said) == sizeof said;
	}
	fflush(stdout);
	_exit(good ? CHILD : 1);
}

static uint64_t
ask(int socket, char what)
{
	uint64_t said = UINT64_MAX;
	if (write(socket, &what, 1) != 1 || read(socket, &said, sizeof said) != sizeof said)
		return UINT64_MAX;
	return said;
}

static CUresult
open_by(int device, CUdeviceptr *memory, CUipcMemHandle handle, unsigned flags)
{
	CUcontext c;
	if (cuCtxPushCurrent_v2(context(device)) != CUDA_SUCCESS)
		return CUDA_ERROR_UNKNOWN;
	CUresult result = cuIpcOpenMemHandle_v2(memory, handle, flags);
	cuCtxPopCurrent_v2(&c);
	return result;
}

/* a: the owner's first memory as this process has it. */
static void
check_opened(const struct offer *offer, CUdeviceptr *a, int socket)
{
	CUdeviceptr again, base, other;
	CUipcMemHandle own;
	size_t bytes;
	int device;
	ok(GOOD(open_by(0, a, offer->handle[0], 1)) && WANT(get(*a + 992) == 11) && GOOD(put(*a, 44)) &&
	    WANT(ask(socket, 'r') == 44) && GOOD(cuMemGetAddressRange_v2(&base, &bytes, *a + 8)) &&
	    WANT(base == *a && bytes == 1000) &&
	    GOOD(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, *a)) && WANT(device == 1),
	    "memory of another process");
	ok(GOOD(access_by(0, *a, 1000, true)) && GOOD(access_by(1, *a, 1000, true)) && WANT(memory_direct(0, 1)) &&
	    IS(access_by(2, *a, 8, false), ILLEGAL) && IS(access_by(0, *a, 1001, true), ILLEGAL), "who may access it");
	ok(IS(open_by(0, &again, (CUipcMemHandle){ { 0 } }, 1), INVALID) &&
	    IS(open_by(0, &again, offer->handle[0], 0), INVALID) &&
	    IS(open_by(4, &again, offer->handle[0], 1), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) &&
	    GOOD(cuMemAlloc_v2(&other, 64)) && GOOD(cuIpcGetMemHandle(&own, other)) &&
	    IS(open_by(0, &again, own, 1), CUDA_ERROR_INVALID_CONTEXT) && GOOD(cuMemFree_v2(other)) &&
	    IS(cuIpcGetMemHandle(&own, *a), INVALID) && IS(cuMemFree_v2(*a), INVALID), "what is refused");
	ok(GOOD(open_by(0, &again, offer->handle[0], 1)) && WANT(again == *a) &&
	    GOOD(open_by(1, &other, offer->handle[0], 1)) &&
	    WANT(other != *a) && GOOD(cuIpcCloseMemHandle(*a)) && GOOD(access_by(0, *a, 8, true)) &&
	    IS(cuIpcCloseMemHandle(*a + 8), INVALID) && IS(cuIpcCloseMemHandle(other), INVALID) &&
	    GOOD(cuIpcCloseMemHandle(*a)) && IS(cuIpcCloseMemHandle(*a), INVALID) &&
	    IS(access_by(0, *a, 8, true), ILLEGAL) && GOOD(open_by(0, a, offer->handle[0], 1)), "it is closed");
}

static void
check_imported(int fd)
{
	CUmemGenericAllocationHandle h;
	CUmemAccessDesc here = access_of(0, 3);
	CUdeviceptr v;
	ok(IS(cuMemImportFromShareableHandle(&h, pointer(0), 1), INVALID) &&
	    GOOD(cuMemImportFromShareableHandle(&h, pointer((CUdeviceptr)fd), 1)) &&
	    GOOD(cuMemAddressReserve(&v, UNIT, 0, 0, 0)) && GOOD(cuMemMap(v, UNIT, 0, h, 0)) &&
	    GOOD(cuMemSetAccess(v, UNIT, &here, 1)) && WANT(get(v + MIB) == 33) && GOOD(cuMemRelease(h)) &&
	    WANT(get(v + MIB) == 33) && GOOD(cuMemUnmap(v, UNIT)) && GOOD(cuMemAddressFree(v, UNIT)),
	    "memory by file descriptor");
}

/* b: of memory that its owner frees while it is open here; a: of an owner that ends. */
static void
check_gone(const struct offer *offer, CUdeviceptr a, int socket, pid_t owner)
{
	CUdeviceptr b, again;
	char quit = 'q';
	ok(GOOD(open_by(0, &b, offer->handle[1], 1)) && WANT(get(b + 2 * MIB) == 22) && WANT(ask(socket, 'f') == 0) &&
	    WANT(get(b + 2 * MIB) == 22) && IS(open_by(1, &again, offer->handle[1], 1), CUDA_ERROR_INVALID_HANDLE) &&
	    GOOD(cuIpcCloseMemHandle(b)), "memory that its owner has freed");
	bool good = write(socket, &quit, 1) == 1;
	int status = ended(owner);
	ok(good && WIFEXITED(status) && WEXITSTATUS(status) == CHILD && WANT(get(a) == 44) &&
	    IS(open_by(1, &again, offer->handle[0], 1), CUDA_ERROR_INVALID_HANDLE) && GOOD(cuIpcCloseMemHandle(a)),
	    "memory of a process that has ended");
}

void
test_processes(void)
{
	int ends[2], fd = -1;
	CUcontext c;
	CUdeviceptr a = 0;
	struct offer offer;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return ok(false, "a socket");
	pid_t owner = start("owner", NULL, NULL, ends[1]);
	close(ends[1]);
	bool good = GOOD(cuDevicePrimaryCtxRetain(&c, 4)) && receive_offer(ends[0], &offer, &fd);
	ok(good && IS(offer.interior, INVALID) && IS(offer.vmm, INVALID),
	    "handles of whole memory of cuMemAlloc alone");
	if (good) {
		check_opened(&offer, &a, ends[0]);
		check_imported(fd);
		check_gone(&offer, a, ends[0], owner);
	}
	close(fd);
	close(ends[0]);
	ok(GOOD(cuDevicePrimaryCtxRelease_v2(4)), "all is given back");
}

/* The owner sends its offer to a process that does not see the owner's device. */
void
test_visible(void)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return ok(false, "a socket");
	pid_t owner = start("owner", NULL, NULL, ends[1]);
	int status = ended(start("visible", "CUDA_VISIBLE_DEVICES", "3,0,8,1", ends[0]));
	close(ends[0]);
	close(ends[1]);
	bool owned = WEXITSTATUS(ended(owner)) == CHILD;
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0 && owned, "a process that sees some of the devices");
	ok(exits("no-device", "CUDA_VISIBLE_DEVICES", "", 0) && exits("no-device", "CUDA_VISIBLE_DEVICES", "-1", 0),
	    "and none");
}
