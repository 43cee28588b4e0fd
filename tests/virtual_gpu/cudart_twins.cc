/* Twins of the kernels of generated programs: the source that nvcc compiles, over elements whose loads and stores the
 * virtual device checks. A kernel is found by its name in a program: its C++ name as compilers mangle it. */
#include "cudart.h"
#include "twin.h"

#define __device__
#define __global__

struct place {
	unsigned x;
};

#define gridDim (place{ virtual_gpu_thread()->blocks })
#define blockIdx (place{ virtual_gpu_thread()->block })
#define blockDim (place{ virtual_gpu_thread()->threads })
#define threadIdx (place{ virtual_gpu_thread()->thread })

#include "blink_kernel.h"

#include <cstdio>
#include <cstring>

/* An element in memory of a device: nothing is at its address. */
template <typename T>
class checked {
	T bytes;
public:
	operator T() const
	{
		T value;
		virtual_gpu_load(this, &value, sizeof value);
		return value;
	}

	void operator=(T value)
	{
		virtual_gpu_store(this, &value, sizeof value);
	}
};

template <typename A>
struct on_device : A {
	typedef checked<typename A::element> element;
};

template <typename A, int op>
static void
run(const void *parameter)
{
	typedef typename on_device<A>::element E;
	const cudart_parameters *p = (const cudart_parameters *)parameter;
	blink_kernel<on_device<A>, op>((E *)p->to, (const E *)p->from, (const E *)p->with, p->by, p->n);
}

enum { NAME_BYTES = 96, THREADS_MOST = 1024 };

/* type: the name of the kernel's first argument. Names live as long as the library. */
static const char *
mangled(const char *type, int op)
{
	char *name = new char[NAME_BYTES];
	snprintf(name, NAME_BYTES, "_Z12blink_kernelI%zu%sLi%dEEvPNT_7elementEPKS2_S5_im", strlen(type), type, op);
	return name;
}

#define TWIN(name, op) \
	{ mangled("blink_arithmetic_" #name, op), sizeof(cudart_parameters), THREADS_MOST, \
	    run<blink_arithmetic_##name, op> },
#define TWINS(code, name, T, U, kind, read, write, with) \
	TWIN(name, blinkSum) \
	TWIN(name, blinkProd) \
	TWIN(name, blinkMax) \
	TWIN(name, blinkMin) \
	TWIN(name, blinkAvg)

const struct virtual_kernel virtual_gpu_kernels[] = {
	BLINK_TYPE_LIST(TWINS, 0)
	{ nullptr, 0, 0, nullptr },
};
