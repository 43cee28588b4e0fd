#!/usr/bin/env python3
"""The fewest trees of an allreduce over a set of GPUs of a DGX-1, by a mixed-integer program over all spanning trees.

usage: fewest.py MACHINE GPUS TOLERANCE    e.g. dgx1v 0,1,2,4,5 0.05

minimise sum z(t) such that w(t) <= narrowest(t) z(t), sum over trees with link e of w(t) <= capacity(e), sum w >= rate,
for
all spanning trees t; the rate is the partition bound, less the tolerance. It needs the solver HiGHS (highspy); exit
status 77
without. Seven GPUs take seconds, eight hours.
"""
import sys
from fractions import Fraction
from itertools import combinations

import subsets


def spanning_trees(n, edges):
    """As bit masks over edges."""
    found = []

    def grow(i, part, mask, count):
        if count == n - 1:
            found.append(mask)
        elif len(edges) - i >= n - 1 - count:
            a, b = part[edges[i][0]], part[edges[i][1]]
            if a != b:
                grow(i + 1, [a if p == b else p for p in part], mask | 1 << i, count + 1)
            grow(i + 1, part, mask, count)

    grow(0, list(range(n)), 0, 0)
    return found


def bound(n, edges, capacity):
    """The least over partitions of capacity between parts by parts less one."""
    best = None

    def split(i, part, parts):
        nonlocal best
        if i < n:
            for p in range(parts + 1):
                split(i + 1, part + [p], max(parts, p + 1))
        elif parts > 1:
            rate = Fraction(sum(c for (a, b), c in zip(edges, capacity) if part[a] != part[b]), parts - 1)
            best = rate if best is None else min(best, rate)

    split(0, [], 0)
    return best


def fewest(machine, gpus, tolerance):
    import highspy
    links = subsets.MACHINES[machine]
    edges = [(a, b) for a, b in combinations(range(len(gpus)), 2) if subsets.count(links, gpus[a], gpus[b])]
    capacity = [subsets.count(links, gpus[a], gpus[b]) for a, b in edges]
    trees = spanning_trees(len(gpus), edges)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    weight = [solver.addVariable(lb=0) for _ in trees]
    taken = [solver.addIntegral(lb=0, ub=1) for _ in trees]
    for t, tree in enumerate(trees):
        narrowest = min(c for e, c in enumerate(capacity) if tree >> e & 1)
        solver.addConstr(weight[t] - narrowest * taken[t] <= 0)
    for e, c in enumerate(capacity):
        solver.addConstr(sum(weight[t] for t, tree in enumerate(trees) if tree >> e & 1) <= c)
    rate = bound(len(gpus), edges, capacity) * (1 - Fraction(tolerance))
    solver.addConstr(sum(weight) >= float(rate) - 1e-7)
    solver.minimize(sum(taken))
    return round(solver.getObjectiveValue())


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__.split("\n\n")[1])
    try:
        print(fewest(sys.argv[1], [int(g) for g in sys.argv[2].split(",")], sys.argv[3]))
    except ImportError:
        print("fewest.py: highspy is not installed", file=sys.stderr)
        sys.exit(77)
