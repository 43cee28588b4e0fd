# Memory runs out: at each of the first allocations and at some of the later ones, once for that one alone and once for
# all from it on. Either the program says so in one line, exits with 7 and leaves the output file as it was, or what
# failed could be done without and the bytes are right. It never dies otherwise, and leaves no more memory behind than
# when all goes well.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

if nm -D "$blinkc" | grep -q '__[at]san_init'; then
	skip "memory runs out: this build has a sanitizer, which has its own allocator"
	exit 0
fi
"$blinkc" -q topologies/dgx1v.xml -g 0-6 -o "$work/schedule.json" || not_ok "compile"
"$blinkc" -q -a ring -g "s0:0,3 s1:0" topologies/two-dgx1v.xml -o "$work/rings.json" || not_ok "rings"
"$blinkc" batch -q topologies/dgx1v.xml --sizes 2 --collectives allreduce,broadcast -o "$work/directory" ||
	not_ok "batch"
oracle fabric abci 2 9 >"$work/racks.json"
"$blinkc" batch -q topologies/dgx1v.xml --sizes 3 --collectives broadcast -o "$work/schedules" || not_ok "batch"
echo 1,4,5 >"$work/three"
"$blinkc" -q topologies/dgx1v.xml -g 0-3 --format msccl -o "$work/algorithm.xml" || not_ok "msccl"
"$blinkc" -q topologies/dgx1v.xml -g 0,3 --format mscclpp -o "$work/plan.json" || not_ok "mscclpp"
printf '%s\n' 4x4,1000000,300 2x8,1000000,310 2x2x2x2,1000000,800 16,1000000,320 4x4,100000000,9000 16,100000000,9500 \
	>"$work/measured.csv"
"$blinkc" job -q examples/jobs/dgx1v.json -o "$work/groups" || not_ok "job"
echo '{ "format": "blink-job", "version": 1, "gpus": "0-2,4", "grid": { "dp": 2, "tp": 2 }, "phases": [ { "name":
	"step", "calls": [ { "groups": "tp", "collective": "allreduce", "bytes": 1048576 } ] } ] }' >"$work/pairs.json"
"${cc[@]}" -Iruntime/include examples/lookup.c -o "$work/lookup" -L"$build" -lblink -Wl,-rpath,"$build" ||
	not_ok "lookup"
# A job of one rank.
cat >"$work/alone.c" <<'END'
#include "blink.h"
#include <stdio.h>

int
main(void)
{
	blinkUniqueId_t id;
	blinkComm_t comm = NULL, split = NULL;
	blinkError_t error = { "" };
	int x[3] = { 1, 2, 3 };
	blinkResult_t result = blinkGetUniqueId(&id, &error);
	if (result == blinkSuccess)
		result = blinkCommInitRank(&comm, 1, &id, 0, NULL, &error);
	if (result == blinkSuccess)
		result = blinkCommSplit(comm, 0, 0, &split, NULL, &error);
	if (result == blinkSuccess) {
		if ((result = blinkAllReduce(x, x, 3, blinkInt32, blinkSum, split, NULL)) == blinkSuccess)
			result = blinkCommWait(split, 0);
		if (result != blinkSuccess)
			snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(split));
	}
	blinkCommDestroy(split);
	blinkCommDestroy(comm);
	if (result != blinkSuccess)
		fprintf(stderr, "alone: %s\n", error.text);
	else
		printf("%d %d %d\n", x[0], x[1], x[2]);
	return result;
}
END
"${cc[@]}" -Iruntime/include "$work/alone.c" -o "$work/alone" -L"$build" -lblink -Wl,-rpath,"$build" || not_ok "alone"

BLINK_TIMEOUT=5s "$python" - "$suite" "$blinkc" "$build/tests/oom.so" "$work" "$full" <<'END'
import os, re, struct, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

