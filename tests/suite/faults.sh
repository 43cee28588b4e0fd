# System calls fail, one at a time, at every call that a command or a job makes, with each error that is plausible there
# (tests/faults.c). Short reads and writes and interrupted ones change nothing. After any other fault either the result
# is the right one, or the program says so in one line, with a documented status, and the output is what it was. No
# temporary file stays, nothing waits for ever. And what is renamed has reached the disk. What is called only after a
# failure fails after one. Jobs: tests/job/failing.c.
# At the end: each function that our binaries import can not fail, or was failed here.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

if nm -D "$blinkc" | grep -q '__[atm]san_init'; then
	skip "faults of system calls: this build has a sanitizer"
	exit 0
fi
"$blinkc" -q topologies/dgx1v.xml -g 0,1,2 -o "$work/schedule.json" || not_ok "compile"
"$blinkc" -q topologies/dgx1v.xml -g 0,1,2 -o "$work/program.cu" || not_ok "compile to source"
"${cc[@]}" -x c -std=gnu11 -O0 -shared -fPIC -Iruntime/include "$work/program.cu" -o "$work/program.so" -pthread ||
	not_ok "the program does not compile"
echo 0,3,5 | "$blinkc" batch -q topologies/dgx1v.xml -g - --collectives broadcast -o "$work/schedules" || not_ok "batch"
"$blinkc" batch -q topologies/dgx1v.xml --sizes 2 -g 0-3 -o "$work/small" 2>/dev/null ||
	"$blinkc" batch -q topologies/kesch.xml --sizes 2 -o "$work/small" || not_ok "batch"
printf '%s\n' 0,1 0-2 | "$blinkc" batch -q topologies/dgx1v.xml -g - --collectives all -o "$work/jobs" ||
	not_ok "batch of jobs"
echo 0-7 | "$blinkc" batch -q topologies/dgx1v.xml -a ring -l nvlink -g - --roots canonical \
	--collectives broadcast,reduce,allgather,reducescatter,allreduce -o "$work/rings" || not_ok "batch of rings"
mkfifo "$work/fifo" || not_ok "a FIFO"
echo "200 Gb/sec, ACTIVE" >"$work/port"
"${cc[@]}" -Iruntime/include examples/lookup.c -o "$work/lookup" -L"$build" -lblink -Wl,-rpath,"$build" ||
	not_ok "lookup"

why=$("$build/tests/net_pair" kinds | sed -n 's/^ucx: //p')
[ -z "$why" ] || skip "jobs over UCX: $why"
[ "$full" ] && jobs=(-n 3) || jobs=(-n 3 -q)
[ "$why" ] || jobs+=(-u)
"$build/tests/job/failing" "${jobs[@]}" -d "$work/jobs" >"$work/failing" 2>&1
code=$?
for word in ok "not ok"; do sed -n "s|^$word |$word $suite: |p" "$work/failing"; done
[ $code = 0 ] || { grep -v '^ok\|^# failed' "$work/failing" | head -40; }
[ $code = 0 ] || grep -q '^not ok' "$work/failing" || not_ok "jobs: exit $code"

"$python" - "$suite" "$blinkc" "$build" "$work" "$full" <<'END'
import errno, os, re, shutil, struct, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

suite, blinkc, build, work, full = sys.argv[1:]
preload, perf, SHORT = f"{build}/tests/faults.so", f"{build}/blink-perf", -1
# The functions that can fail, and how.
FAILING = [line.split() for line in subprocess.run(
    [f"{build}/tests/job/failing", "-l"], check=True, capture_output=True, text=True).stdout.splitlines()]
