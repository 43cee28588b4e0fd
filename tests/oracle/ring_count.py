#!/usr/bin/env python3
"""Are there as many rings as the links allow? Of broadcasts by rings over links between GPUs, in units of one physical
link.

usage: ring_count.py DIR    prints a line `ok NAME` or `not ok NAME: why` for each broadcast below DIR

Each tree must be a chain over all ranks whose last rank has a link back to the root, and all chains with their last
hops must fit
the links. That no more rings fit is proven by linear programming over all Hamiltonian cycles, or, where that leaves
room for one more,
by trying all sets of cycles.
"""
import json
import os
import sys
from collections import Counter
from fractions import Fraction
from itertools import permutations

from rings import simplex


def capacities(topology):
    """Units of each ordered pair of ranks; the slowest physical link is the unit, as links of one class have the same
    rate."""
    rate = min(link["capacity"] / link.get("count", 1) for link in topology["links"])
    units = Counter()
    for link in topology["links"]:
        units[link["from"], link["to"]] += int(link["capacity"] / rate + 1e-9)
    return units


def cycles_of(n, units):
    for rest in permutations(range(1, n)):
        order = (0, *rest)
        hops = [(order[i], order[(i + 1) % n]) for i in range(n)]
        if all(hop in units for hop in hops):
            yield hops


def search(cycles, left, wanted, first=0):
    """Can `wanted` cycles be taken at once?"""
    if wanted == 0:
        return True
    for i in range(first, len(cycles)):
        if all(left[hop] > 0 for hop in cycles[i]):
            left.subtract(cycles[i])
            found = search(cycles, left, wanted - 1, i)
            left.update(cycles[i])
            if found:
                return True
    return False


def judge(path):
    schedule = json.load(open(path))
    n, units = len(schedule["topology"]["ranks"]), capacities(schedule["topology"])
    used, lengths, count = Counter(), [Fraction(t["segment"][1]) for t in schedule["trees"]], 0
    for tree, length in zip(schedule["trees"], lengths):
        hops = [(src, dst) for src, dst, _ in tree["down"]]
        order = [tree["root"]] + [dst for _, dst in hops]
        if sorted(order) != list(range(n)) or any(src != order[i] for i, (src, _) in enumerate(hops)):
            return "no chain over all ranks: %s" % order
        width = length / min(lengths)
        if width.denominator != 1:
            return "widths are no whole numbers of links"
        count += int(width)
        for hop in hops + [(order[-1], order[0])]:
            used[hop] += int(width)
    over = [hop for hop in used if used[hop] > units[hop]]
    if over:
        return "more rings than links between %d and %d" % over[0]
    cycles = list(cycles_of(n, units))
    hops = sorted(units)
    most = simplex([[float(hop in cycle) for cycle in map(set, cycles)] for hop in hops],
                   [float(units[hop]) for hop in hops], [1.0] * len(cycles))
    if int(most + 1e-6) > count and search(cycles, Counter(units), count + 1):
        return "%d rings, where %d fit" % (count, count + 1)
    return None


def main(argv):
    bad = 0
    for where, _, names in sorted(os.walk(argv[1])):
        for name in sorted(names):
            if name.endswith(".json") and name != "index.json":
                why = judge(os.path.join(where, name))
                print("ok ring: %s" % name if not why else "not ok ring: %s: %s" % (name, why))
                bad += why is not None
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