suite, blinkc, preload, work, full = sys.argv[1:]
FIRST, SPREAD = (150, 40) if full else (6, 5)     # each of the first allocations, and a number of the later ones
JOB = "a job of one rank"
COMMANDS = {
    "compile XML": ["-q", "-g", "0,1,2,4,5,6", "topologies/dgx1v.xml", "-o", "x.json"],
    "compile XML, all trees": ["-v", "--no-minimise", "-g", "0,1,2,3", "topologies/dgx1v.xml", "-o", "x.json"],
    "compile JSON to .cu": ["-q", "-c", "broadcast", "-g", "1,4,5,7", "topologies/dgx1v.json", "-o", "x.cu"],
    "compile a hybrid": ["-q", "--hybrid=host", "-c", "broadcast", "-g", "0,1,4", "--size", "1M",
                         "topologies/dgx1v.xml", "-o", "x.cu"],
    "compile over PCIe": ["-q", "-c", "reduce", "-g", "0,1,4", "-l", "pcie,qpi", "topologies/dgx1v.json",
                          "-o", "x.json"],
    "compile in three phases": ["-q", "-a", "threephase", "-l", "all", "tests/fuzz/corpus/fuzz_topology/mixed.json",
                                "-o", "x.json"],
    "compile in one hop": ["-q", "-a", "onehop", "-g", "0,1,2", "topologies/dgx1p.json", "-o", "x.json"],
    "compile halving and doubling": ["-q", "-a", "halving-doubling", "-g", "0-5", "topologies/kesch.xml",
                                     "-o", "x.json"],
    "compile through hosts": ["-q", "-a", "host-staged-knomial", "-c", "gather", "-g", "0,1,8",
                              "topologies/kesch.xml", "-o", "x.json"],
    "compile recursive doubling": ["-q", "-a", "recursive-doubling", "-g", "0,1,2,3", "topologies/dgx1p.json",
                                   "-o", "x.json"],
    "compile over racks": ["-q", "-l", "all", f"{work}/racks.json", "-o", "x.json"],
    "compile over racks from a root": ["-q", "-l", "all", "-c", "reduce", f"{work}/racks.json", "-o", "x.json"],
    "check": ["check", f"{work}/schedule.json"],
    "compile compact": ["-q", "-c", "allgather", "--synthetic", "server:2 gpu:2 mesh:50 net:25",
                        "--format", "compact", "-o", "x.json"],
    "check a compact schedule": ["check", "tests/fuzz/corpus/fuzz_schedule/compact-allreduce.json"],
    "list its trees": ["convert", "tests/fuzz/corpus/fuzz_schedule/compact-allreduce.json", "-o", "x.json"],
    "diff": ["diff", "-j", "1", "--fail-on", "wrong", "tests/golden/diff/old", "tests/golden/diff/new", "-o", "x.txt"],
    "convert XML": ["convert", "topologies/dgx1v.xml", "-o", "x.json"],
    "convert a cluster": ["convert", "tests/fuzz/corpus/fuzz_topology/cluster.xml", "-o", "x.json"],
    "compile a cluster": ["-q", "-g", "s0/gpu1,s1/gpu5,g0", "tests/fuzz/corpus/fuzz_topology/cluster.xml",
                          "-o", "x.json"],
    "synthetic": ["topology", "--synthetic", "server:2 gpu:2 mesh:50 nic:1@12.5 pcie:12 rails leaf:1", "-o", "x.xml"],
    "convert a machine by hwloc": ["convert", "-q", "tests/foreign/hwloc/mi250x-smi-2.xml", "-o", "x.json"],
    "ranks of CPUs by hwloc": ["convert", "-q", "tests/foreign/hwloc/snc2-2.xml", "--cpu-ranks", "-o", "x.json"],
    "rings for NCCL": ["convert", f"{work}/rings.json", "--format", "nccl-graph", "--server", "s1", "-o", "x.xml"],
    "convert JSON": ["convert", "topologies/dgx1v.json", "-o", "x.xml"],
    "look up and run": [f"{work}/lookup", f"{work}/schedules", "3", "0", "5"],
    JOB: [f"{work}/alone"],
    "a page": ["report", "-q", "-j", "1", f"{work}/directory", "-o", "x.html"],
    "a page with times": ["report", "-q", "-j", "1", f"{work}/directory", "--topology", "topologies/dgx1v.xml",
                          "--size", "64K", "-o", "x.html"],
    "hierarchies": ["hierarchy", "topologies/abci.xml", "--top", "2", "-o", "x.json"],
    "hierarchies of measurements": ["hierarchy", "-q", "topologies/dgx2.xml", "--no-simulate", "--measurements",
                                    f"{work}/measured.csv", "-o", "x.txt"],
    "simulate": ["simulate", "-q", f"{work}/schedule.json", "--size", "1M", "-o", "x.json"],
    "simulate with a trace": ["simulate", "-q", f"{work}/schedule.json", "--size", "100K", "--chunk", "32K", "--trace",
                              "x.json"],
    "simulate an algorithm of MSCCL": ["simulate", "-q", f"{work}/algorithm.xml", "--topology", "topologies/dgx1v.xml",
                                       "-g", "0-3", "--size", "64K", "-o", "x.csv"],
    "write a plan of MSCCL++": ["convert", "-q", f"{work}/schedule.json", "--format", "mscclpp", "-o", "x.json"],
    "simulate a plan of MSCCL++": ["simulate", "-q", f"{work}/plan.json", "--topology", "topologies/dgx1v.xml",
                                   "-g", "0,3", "--size", "64K", "-o", "x.csv"],
    "check a plan of MSCCL++": ["check", f"{work}/plan.json"],
    "tune": ["tune", "-q", "-j", "1", "topologies/dgx1v.xml", "-g", f"{work}/three",
             "--collectives", "allreduce,broadcast", "--roots", "canonical", "--size", "1K-16M", "-o", "x.d"],
    "rules for Open MPI": ["tune", "-q", "topologies/dgx1v.xml", "-l", "nvlink", "--collectives", "allreduce,broadcast",
                           "--size", "1K,1M", "--format", "ompi-rules", "-o", "x.txt"],
    "groups of a job": ["job", "-q", "examples/jobs/dgx1v.json", "-o", "x.d"],
    "where ranks of a job are best": ["advise", "-q", "--job", f"{work}/pairs.json", "dgx1p", "-o", "x.txt"],
    "simulate groups of a job": ["simulate", "-q", f"{work}/groups", "--phase", "forward", "-o", "x.txt"],
    "check groups of a job": ["check", f"{work}/groups/phases.json"],
    "compile for a size": ["-q", "-g", "0-2", "--size", "64K", "topologies/dgx1v.xml", "-o", "x.json"],
    "a bad file": ["tests/bad/topology/end-tag-wrong.xml", "-o", "x.json"],
}
SLOW = {"compile all of a DGX-1V": ["-q", "topologies/dgx1v.xml", "-o", "x.json"]}
OLD = b"what was there before\n"
NAUTY = 100     # blocks that it has at most
XML_WRITER = 2  # an element and its name, which libxml2 loses if it cannot put them on its list
NAUTY_ENDS = b"Error, memory not allocated.", b">E malloc failed in "


