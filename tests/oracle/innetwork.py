#!/usr/bin/env python3
"""Bounds on small machines whose switches multicast or reduce, held against a linear program over all trees.

usage: innetwork.py make DIR FIRST LAST     a random machine for each seed, as DIR/tSEED.json
       innetwork.py SCHEDULE.json...        one line for each file, `FILE: ok ...` or `FILE: WRONG: why`

A machine has 3 or 4 GPUs and one to three switches, of which each forwards, multicasts, reduces or does both. The
program has every tree of hops, each hop by every route; a tree uses a link once for all of its data that the switches
can copy beyond it or have added before it. The bound must not be below its optimum, and the rate not above it.
The last line has the number of files, of bounds that equal the optimum, and of rates that do.
"""
import json
import os
import sys
from collections import Counter
from fractions import Fraction
from itertools import product

import brute
import replay
from lcg import Lcg

ABILITIES = [{}, {"reduce": True}, {"multicast": True}, {"multicast": True, "reduce": True}]
MAX_COLUMNS = 6000


# ---- machines ---------------------------------------------------------------------------------------------


def machine(seed):
    rng = Lcg(seed)
    n, n_switches = rng.choice([3, 4]), rng.choice([1, 1, 2, 3])
    # Most machines have switches of one kind and perhaps some that only forward.
    kind = rng.choice(ABILITIES[1:])
    switches = [{"id": f"s{i}", **rng.choice([kind, kind, kind, {}] if seed % 3 else ABILITIES)}
                for i in range(n_switches)]
    links, capacities = {}, rng.choice([[2], [2, 3], [4, 5, 7], [1, 2, 3, 5, 10]])

    def link(a, b):
        if a == b or (a, b) in links or (b, a) in links:
            return
        links[a, b], links[b, a] = rng.choice(capacities), rng.choice(capacities)

    for g in range(n):
        for _ in range(rng.choice([1, 1, 2])):
            link(f"g{g}", f"s{g if g < n_switches else rng.below(n_switches)}")
    for s in range(1, n_switches):
        link(f"s{rng.below(s)}", f"s{s}")
    for _ in range(rng.below(3)):
        link(f"g{rng.below(n)}", rng.choice([f"g{rng.below(n)}", f"s{rng.below(n_switches)}"]))
    return {"format": "blink-topology", "version": 1, "name": f"in-network {seed}",
            "nodes": [{"id": "n", "gpus": [{"id": f"g{g}"} for g in range(n)], "switches": switches}],
            "links": [{"from": a, "to": b, "class": "nvlink", "capacity": capacity, "duplex": "simplex"}
                      for (a, b), capacity in links.items()]}


# ---- trees ------------------------------------------------------------------------------------------------


def copies(routes, at, copying, ends):
    """How often links carry data that goes from rank `at` along these routes, where only the switches in `copying` can
    make more than one message of one that they receive."""
    used = Counter()

    def walk(here, vertex):
        """Messages that must arrive at vertex, for the rest of these routes."""
        total, following = sum(not links for links in here), {}
        for links in here:
            if links:
                following.setdefault(links[0], []).append(links[1:])
        for l, rest in following.items():
            below = walk(rest, ends[l])
            used[l] += below
            total += below
        return 1 if vertex in copying and total else total

    walk(routes, at)
    return used


def uses(tree, copying, ends):
    """Links that a tree out of its root uses; tree: (u, v, route)."""
    used = Counter()
    for source in {u for u, _, _ in tree}:
        used += copies([route for u, _, route in tree if u == source], source, copying, ends)
    return used


def trees_of(g, root, ways, copying):
    hops = set(ways)
    ends = [v for _, v, _ in g.links]
    for tree in brute.arborescences(g.n, root, hops):
        for routes in product(*(ways[hop] for hop in tree)):
            yield uses([(u, v, route) for (u, v), route in zip(tree, routes)], copying, ends)


def columns_of(g, root, copying):
    """Each different use of links by a tree out of the root."""
    ways = {}
    for u, v, path in brute.routes(g):
        ways.setdefault((u, v), []).append(path)
    return {tuple(sorted(used.items())) for used in trees_of(g, root, ways, copying)}


def optimum(g, collective, root, multicast, reduce):
    """GB/s of the best packing of all trees; None: too many."""
    if collective in brute.INWARD:
        return optimum(g.mirrored(), brute.INWARD[collective], root, reduce, multicast)
    if collective not in brute.LP_COLLECTIVES:
        return None
    roots = range(g.n) if root is None else [root]
    trees = [(r, 0, used) for r in roots for used in columns_of(g, r, multicast)]
    if collective == "allreduce":
        trees += [(r, 1, used) for r in roots for used in columns_of(g.mirrored(), r, reduce)]
    if len(trees) > MAX_COLUMNS:
        return None
    row = {key: len(g.links) + i for i, key in enumerate(sorted({(r, way) for r, way, _ in trees}))}
    columns = [(0, {row[r, way]: -1, **dict(used)}) for r, way, used in trees]
    if collective == "allgather":
        columns.append((1, dict.fromkeys(row.values(), 1)))
    else:
        columns += [(1, {at: 1 for (of, _), at in row.items() if of == r}) for r in roots]
    best = brute.maximise(columns, [capacity for _, _, capacity in g.links] + [0] * len(row))
    return best * (g.n if collective == "allgather" else 1) / g.scale


# ---- command ----------------------------------------------------------------------------------------------


def compare(path):
    s = replay.read(replay.load(path))
    g = brute.graph_of(s)
    names = sorted({end for link in s.links for end in (link.src, link.dst) if isinstance(end, str)})
    copying, adding = ({s.n + names.index(switch) for switch in able} for able in (s.multicast, s.reduce))
    best = optimum(g, s.collective, s.root, copying, adding)
    if best is None:
        return None
    rate, bound = replay.check_rate(s)
    replay.need(best <= bound, "rate.bound", f"{float(bound)} is below the best packing, {float(best)}")
    replay.need(rate <= best, "rate.achieved", f"{float(rate)} is above the best packing, {float(best)}")
    print(f"{path}: ok {s.collective}: bound {float(bound):.4f} by {s.certificate['kind']}, best packing "
          f"{float(best):.4f}, achieved {float(rate):.4f}")
    return best == bound, rate == best


def main(args):
    if args[0] == "make":
        for seed in range(int(args[2]), int(args[3]) + 1):
            with open(os.path.join(args[1], f"t{seed}.json"), "w", encoding="utf-8") as file:
                json.dump(machine(seed), file)
        return 0
    wrong, found = 0, []
    for path in args:
        try:
            found.append(compare(path))
        except (replay.Wrong, OSError) as error:
            print(f"{path}: WRONG: {error}")
            wrong = 1
    known = [one for one in found if one]
    print(f"{len(known)} files: {sum(tight for tight, _ in known)} bounds and {sum(at for _, at in known)} rates are "
          "the optimum")
    return wrong


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
