#!/usr/bin/env python3
"""Random matrices of bytes between random ranks: times and bounds of alltoalls against a linear program.

usage: random_matrix.py BLINKC FIRST LAST [--most N]

For each seed a machine of up to N GPUs (default 12) and a matrix: even, skewed, with few pairs, or with rows and
columns of zeros. Of what `blinkc -c alltoall --matrix` writes

- the schedule is replayed (replay.py), as for blocks of one length;
- the loads of its paths for these bytes, added up here, give its time;
- time and bound are the optimum of a linear program of its own, by HiGHS, over flows of each source;
- `blinkc check` refuses it with another time, another bound, or other bytes.

Without scipy there is no linear program: then the bound must be the time. Prints a line for each that differs; exit
status 1 if any does.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

import random_job
import replay

NEAR = 1e-6


def random_matrix(rng, n):
    kind = rng.randrange(5)
    if kind == 0:
        rows = [[1 << 20] * n for _ in range(n)]
    elif kind == 1:     # popular experts
        rows = [[rng.randint(1, 1 << 16) * (8 if j < max(1, n // 4) else 1) for j in range(n)] for _ in range(n)]
    elif kind == 2:
        rows = [[rng.choice((0, 0, 0, rng.randint(1, 1 << 30))) for _ in range(n)] for _ in range(n)]
    elif kind == 3:
        rows = [[int(2 ** rng.uniform(0, 30)) for _ in range(n)] for _ in range(n)]
    else:
        quiet = rng.randrange(n)
        rows = [[0 if quiet in (i, j) else rng.randint(1, 1000) for j in range(n)] for i in range(n)]
    if all(rows[i][j] == 0 for i in range(n) for j in range(n) if i != j):
        rows[0][1] = 12345
    return rows


def own_time(doc, rows):
    """us: of the fullest link."""
    links, n = doc["topology"]["links"], len(rows)
    load = [Fraction(0)] * len(links)
    for tree in doc["trees"]:
        offset, length = map(Fraction, tree["segment"])
        block = int(offset * n * n)
        for edge in tree.get("down", []):
            for link in edge[2]:
                load[link] += length * n * n * rows[block // n][block % n]
    return max(float(one / Fraction(link["capacity"])) for one, link in zip(load, links)) / 1e3


def best_time(doc, rows):
    """us: the least in which flows of all sources fit the links."""
    import numpy
    import scipy.optimize
    import scipy.sparse
    links, n = doc["topology"]["links"], len(rows)
    vertices = sorted({link[end] for link in links for end in ("from", "to")} | set(range(n)), key=str)
    number = {v: i for i, v in enumerate(vertices)}
    width, scale = n * len(links) + 1, sum(map(sum, rows)) / len(links)
    equal, wanted = scipy.sparse.lil_matrix((n * len(vertices), width)), numpy.zeros(n * len(vertices))
    fits = scipy.sparse.lil_matrix((len(links), width))
    for s in range(n):
        for l, link in enumerate(links):
            equal[s * len(vertices) + number[link["to"]], s * len(links) + l] = 1
            equal[s * len(vertices) + number[link["from"]], s * len(links) + l] = -1
            fits[l, s * len(links) + l] = 1
        for r in range(n):
            if r != s:
                wanted[s * len(vertices) + number[r]] = rows[s][r] / scale
        wanted[s * len(vertices) + number[s]] = -sum(rows[s][r] for r in range(n) if r != s) / scale
    for l, link in enumerate(links):
        fits[l, width - 1] = -link["capacity"]
    goal = numpy.zeros(width)
    goal[-1] = 1
    got = scipy.optimize.linprog(goal, fits.tocsr(), numpy.zeros(len(links)), equal.tocsr(), wanted, method="highs")
    assert got.status == 0, got.message
    return got.fun * scale / 1e3


def near(a, b):
    return abs(a - b) <= NEAR * max(abs(a), abs(b))


def is_refused(blinkc, folder, doc, change):
    other = json.loads(json.dumps(doc))
    change(other["matrix"])
    path = os.path.join(folder, "other.json")
    with open(path, "w") as f:
        json.dump(other, f)
    return subprocess.run([blinkc, "check", "-q", path], capture_output=True).returncode not in (0, -6, -11)


def try_one(blinkc, seed, most, folder):
    rng = random.Random(seed)
    topology = random_job.machine(rng, most)
    command = [blinkc, "-q", "-c", "alltoall", "--routes", "any"]
    if isinstance(topology, str):
        counts = dict(item.split(":") for item in topology.split())
        n = int(counts["server"]) * int(counts["gpu"])
        command += ["--synthetic", topology]
    else:
        n = len(topology["nodes"][0]["gpus"])
        with open(os.path.join(folder, "machine.json"), "w") as f:
            json.dump(topology, f)
        command.append(os.path.join(folder, "machine.json"))
    rows = random_matrix(rng, n)
    with open(os.path.join(folder, "matrix"), "w") as f:
        if seed % 2:
            json.dump(rows, f)
        else:
            f.write("# bytes\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows))
    out = os.path.join(folder, "out.json")
    done = subprocess.run([*command, "--matrix", os.path.join(folder, "matrix"), "-o", out], capture_output=True,
                          text=True)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr}"
    with open(out) as f:
        doc = json.load(f)
    if doc["matrix"]["bytes"] != rows:
        return "other bytes"
    try:
        replay.judge(replay.load(out))
    except replay.Wrong as wrong:
        return f"replay: {wrong}"
    time, bound, own = doc["matrix"]["time"], doc["matrix"]["bound"], own_time(doc, rows)
    best = best_time(doc, rows) if random_job.HIGHS else own
    if not near(time, own):
        return f"time {time}: its paths take {own}"
    if not near(time, best) or not near(bound, best):
        return f"time {time}, bound {bound}: the optimum is {best}"
    if seed % 4 == 0:
        for name, change in (("time", lambda m: m.update(time=m["time"] * 0.999)),
                             ("bound", lambda m: m.update(bound=m["bound"] * 1.001)),
                             ("length", lambda m: m.update(length=m["length"][:-1])),
                             ("bytes", lambda m: m.update(bytes=[[2 * x for x in row] for row in rows]))):
            if not is_refused(blinkc, folder, doc, change):
                return f"another {name} is accepted"
    return None


def main():
    blinkc, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    most = int(sys.argv[sys.argv.index("--most") + 1]) if "--most" in sys.argv else 12
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last + 1):
            wrong = try_one(blinkc, seed, most, folder)
            if wrong:
                print(f"matrix {seed}: {wrong}")
            bad += bool(wrong)
    by = "linear programs" if random_job.HIGHS else "bounds, without scipy"
    print(f"{last + 1 - first} matrices planned, {bad} differ, by {by}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
