#!/usr/bin/env python3
"""The most stack that a public call of libblink may need, from the call graph that gcc writes.

usage: stack.py DIRECTORY LIMIT

DIRECTORY has the .ci files of the library's objects (gcc -fcallgraph-info=su). The need of a function is its own frame
and the largest need of what it calls. What gcc cannot know is written down below: the stack of functions of other
libraries, which functions a pointer may lead to, and how deep a recursion may go. A function that is not written down
is an error, so that a new recursion, pointer or library function is looked at before it is believed.
"""
import glob
import re
import sys

# Functions of other libraries: their stack, rounded up from what they need on Debian 12, with the 2.7 KiB in which the
# dynamic linker saves registers when a function is called first.
PLAIN, MORE = 3072, 4608
EXTERNAL = {
    PLAIN: "malloc calloc realloc free posix_memalign memcpy memmove memset memcmp memchr memmem strlen strcmp "
           "strncmp strchr strrchr memrchr strcpy strstr strspn strcspn strpbrk open read pread close fstat fstatfs "
           "stat lstat "
           "getpid geteuid __errno_location pthread_mutex_lock pthread_mutex_unlock pthread_mutex_init "
           "pthread_mutex_destroy pthread_self pthread_cond_wait pthread_cond_timedwait pthread_cond_signal "
           "pthread_cond_broadcast pthread_cond_init "
           "pthread_cond_destroy pthread_join pthread_create pthread_sigmask sigfillset pthread_attr_init "
           "pthread_attr_setstacksize pthread_attr_destroy newlocale uselocale freelocale SHA256Init "
           "SHA256Update SHA256Final SHA256Data SHA256End bsearch __divti3 __modti3 __udivti3 __umodti3 "
           "__udivmodti4 __fixdfti __stack_chk_fail __memcpy_chk __strcpy_chk __memset_chk __read_chk "
           "__pread_chk __ctype_tolower_loc __ctype_b_loc __divmodti4 frexp ldexp sqrt fmin fmax access fcntl lseek "
           "fchmod fsync "
           "ftruncate rename unlink mkostemp mmap munmap madvise memfd_create socket sendmsg recvmsg poll __poll_chk "
           "readv nanosleep syscall getenv strdup aligned_alloc sched_getaffinity sched_yield __sched_cpucount "
           "__cpu_indicator_init "
           "sigemptyset sigaddset sigismember sigpending sigtimedwait",
    MORE: "accept4 bind connect listen send recv setsockopt getsockopt getsockname ioctl shutdown ppoll epoll_create1 "
           "epoll_ctl epoll_wait eventfd write getrandom getrlimit clock_gettime clock_nanosleep pthread_atfork "
           "pthread_once pthread_attr_setdetachstate explicit_bzero __explicit_bzero_chk inet_ntop if_nametoindex "
           "if_indextoname freeifaddrs strerror_r "
           "snprintf vsnprintf __snprintf_chk __vsnprintf_chk asprintf __asprintf_chk strerror strtod strtod_l strtol "
           "atoi sysconf qsort qsort_r __assert_fail "
          "fopen fgets fclose",
    8192: "getifaddrs",			# a page for what the kernel says
    # An exception that libblink(3) names.
    0: "dlopen dlsym dlclose dlerror",
}

# Functions that call themselves, and how deep.
RECURSIVE = {
    "src/format/json_reader.c:take_value": 33,	# levels of values: LIMIT_DEPTH
    "src/format/blink/read_schedule.c:put_value": 33,
    "src/graph/arborescence.c:heap_merge": 48,		# right spines of two leftist heaps of less than 2^24 hops
}

# What a call through a pointer may lead to: names, with the file where another has a function of that name.
TCP = r"runtime/transport/tcp\.c:tcp_(available|open|connect|abandon|resume|close)$|tcp_send$"
NET = TCP + r"|runtime/transport/ucx\.c:ucx_(available|open|connect|abandon|resume|close|send)$"
# UCX is called on threads with 1 MiB, of which most is for it. What it calls, and what these tell and send.
UCX = {name: None for name in "open_context open_worker open_aside close_library ucx_open on_closed post ucx_out_post "
                              "fetch ucx_close_endpoint ucx_in_drop ucx_look_after meet".split()}
UCX.update((name, r"remote_(place|arrived|broken|short_of)$|tcp_send$") for name in
           "deliver deliver_one fill ask_place take ucx_in_message ucx_in_resume ucx_arrived ucx_greet ucx_tell "
           "ucx_broken ucx_short_of".split())
