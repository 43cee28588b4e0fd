# System calls fail, one at a time, at every call that a command makes: short counts, EINTR, EIO, ENOSPC, EAGAIN. Short
# reads and writes and interrupted ones change nothing. After any other fault either the result is the right one, or the
# program says so in one line, with a documented status, and the output is what it was. No temporary file stays, nothing
# waits for ever. And what is renamed has reached the disk.
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
"$blinkc" batch -q topologies/dgx1v.xml --sizes 3 --collectives broadcast -o "$work/schedules" || not_ok "batch"
"$blinkc" batch -q topologies/dgx1v.xml --sizes 2 -g 0-3 -o "$work/small" 2>/dev/null ||
	"$blinkc" batch -q topologies/kesch.xml --sizes 2 -o "$work/small" || not_ok "batch"
"${cc[@]}" -Iruntime/include examples/lookup.c -o "$work/lookup" -L"$build" -lblink -Wl,-rpath,"$build" ||
	not_ok "lookup"

"$python" - "$suite" "$blinkc" "$build/tests/faults.so" "$work" "$full" <<'END'
import os, re, shutil, struct, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

suite, blinkc, preload, work, full = sys.argv[1:]
perf = os.path.join(os.path.dirname(blinkc), "blink-perf")
SHORT, EINTR, EIO, ENOSPC, EAGAIN = range(1, 6)
NAMES = ["none", "a short count", "EINTR", "EIO", "ENOSPC", "EAGAIN"]
KINDS = {"read": [SHORT, EINTR, EIO], "pread": [SHORT, EINTR, EIO], "write": [SHORT, EINTR, EIO, ENOSPC],
         "pwrite": [SHORT, EINTR, EIO, ENOSPC], "open": [EINTR, EIO], "close": [EINTR, EIO], "fsync": [EIO, ENOSPC],
         "syncfs": [EIO, ENOSPC], "rename": [EIO, ENOSPC], "mkostemp": [EIO, ENOSPC], "mkdir": [EIO, ENOSPC],
         "fork": [EAGAIN], "pthread_create": [EAGAIN], "pipe2": [EIO], "fchmod": [EIO], "flock": [EINTR, EIO],
         "opendir": [EIO], "readdir": [EIO], "stat": [EIO], "fstat": [EIO]}
UNSEEN = {"read", "pread", "write", "pwrite"}       # where SHORT and EINTR must not be noticed
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
    "run a program": [perf, f"{work}/program.so", "-b", "4", "-e", "4", "-n", "1", "-w", "0", "-t", "3"],
    "run a schedule": [perf, f"{work}/schedule.json", "-b", "4", "-e", "4", "-n", "1", "-w", "0", "-t", "3"],
}
OLD = b"what was there before\n"
MOST = 400 if full else 60     # faults of a command; more are spread


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
        words = [re.sub("^OUT", f"{folder}/out", word) for word in command]
        self.folder, self.path = folder, next((word for word in words if word.startswith(folder)), None)
        self.words = words if words[0].startswith("/") else [blinkc] + words
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "LD_PRELOAD": preload, "FAULTS": folder})

    def attempt(self, at, how):
        """Exit code, stdout, stderr, the output, other files beside it, and the calls made."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        if self.path and not self.path.endswith(".d"):
            with open(self.path, "wb") as file:
                file.write(OLD)
        self.process.stdin.write(struct.pack("@ll", at, how))
        self.process.stdin.flush()
        code = os.waitstatus_to_exitcode(struct.unpack("@i", self.process.stdout.read(4))[0])
        beside = [name for name in os.listdir(self.folder) if os.path.join(self.folder, name) != self.path]
        return (code, stable(content(f"{self.folder}.out")), content(f"{self.folder}.err"),
                tree(self.path) if self.path else None, beside,
                content(f"{self.folder}.log").decode().splitlines())


def wrong(name, how, got, right, program):
    code, out, err, held, beside, _ = got
    if beside:
        return f"left {beside}"
    if isinstance(held, dict):
        # What is there is right; a file may be missing, and then the program said so.
        odd = [file for file, text in held.items() if right[3].get(file) != text]
        if odd:
            return f"left {odd}"
    if code == right[0]:
        if held != right[3] or out != right[1]:
            return "success, but not the right output"
        return None
    if how in (SHORT, EINTR) and name in UNSEEN:
        return f"exit {code}: {err!r}"
    # A path that cannot be looked at is not there, not a directory, or a file that fails its check.
    if code != 8 and (name not in ("stat", "read", "open") or code not in (2, 3)):
        return f"exit {code}: {(out + err)[-300:]!r}"
    if err.count(b"\n") != 1 and not program.path.endswith(".xml"):
        return f"said {err!r}"
    # A report on many files says what failed.
    if program.path and not program.path.endswith((".d", ".xml", ".txt")) and held not in (OLD, right[3]):
        return "changed the file"
    return None


def reached_disk(log):
    """A file is flushed before it gets its name; the files that an index names are flushed together, before it is."""
    flushed, waiting = False, []
    for line in log:
        name, _, path = line.partition(" ")
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


def check(name, command):
    program = Program(command, f"{work}/{name.replace(' ', '-')}")
    right = program.attempt(-1, 0)
    log = right[5]
    if right[0] not in (0, 9) or len(log) < 3:
        return f"not ok {suite}: {name}: without faults: {right}"
    why = reached_disk(log)
    points = [(at, how) for at, line in enumerate(log) for how in KINDS[line.split(" ")[0].replace("__open_2", "open")]]
    n = len(points)
    if n > MOST:
        points = [points[i * n // MOST] for i in range(MOST)]
    lines, refused = [], 0
    for at, how in points:
        got = program.attempt(at, how)
        # Of two processes the calls come in any order.
        line = next((line for line in got[5] if line.endswith(" FAULT")), None)
        call = line.split(" ")[0] if line else None
        if how not in KINDS.get(call, []):
            continue
        refused += got[0] == 8
        fault = wrong(call, how, got, right, program)
        if fault:
            lines.append(f"# call {at}, {line}: {NAMES[how]}: {fault}")
    program.process.communicate()
    if why or lines or not refused:
        return "\n".join([f"not ok {suite}: {name}: {why or ''} {len(lines)} of {len(points)} went wrong, {refused} refused"]
                         + lines[:12])
    return f"ok {suite}: {name}: {len(points)} of {n} faults, {refused} refused"


with ThreadPoolExecutor(os.cpu_count()) as pool:
    for line in pool.map(lambda job: check(*job), COMMANDS.items()):
        print(line, flush=True)
END
