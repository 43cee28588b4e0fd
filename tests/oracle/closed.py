#!/usr/bin/env python3
"""Closed formulas of the literature, held against `blinkc simulate` where their assumptions hold: equal to the ps.

usage: closed.py BLINKC DIR [--every N] [--first N]    writes schedules into DIR; a line for each algorithm

A full mesh of GPUs, each pair with a link of 25 GB/s each way, so that a byte takes 40 ps. s: start-up of a step, B:
bandwidth, g: rate of adding, L: latency of a hop, c chunks of C bytes, M = c C, n ranks. The call takes 5 us.
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
from fractions import Fraction

BYTE, ADD, CALL = 40, 2, 5 * 10**6


class Mesh:
    def __init__(self, n, latency_us):
        self.n = n
        self.pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
        self.number = {pair: i for i, pair in enumerate(self.pairs)}
        self.topology = {
            "name": "mesh", "digest": "sha256:" + hashlib.sha256(str(n).encode()).hexdigest(),
            "ranks": [{"gpu": f"g{r}", "node": "n"} for r in range(n)],
            "links": [{"from": a, "to": b, "class": "nvlink", "capacity": 25, "latency": latency_us}
                      for a, b in self.pairs]}

    def edges(self, pairs):
        return [[a, b, [self.number[a, b]]] for a, b in pairs]

    def schedule(self, collective, root, trees):
        """trees: (root, up pairs, down pairs), each with an equal part of the buffer."""
        load, out = {}, []
        for i, (at, up, down) in enumerate(trees):
            tree = {"segment": [fraction(i, len(trees)), fraction(1, len(trees))], "root": at}
            if down:
                tree["down"] = self.edges(down)
            if up:
                tree["up"] = self.edges(up)
            out.append(tree)
            for pair in up + down:
                load[pair] = load.get(pair, 0) + Fraction(1, len(trees))
        n, capacity = self.n, 25 * (self.n - 1)
        cut = {"kind": "cut", "side": [root if root is not None else 0]}
        bound = {"broadcast": capacity, "reduce": capacity, "allgather": n * Fraction(capacity, n - 1),
                 "reducescatter": n * Fraction(capacity, n - 1),
                 "allreduce": Fraction(capacity * n, 2 * (n - 1))}[collective]
        if collective == "allreduce":
            cut = {"kind": "partition", "parts": [[r] for r in range(n)]}
        elif collective in ("allgather", "reducescatter"):
            cut["side"] = list(range(1, n))
            bound = Fraction(n, n - 1) * capacity if collective == "allgather" else bound
        rate = {"achieved": float(25 / max(load.values())), "bound": float(bound), "certificate": cut}
        return {"format": "blink-schedule", "version": 1,
                "generator": {"name": "closed.py", "version": "1", "options": {}}, "topology": self.topology,
                "collective": collective, "root": root, "algorithm": "trees", "rate": rate, "trees": out}


def fraction(p, q):
    f = Fraction(p, q)
    return f"{f.numerator}/{f.denominator}"


def log(k, n):
    rounds = 0
    while k**rounds < n:
        rounds += 1
    return rounds


def knomial(n, k):
    """Pairs, round by round."""
    pairs, have = [], 1
    while have < n:
        pairs += [(r, have * j + r) for r in range(have) for j in range(1, k) if have * j + r < n]
        have *= k
    return pairs


def flipped(pairs):
    return [(b, a) for a, b in reversed(pairs)]


def chain(ranks):
    return list(zip(ranks, ranks[1:]))


def around(n, first):
    return [(first + i) % n for i in range(n)]


def halving(n, r):
    """The tree by which the segment of rank r is collected: partners differ in one bit, the highest first."""
    pairs, mask = [], n // 2
    while mask:
        pairs += [(q, q ^ mask) for q in range(n) if (q ^ r) & mask and not (q ^ r) & ~(2 * mask - 1)]
        mask //= 2
    return pairs


# Each: name, sizes n, at_once, whether adding takes time, whether it is cut into chunks; schedule; time in ps without
# the call, of n, m, c chunks of b bytes (the whole message, or segment, if it is not cut), s and l in ps.
FORMULAS = [
    ("pipelined chain, broadcast (Awan et al.)", range(2, 9), 0, True, True,
     lambda mesh: mesh.schedule("broadcast", 0, [(0, [], chain(range(mesh.n)))]),
     lambda n, m, c, b, s, l: (c + n - 2) * (s + b * BYTE) + (n - 1) * l),
    ("linear pipeline, reduce (Wang et al.)", range(2, 9), 0, True, True,
     lambda mesh: mesh.schedule("reduce", 0, [(0, flipped(chain(range(mesh.n))), [])]),
     lambda n, m, c, b, s, l: (c + n - 2) * (s + b * (BYTE + ADD)) + (n - 1) * l),
    ("linear pipeline, allreduce both ways at once", range(2, 9), 0, True, True,
     lambda mesh: mesh.schedule("allreduce", None, [(0, flipped(chain(range(mesh.n))), chain(range(mesh.n)))]),
     lambda n, m, c, b, s, l: (c + n - 2) * (s + b * (BYTE + ADD)) + (n - 1) * (s + b * BYTE + 2 * l)),
    ("direct, broadcast (Awan et al.)", range(2, 9), 1, True, False,
     lambda mesh: mesh.schedule("broadcast", 0, [(0, [], [(0, r) for r in range(1, mesh.n)])]),
     lambda n, m, c, b, s, l: (n - 1) * (s + m * BYTE) + l),
    ("2-nomial, broadcast (Awan et al.)", [2, 4, 8, 16], 1, True, False,
     lambda mesh: mesh.schedule("broadcast", 0, [(0, [], knomial(mesh.n, 2))]),
     lambda n, m, c, b, s, l: log(2, n) * (s + m * BYTE + l)),
    ("3-nomial, broadcast (Awan et al.)", [3, 9, 27], 2, True, False,
     lambda mesh: mesh.schedule("broadcast", 0, [(0, [], knomial(mesh.n, 3))]),
     lambda n, m, c, b, s, l: log(3, n) * (s + m * BYTE + l)),
    ("4-nomial, broadcast (Awan et al.)", [4, 16], 3, True, False,
     lambda mesh: mesh.schedule("broadcast", 0, [(0, [], knomial(mesh.n, 4))]),
     lambda n, m, c, b, s, l: log(4, n) * (s + m * BYTE + l)),
    ("minimum spanning tree, reduce (Wang et al.)", [2, 4, 8, 16], 1, True, False,
     lambda mesh: mesh.schedule("reduce", 0, [(0, flipped(knomial(mesh.n, 2)), [])]),
     lambda n, m, c, b, s, l: log(2, n) * (s + m * (BYTE + ADD) + l)),
    ("minimum spanning tree, allreduce (Wang et al.)", [2, 4, 8, 16], 1, True, False,
     lambda mesh: mesh.schedule("allreduce", None, [(0, flipped(knomial(mesh.n, 2)), knomial(mesh.n, 2))]),
     lambda n, m, c, b, s, l: log(2, n) * (2 * s + m * (2 * BYTE + ADD) + 2 * l)),
    ("ring, allgather", range(2, 9), 1, True, False,
     lambda mesh: mesh.schedule("allgather", None, [(r, [], chain(around(mesh.n, r))) for r in range(mesh.n)]),
     lambda n, m, c, b, s, l: (n - 1) * (s + m // n * BYTE + l)),
    ("ring, reducescatter", range(2, 9), 1, True, False,
     lambda mesh: mesh.schedule("reducescatter", None, [(r, chain(around(mesh.n, r + 1)), []) for r in range(mesh.n)]),
     lambda n, m, c, b, s, l: (n - 1) * (s + m // n * (BYTE + ADD) + l)),
    ("ring, allreduce (one layer of Ueno and Yokota)", range(2, 9), 1, True, False,
     lambda mesh: mesh.schedule("allreduce", None, [(r, chain(around(mesh.n, r + 1)), chain(around(mesh.n, r)))
                                                    for r in range(mesh.n)]),
     lambda n, m, c, b, s, l: (n - 1) * (2 * s + m // n * (2 * BYTE + ADD) + 2 * l)),
    # Doubling is faster here than its formula: what a rank has itself it sends to all partners at once.
    ("recursive halving, reducescatter (half of Rabenseifner)", [2, 4, 8, 16], 0, False, False,
     lambda mesh: mesh.schedule("reducescatter", None, [(r, halving(mesh.n, r), []) for r in range(mesh.n)]),
     lambda n, m, c, b, s, l: log(2, n) * (s + l) + (n - 1) * (m // n) * BYTE),
]


# Start-up and latency in us, chunks.
CASES = [(0.5, 0.7, 7), (3.25, 1.5, 1), (0, 2, 20), (4.8, 3.4, 64)]


def check(args, formula, n, step, latency, chunks):
    """Sizes at once. Returns the number of points, and what is wrong."""
    name, _, at_once, adds, cut, make, time = formula
    mesh = Mesh(n, latency)
    path, parameters = os.path.join(args.dir, "closed.json"), os.path.join(args.dir, "closed.parameters")
    with open(path, "w") as f:
        json.dump(make(mesh), f)
    with open(parameters, "w") as f:
        json.dump({"kernel": {"call": CALL / 10**6, "step": step, "at_once": at_once, "reduce": 500 if adds else 0,
                              "reduce_by_link": 0, "packet_most": 0, "line_most": 0, "efficiency": {"nvlink": 1},
                              "latency": {"nvlink": 0}}}, f)
    block = 4096
    sizes = [n * chunks * block * i for i in (1, 3, 16)]
    points, wrong = 0, []
    for m in sizes if cut else [None]:
        b = m // chunks if cut else 1 << 30
        run = subprocess.run([args.blinkc, "simulate", path, "--parameters", parameters, "--format", "json",
                              "--chunk", str(b),
                              "--size", str(m) if cut else ",".join(map(str, sizes))], stdout=subprocess.PIPE,
                              timeout=60)
        if run.returncode:
            return 1, [f"exit {run.returncode}"]
        for row in json.loads(run.stdout)["sizes"]:
            want = CALL + time(n, row["bytes"], chunks, b, round(step * 10**6), round(latency * 10**6))
            points += 1
            if row["time_ps"] != want:
                wrong.append(f"{n} ranks, {row['bytes']} bytes, {chunks} chunks: {row['time_ps']} ps, want {want}")
    return points, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("blinkc")
    parser.add_argument("dir")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    failed = False
    for formula in FORMULAS[args.first::args.every]:
        points, wrong, sizes = 0, [], list(formula[1])
        for i in range(len(CASES) * len(sizes)):
            at, round_ = i % len(sizes), i // len(sizes)
            if points < 21:
                got, bad = check(args, formula, sizes[at], *CASES[(at + round_) % len(CASES)])
                points, wrong = points + got, wrong + bad
        print(f"{formula[0]}: {'WRONG: ' + wrong[0] if wrong else 'ok'} ({points} points)")
        failed |= bool(wrong) or points < 20
    sys.exit(failed)


if __name__ == "__main__":
    main()
