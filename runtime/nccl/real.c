/* The real NCCL, where there is one, and the functions that go to it as they are. */
#include "nccl/shim.h"
#include "support/debug.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct real real;
static void *library;
static char wrong[512];			/* what BLINK_NCCL has instead of an NCCL */
static __thread int depth;

void
real_enter(void)
{
	depth++;
}

void
real_leave(void)
{
	depth--;
}

bool
inside_real(void)
{
	return depth > 0;
}

/* ---- what there is no real NCCL for ---- */

static long
refuse(void)
{
	snprintf(last_error(), 512, "blink: this function needs NCCL itself: set BLINK_NCCL to its libnccl.so.2");
	return ncclInvalidUsage;
}

static const char *
refuse_text(void)
{
	return "";
}

/* ---- finding it ---- */

static const char *
basename_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* This library, under any of its names. */
static bool
is_this(void *handle)
{
	return dlsym(handle, "blink_nccl_is_this") != NULL;
}

struct search {
	char path[4096];
};

static int
see_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	(void)size;
	if (strncmp(basename_of(info->dlpi_name), "libnccl.so", 10) != 0)
		return 0;
	void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
	bool other = handle && !is_this(handle);
	if (handle)
		dlclose(handle);
	if (other)
		snprintf(s->path, sizeof s->path, "%s", info->dlpi_name);
	return other;
}

/* A path of one's own: libblink-audit.so leaves it alone. */
static void *
open_path(const char *path)
{
	char own[4200];
	if (path[0] != '/')
		return dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	if (handle && !is_this(handle))
		return handle;
	if (handle)
		dlclose(handle);
	snprintf(own, sizeof own, "/proc/self/root%s", path);
	return dlopen(own, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

/* NULL: `wrong` says why not. */
static void *
open_asked(const char *path)
{
	static const char want[] = "want the path of NCCL's libnccl.so.2, or none";
	void *handle = open_path(path);
	if (handle && !is_this(handle) && dlsym(handle, "ncclGetVersion"))
		return handle;
	if (!handle)
		snprintf(wrong, sizeof wrong, "BLINK_NCCL: %.400s: %s", dlerror(), want);
	else
		snprintf(wrong, sizeof wrong, "BLINK_NCCL: %.400s: %s: %s", path, is_this(handle)
		    ? "it is this library itself" : "it has no ncclGetVersion", want);
	if (handle)
		dlclose(handle);
	return NULL;
}

static void *
find_library(const char **path)
{
	const char *asked = getenv("BLINK_NCCL");
	static struct search s;
	void *handle = NULL;
	*path = NULL;
	if (asked && strcmp(asked, "none") == 0)
		return NULL;
	if (asked && asked[0]) {
		*path = asked;
		return open_asked(asked);
	}
	if (dl_iterate_phdr(see_object, &s)) {
		handle = open_path(s.path);
		*path = s.path;
	} else {
		handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
		*path = "libnccl.so.2";
	}
	if (handle && is_this(handle)) {
		dlclose(handle);
		handle = NULL;
	}
	return handle;
}

static void *
find_function(const char *name)
{
	char own[64];
	snprintf(own, sizeof own, "p%s", name);
	void *f = dlsym(library, own);
	return f ? f : dlsym(library, name);
}

/* Where a function that is passed on is; 0: not looked for yet. The names are those of `passing`, below. */
#define PASSED(name) __attribute__((visibility("hidden"))) void *blink_nccl_pass_##name;
NCCL_PASSED_LIST(PASSED)
#undef PASSED

static void
open_real(void)
{
	library = find_library(&real.path);
	if (!library)
		real.path = NULL;
	void *f;
#define FIND(member, parameters, ...)                                          \
	f = library ? find_function("nccl" #member) : NULL;                    \
	real.member = f ? (ncclResult_t (*) parameters)f : (ncclResult_t (*) parameters)(void *)refuse;
	NCCL_SERVED_LIST(FIND)
	NCCL_LATER_LIST(FIND)
	NCCL_CONFIG_LIST(FIND)
#undef FIND
	f = library ? find_function("ncclGetErrorString") : NULL;
	real.GetErrorString = (const char *(*)(ncclResult_t))(f ? f : (void *)refuse_text);
	f = library ? find_function("ncclGetLastError") : NULL;
	real.GetLastError = (const char *(*)(ncclComm_t))(f ? f : (void *)refuse_text);
#define PASSED(name)                                                           \
	f = library ? find_function("nccl" #name) : NULL;                      \
	__atomic_store_n(&blink_nccl_pass_##name, f ? f : (void *)refuse, __ATOMIC_RELEASE);
	NCCL_PASSED_LIST(PASSED)
#undef PASSED
	if (library)
		real.GetVersion(&real.version);
	debug_say(DEBUG_INFO, -1, "nccl: %s%s", library ? "beside " : "alone: no other NCCL",
	    library ? real.path : "");
}

const struct real *
real_nccl(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, open_real);
	return &real;
}

const char *
real_wrong(void)
{
	real_nccl();
	return wrong[0] ? wrong : NULL;
}

/* ---- functions that are passed on ---- */

void blink_nccl_find(void);

__attribute__((used)) void
blink_nccl_find(void)
{
	real_nccl();
}

/* Whatever its parameters are: a jump to where the function is, after a look for it at the first call. ncclX and
 * pncclX. */
#define ENTRY(name)                                                            \
	".globl nccl" #name "\n.type nccl" #name ", %function\n"               \
	".globl pnccl" #name "\n.type pnccl" #name ", %function\n"             \
	".p2align 4\nnccl" #name ":\npnccl" #name ":\n"
#define END(name) ".size nccl" #name ", . - nccl" #name "\n.size pnccl" #name ", . - pnccl" #name "\n"
#if defined __x86_64__
#define PASSED(name)                                                           \
	ENTRY(name)                                                            \
	".cfi_startproc\nendbr64\n1: movq blink_nccl_pass_" #name "(%rip), %r11\n" \
	"testq %r11, %r11\njz 2f\njmp *%r11\n"                                 \
	"2: push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\npush %rax\n.cfi_adjust_cfa_offset 56\n" \
	"call blink_nccl_find\n"                                              \
	"pop %rax\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n.cfi_adjust_cfa_offset -56\n" \
	"jmp 1b\n.cfi_endproc\n" END(name)
#elif defined __aarch64__
#define PASSED(name)                                                           \
	ENTRY(name)                                                            \
	"hint 34\n1: adrp x16, blink_nccl_pass_" #name "\n"                   \
	"ldr x16, [x16, :lo12:blink_nccl_pass_" #name "]\ncbz x16, 2f\nbr x16\n" \
	"2: stp x29, x30, [sp, -96]!\nstp x0, x1, [sp, 16]\nstp x2, x3, [sp, 32]\nstp x4, x5, [sp, 48]\n" \
	"stp x6, x7, [sp, 64]\nstr x8, [sp, 80]\nbl blink_nccl_find\n"        \
	"ldp x0, x1, [sp, 16]\nldp x2, x3, [sp, 32]\nldp x4, x5, [sp, 48]\nldp x6, x7, [sp, 64]\n" \
	"ldr x8, [sp, 80]\nldp x29, x30, [sp], 96\nb 1b\n" END(name)
#else
#error "functions that are passed on need a jump for this processor"
#endif
#define PASSING(name) PASSED(name)
__asm__(".text\n" NCCL_PASSED_LIST(PASSING) ".previous\n");