def content(path):
    with open(path, "rb") as file:
        return file.read()


class Program:
    """A command, which oom.so runs as often as it is asked to. Its output is in a folder of its own; x.d is one beside
    that, which stays."""
    def __init__(self, command, folder):
        os.makedirs(folder)
        words = ([] if command[0].startswith("/") else [blinkc]) + [
            f"{folder}.d" if word == "x.d" else os.path.join(folder, word) if word.startswith("x.") else word
            for word in command]
        self.folder, self.path = folder, next((word for word in words if word.startswith(folder + "/")), None)
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "LD_PRELOAD": preload, "OOM": folder})

    def attempt(self, at, on):
        """Exit code, stdout, stderr, the output file, other files beside it, and allocations and blocks left."""
        if self.path:
            with open(self.path, "wb") as file:
                file.write(OLD)
        self.process.stdin.write(struct.pack("@ll", at, on))
        self.process.stdin.flush()
        code = os.waitstatus_to_exitcode(*struct.unpack("@i", self.process.stdout.read(4)))
        counts = [int(word) for word in content(f"{self.folder}.count").split()] if code >= 0 else [0, 0]
        held = None
        if self.path:
            held = content(self.path)
            os.unlink(self.path)
        beside = os.listdir(self.folder)
        for name in beside:
            os.unlink(os.path.join(self.folder, name))
        return code, content(f"{self.folder}.out"), content(f"{self.folder}.err"), held, beside, counts

    def end(self):
        self.process.communicate()


