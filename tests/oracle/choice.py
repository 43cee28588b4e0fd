"""Is what `blinkc --size` chooses the best of all algorithms? Each is planned alone and simulated alone.

usage: choice.py BLINKC MACHINE GPUS SIZE,SIZE... COLLECTIVE... [-- OPTION...]

GPUS: a list, or all. OPTION: for all, as --executor copy. Prints what is wrong.
"""
import json
import os
import subprocess
import sys
import tempfile

WAYS = [["trees"], ["trees", "--max-depth", "4"], ["onehop"], ["threephase"], ["ring"], ["shared-ring"],
        ["reducescatter-allgather"],
    ["chain"], ["direct"], ["knomial"],
    ["knomial", "--radix", "3"], ["knomial", "--radix", "4"], ["double-binary-tree"], ["scatter-allgather"],
    ["halving-doubling"], ["recursive-doubling"], ["bruck"], ["bruck", "--radix", "3"], ["hierarchical-ring"],
    ["host-staged-knomial"], ["bine"]]


def run(*args):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def times(blinkc, path, sizes, options):
    done = run(blinkc, "simulate", path, "--size", ",".join(sizes), "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["sizes"]


def check(blinkc, machine, gpus, sizes, coll, options, work):
    path, wrong = os.path.join(work, "s.json"), []
    job = [machine, "-c", coll, *([] if gpus == "all" else ["-g", gpus])]
    best, ways = {}, 0
    for way in WAYS:
        done = run(blinkc, *job, "-q", "-a", *way, "-o", path)
        assert done.returncode in (0, 2, 4, 5), (way, done.stderr)
        if done.returncode == 0:
            ways += 1
            for size, row in zip(sizes, times(blinkc, path, sizes, options)):
                if size not in best or row["time_ps"] < best[size][0]:
                    best[size] = row["time_ps"], way
    for size in sizes:
        done = run(blinkc, *job, "--size", size, "--summary", "json", "-o", path, *options)
        assert done.returncode == 0, done.stderr
        chosen, row = json.loads(done.stderr)["chosen"], times(blinkc, path, [size], options)[0]
        what = f"{machine} {gpus} {coll} {size} {' '.join(options)}: {chosen['way']}"
        if row["time_ps"] > best[size][0]:
            wrong.append(f"{what}: {row['time_ps']} ps, {best[size][1]} takes {best[size][0]}")
        if row["time_ps"] < row["least_ps"]:
            wrong.append(f"{what}: {row['time_ps']} ps, below the least, {row['least_ps']}")
        if round(chosen["time_us"] * 1e6) != row["time_ps"] or chosen["chunk_bytes"] != row["chunk"]:
            wrong.append(f"{what}: said {chosen}, simulate has {row['time_ps']} ps in chunks of {row['chunk']}")
        if abs(round(chosen["least_us"] * 1e6) - row["least_ps"]) > row["least_ps"] // 10**6:
            wrong.append(f"{what}: said {chosen}, simulate has at least {row['least_ps']} ps")
    assert ways > 1, f"{machine} {gpus} {coll}: {ways} ways: want some to compare"
    return wrong


def main():
    args = sys.argv[1:]
    options = args[args.index("--") + 1:] if "--" in args else []
    blinkc, machine, gpus, sizes, *colls = args[:args.index("--")] if "--" in args else args
    wrong = []
    with tempfile.TemporaryDirectory() as work:
        for coll in colls:
            wrong += check(blinkc, machine, gpus, sizes.split(","), coll, options, work)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
