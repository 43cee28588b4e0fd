/* Memory that the program maps at addresses that it has reserved; memory and addresses at random. */
#include "unit/virtual_memory/virtual_memory.h"

const CUmemAllocationProp on_device_1 = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } };

CUmemAccessDesc
access_of(int device, int flags)
{
	return (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, device }, flags };
}

void
test_reserve(void)
{
	CUdeviceptr a, b;
	ok(IS(cuMemAddressReserve(&a, UNIT + 1, 0, 0, 0), INVALID) &&
	    IS(cuMemAddressReserve(&a, 0, 0, 0, 0), INVALID) &&
	    IS(cuMemAddressReserve(&a, UNIT, 3 * UNIT, 0, 0), INVALID) &&
	    IS(cuMemAddressReserve(&a, (size_t)1 << 50, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY),
	    "addresses that cannot be");
	ok(GOOD(cuMemAddressReserve(&a, 4 * UNIT, 16 * UNIT, 0, 0)) && WANT(a % (16 * UNIT) == 0) &&
	    IS(access_by(0, a, 8, false), ILLEGAL) && IS(cuMemAddressFree(a, UNIT), INVALID) &&
	    IS(cuMemFree_v2(a), INVALID) && GOOD(cuMemAddressFree(a, 4 * UNIT)) &&
	    IS(cuMemAddressFree(a, 4 * UNIT), INVALID), "reserved addresses");
	ok(GOOD(cuMemAddressReserve(&b, UNIT, 0, a, 0)) && WANT(a == b) &&
	    GOOD(cuMemAddressReserve(&a, UNIT, 0, b, 0)) &&
	    WANT(a != b) && GOOD(cuMemAddressFree(a, UNIT)) && GOOD(cuMemAddressFree(b, UNIT)), "those that one wants");
}

void
test_create(void)
{
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp what = on_device_1;
	size_t bytes;
	ok(GOOD(cuMemGetAllocationGranularity(&bytes, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM)) &&
	    WANT(bytes == UNIT) &&
	    IS(cuMemCreate(&h, MIB, &what, 0), INVALID) && IS(cuMemCreate(&h, UNIT, NULL, 0), INVALID) &&
	    IS(cuMemCreate(&h, MEMORY + UNIT, &what, 0), CUDA_ERROR_OUT_OF_MEMORY) &&
	    (what.location.id = 8, IS(cuMemCreate(&h, UNIT, &what, 0), CUDA_ERROR_INVALID_DEVICE)) &&
	    (what = on_device_1, what.requestedHandleTypes = 2,
	    IS(cuMemCreate(&h, UNIT, &what, 0), CUDA_ERROR_NOT_SUPPORTED)) &&
	    IS(cuMemRelease(0), INVALID) && IS(cuMemRelease(123456), INVALID), "memory that cannot be");
}

/* Two handles behind each other, and a gap. */
void
test_map(void)
{
	CUmemGenericAllocationHandle h[2], again;
	CUmemAccessDesc both[2] = { access_of(0, 3), access_of(1, 1) }, far = access_of(4, 3), none = access_of(0, 0);
	CUdeviceptr a = 0, base;
	size_t bytes;
	struct allocation found;
	bool good = GOOD(cuMemAddressReserve(&a, 4 * UNIT, 0, 0, 0)) &&
	    GOOD(cuMemCreate(&h[0], UNIT, &on_device_1, 0)) &&
	    GOOD(cuMemCreate(&h[1], 2 * UNIT, &on_device_1, 0));
	ok(good && GOOD(cuMemMap(a, UNIT, 0, h[0], 0)) && GOOD(cuMemMap(a + UNIT, 2 * UNIT, 0, h[1], 0)) &&
	    IS(cuMemMap(a, UNIT, 0, h[0], 0), INVALID) && IS(cuMemMap(a + 3 * UNIT, UNIT, UNIT, h[1], 0), INVALID) &&
	    IS(cuMemMap(a + 3 * UNIT, 2 * UNIT, 0, h[1], 0), INVALID) &&
	    IS(cuMemMap(a + 3 * UNIT, UNIT, 0, 5, 0), INVALID) &&
	    IS(cuMemMap(a + 3 * UNIT + 512, UNIT, 0, h[0], 0), INVALID), "memory is mapped");
	ok(IS(access_by(1, a, 8, false), ILLEGAL) && IS(cuMemSetAccess(a, 4 * UNIT, both, 2), INVALID) &&
	    IS(cuMemSetAccess(a, UNIT / 2, both, 2), INVALID) &&
	    IS(cuMemSetAccess(a, UNIT, &far, 1), CUDA_ERROR_INVALID_DEVICE) &&
	    IS(cuMemSetAccess(a, UNIT, both, 0), INVALID) &&
	    WANT(!memory_direct(0, 1)) && GOOD(cuMemSetAccess(a, 3 * UNIT, both, 2)) && WANT(memory_direct(0, 1)) &&
	    GOOD(access_by(0, a + UNIT - 8, 16, true)) && GOOD(access_by(1, a, 3 * UNIT, false)) &&
	    IS(access_by(1, a, 8, true), ILLEGAL) && IS(access_by(0, a, 3 * UNIT + 1, true), ILLEGAL) &&
	    IS(access_by(2, a, 8, false), ILLEGAL), "who may access it");
	ok(GOOD(put(a + UNIT - 4, UINT64_C(0x1234567812345678))) &&
	    WANT(get(a + UNIT - 4) == UINT64_C(0x1234567812345678)) &&
	    GOOD(cuMemGetAddressRange_v2(&base, &bytes, a + UNIT)) && WANT(base == a + UNIT && bytes == 2 * UNIT) &&
	    WANT(memory_find(pointer(a), 3 * UNIT, &found) && !memory_find(pointer(a), 3 * UNIT + 1, &found)) &&
	    IS(cuMemFree_v2(a), INVALID), "across two of them");
	ok(GOOD(cuMemSetAccess(a, UNIT, &none, 1)) && IS(access_by(0, a, 8, false), ILLEGAL) &&
	    GOOD(access_by(0, a + UNIT, 8, true)), "access is taken back");
	ok(GOOD(cuMemRetainAllocationHandle(&again, pointer(a + 8))) && WANT(again == h[0]) &&
	    GOOD(cuMemRelease(h[0])) &&
	    GOOD(cuMemRelease(h[0])) && IS(cuMemRelease(h[0]), INVALID) &&
	    GOOD(cuMemRetainAllocationHandle(&again, pointer(a))) && WANT(again != h[0]) && GOOD(cuMemRelease(again)) &&
	    IS(cuMemRetainAllocationHandle(&again, &a), INVALID), "handles are counted");
	ok(IS(cuMemUnmap(a, 2 * UNIT), INVALID) && IS(cuMemAddressFree(a, 4 * UNIT), INVALID) &&
	    GOOD(cuMemUnmap(a, 3 * UNIT)) && IS(cuMemUnmap(a, 3 * UNIT), INVALID) && WANT(!memory_direct(0, 1)) &&
	    IS(access_by(0, a + UNIT, 8, true), ILLEGAL) && GOOD(cuMemMap(a + UNIT, UNIT, 0, h[1], 0)) &&
	    GOOD(cuMemUnmap(a + UNIT, UNIT)) && GOOD(cuMemRelease(h[1])) && GOOD(cuMemAddressFree(a, 4 * UNIT)),
	    "it is unmapped");
}

/* ---- at random ---- */

enum { PLACES = 60, STEPS = 4000 };

/* Memory, or reserved addresses. */
struct place {
	CUdeviceptr at;
	size_t bytes;
	bool reserved;
};

static uint64_t random_state;

static uint64_t
random_below(uint64_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % n;
}

static bool
beside_others(const struct place *place, int this)
{
	const struct place *p = &place[this];
	for (int i = 0; i < PLACES; i++)
		if (i != this && place[i].at && p->at < place[i].at + place[i].bytes &&
		    place[i].at < p->at + p->bytes)
			return false;
	return true;
}

/* Up to 64 GiB of addresses, so that they are soon used again; of memory a little. */
static bool
take(struct place *place, int i)
{
	struct place *p = &place[i];
	p->reserved = random_below(3) == 0;
	p->bytes = p->reserved ? (size_t)(1 + random_below((size_t)1 << (1 + random_below(14)))) * UNIT :
	    (size_t)(1 + random_below((size_t)1 << (1 + random_below(21))));
	CUresult result = p->reserved ? cuMemAddressReserve(&p->at, p->bytes, UNIT << random_below(4), 0, 0) :
	    cuMemAlloc_v2(&p->at, p->bytes);
	if (result != CUDA_SUCCESS)
		p->at = 0;
	return (p->reserved && IS(result, result == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY)) ||
	    GOOD(result);
}

/* What is known of an address inside. */
static bool
found_as(const struct place *p)
{
	struct allocation found;
	bool is = memory_find(pointer(p->at + random_below(p->bytes)), 1, &found);
	return p->reserved ? !is : is && found.base == pointer(p->at) && found.bytes == p->bytes;
}

static bool
give(struct place *p)
{
	bool good = p->reserved ? GOOD(cuMemAddressFree(p->at, p->bytes)) : GOOD(cuMemFree_v2(p->at));
	struct allocation found;
	good = good && WANT(!memory_find(pointer(p->at), 1, &found));
	p->at = 0;
	return good;
}

void
test_random(uint64_t seed)
{
	struct place place[PLACES] = { { 0 } };
	bool good = true;
	int refused = 0;
	random_state = seed;
	for (int step = 0; step < STEPS && good; step++) {
		int i = (int)random_below(PLACES);
		if (place[i].at) {
			good = WANT(found_as(&place[i])) && give(&place[i]);
			continue;
		}
		good = take(place, i);
		refused += !place[i].at;
		good = good && (!place[i].at || (WANT(beside_others(place, i)) && WANT(found_as(&place[i]))));
	}
	for (int i = 0; i < PLACES; i++)
		good = (!place[i].at || give(&place[i])) && good;
	ok(good && WANT(refused < STEPS / 4), "memory and addresses at random");
}
