/* Init, devices, errors, and failures on request. */
#include "more.h"
#include "virtual_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 12080, FAILURES_MOST = 256, NAME_BYTES = 64 };

/* Of CUDA, but not in DRIVER_LIST: what libcudart looks for. name, parameters */
#define MORE_LIST(X)                                                           \
	X(cuGetProcAddress, (const char *name, void **function, int version, cuuint64_t flags)) \
	X(cuGetProcAddress_v2, (const char *name, void **function, int version, cuuint64_t flags, int *status))

#define PROTOTYPE(name, parameters) EXPORT CUresult name parameters;
MORE_LIST(PROTOTYPE)
#undef PROTOTYPE

typedef void (*Function)(void);
static const struct export {
	const char *name;
	Function function;
} exports[] = {
#define ROW(member, name, must, parameters) { #name, (Function)name },
	DRIVER_LIST(ROW)
#undef ROW
#define ROW(name, parameters) { #name, (Function)name },
	CONTEXT_MORE_LIST(ROW)
	MEMORY_MORE_LIST(ROW)
	MORE_LIST(ROW)
	STREAM_MORE_LIST(ROW)
#undef ROW
};
enum { N_EXPORTS = sizeof exports / sizeof *exports };

/* The errors of DRIVER_CONSTANT_LIST, and what they are called. */
static struct error {
	CUresult value;
	const char *name;
	char text[NAME_BYTES];
} errors[] = {
#define ROW(name, value) { (CUresult)name, #name, "" },
	DRIVER_CONSTANT_LIST(ROW)
#undef ROW
};
enum { N_ERRORS = sizeof errors / sizeof *errors };

struct failure {
	const struct export *function;
	int call;			/* from 1 on */
	bool die;
	CUresult result;
};

static struct {
	pthread_once_t once;
	pthread_mutex_t lock;		/* of cuInit */
	bool bad, forked;
	int devices;
	int n_failures;
	struct failure failure[FAILURES_MOST];
	int calls[N_EXPORTS];		/* of those that have a failure */
	int list;			/* of all calls: a file; -1: none */
} all = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- what the environment asks ---- */

CUresult
setting_refused(const char *variable, const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	fprintf(stderr, "virtual GPUs: %s: %s\n", variable, text);
	__atomic_store_n(&all.bad, true, __ATOMIC_RELEASE);
	return CUDA_ERROR_INVALID_VALUE;
}

static bool
parse_number(const char *text, int64_t *out)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	*out = value;
	return *text && !*end && errno == 0 && value >= 0;
}

int64_t
setting(const char *variable, int64_t otherwise)
{
	const char *text = getenv(variable);
	int64_t value;
	if (!text || !*text)
		return otherwise;
	if (parse_number(text, &value))
		return value;
	setting_refused(variable, "\"%.60s\": want a whole number, 0 or above", text);
	return otherwise;
}

/* Do both name a function, with or without "cu" in front and "_v2" behind? */
static bool
same_function(const char *a, const char *b)
{
	a += strncmp(a, "cu", 2) == 0 ? 2 : 0;
	b += strncmp(b, "cu", 2) == 0 ? 2 : 0;
	const char *a_suffix = strstr(a, "_v"), *b_suffix = strstr(b, "_v");
	size_t length = a_suffix ? (size_t)(a_suffix - a) : strlen(a);
	return length == (b_suffix ? (size_t)(b_suffix - b) : strlen(b)) && strncmp(a, b, length) == 0;
}

static const struct export *
find_export(const char *text)
{
	const struct export *found = NULL;
	for (int i = 0; i < N_EXPORTS; i++)
		if (same_function(text, exports[i].name))
			found = &exports[i];
	return found;
}

static bool
find_error(const char *text, CUresult *out)
{
	const char *prefix = "CUDA_ERROR_";
	for (int i = 0; i < N_ERRORS; i++)
		if (strncmp(errors[i].name, prefix, strlen(prefix)) == 0 &&
		    strcmp(errors[i].name + strlen(prefix), text) == 0) {
			*out = errors[i].value;
			return true;
		}
	return false;
}

/* "MemAlloc:3:OUT_OF_MEMORY", "LaunchKernel:1:die", "EventRecord:2" */
static bool
parse_failure(char *text, struct failure *out)
{
	char *call = strchr(text, ':'), *what = call ? strchr(call + 1, ':') : NULL;
	int64_t n;
	if (!call)
		return false;
	*call++ = '\0';
	if (what)
		*what++ = '\0';
	*out = (struct failure){ .function = find_export(text), .result = CUDA_ERROR_UNKNOWN };
	if (!out->function || !parse_number(call, &n) || n < 1 || n > INT32_MAX)
		return false;
	out->call = (int)n;
	out->die = what && strcmp(what, "die") == 0;
	return !what || out->die || find_error(what, &out->result);
}