def wrong(name, got, right):
    code, out, err, held, beside, counts = got
    if beside:
        return f"left {beside}"
    # GLPK itself forgets a block if it fails while it orders a matrix, and nauty all that it has. The example exits
    # without giving back what it has, and without memory a thread is not made.
    if code == 8 and err.startswith(b"lookup: ") and b": thread " in err:
        return None
    # A hub without memory for its rank ends the job, or lets it try until the time is up. Threads may still have
    # blocks.
    if name == JOB:
        refused = code in (7, 8, 11, 12) and not out and re.fullmatch(rb"alone: [^\n]+\n", err)
        return None if refused or (code, out, err) == (0, right[1], b"") else f"exit {code}: {out!r} {err!r}"
    # In some places nauty ends the process itself.
    if code == 1 and err.strip().startswith(NAUTY_ENDS) and held in (None, OLD):
        return None
    left = right[5][1] + (b" program failed: " in err) + NAUTY * (b" canonical form failed: " in err)
    left += XML_WRITER * (right[3] or b"").startswith((b"<?xml", b"<graphs"))
    if code >= 0 and counts[1] > left and b"lookup: " not in err:
        return f"exit {code}: {counts[1]} blocks are not freed, {right[5][1]} where all goes well"
    if code == 7:
        said = re.findall(rb"\b(?:blinkc|lookup|alone): ", err)
        if out or len(said) != 1 or not re.search(rb"out of memory(; \d+ other schedules are missing, too)?\n$", err):
            return f"said {out!r} {err!r}"
        return "changed the file" if held not in (None, OLD) else None
    if code != right[0]:
        return f"exit {code}: {(out + err)[-300:]!r}"
    return None if (out, held) == (right[1], right[3]) else "not the right bytes"


def check(name, command, on):
    program = Program(command, f"{work}/{name.replace(' ', '-')}{on}")
    right = program.attempt(-1, 0)
    count = right[5][0]
    command_name, name = name, f"{name}, {'all from one on' if on else 'one allocation'} of {count}"
    if right[0] != (3 if "bad" in name else 0) or count < 5:
        return f"not ok {suite}: {name}: with all memory: {right}"
    first, spread = (12, 12) if command in SLOW.values() else (count, 0) if command_name == JOB else (FIRST, SPREAD)
    rest = max(count - first, 0)
    points = list(range(min(first, count))) + [first + i * rest // spread for i in range(spread if rest else 0)]
    refused = failed = 0
    lines = []
    for at in sorted(set(points)):
        got = program.attempt(at, bool(on))
        why = wrong(command_name, got, right)
        refused += got[0] == 7
        if why:
            failed += 1
            lines.append(f"# allocation {at}: {why}")
    program.end()
    if failed or not refused:
        why = f"not ok {suite}: {name}: {failed} of {len(points)} went wrong, {refused} refused"
        return "\n".join([why] + lines[:8])
    return f"ok {suite}: {name}: {len(points)} failures, {refused} refused, {right[5][1]} blocks left"


with ThreadPoolExecutor(os.cpu_count()) as pool:
    commands = {**SLOW, **COMMANDS} if full else COMMANDS
    for line in pool.map(lambda job: check(*job), [(n, c, on) for n, c in commands.items() for on in ("", "1")]):
        print(line, flush=True)
END
