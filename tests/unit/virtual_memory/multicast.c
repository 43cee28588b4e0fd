/* Multicast objects: of all devices of a machine whose switch adds and copies, and where there is none. */
#include "unit/virtual_memory/virtual_memory.h"

#include <pthread.h>

enum { ALL = 8, OBJECT = 4 << 20 };

static const CUmulticastObjectProp object_of_all = { .numDevices = ALL, .size = OBJECT,
	.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };

/* dgx1v has no such switch. */
void
test_multicast(void)
{
	CUmemGenericAllocationHandle h;
	int can = 1;
	ok(GOOD(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0)) && WANT(can == 0) &&
	    IS(cuMulticastCreate(&h, &object_of_all), CUDA_ERROR_NOT_SUPPORTED), "no multicast objects");
	ok(exits("multicast", "VIRTUAL_GPU_TOPOLOGY", "topologies/dgx-h100-nvls.xml", 0), "multicast objects");
}

static CUmemGenericAllocationHandle object;
static _Atomic int bound;

/* Memory of a device, bound and mapped. Device 0's thread waits in cuMulticastBindMem until the last has been added. */
struct member {
	int device;
	CUmemGenericAllocationHandle memory;
	CUdeviceptr own;
	bool good;
};

static void *
bind_memory(void *of)
{
	struct member *m = of;
	m->good = GOOD(cuMulticastBindMem(object, 0, m->memory, 0, OBJECT, 0));
	bound++;
	return NULL;
}

static bool
make_member(struct member *m)
{
	CUmemAllocationProp what = on_device_1;
	CUmemAccessDesc own = access_of(m->device, 3);
	what.location.id = m->device;
	return GOOD(cuMemCreate(&m->memory, OBJECT, &what, 0)) && GOOD(cuMemAddressReserve(&m->own, OBJECT, 0, 0, 0)) &&
	    GOOD(cuMemMap(m->own, OBJECT, 0, m->memory, 0)) && GOOD(cuMemSetAccess(m->own, OBJECT, &own, 1));
}

/* The 4 bytes of each member there, reduced. */
static uint32_t
reduced(int device, CUdeviceptr at, const char *how)
{
	char *value[DEVICES_MOST];
	int owner[DEVICES_MOST], n = 0;
	uint32_t to = 0;
	if (multicast_access(device, pointer(at), 4, false, value, owner, &n) != CUDA_SUCCESS || n != ALL)
		return 0;
	return switch_reduce(how, value, n, 4, (char *)&to) ? to : 0;
}

static bool
refuses(void)
{
	CUmulticastObjectProp bad = object_of_all;
	CUmemGenericAllocationHandle h;
	size_t grain, more;
	bool good = GOOD(cuMulticastGetGranularity(&grain, &bad, CU_MULTICAST_GRANULARITY_MINIMUM)) &&
	    GOOD(cuMulticastGetGranularity(&more, &bad, CU_MULTICAST_GRANULARITY_RECOMMENDED)) &&
	    WANT(grain == UNIT && more == 2 * UNIT);
	bad.size = UNIT + MIB;
	good = good && IS(cuMulticastCreate(&h, &bad), INVALID);
	bad = object_of_all;
	bad.numDevices = 0;
	return good && IS(cuMulticastCreate(&h, &bad), INVALID) && IS(cuMulticastAddDevice(77, 0), INVALID) &&
	    IS(cuMulticastUnbind(object, 0, 0, OBJECT), INVALID) &&
	    IS(cuMulticastAddDevice(object, ALL), CUDA_ERROR_INVALID_DEVICE);
}