static void
read_failures(void)
{
	const char *asked = getenv("VIRTUAL_GPU_FAIL"), *variable = "VIRTUAL_GPU_FAIL";
	char *copy = strdup(asked ? asked : ""), *rest = copy, *one;
	if (!copy)
		setting_refused(variable, "no memory");
	while ((one = rest ? strsep(&rest, ",") : NULL)) {
		char said[NAME_BYTES];
		snprintf(said, sizeof said, "%s", one);
		if (!*one && !*(asked ? asked : ""))
			break;
		if (all.n_failures == FAILURES_MOST)
			setting_refused(variable, "more than %d: want fewer", FAILURES_MOST);
		else if (parse_failure(one, &all.failure[all.n_failures]))
			all.n_failures++;
		else
			setting_refused(variable, "\"%s\": want FUNCTION:N or FUNCTION:N:WHAT, as "
			    "MemAlloc:3:OUT_OF_MEMORY or LaunchKernel:1:die", said);
	}
	free(copy);
}

/* "CUDA_ERROR_OUT_OF_MEMORY" is "out of memory". */
static void
make_error_texts(void)
{
	for (int i = 0; i < N_ERRORS; i++) {
		const char *name = errors[i].name;
		size_t length = 0;
		if (strncmp(name, "CUDA_ERROR_", 11) == 0)
			name += 11;
		for (; name[length] && length < NAME_BYTES - 1; length++)
			errors[i].text[length] = name[length] == '_' ? ' ' : (char)(name[length] | 0x20);
		if (errors[i].value == CUDA_SUCCESS && strncmp(name, "CUDA", 4) == 0)
			strcpy(errors[i].text, "no error");
		if (strcmp(name, "INVALID_VALUE") == 0)
			strcpy(errors[i].text, "invalid argument");
	}
}

static void
in_child(void)
{
	all.forked = true;
}