KINDS = {name: [int(number) for number in numbers] for name, *numbers in FAILING}
SITES = list(KINDS)
UNSEEN = {"read", "pread", "write", "pwrite"}       # where SHORT and EINTR must not be noticed
LOOKS = {"stat", "lstat", "readlink", "realpath", "access", "read", "open", "dlopen"}
HOST = {"BLINK_BACKEND": "host", "BLINK_TIMEOUT": "2s", "BLINK_NCCL": "none"}
COMMANDS = {
    "compile": ["-q", "-g", "0,1,2", "topologies/dgx1v.xml", "-o", "OUT.json"],
    "compile to source": ["-q", "-g", "0,1,2", "topologies/dgx1v.xml", "-o", "OUT.cu"],
    "check": ["check", f"{work}/schedule.json"],
    "check a directory": ["check", "-q", "-j", "2", f"{work}/small", "--junit", "OUT.xml"],
    "convert": ["convert", "tests/fuzz/corpus/fuzz_topology/cluster.xml", "-o", "OUT.json"],
    "diff": ["diff", "-j", "1", "tests/golden/diff/old", "tests/golden/diff/new", "-o", "OUT.txt"],
    "report": ["report", "-q", "-j", "1", f"{work}/small", "-o", "OUT.html"],
    "show": ["show", f"{work}/schedule.json", "-o", "OUT.svg"],
    "batch": ["batch", "-q", "-j", "1", "topologies/kesch.xml", "--sizes", "2", "-o", "OUT.d"],
    "batch of two processes": ["batch", "-q", "-j", "2", "topologies/kesch.xml", "--sizes", "2", "-o", "OUT.d"],
    "look up and run": [f"{work}/lookup", f"{work}/schedules", "3", "0", "5"],
    "compile on a terminal": ["FAULTS_TERMINAL=1", "-g", "0,1,2", "topologies/dgx1v.xml", "-o", "OUT.json"],
    "this machine": ["HWLOC_XMLFILE=none", "topology", "--live", "-o", "OUT.json"],
    "run a FIFO": [perf, f"{work}/fifo", "-b", "4", "-e", "4"],
    "run a program": [perf, f"{work}/program.so", "-b", "4", "-e", "4", "-n", "1", "-w", "0", "-t", "3"],
    "run a schedule": [perf, f"{work}/schedule.json", "-b", "4", "-e", "4", "-n", "1", "-w", "0", "-t", "3"],
}
REFUSED = {"run a FIFO", "this machine"}    # the last: it may have no GPU
# Of several processes, or of a library, or what is looked at may be missing: whatever fails, they end by themselves.
VIRTUAL = f"{build}/tests/virtual_gpu"
THREADS = [perf, "--ranks", "2", "--threads-as-ranks", "-b", "4", "-e", "4", "-n", "1", "-w", "0"]
JOBS = {
    "GPUs and NICs of a machine": [
        "FAULTS_IN=blinkc", f"FAULTS_PORT={work}/port", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml",
        f"LD_LIBRARY_PATH={VIRTUAL}:{VIRTUAL}/hwloc", "probe", "-o", "OUT.xml"],
    "what CPUs copy": ["FAULTS_IN=blinkc", "topology", "--live", "--cpu-ranks", "--measure", "-o", "OUT.json"],
    "messages to a file": ["FAULTS_IN=libblink.so", "BLINK_DEBUG=INFO", "BLINK_DEBUG_FILE=OUT.log", *THREADS],
    "a job on GPUs": [
        "FAULTS_IN=blink-perf", "BLINK_BACKEND=cuda", f"VIRTUAL_GPU_KERNELS={VIRTUAL}/libblink-twins.so",
        f"LD_LIBRARY_PATH={VIRTUAL}", *THREADS],
    "a job of blink-perf": [perf, "--ranks", "2", "-b", "4", "-e", "4", "-n", "1", "-w", "0"],
    "a job of threads": THREADS,
    "NCCL's interface": [
        "FAULTS_IN=libblink-nccl", "BLINK_DEBUG=INFO", "BLINK_DEBUG_FILE=OUT.log",
        f"{build}/tests/nccl/program", "2", "processes", "errors", "nonblocking"],
    "the tuner": [
        "FAULTS_IN=libnccl-tuner", f"BLINK_SCHEDULES={work}/rings", f"{build}/tests/nccl_play",
        f"{build}/libnccl-tuner-blink.so", "8", "1", "150", "3.4", "0", "8 ranks"],
}
OLD = b"what was there before\n"
MOST = 150 if full else 14     # faults of a command; more are spread. Of those that take long, or are jobs, fewer:
SLOW = {"this machine", "batch of two processes", "check a directory", *JOBS}


