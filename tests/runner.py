"""Run the suites of tests/suite, or those named.

usage: tests/run [--full] [SUITE...]

Without --full: what takes little time. With it: also the suites that take longer, and more cases of others, which read
$full. BUILD is the build directory (default build), JOBS the number of suites at a time (default: one more than there
are CPUs, as each waits now and then); as many of those that mostly wait run beside them.
Prints what fails and what is skipped, a line for each suite with its CPU time, and at the end how many cases passed.
"""
import argparse
import collections
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time

import warm

# Those that take longest come first, so that no processor is idle at the end.
LONGEST_FIRST = ("mutations deb asan torch torchnccl valgrind stack fuzz unit job docs gpu cuda wheel netns rates "
                 "cost batch servers compact faults report cli kernels diff completion oom words runtime exact "
                 "scale bad install ci show collectives failures names worth whatif threephase fewest budget "
                 "cluster hybrid readers links odd look").split()
# They sleep for most of their time, until a deadline passes or a process has died: they take no processor from others.
WAITING = {"unit", "netns", "rates", "cost", "job"}
# These are not in the quick check.
FULL_ONLY = {"asan", "deb", "fuzz", "mutations", "rates", "stack", "torch", "torchnccl", "valgrind", "wheel"}
# They call make in the build directory: one at a time.
MAKE = {"docs", "install", "wheel"}
# More oracles would make each process larger, and a fork of it slower, than they save.
MANY = 5
# Seconds of CPU time for one process. Only a process that would never end needs more.
CPU_LIMIT = 900


def all_suites(full):
    names = sorted(name.removesuffix(".sh") for name in os.listdir("tests/suite"))
    names = [name for name in names if full or name not in FULL_ONLY]
    return [name for name in LONGEST_FIRST if name in names] + [name for name in names if name not in LONGEST_FIRST]


def start(name, log, full):
    """A process that runs the suite, and its oracles."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        for stream, target in enumerate((os.open(os.devnull, os.O_RDONLY), fd, fd)):
            os.dup2(target, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))
        os.environ.update(suite=name, full="1" if full else "")
        status = warm.serve(["bash", f"tests/suite/{name}.sh"], f"{log}.socket")
    finally:
        os._exit(status)


def end(pid):
    """What a suite left running."""
    try:
        os.killpg(pid, signal.SIGTERM)
    except OSError:
        pass


class Results:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.seconds = 0.0

    def add(self, name, log, code, usage, wall):
        """Count the lines of a log, and print those that are for people."""
        with open(log, errors="surrogateescape") as file:
            lines = file.read().split("\n")
        passed, failed, skipped = (sum(line.startswith(word) for line in lines) for word in ("ok ", "not ok ", "skip "))
        for line in failures(lines)[:60]:
            print(line)
        for line in lines:
            if line.startswith("skip "):
                print(line)
        if passed + failed + skipped == 0 or (code != 0 and failed == 0):
            print(f"not ok {name}: the suite ended with {code} after {passed} passes:", *lines[-21:], sep="\n")
            failed += 1
        seconds = usage.ru_utime + usage.ru_stime
        print(f"{name}: {passed} passed, {failed} failed, {skipped} skipped"
              f" ({seconds:.1f} s of CPU time, {wall:.0f} s)",
              flush=True)
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        self.seconds += seconds


def failures(lines):
    """What failed, and up to twelve lines on why."""
    shown, left = [], 0
    for line in lines:
        if line.startswith("not ok "):
            left = 13
        elif re.match("ok |skip ", line):
            left = 0
        if left:
            shown.append(line)
            left -= 1
    return shown


def preload(suites):
    """The oracles that many of the suites ask, and what these import: each suite's process has them from here."""
    asked = collections.Counter()
    for name in suites:
        with open(f"tests/suite/{name}.sh") as file:
            asked.update(set(re.findall(r"\boracle ([a-z_0-9]+)", file.read())))
    for name in sorted(name for name, n in asked.items() if n >= MANY):
        path = f"{os.getcwd()}/tests/oracle/{name}.py"
        if os.path.exists(path):
            warm.load(path)


def next_suite(left, running, most):
    """Of those that are left the first that may start beside those that run; None: one of these has to end first."""
    kinds = [name in WAITING for name in running]
    for name in left:
        if kinds.count(name in WAITING) < most and not (name in MAKE and MAKE.intersection(running)):
            return name
    return None


def run(suites, most, folder, full):
    results, running = Results(), {}
    left = list(suites)
    preload(suites)
    try:
        while left or running:
            name = next_suite(left, [name for name, _ in running.values()], most)
            if name:
                left.remove(name)
                running[start(name, os.path.join(folder, name), full)] = name, time.monotonic()
            else:
                pid, status, usage = os.wait4(-1, 0)
                end(pid)
                name, began = running.pop(pid)
                results.add(name, os.path.join(folder, name), os.waitstatus_to_exitcode(status), usage,
                            time.monotonic() - began)
    finally:
        for pid in running:
            end(pid)
    return results


def main():
    parser = argparse.ArgumentParser(prog="tests/run", usage=__doc__.split("\n\n")[1].removeprefix("usage: "),
                                     description=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    args = parser.parse_args()
    for name in args.suites:
        if not os.path.exists(f"tests/suite/{name}.sh"):
            parser.error(f"{name}: no such suite")
    os.environ.setdefault("BUILD", "build")
    os.environ.setdefault("MAKE", "make")
    folder = tempfile.mkdtemp()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        results = run(args.suites or all_suites(args.full),
                      int(os.environ.get("JOBS") or os.cpu_count() + 1), folder, args.full)
    finally:
        shutil.rmtree(folder)
    print(f"\n{results.seconds:.0f} s of CPU time")
    print(f"{results.passed} passed, {results.failed} failed, {results.skipped} skipped")
    return results.failed > 0


if __name__ == "__main__":
    sys.exit(main())
