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
"$blinkc" -q topologies/dgx1v.xml -o "$work/schedule.json" || not_ok "compile"
"$blinkc" batch -q topologies/dgx1v.xml --sizes 2 --collectives allreduce,broadcast -o "$work/directory" || not_ok "batch"
oracle fabric abci 2 9 >"$work/racks.json"
"$blinkc" batch -q topologies/dgx1v.xml --sizes 3 --collectives broadcast -o "$work/schedules" || not_ok "batch"
"${CC:-cc}" -Iruntime/include examples/lookup.c -o "$work/lookup" -L"$build" -lblink -Wl,-rpath,"$build" || not_ok "lookup"

"$python" - "$suite" "$blinkc" "$build/tests/oom.so" "$work" <<'END'
import os, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

suite, blinkc, preload, work = sys.argv[1:]
FIRST, SPREAD = 150, 40     # all of the first, and so many of the rest
COMMANDS = {
    "compile XML": ["-q", "topologies/dgx1v.xml", "-o", "x.json"],
    "compile XML, all trees": ["-v", "--no-minimise", "-g", "0,1,2,3", "topologies/dgx1v.xml", "-o", "x.json"],
    "compile JSON to .cu": ["-q", "-c", "broadcast", "-g", "1,4,5,7", "topologies/dgx1v.json", "-o", "x.cu"],
    "compile a hybrid": ["-q", "--hybrid=host", "-c", "broadcast", "-g", "0,1,4", "--size", "1M", "topologies/dgx1v.xml", "-o", "x.cu"],
    "compile over PCIe": ["-q", "-c", "reduce", "-g", "0,1,4", "-l", "pcie,qpi", "topologies/dgx1v.json", "-o", "x.json"],
    "compile in three phases": ["-q", "-a", "threephase", "-l", "all", "tests/fuzz/corpus/fuzz_topology/mixed.json", "-o", "x.json"],
    "compile in one hop": ["-q", "-a", "onehop", "-g", "0,1,2", "topologies/dgx1p.json", "-o", "x.json"],
    "compile over racks": ["-q", "-l", "all", f"{work}/racks.json", "-o", "x.json"],
    "compile over racks from a root": ["-q", "-l", "all", "-c", "reduce", f"{work}/racks.json", "-o", "x.json"],
    "check": ["check", f"{work}/schedule.json"],
    "diff": ["diff", "-j", "1", "--fail-on", "wrong", "tests/golden/diff/old", "tests/golden/diff/new", "-o", "x.txt"],
    "convert XML": ["convert", "topologies/dgx1v.xml", "-o", "x.json"],
    "convert a cluster": ["convert", "tests/fuzz/corpus/fuzz_topology/cluster.xml", "-o", "x.json"],
    "compile a cluster": ["-q", "-g", "s0/gpu1,s1/gpu5,g0", "tests/fuzz/corpus/fuzz_topology/cluster.xml", "-o", "x.json"],
    "synthetic": ["topology", "--synthetic", "server:2 gpu:2 mesh:50 nic:1@12.5 pcie:12 rails leaf:1", "-o", "x.xml"],
    "convert JSON": ["convert", "topologies/dgx1v.json", "-o", "x.xml"],
    "look up and run": [f"{work}/lookup", f"{work}/schedules", "3", "0", "5"],
    "a page": ["report", "-q", "-j", "1", f"{work}/directory", "-o", "x.html"],
    "a bad file": ["tests/bad/topology/end-tag-wrong.xml", "-o", "x.json"],
}
OLD = b"what was there before\n"


def attempt(command, folder, **environment):
    """Exit code, stdout, stderr, what the output file holds, the other files beside it, and allocations and blocks left."""
    os.makedirs(folder, exist_ok=True)
    words = ([] if command[0].startswith("/") else [blinkc]) + [os.path.join(folder, word) if word.startswith("x.") else word for word in command]
    path = next((word for word in words if word.startswith(folder)), None)
    if path:
        with open(path, "wb") as file:
            file.write(OLD)
    ran = subprocess.run(words, capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                         env={**os.environ, "LD_PRELOAD": preload, "OOM_COUNT": f"{folder}.count", **environment})
    counts = [0, 0]
    if ran.returncode >= 0:
        with open(f"{folder}.count") as file:
            counts = [int(word) for word in file.read().split()]
    held = None
    if path:
        with open(path, "rb") as file:
            held = file.read()
        os.unlink(path)
    beside = os.listdir(folder)
    for name in beside:
        os.unlink(os.path.join(folder, name))
    return ran.returncode, ran.stdout, ran.stderr, held, beside, counts


def wrong(got, right):
    code, out, err, held, beside, counts = got
    if beside:
        return f"left {beside}"
    # GLPK itself forgets a block if it fails while it orders a matrix.
    if code >= 0 and counts[1] > right[5][1] + (b" program failed: " in err):
        return f"exit {code}: {counts[1]} blocks are not freed, {right[5][1]} where all goes well"
    if code == 7:
        if out or not err.endswith(b"out of memory\n") or err.count(b"blinkc: ") + err.count(b"lookup: ") != 1:
            return f"said {out!r} {err!r}"
        return "changed the file" if held not in (None, OLD) else None
    if code != right[0]:
        return f"exit {code}: {(out + err)[-300:]!r}"
    return None if (out, held) == (right[1], right[3]) else "not the right bytes"


def check(name, command, on):
    folder = f"{work}/{name.replace(' ', '-')}{on}"
    right = attempt(command, folder)
    count = right[5][0]
    name = f"{name}, {'all from one on' if on else 'one allocation'} of {count}"
    if right[0] != (3 if "bad" in name else 0) or count < 20:
        return f"not ok {suite}: {name}: with all memory: {right}"
    rest = max(count - FIRST, 0)
    points = list(range(min(FIRST, count))) + [FIRST + i * rest // SPREAD for i in range(SPREAD if rest else 0)]
    refused = failed = 0
    lines = []
    for at in sorted(set(points)):
        got = attempt(command, folder, OOM_AT=str(at), **({"OOM_ON": "1"} if on else {}))
        why = wrong(got, right)
        refused += got[0] == 7
        if why:
            failed += 1
            lines.append(f"# allocation {at}: {why}")
    if failed or not refused:
        return "\n".join([f"not ok {suite}: {name}: {failed} of {len(points)} went wrong, {refused} refused"] + lines[:8])
    return f"ok {suite}: {name}: {len(points)} failures, {refused} refused, {right[5][1]} blocks left"


with ThreadPoolExecutor(os.cpu_count()) as pool:
    for line in pool.map(lambda job: check(*job), [(n, c, on) for n, c in COMMANDS.items() for on in ("", "1")]):
        print(line, flush=True)
END