UCX.update({
    "turn": r"ucx_in_message$|runtime/transport/ucx_(in|out|peer)\.c:on_",
    "on_sent": "ucx_failed",
    "on_received": r"ucx_failed|remote_arrived",
    "run_errand": r"runtime/transport/ucx(_library)?\.c:(open_aside|close_library|open_library)$",
    "ucx_connect": TCP,
    "ucx_close": TCP,
})
HOST = r"runtime/engine/host\.c:host_"
POINTERS = {
    "blink_take_turn": r"blink_(sum|prod|max|min)_",
    "call_kernel": r"(reduce|divide)_",
    "reduction_run_by": r"fence$",
    "reduction_copy_by": r"(fence|reduce_copy_any)$",
    "all_ranks_copy": r"blink_memory_copy",
    "all_ranks_memory_new": r"blink_memory_new",
    "all_ranks_memory_free": r"blink_memory_free",
    "all_ranks_open": r"blink_open",
    "all_ranks_close": r"blink_close",
    "all_ranks_run": r"run_program",
    "log_verbose": None,			# libblink sets neither
    "progress": None,
    "out_of_time": None,
    "cheapest_price": None,			# families of trees are for plans
    "cheapest_find": None,
    "each_path": r"src/schedule/(project\.c:project_path|in_trees\.c:(count|list)_path)$",
    "root_trees_each": r"src/schedule/(project\.c:project_path|in_trees\.c:list_path)$",
    "symmetry_orbits": r"src/model/symmetry\.c:image_of_(link|vertex)$",
    # What the backend, the network and the hub tell a communicator of one rank, and it them: the only ones are set in
    # comm/init.c and comm/tuning.c; of backends (comm/backends.c) the host's counts.
    "rank_comm_submit": "engine_submit$",
    "rank_comm_wait": "engine_wait$",
    "wait_for": "engine_(wait|last_call)$",
    "blinkCommLastCall": "engine_last_call$",
    "blinkCommProbe": "engine_probe$",
    "rank_memory_new": HOST + "memory_open$",
    "rank_memory_free": HOST + "memory_close$",
    "memory_close_all": HOST + "memory_close$",
    "rank_memory_copy": HOST + "copy$",
    "blinkCommRegister": "window_register$",
    "blinkCommDeregister": "window_deregister$",
    "rank_comm_close": HOST + "(begun|close)$|engine_stop$|" + NET,
    "rank_hears": "engine_wake$",
    "rank_fail": "engine_wake$",
    "rank_peer_gone": "engine_wake$",
    "wake": "engine_wake$",
    "rank_status_of": "engine_status$",
    "rank_send": NET,
    "rank_fail_here": r"runtime/comm/init\.c:on_failed_here",
    "engine_wait": NET,
    "collective_begin": NET,
    "collective_progress": NET + r"|runtime/comm/init\.c:on_stuck",
    "messages_progress": NET,
    "publish": NET,
    "release": NET,
    "peer_open": NET,
    "check_patience": r"runtime/comm/init\.c:on_stuck",
    "drive": r"runtime/comm/init\.c:on_(progress|failed_here)",
    "progress_call": r"plans_choose|runtime/comm/(init\.c:on_failed_here|tuning\.c:(begins|ended))",
    "join": HOST + "(open|connect)$|" + NET,
    "connect_ranks": HOST + "(open|connect)$|" + NET,
    "shm_drop": r"runtime/cuda/memory\.c:free_region",
    "shm_exchange": r"runtime/comm/init\.c:sign",
    "exchange": r"runtime/comm/init\.c:(sign|exchange)",	# of transport/shm_exchange.c, and of engine/windows.c
    "tcp_prove": r"runtime/comm/init\.c:sign",
    "tcp_proved": r"runtime/comm/init\.c:sign",
    "tcp_break": "remote_broken|ucx_broken",
    "tcp_accept": "(remote|ucx)_short_of",
    "tell_shortage": "(remote|ucx)_short_of",
    "begin_part": "remote_place|ucx_place",
    "finish_part": "remote_arrived|ucx_arrived",
    "declare": r"runtime/comm/init\.c:on_failed$",
    "hear_frame": r"runtime/comm/init\.c:on_(failed|left|ask)$",
    **UCX,
    "serve": r"runtime/transport/ucx\.c:(turn|close_library)$",
    "pin_thread": None,				# libhwloc, on the worker's stack: the rest of THREAD_LIMIT is for it
    "allowed_cores": None,
}

