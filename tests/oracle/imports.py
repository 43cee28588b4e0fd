"""What our binaries import from other libraries either cannot fail, or was failed by a test.

usage: imports.py BUILD FAILED

FAILED has a line for each function that tests/suite/faults.sh has failed, with the binary that called it. The functions
that it can fail are those of tests/faults.c. Prints a line for each binary.
"""
import glob
import os
import re
import subprocess
import sys

BINARIES = ["blinkc", "libblink.so", "blink-perf", "libnccl-tuner-blink.so", "libblink-nccl.so"]

# Libraries whose functions say what went wrong by values of their own.
LIBRARIES = {"blink": "tests/job/failing.c fails what libblink calls", "glp_": "GLPK", "xml": "libxml2",
             "__xml": "libxml2", "cJSON_": "cJSON", "hwloc_": "libhwloc", "SHA256": "libmd"}
# They allocate, by malloc: tests/suite/oom.sh fails each allocation.
MEMORY = "malloc calloc realloc aligned_alloc posix_memalign strdup strndup __asprintf_chk qsort qsort_r".split()
# They write into the buffer of a FILE: that it reached its end is known by fflush, fclose and ferror, which can fail.
BUFFERED = "fwrite fputs fputc putc putchar puts __printf_chk __fprintf_chk __vfprintf_chk".split()
# A symbol that is not there: tests/unit/test_driver.c, with drivers that lack some; names.sh.
SYMBOLS = ["dlsym"]
# They compute, read what the process has, or end it.
PURE = """
__assert_fail __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc __cxa_finalize __environ environ __errno_location
__explicit_bzero_chk __gmon_start__ __isoc99_sscanf __libc_start_main __longjmp_chk _setjmp __memcpy_chk __memmove_chk
__memset_chk __register_atfork __sched_cpucount __snprintf_chk __vsnprintf_chk __stack_chk_fail __strcpy_chk
__tls_get_addr _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable _exit ceil clock_gettime dl_iterate_phdr dlclose
dlerror exp ferror fmax fmin free freeifaddrs freelocale frexp getenv geteuid getopt_long getpid getppid inet_ntop
ldexp llround log log10 log2 memchr memcmp memcpy memmem memmove memrchr memset nearbyint optarg opterr optind optopt
pow pthread_attr_destroy pthread_attr_setdetachstate pthread_barrier_destroy pthread_barrier_init pthread_barrier_wait
pthread_cond_broadcast pthread_cond_destroy pthread_cond_init pthread_cond_signal pthread_cond_wait
pthread_condattr_destroy pthread_condattr_init pthread_condattr_setclock pthread_detach pthread_join
pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock pthread_once pthread_self
pthread_sigmask sched_yield secure_getenv sigaddset sigemptyset sigfillset sigismember signal sigpending snprintf sqrt
stderr stdout strcasecmp strcasestr strchr strcmp strcpy strcspn strerror strerror_r strlen strncmp strnlen strpbrk
strrchr strsep strsignal strspn strstr strtod strtod_l strtol strtoll strtoull strverscmp umask Traces ran_init
ran_nextran uselocale
""".split()
# Of the same object files: what failed in the one need not fail in the other.
SAME_CODE = {"libnccl-tuner-blink.so": "libblink.so"}
# Calls that a binary has and never makes: with why.
NEVER = {
    ("blink-perf", "sysconf"): "of the size of a page, for memory that it does not take",
    ("blinkc", "fstatfs"): "libblink alone tells FIFOs from pipes",
    ("libblink-nccl.so", "dlopen"): "a real NCCL, and the driver of CUDA, are not opened on the host",
    ("libblink-nccl.so", "nanosleep"): "it waits for a real NCCL",
    ("libblink-nccl.so", "syscall"): "gettid, which cannot fail",
}
# Calls of which nothing looks at the result, in whatever file but those, of libblink.so, where they were failed.
UNUSED = {"gethostname": "runtime/support/debug.c", "kill": None, "munmap": None, "nanosleep": None, "prctl": None,
          "madvise": "runtime/engine/collective_begin.c runtime/support/process.c", "shutdown": None}
# Made to fail by arguments: the test, and what it calls that.
ELSEWHERE = {
    ("libblink.so", "ioctl"): ("tests/unit/test_net_zero.c", "the kernel does not say what is left"),
    ("libblink.so", "if_indextoname"): ("tests/unit/test_bootstrap.c", "an interface without a name"),
    ("libblink.so", "if_nametoindex"): ("tests/unit/test_bootstrap.c", "an interface without a number"),
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def imports(path):
    names = (line.split()[-1] for line in run("nm", "-D", "--undefined-only", path).splitlines())
    return sorted({re.sub("@.*", "", name) for name in names})


def plain(name):
    """The function of a fortified name."""
    return re.sub("_2$", "", re.sub("^__(.*?)(_chk)?$", r"\1", name)) if name.startswith("__") else name


def unused(name, but):
    """Lines of our source that look at what it returns."""
    found = []
    for path in glob.glob("src/**/*.c", recursive=True) + glob.glob("runtime/**/*.c", recursive=True):
        with open(path, encoding="utf-8") as file:
            found += [f"{path}: {line.strip()}" for line in file if path not in (but or "").split()
                      and re.search(rf"\b{name}\(", line) and not re.match(rf"\t+{name}\(", line)]
    return found


def elsewhere(path, what):
    with open(path, encoding="utf-8") as file:
        return what in file.read()


def main():
    build, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        failed = {tuple(line.split()) for line in file}
    can_fail = {line.split()[0] for line in run(f"{build}/tests/job/failing", "-l").splitlines()}
    other = set(MEMORY + BUFFERED + SYMBOLS + PURE)
    wrong = [f"{name}: in two lists" for name in sorted(can_fail & other)]
    missing = set(other)
    for binary in BINARIES:
        lines, n = [], 0
        for name in imports(os.path.join(build, binary)):
            missing.discard(name)
            if name in other or name.startswith(tuple(LIBRARIES)):
                continue
            if plain(name) not in can_fail:
                lines.append(f"{binary} imports {name}, which no test fails")
            elif {(binary, plain(name)), (SAME_CODE.get(binary), plain(name))} & failed:
                n += 1
            elif plain(name) in UNUSED and not (UNUSED[plain(name)] and binary == "libblink.so"):
                lines += [f"{line}: {plain(name)}, which can fail, and no test has failed it"
                          for line in unused(plain(name), UNUSED[plain(name)])]
            elif (binary, plain(name)) in ELSEWHERE and elsewhere(*ELSEWHERE[binary, plain(name)]):
                n += 1
            elif (binary, plain(name)) not in NEVER:
                lines.append(f"{binary} calls {name}, which can fail, and no test has failed it")
        wrong += lines
        if not lines:
            print(f"ok faults: {binary}: {n} functions that can fail have failed")
    wrong += [f"{name}: in a list, and no binary imports it" for name in sorted(missing)]
    wrong += [f"{binary} {name}: said never to be called, and it was" for binary, name in sorted(NEVER.keys() & failed)]
    for line in wrong:
        print(f"not ok faults: {line}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