/* An instruction that there is none of gives nothing. */
static bool
adds(void)
{
	static float floats[2] = { 1.5f, 2.25f };
	static int32_t whole[2] = { -7, 3 };
	static uint32_t halves[2] = { 0x3c003c00, 0xc0003c01 };	/* 1, 1; -2, 1 + 2^-10 */
	char *f[] = { (char *)&floats[0], (char *)&floats[1] }, *i[] = { (char *)&whole[0], (char *)&whole[1] };
	char *h[] = { (char *)&halves[0], (char *)&halves[1] };
	float sum;
	int32_t least;
	uint32_t both;
	return WANT(switch_reduce("add.f32", f, 2, 4, (char *)&sum) && sum == 3.75f) &&
	    WANT(switch_reduce("min.s32", i, 2, 4, (char *)&least) && least == -7) &&
	    WANT(switch_reduce("max.u32", i, 2, 4, (char *)&least) && least == -7) &&
	    WANT(switch_reduce("add.acc::f32.f16x2", h, 2, 4, (char *)&both) && both == 0xbc004000) &&
	    WANT(!switch_reduce("mul.f32", f, 2, 4, (char *)&sum)) &&
	    WANT(!switch_reduce("add.u32", i, 2, 16, (char *)&least));
}

bool
role_multicast(void)
{
	struct member member[ALL];
	CUcontext c;
	CUdeviceptr all = 0;
	CUmemGenericAllocationHandle again;
	CUmemAccessDesc access = access_of(3, 3);
	pthread_t early;
	int can = 0, fd = -1;
	bool good = GOOD(cuInit(0)) && GOOD(cuDevicePrimaryCtxRetain(&c, 0)) && GOOD(cuCtxSetCurrent(c)) &&
	    GOOD(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0)) && WANT(can) &&
	    GOOD(cuMulticastCreate(&object, &object_of_all)) && refuses() && adds();
	for (int i = 0; i < ALL && good; i++) {
		member[i].device = i;
		good = make_member(&member[i]);
	}
	for (int i = 0; i < ALL - 1 && good; i++)
		good = GOOD(cuMulticastAddDevice(object, i));
	good = good && IS(cuMulticastAddDevice(object, 0), INVALID) &&
	    pthread_create(&early, NULL, bind_memory, &member[0]) == 0;
	if (!good)
		return false;
	usleep(20000);
	good = WANT(bound == 0) && GOOD(cuMulticastAddDevice(object, ALL - 1));
	pthread_join(early, NULL);
	good = good && member[0].good &&
	    GOOD(cuMemExportToShareableHandle(&fd, object, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)) &&
	    GOOD(cuMemImportFromShareableHandle(&again, pointer((CUdeviceptr)fd), 1)) && close(fd) == 0;
	for (int i = 1; i < ALL && good; i++) {
		bind_memory(&member[i]);
		good = member[i].good;
	}
	/* Each device's number + 1, seen by device 3 alone, and by no plain load. */
	good = good && GOOD(cuMemAddressReserve(&all, OBJECT, 0, 0, 0)) && GOOD(cuMemMap(all, OBJECT, 0, again, 0)) &&
	    GOOD(cuMemSetAccess(all, OBJECT, &access, 1));
	for (int i = 0; i < ALL && good; i++)
		good = GOOD(cuDevicePrimaryCtxRetain(&c, i)) && GOOD(cuCtxSetCurrent(c)) &&
		    GOOD(put(member[i].own + MIB, (uint64_t)i + 1));
	return good && WANT(reduced(3, all + MIB, "add.u32") == 36) && WANT(reduced(3, all + MIB, "max.s32") == ALL) &&
	    WANT(reduced(2, all + MIB, "add.u32") == 0) && IS(access_by(3, all + MIB, 4, false), ILLEGAL) &&
	    GOOD(cuMulticastUnbind(object, 0, 0, OBJECT)) && WANT(reduced(3, all + MIB, "add.u32") == 0) &&
	    GOOD(cuMemUnmap(all, OBJECT)) && GOOD(cuMemRelease(again)) && GOOD(cuMemRelease(object)) &&
	    IS(cuMulticastUnbind(object, 1, 0, OBJECT), INVALID);
}