# The part for GPUs is made of calls of the CUDA driver, whose need nobody knows: libblink(3) names it as an exception.
GPU = r"(gpu|driver)_|runtime/cuda/"

# What threads of the library begin with. They have 256 KiB, of which the C library and its locals take some.
THREADS = r"blink_worker|bootstrap_run|runtime/(bootstrap/hub\.c:hub_run|engine/queue\.c:work|transport/tcp\.c:serve|" \
          r"support/thread\.c:run_errand)$"
THREAD_LIMIT = 64 * 1024


def read(directory):
    """The frame of each function, the functions that each calls, and what is wrong."""
    own, calls, errors = {}, {}, []
    for path in glob.glob(f"{directory}/**/*.ci", recursive=True):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for title, label in re.findall(r'node: { title: "([^"]*)" label: "([^"]*)"', text):
            size = re.search(r"(\d+) bytes \((static|dynamic,bounded|dynamic)\)", label)
            if size:
                own[title] = int(size[1])
                if size[2] == "dynamic":
                    errors.append(f"{title}: a frame without a bound")
        for caller, callee in re.findall(r'edge: { sourcename: "([^"]*)" targetname: "([^"]*)"', text):
            calls.setdefault(caller, set()).add(callee)
    return own, calls, errors


def bare(title):
    """The name of a function, without its file and what gcc adds to it."""
    return title.split(":")[-1].split(".")[0]


class Needs:
    def __init__(self, own, calls, errors):
        self.own, self.calls, self.errors = own, calls, errors
        self.external = {name: size for size, names in EXTERNAL.items() for name in names.split()}
        self.known, self.path = {}, []

    def callees(self, f):
        for g in self.calls.get(f, ()):
            if g != "__indirect_call":
                yield g
            elif bare(f) not in POINTERS:
                self.errors.append(f"{f}: calls through a pointer: to what?")
            elif POINTERS[bare(f)]:
                to = POINTERS[bare(f)]
                yield from (h for h in self.own if re.match(to, bare(h)) or re.match(to, h))

    def need(self, f):
        if re.match(GPU, f):
            return 0
        if f in self.known:
            return self.known[f]
        if f not in self.own:
            # gcc puts a star before a name that a header gives to another; libgcc's arithmetic calls nothing.
            name = f.lstrip("*")
            if re.match(r"__[a-z]+(ti|di|tf|df|sf)[a-z]*\d?$", name):
                return PLAIN
            if name not in self.external:
                self.errors.append(f"{name}: how much stack does it need?")
            return self.external.get(name, 0)
        if f in self.path:
            self.errors.append("recursion, how deep? " + " -> ".join(self.path[self.path.index(f):] + [f]))
            return 0
        times = next((n for name, n in RECURSIVE.items() if f.split(".constprop")[0].split(".isra")[0] == name), 0)
        self.path.append(f)
        below = max((self.need(g) for g in set(self.callees(f)) if not (times and g == f)), default=0)
        self.path.pop()
        self.known[f] = self.own[f] * max(times, 1) + below
        return self.known[f]


def main():
    directory, limit = sys.argv[1], int(sys.argv[2])
    sys.setrecursionlimit(10000)
    needs = Needs(*read(directory))
    public = sorted(f for f in needs.own if re.match(r"blink[A-Z]", f))
    worst = max(public, key=needs.need, default=None)
    for f in public:
        if needs.need(f) > limit:
            needs.errors.append(f"{f}: may need {needs.need(f)} bytes of stack: want at most {limit}")
    threads = sorted(f for f in needs.own if re.match(THREADS, f))
    for f in threads:
        if needs.need(f) > THREAD_LIMIT:
            needs.errors.append(f"{f}: may need {needs.need(f)} bytes of stack: want at most {THREAD_LIMIT}")
    if not public:
        needs.errors.append(f"{directory}: no .ci file with a public function")
    for line in sorted(set(needs.errors)):
        print(line)
    if not needs.errors:
        print(f"{len(public)} calls, at most {needs.need(worst)} bytes, {worst}; "
              f"{len(threads)} threads, at most {max(map(needs.need, threads), default=0)}")
    return 1 if needs.errors else 0


if __name__ == "__main__":
    sys.exit(main())
