#!/usr/bin/env python3
"""Schedules that divide messages between two parts: the division that libblink makes, against equation 8 of Blink.

usage: hybrid.py LIBBLINK.so BLINKC SCHEDULE.json [PROGRAM.so]...
       hybrid.py --host SCHEDULE.json...        every edge over PCIe passes a CPU, and turns round in no switch

Equation 8 is written down here as it is in the paper, in exact fractions, with the rates that replay.py takes from the
trees.
"""
import ctypes
import subprocess
import sys
from fractions import Fraction
from math import ceil, floor

import replay
from lcg import Lcg

INT8, FLOAT64 = 0, 8  # of blink.h, with 1 and 8 bytes
BYTES = {INT8: 1, FLOAT64: 8}


def eq8(m, b_first, b_second, t_switch):
    """Bytes of the first part, of m: m in bytes, rates in bytes/s, time in s."""
    second = m * b_second / (b_first + b_second) - t_switch * b_first * b_second / (b_first + b_second)
    return m - max(Fraction(0), second)


def cost(m, first, b_first, b_second, t_switch):
    """Seconds until both parts have ended."""
    second = m - first
    return max(first / b_first, t_switch + second / b_second if second else 0)


class Division:
    def __init__(self, path):
        s, _, _ = replay.judge(replay.load(path))
        self.b = [rate * 10**9 for rate in replay.part_rates(s)]
        assert len(self.b) == 2 and s.parts[0].setup == 0, path
        self.t = s.parts[1].setup / 10**6
        self.blocks = 1 if s.collective in ("broadcast", "reduce", "allreduce") else s.n
        self.threshold = self.t * self.b[0]

    def first(self, m):
        return eq8(m, *self.b, self.t)

    def elements(self, count, size):
        """Of a block of count elements, those of the first part."""
        return floor(self.first(Fraction(count * size * self.blocks)) / (size * self.blocks))


def sizes(division, rng):
    """Bytes: around the threshold, and anywhere up to some TB."""
    at = ceil(division.threshold)
    near = [at + d * division.blocks for d in (-9, -8, -1, 0, 1, 7, 8, 9)] + [at // 2, 2 * at, 3 * at + 1]
    return [max(0, m) for m in near] + [rng.below(1 << rng.between(1, 30)) << rng.below(12) for _ in range(200)]


def check_brute(division):
    """No division of a grid is faster than eq. 8; it is as fast as the best of the grid but for a step of it."""
    for m in (division.threshold / 2, division.threshold * 2 + 10**6, Fraction(10**9)):
        grid = [m * Fraction(i, 1000) for i in range(1001)]
        best = min(cost(m, first, *division.b, division.t) for first in grid)
        mine = cost(m, division.first(m), *division.b, division.t)
        assert mine <= best <= mine + m / 1000 / min(division.b), (float(m), float(mine), float(best))


def check_lib(lib, path, division):
    sched = ctypes.c_void_p()
    assert lib.blinkScheduleLoad(path.encode(), ctypes.byref(sched), None) == 0, path
    rng, got, checked = Lcg(1), (ctypes.c_size_t * 8)(), 0
    for m in sizes(division, rng):
        for kind, size in BYTES.items():
            count = m // size // division.blocks
            assert lib.blinkScheduleSplit(sched, ctypes.c_size_t(count), kind, got) == 0, (path, count)
            want = division.elements(count, size)
            assert (got[0], got[1]) == (want, count - want), (path, count, size, got[0], want)
            checked += 1
    lib.blinkScheduleDestroy(sched)
    return checked


def latencies(path):
    """Seconds along the longest path of the trees of each part, up to the root and down again."""
    doc = replay.load(path)
    links, longest = doc["topology"]["links"], [Fraction(0), Fraction(0)]
    for tree in doc["trees"]:
        ends = [{}, {}]     # of the tree above and below: rank, and when data comes from it to the root or to it
        for phase, edges in ((0, reversed(tree.get("up", []))), (1, tree.get("down", []))):
            for src, dst, route in edges:
                near, far = (dst, src) if phase == 0 else (src, dst)
                ends[phase][far] = ends[phase].get(near,
                                                   0) + sum(Fraction(str(links[l]["latency"])) for l in route) / 10**6
        longest[tree["part"]] = max(longest[tree["part"]], sum(max(end.values(), default=0) for end in ends))
    return longest


def check_table(blinkc, path, division):
    """What `blinkc check --size` prints: bytes of each part, seconds with latency, and the gain over the first
    alone."""
    latency = latencies(path)
    wanted = [m for m in sizes(division, Lcg(2)) if m > 0][:60]
    text = subprocess.run([blinkc, "check", "--size", ",".join(map(str, wanted)), path], capture_output=True, text=True,
                          check=True).stdout
    rows = [line.split() for line in text.splitlines()]
    rows = rows[next(i for i, row in enumerate(rows) if row[:1] == ["bytes"]) + 1:]
    assert len(rows) == len(wanted)
    for m, row in zip(wanted, rows):
        first = floor(division.first(Fraction(m)))
        assert list(map(int, row[:3])) == [m, first, m - first], (path, row)
        seconds = cost(m, division.first(Fraction(m)), *division.b, division.t)
        seconds += max(us for us, part in zip(latency, (first, m - first)) if part > 0)
        rate, alone = float(m / seconds / 10**9), float(m / (m / division.b[0] + latency[0]) / 10**9)
        assert abs(float(row[3]) / 1e6 - seconds) <= 1e-5 * seconds and abs(float(row[4])
                                                                            - rate) <= 1e-5 * rate, (path, row)
        gain = max(0, rate - alone)
        assert abs(float(row[5]) - gain) <= 1e-3 * gain + 1e-6 * rate, (path, row, gain)


def check_host(path):
    """Ways of all edges of the second part."""
    doc = replay.load(path)
    links, n_edges = doc["topology"]["links"], 0
    for tree in doc["trees"]:
        for src, dst, route in tree.get("up", []) + tree.get("down", []) if tree["part"] == 1 else []:
            ways = [links[l]["from"] for l in route] + [links[route[-1]]["to"]]
            cpus = [i for i, v in enumerate(ways) if str(v).startswith("cpu")]
            assert cpus and ways[0] == src and ways[-1] == dst, (path, ways)
            # Up to the first CPU, from CPU to CPU, and down from the last one.
            assert cpus == list(range(cpus[0], cpus[-1] + 1)), (path, ways)
            assert not any(str(v).startswith("cpu") for v in ways[:cpus[0]] + ways[cpus[-1] + 1:]), (path, ways)
            n_edges += 1
    assert n_edges, path
    return n_edges


def main(args):
    if args[:1] == ["--host"] and args[1:]:
        print(f"{sum(map(check_host, args[1:]))} edges through CPUs")
        return
    if len(args) < 3:
        sys.exit(__doc__)
    lib = ctypes.CDLL(args[0])
    checked, division = 0, None
    for path in args[2:]:
        if path.endswith(".json"):
            division = Division(path)
            check_brute(division)
            check_table(args[1], path, division)
        checked += check_lib(lib, path, division)
    print(f"{checked} messages divided as by equation 8")


if __name__ == "__main__":
    main(sys.argv[1:])