def content(path):
    with open(path, "rb") as file:
        return file.read()


def stable(out):
    """What is printed, without times: of blink-perf, how many elements were wrong."""
    lines = [line for line in out.split(b"\n") if line.startswith(b"# Out of bounds")]
    return b"\n".join(lines) if lines else re.sub(rb"[\d.\s]+", b"", out)


def tree(path):
    """What is in a file or a directory; None: nothing is there."""
    if not os.path.isdir(path):
        return content(path) if os.path.exists(path) else None
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            found[os.path.relpath(os.path.join(folder, name), path)] = content(os.path.join(folder, name))
    return found


class Program:
    def __init__(self, command, folder):
        os.makedirs(folder)
        variables = dict(word.replace("=OUT", f"={folder}/out").split("=", 1)
                         for word in command if re.match("[A-Z_]+=", word))
        words = [re.sub("^OUT", f"{folder}/out", word) for word in command if not re.match("[A-Z_]+=", word)]
        self.folder, self.path = folder, next((word for word in words if word.startswith(folder)), None)
        self.words = words if words[0].startswith("/") else [blinkc] + words
        environment = {**os.environ, **HOST, **variables, "LD_PRELOAD": preload, "FAULTS": folder}
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def attempt(self, call, at=-1, how=0, then=None, then_how=0):
        """Call number `at` of that function fails, and then all of function `then`; None: none. Exit code, stdout,
        stderr, the output, other files beside it, and the calls made."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        if self.path and not self.path.endswith(".d"):
            with open(self.path, "wb") as file:
                file.write(OLD)
        self.process.stdin.write(struct.pack("@5l", SITES.index(call) if call else -1, at, how,
                                                   SITES.index(then) if then else -1, then_how))
        self.process.stdin.flush()
        code = os.waitstatus_to_exitcode(struct.unpack("@i", self.process.stdout.read(4))[0])
        beside = [name for name in os.listdir(self.folder) if os.path.join(self.folder, name) != self.path]
        return (code, stable(content(f"{self.folder}.out")), content(f"{self.folder}.err"),
                tree(self.path) if self.path else None, beside,
                content(f"{self.folder}.log").decode().splitlines())


def said(err):
    """How many lines. On a terminal, without the summary and what is erased."""
    terminal = b"\x1b[J" in err
    return len([line for line in err.split(b"\x1b[J")[-1].splitlines() if not terminal or line.startswith(b"blinkc: ")])


def wrong(name, how, got, right, program, then=None):
    code, out, err, held, beside, _ = got
    if beside and then != "unlink":
        return f"left {beside}"
    if isinstance(held, dict):
        # What is there is right; a file may be missing, and then the program said so.
        odd = [file for file, text in held.items() if right[3].get(file) != text
               and not (then == "unlink" and os.path.basename(file).startswith(".blink."))]
        if odd:
            return f"left {odd}"
    if code == right[0]:
        if held != right[3] or out != right[1]:
            return "success, but not the right output"
        return None
    if how in (SHORT, errno.EINTR) and name in UNSEEN:
        return f"exit {code}: {err!r}"
    # A path that cannot be looked at is not there, not a directory, or a file that fails its check.
    memory = code == 7 and (how == errno.ENOMEM or name in ("mmap", "fclose"))    # also of a stream into memory
    if code != 8 and not memory and (name not in LOOKS or code not in (2, 3)):
        return f"exit {code}: {(out + err)[-300:]!r}"
    if said(err) != 1 and not program.path.endswith(".xml"):
        return f"said {err!r}"
    # A report on many files says what failed.
    if program.path and not program.path.endswith((".d", ".xml", ".txt")) and held not in (OLD, right[3]):
        return "changed the file"
    return None


def reached_disk(log):
    """A file is flushed before it gets its name; the files that an index names are flushed together, before it is."""
    flushed, waiting = False, []
    for line in log:
        name, _, path = line.split(" ", 2)
        if name == "mkostemp":
            flushed = False
        elif name == "fsync":
            flushed = True
        elif name == "syncfs":
            waiting = []
        elif name == "rename" and not flushed:
            waiting.append(path)
        elif name == "rename" and waiting:
            return f"{path} is renamed before {waiting[0]} is flushed"
    return f"{waiting[0]} is renamed and not flushed" if waiting else None


def title(how):
    return "a short count" if how == SHORT else errno.errorcode[how]


def spread(log, most, new):
    """Calls to fail: function, number and how. At most that many, spread, and those of `new`: (file, function)."""
    counts, points, first = {}, [], set()
    for line in log:
        call, file = line.split(" ")[:2]
        at = counts[call] = counts.get(call, -1) + 1
        points += [(call, at, how) for how in KINDS[call]]
        if (file, call) in new:
            new.discard((file, call))
            first.add((call, at, KINDS[call][-1]))
    n = len(points)
    return (points if n <= most else sorted({points[i * n // most] for i in range(most)} | first)), n


def faulty(log, word):
    """(function, file) of the calls that failed. Of several processes the calls come in any order."""
    return {tuple(line.split(" ")[:2]) for line in log if line.endswith(" " + word)}


class Check:
    def __init__(self, name, command):
        self.name, self.program = name, Program(command, f"{work}/{name.replace(' ', '-')}")
        self.right = self.program.attempt(None)
        self.failed, self.lines, self.n, self.refused = set(), [], 0, 0
        self.new, self.seen = set(), {tuple(line.split(" ")[:2]) for line in self.right[5]}

    def attempt(self, call, at, how, then=None, then_how=0):
        got = self.program.attempt(call, at, how, then, then_how)
        failed = faulty(got[5], "FAULT")
        if not failed:
            return got
        self.failed |= failed | faulty(got[5], "THEN")
        self.n += 1
        self.refused += got[0] == 8
        if self.name not in JOBS:
            fault = wrong(call, how, got, self.right, self.program, then)
        else:
            fault = f"signal {-got[0]}: {got[2][-300:]}" if got[0] < 0 else None
        if fault:
            after = f", then {then}: {title(then_how)}" if then else ""
            self.lines.append(f"# call {at} of {call}, {failed}: {title(how)}{after}: {fault}")
        return got

    def run(self, new):
        """What to print."""
        code, _, _, _, _, log = self.right
        if (code not in (0, 9) and self.name not in REFUSED) or len(log) < 2:
            return f"not ok {suite}: {self.name}: without faults: {self.right}"
        points, n = spread(log, MOST // 5 if self.name in SLOW else MOST, new)
        for point in points:
            got = self.attempt(*point)
            after = {tuple(line.split(" ")[:2]) for line in got[5]} - self.seen
            self.seen |= after
            for call, _ in sorted(after):
                for how in KINDS[call] if full else KINDS[call][-1:]:
                    self.attempt(*point, call, how)
        self.program.process.communicate()
        why = None if self.name in JOBS else reached_disk(log)
        if why or self.lines or not (self.refused or self.name in SLOW):
            return "\n".join([f"not ok {suite}: {self.name}: {why or ''} {len(self.lines)} of {self.n} went wrong, "
                              f"{self.refused} refused"] + self.lines[:12])
        return f"ok {suite}: {self.name}: {self.n} faults, of {n} calls and errors, {self.refused} refused"


failed = {tuple(line.split()[2:4]) for line in content(f"{work}/failing").decode().splitlines()
          if line.startswith("# failed ")}
with ThreadPoolExecutor(os.cpu_count()) as pool:
    checks = list(pool.map(lambda job: Check(*job), {**COMMANDS, **JOBS}.items()))
    # Of each function that a file calls one call fails, in the first command that makes one.
    taken = set()
    for check in checks:
        check.new = {(file, call) for call, file in check.seen} - taken
        taken |= check.new
    for line in pool.map(lambda check: check.run(check.new), checks):
        print(line, flush=True)
for check in checks:
    failed |= {(file, call) for call, file in check.failed}
with open(f"{work}/failed", "w", encoding="utf-8") as file:
    file.writelines(f"{re.sub('[.]so.*', '.so', name)} {call}\n" for name, call in sorted(failed))
END

oracle imports "$build" "$work/failed"