static void
start(void)
{
	const char *list = getenv("VIRTUAL_GPU_CALLS");
	make_error_texts();
	read_failures();
	all.list = list ? open(list, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
}

/* ---- every call ---- */

/* These errors are of a context, as those of a GPU that is lost. */
static void
fail_current(CUresult error)
{
	struct context *c;
	if (current_context(&c))
		context_fail(c, error);
}

static CUresult
fail_on_request(const char *name)
{
	CUresult result = CUDA_SUCCESS;
	int call = 0;
	for (int i = 0; i < all.n_failures; i++) {
		const struct failure *f = &all.failure[i];
		if (!same_function(f->function->name, name))
			continue;
		if (call == 0)
			call = __atomic_add_fetch(&all.calls[f->function - exports], 1, __ATOMIC_RELAXED);
		if (f->call != call)
			continue;
		if (f->die)
			kill(getpid(), SIGKILL);
		result = f->result;
	}
	if (result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_FAILED)
		fail_current(result);
	return result;
}

void
call_list(const char *what)
{
	if (all.list >= 0)
		dprintf(all.list, "%s\n", what);
}

CUresult
enter_early(const char *name)
{
	pthread_once(&all.once, start);
	if (__atomic_load_n(&all.bad, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_INVALID_VALUE;
	call_list(name + strlen("cu"));
	return fail_on_request(name);
}

CUresult
enter(const char *name, struct context **context)
{
	struct context *c;
	if (all.forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	CUresult failed = enter_early(name);
	if (failed != CUDA_SUCCESS)
		return failed;
	if (devices() == 0)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (in_host_function())
		return CUDA_ERROR_NOT_PERMITTED;
	if (!context)
		return CUDA_SUCCESS;
	if (!current_context(&c))
		return c ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	*context = c;
	return (CUresult)__atomic_load_n(&c->error, __ATOMIC_ACQUIRE);
}

int
devices(void)
{
	return __atomic_load_n(&all.devices, __ATOMIC_ACQUIRE);
}

/* ---- init, errors, addresses ---- */

CUresult
cuInit(unsigned flags)
{
	CUresult result = all.forked ? CUDA_ERROR_NOT_INITIALIZED : enter_early("cuInit");
	int n = 0;
	if (result != CUDA_SUCCESS)
		return result;
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&all.lock);
	if (all.devices == 0)
		result = links_open(&n);
	if (__atomic_load_n(&all.bad, __ATOMIC_ACQUIRE))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && all.devices == 0) {
		pthread_atfork(NULL, NULL, in_child);
		for (int i = 0; i < DEVICES_MOST; i++)
			context_of(i)->device = i;
		__atomic_store_n(&all.devices, n, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&all.lock);
	return result;
}

CUresult
cuDriverGetVersion(int *version)
{
	CUresult failed = enter_early("cuDriverGetVersion");
	if (failed != CUDA_SUCCESS)
		return failed;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = VERSION;
	return CUDA_SUCCESS;
}

/* NULL: none is called so. */
static const struct error *
error_of(CUresult value)
{
	for (int i = 0; i < N_ERRORS; i++)
		if (errors[i].value == value && strncmp(errors[i].name, "CUDA_", 5) == 0)
			return &errors[i];
	return NULL;
}

CUresult
cuGetErrorName(CUresult r, const char **name)
{
	CUresult failed = enter_early("cuGetErrorName");
	const struct error *error = error_of(r);
	if (failed != CUDA_SUCCESS)
		return failed;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = error ? error->name : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
cuGetErrorString(CUresult r, const char **text)
{
	CUresult failed = enter_early("cuGetErrorString");
	const struct error *error = error_of(r);
	if (failed != CUDA_SUCCESS)
		return failed;
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = error ? error->text : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The version does not matter: the latest of a name is what there is. */
static CUresult
find_function(const char *name, void **function, cuuint64_t flags)
{
	if (!name || !function || flags > 2 || strncmp(name, "cu", 2) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	const struct export *found = find_export(name);
	*function = found ? (void *)found->function : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult
cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
	CUresult failed = enter_early("cuGetProcAddress");
	(void)version;
	return failed != CUDA_SUCCESS ? failed : find_function(name, function, flags);
}

/* As of CUDA 12. status: 0: found, 1: not. */
CUresult
cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags, int *status)
{
	CUresult result = enter_early("cuGetProcAddress_v2");
	(void)version;
	if (result != CUDA_SUCCESS)
		return result;
	result = find_function(name, function, flags);
	if (status)
		*status = result != CUDA_SUCCESS;
	return result;
}

/* ---- devices ---- */

bool
device_valid(CUdevice device)
{
	return device >= 0 && device < devices();
}

CUresult
cuDeviceGet(CUdevice *device, int number)
{
	ENTER(cuDeviceGet);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(number))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = number;
	return CUDA_SUCCESS;
}

CUresult
cuDeviceGetCount(int *n)
{
	ENTER(cuDeviceGetCount);
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	*n = devices();
	return CUDA_SUCCESS;
}

CUresult
cuDeviceGetName(char *name, int size, CUdevice device)
{
	ENTER(cuDeviceGetName);
	if (!name || size < 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)size, "%s", device_name(device));
	return CUDA_SUCCESS;
}

CUresult
cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice device)
{
	unsigned domain, bus, slot;
	ENTER(cuDeviceGetAttribute);
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	sscanf(device_pci_id(device), "%x:%x:%x", &domain, &bus, &slot);
	switch ((int)what) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		return *value = 1024, CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		return *value = (int)setting("VIRTUAL_GPU_BLOCKS", 64), CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		return *value = (int)bus, CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
		return *value = (int)slot, CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
		return *value = (int)domain, CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return *value = device_capability(device) / 10, CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return *value = device_capability(device) % 10, CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
		return *value = setting("VIRTUAL_GPU_VALUES", 1) != 0, CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
		return *value = setting("VIRTUAL_GPU_POOLS", 1) != 0, CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
		return *value = device_multicasts(device), CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES:
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
		return *value = 1, CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The same in every process. */
CUresult
cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	ENTER(cuDeviceGetUuid);
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memcpy(uuid->bytes, "virtual\0GPU\0\0\0\0", sizeof uuid->bytes);
	uuid->bytes[sizeof uuid->bytes - 1] = (char)device_number(device);
	return CUDA_SUCCESS;
}

CUresult
cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
	ENTER(cuDeviceGetPCIBusId);
	if (!id || size < 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(id, (size_t)size, "%s", device_pci_id(device));
	return CUDA_SUCCESS;
}

CUresult
cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	ENTER(cuDeviceTotalMem_v2);
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = memory_total();
	return CUDA_SUCCESS;
}

CUresult
cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	ENTER(cuDeviceCanAccessPeer);
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device) || !device_valid(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = device != peer && linked(device, peer);
	return CUDA_SUCCESS;
}

CUresult
cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute what, CUdevice from, CUdevice to)
{
	ENTER(cuDeviceGetP2PAttribute);
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(from) || !device_valid(to) || from == to)
		return CUDA_ERROR_INVALID_DEVICE;
	switch ((int)what) {
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
		return *value = link_rank(from, to), CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
		return *value = linked(from, to), CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		return *value = fast_link(from, to), CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
