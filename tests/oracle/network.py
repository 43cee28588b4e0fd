#!/usr/bin/env python3
"""A network of --synthetic, from what its paper says of two vertices: are they joined, and how often?

usage: network.py LINE FILE     LINE: torus:, dragonfly:, dragonfly+:, fattree: or hammingmesh:, with open:, groups:,
                                gpu:, oversubscription:. FILE: the canonical form that blinkc writes of it

Every pair of vertices is looked at, so machines are small. Exit status 1: the file has other vertices or links.
"""
import collections
import itertools
import json
import math
import sys
from fractions import Fraction


def torus(sides, n_open):
    """The joined differ by one in one coordinate, or are its ends."""
    gpus = list(itertools.product(*map(range, sides)))

    def joined(a, b):
        axes = [d for d in range(len(sides)) if a[d] != b[d]]
        if len(axes) != 1:
            return 0
        d = axes[0]
        gap = abs(a[d] - b[d])
        return int(gap == 1 or (gap == sides[d] - 1 and d < len(sides) - n_open))
    return gpus, [], joined


def dragonfly(p, a, h, groups, leaves=None):
    """leaves: None: GPUs are at the routers."""
    groups = groups or a * h + 1
    where = ("router" if leaves is None else "leaf"), leaves or a
    gpus = [("gpu", g, i, j) for g in range(groups) for i in range(where[1]) for j in range(p)]
    switches = [("router" if leaves is None else "spine", g, i) for g in range(groups) for i in range(a)]
    switches += [("leaf", g, i) for g in range(groups) for i in range(leaves or 0)]
    turns = a * h // max(1, groups - 1)

    def ends(g, i):
        """Of a router's links in use: (the group at the other end, the turn)."""
        numbers = [n for n in range(i * h, (i + 1) * h) if groups > 1 and n < turns * (groups - 1)]
        return [((g + 1 + n % (groups - 1)) % groups, n // (groups - 1)) for n in numbers]

    def joined(x, y):
        kinds = {x[0], y[0]}
        if "gpu" in kinds:
            gpu, switch = (x, y) if x[0] == "gpu" else (y, x)
            return int(switch[0] == where[0] and gpu[1:3] == switch[1:])
        if x[1] == y[1]:
            return int(kinds == {"router"} or kinds == {"leaf", "spine"})
        if "leaf" in kinds:
            return 0
        return sum(1 for g, k in ends(*x[1:]) if g == y[1] for e, m in ends(*y[1:]) if e == x[1] and m == k)
    return gpus, switches, joined


def fat_tree(sides):
    n = math.prod(sides)
    gpus = [("gpu", i) for i in range(n)]
    below = [math.prod(sides[:k]) for k in range(len(sides) + 1)]
    switches = [(k, i) for k in range(1, len(sides) + 1) for i in range(n // below[k])]

    def level(v):
        return 0 if v[0] == "gpu" else v[0]

    def joined(x, y):
        low, high = sorted((x, y), key=level)
        return int(level(high) == level(low) + 1 and low[1] * below[level(low)] // below[level(high)] == high[1])
    return gpus, switches, joined


def hamming_mesh(a, b, x, y):
    """gpu: board's row, board's column, row and column on it."""
    gpus = list(itertools.product(range(x), range(y), range(a), range(b)))
    switches = [("row", i) for i in range(a * x)] + [("column", i) for i in range(b * y)]

    def joined(v, w):
        if len(v) == 4 and len(w) == 4:
            return int(v[:2] == w[:2] and abs(v[2] - w[2]) + abs(v[3] - w[3]) == 1)
        gpu, switch = (v, w) if len(v) == 4 else (w, v)
        if len(switch) == 4 or len(gpu) != 4:
            return 0
        line, at, n = (gpu[0] * a + gpu[2], gpu[3], b) if switch[0] == "row" else (gpu[1] * b + gpu[3], gpu[2], a)
        return ((at == 0) + (at == n - 1)) * (line == switch[1])
    return gpus, switches, joined


def made(words):
    """Vertices, joined(), the rate of a link, what a link has of it."""
    kind = next(k for k in ("torus", "dragonfly+", "dragonfly", "fattree", "hammingmesh") if k in words)
    shape, rate = words[kind].split("@")
    sides = [int(n) for n in shape.split("x")]
    groups, ov = int(words.get("groups", 0)), Fraction(words.get("oversubscription", 1))
    if kind == "torus":
        return *torus(sides, int(words.get("open", 0))), Fraction(rate), None
    if kind == "dragonfly":
        return *dragonfly(*sides, groups), Fraction(rate), None
    if kind == "dragonfly+":
        p, leaves, s, h = sides
        return *dragonfly(p, s, h, groups, leaves), Fraction(rate), None
    if kind == "hammingmesh":
        return *hamming_mesh(*sides), Fraction(rate), None

    def uplink(v):
        return math.prod(sides[:v]) / ov ** v
    return *fat_tree(sides), Fraction(rate), uplink


def name(v, kind):
    if kind == "fattree":
        return f"level{v[0]}/{v[1]}"
    return f"{v[0]}{v[1]}" if kind == "hammingmesh" else f"g{v[1]}/{v[0]}{v[2]}"


def main():
    words = dict(item.split(":") for item in sys.argv[1].split())
    gpus, switches, joined, rate, uplink = made(words)
    kind = "fattree" if uplink else "hammingmesh" if "hammingmesh" in words else ""
    each = int(words.get("gpu", 1))
    ids = {g: f"s{i // each}/gpu{i % each}" for i, g in enumerate(gpus)}
    ids.update({s: name(s, kind) for s in switches})
    want = {}
    for v, w in itertools.permutations(gpus + switches, 2):
        level = min(v[0] if v in switches else 0, w[0] if w in switches else 0) if uplink else 0
        capacity = rate * joined(v, w) * (uplink(level) if level else 1)
        if capacity:
            want[ids[v], ids[w]] = math.floor(capacity * 10**9)
    with open(sys.argv[2], encoding="utf-8") as file:
        found = json.load(file)
    vertex, got = [v[0] for v in found["vertices"]], collections.Counter()
    for a, b, _, _, capacity, _ in found["links"]:
        got[vertex[a], vertex[b]] += capacity
    if sorted(vertex) != sorted(ids.values()):
        sys.exit(f"vertices: {len(vertex)}, want {len(ids)}: {sorted(set(vertex) ^ set(ids.values()))[:4]}")
    for pair in sorted(set(want) | set(got)):
        if want.get(pair) != got.get(pair):
            sys.exit(f"{pair}: {got.get(pair)} bytes/s, want {want.get(pair)}")
    print(f"{len(gpus)} GPUs, {len(switches)} switches, {len(want)} links")


if __name__ == "__main__":
    main()
