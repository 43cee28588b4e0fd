#!/usr/bin/env python3
"""Test the oracles: with schedules made by hand, mutants of them, and answers that are known.

usage: selftest.py [DIRECTORY]     with a directory, write the schedules there
"""
import json
import os
import sys
from fractions import Fraction
from itertools import product

import brute
import mutate
import replay
import subsets
from lcg import Lcg
from random_topology import KINDS, random_topology

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../schemas/schedule.schema.json")
FULL = bool(os.environ.get("full"))
SEEDS = 12 if FULL else 1  # of each kind of mutant


# ---- schedules by hand ------------------------------------------------------------------------------------


def both(*pairs, capacity=10):
    """Full-duplex links."""
    return [(u, v, capacity) for a, b in pairs for u, v in ((a, b), (b, a))]


CHAIN = both((0, 1), (1, 2))
TRIANGLE = both((0, 1), (1, 2), (2, 0))
RING = [(r, (r + 1) % 3, 10) for r in range(3)]
STAR = both((0, "sw"), (1, "sw"), (2, "sw"))


def schedule(collective, n, links, trees, achieved, bound, certificate, root=None):
    """trees: (offset, length, root, down, up[, to]); an edge is a pair of ranks, by a link or through one switch."""
    number_of = {link[:2]: l for l, link in enumerate(links)}

    def edge(src, dst):
        route = [(src, dst)] if (src, dst) in number_of else [(src, "sw"), ("sw", dst)]
        return [src, dst, [number_of[hop] for hop in route]]

    def tree(offset, length, tree_root, down, up, *to):
        entry = {"segment": [offset, length], "root": tree_root}
        entry.update({name: [edge(*e) for e in phase] for name, phase in (("down", down), ("up", up)) if phase})
        return {**entry, **({"to": to[0]} if to else {})}

    return {
        "format": "blink-schedule", "version": 1,
        "generator": {"name": "hand", "version": "1", "options": {}},
        "topology": {"name": "by hand", "digest": "sha256:" + 64 * "0",
                     "ranks": [{"gpu": f"gpu{r}", "node": "n0"} for r in range(n)],
                     "links": [{"from": u, "to": v, "class": "nvlink", "capacity": c, "latency": 1}
                               for u, v, c in links]},
        "collective": collective, "root": root, "algorithm": "hand",
        "rate": {"achieved": achieved, "bound": bound, "certificate": certificate},
        "trees": [tree(*entry) for entry in trees],
    }


def cut(*side):
    return {"kind": "cut", "side": list(side)}


def singles(*ranks):
    return {"kind": "partition", "parts": [[r] for r in ranks]}


def third(i):
    return ("0/1", "1/3", "2/3")[i]


def ninth(i):
    return mutate.show(Fraction(i, 9))


def others(r):
    return [s for s in range(3) if s != r]


def outward(r):
    return [(r, s) for s in others(r)]


def inward(r):
    return [(s, r) for s in others(r)]


def in_parts(collective, pairs, capacities, parts, achieved, certificate, root=None, bound=None):
    """The same links once in each class. parts: (class, rate, setup, its trees as (block, begin, end, root, down, up)),
    with
    begin and end within the block."""
    links = [(u, v, kind, capacity) for kind, capacity in capacities.items() for u, v in pairs]
    number_of = {link[:3]: l for l, link in enumerate(links)}
    doc = schedule(collective, 3, [], [], achieved, bound or achieved, certificate, root)
    doc["topology"]["links"] = [{"from": u, "to": v, "class": kind, "capacity": c, "latency": 1} for u, v, kind,
                                c in links]
    n_blocks = 3 ** replay.COLLECTIVES[collective][2]
    doc["parts"] = [{"links": [kind], "rate": rate, "setup": setup} for kind, rate, setup, _ in parts]
    for i, (kind, _, _, trees) in enumerate(parts):
        for block, begin, end, tree_root, down, up in trees:
            begin, end = Fraction(begin), Fraction(end)
            entry = {"segment": [mutate.show((block + begin) / n_blocks), mutate.show((end - begin) / n_blocks)],
                     "root": tree_root, "part": i}
            entry.update({name: [[u, v, [number_of[u, v, kind]]] for u, v in phase]
                          for name, phase in (("down", down), ("up", up)) if phase})
            doc["trees"].append(entry)
    return doc


def thirds(begin, end):
    """An allreduce over the triangle in this part of the buffer: a tree for each rank."""
    at = [begin + (end - begin) * Fraction(r, 3) for r in range(4)]
    return [(0, at[r], at[r + 1], r, outward(r), inward(r)) for r in range(3)]


def gathered(begin, end):
    """An allgather around the ring in this part of each block."""
    return [(r, begin, end, r, [(r, (r + 1) % 3), ((r + 1) % 3, (r + 2) % 3)], []) for r in range(3)]


WAYS = [pair[:2] for pair in TRIANGLE]
CIRCLE = [pair[:2] for pair in RING]

BY_HAND = {
    "allreduce-parts": in_parts("allreduce", WAYS, {"nvlink": 10, "pcie": 2, "qpi": 1},
                                [("nvlink", 15, 0, thirds(Fraction(0), Fraction(10, 13))),
                                 ("pcie", 3, 10, thirds(Fraction(10, 13), Fraction(12, 13))),
                                 ("qpi", 1.5, 3.5, thirds(Fraction(12, 13), Fraction(1)))], 19.5, singles(0, 1, 2)),
    "allgather-parts": in_parts("allgather", CIRCLE, {"nvlink": 10, "pcie": 5},
                                [("nvlink", 15, 5, gathered(Fraction(0), Fraction(2, 3))),
                                 ("pcie", 7.5, 0.25, gathered(Fraction(2, 3), Fraction(1)))], 22.5, cut(0, 1)),
    "broadcast-parts": in_parts("broadcast", WAYS, {"nvlink": 10, "pcie": 5},
                                [("nvlink", 20, 0, [(0, 0, "2/5", 0, [(0, 1), (1, 2)], []),
                                                    (0, "2/5", "4/5", 0, [(0, 2), (2, 1)], [])]),
                                 ("pcie", 5, 1, [(0, "4/5", 1, 0, [(0, 1), (1, 2)], [])])], 25, cut(0), 0, 30),
    "alltoall-parts": in_parts("alltoall", WAYS, {"nvlink": 10, "pcie": 2},
                               [("nvlink", 30, 0, [(3 * i + j, 0, "5/6", i, [(i, j)], []) for i in range(3)
                                                   for j in others(i)]),
                                ("pcie", 6, 1, [(3 * i + j, "5/6", 1, i, [(i, j)], []) for i in range(3)
                                                for j in others(i)])],
                               36, cut(0)),
    "scatter-parts": in_parts("scatter", WAYS, {"nvlink": 10, "pcie": 2},
                              [("nvlink", 30, 0, [(r, 0, "5/6", 0, [(0, r)], []) for r in (1, 2)]),
                               ("pcie", 6, 1, [(r, "5/6", 1, 0, [(0, r)], []) for r in (1, 2)])], 36, cut(0), 0),
    "broadcast-chain": schedule("broadcast", 3, CHAIN, [("0/1", "1/1", 0, [(0, 1), (1, 2)], [])], 10, 10, cut(0), 0),
    "broadcast-relay": schedule("broadcast", 3, CHAIN, [("0/1", "1/1", 1, [(1, 2)], [(0, 1)])], 10, 10, cut(0, 1), 0),
    "broadcast-prices": schedule("broadcast", 3, CHAIN, [("0/1", "1/1", 0, [(0, 1), (1, 2)], [])], 10, 10,
                                 {"kind": "prices", "price": [0.25, 0, "3/4", 0]}, 0),
    "broadcast-served": schedule("broadcast", 3, TRIANGLE, [("0/1", "1/1", 0, [(0, 1)], [], [1]),
                                                            ("0/1", "1/1", 0, [(0, 2)], [], [2])], 10, 20, cut(0), 0),
    "reduce-triangle": schedule("reduce", 3, TRIANGLE, [("0/1", "1/2", 0, [], [(1, 2), (2, 0)]),
                                                        ("1/2", "1/2", 0, [], [(2, 1), (1, 0)])], 20, 20, cut(0), 0),
    "allreduce-triangle": schedule("allreduce", 3, TRIANGLE,
                                   [(third(r), "1/3", r, outward(r), inward(r)) for r in range(3)], 15, 15,
                                   singles(0, 1, 2)),
    "allreduce-prices": schedule("allreduce", 3, TRIANGLE,
                                 [(third(r), "1/3", r, outward(r), inward(r)) for r in range(3)], 15, 15,
                                 {"kind": "prices", "price": 6 * ["1/4"]}),
    "allreduce-chain": schedule("allreduce", 3, CHAIN, [("0/1", "1/1", 2, [(2, 1), (1, 0)], [(0, 1), (1, 2)])], 10, 10,
                                cut(0)),
    "allreduce-star": schedule("allreduce", 3, STAR, [(third(r), "1/3", r, outward(r), inward(r)) for r in range(3)],
                               7.5, 7.5, singles(0, 1, 2)),
    "allreduce-oneshot": schedule("allreduce", 3, TRIANGLE, [("0/1", "1/1", r, [], inward(r), [r]) for r in range(3)],
                                  10, 15, singles(0, 1, 2)),
    "reducescatter-ring": schedule("reducescatter", 3, RING,
                                   [(third(r), "1/3", r, [], [((r + 1) % 3, (r + 2) % 3), ((r + 2) % 3, r)])
                                    for r in range(3)], 15, 15, cut(0, 1)),
    "allgather-ring": schedule("allgather", 3, RING,
                               [(third(r), "1/3", r, [(r, (r + 1) % 3), ((r + 1) % 3, (r + 2) % 3)], [])
                                for r in range(3)], 15, 15, cut(0, 1)),
    "gather-chain": schedule("gather", 3, CHAIN,
                             [("1/3", "1/3", 0, [], [(1, 0)]), ("2/3", "1/3", 0, [], [(2, 1), (1, 0)])],
                             15, 15, cut(0), 0),
    "scatter-chain": schedule("scatter", 3, CHAIN, [("0/1", "1/3", 0, [], []), ("1/3", "1/3", 0, [(0, 1)], []),
                                                    ("2/3", "1/3", 0, [(0, 1), (1, 2)], [])], 15, 15, cut(0), 0),
    "scatter-lengths": schedule("scatter", 3, CHAIN, [("1/3", "1/3", 0, [(0, 1)], []),
                                                     ("2/3", "1/3", 0, [(0, 1), (1, 2)], [])], 15, 15,
                               {"kind": "lengths", "length": ["3/2", 0, 0, 0]}, 0),
    "alltoall-triangle": schedule("alltoall", 3, TRIANGLE, [(ninth(3 * i + j), "1/9", i, [(i, j)], [])
                                                            for i in range(3) for j in others(i)], 30, 30, cut(0)),
    "allreduce-alone": schedule("allreduce", 1, [], [], 0, 0, singles(0)),
}


def text(doc):
    return mutate.dumps(doc) + "\n"


def test_by_hand():
    for name, doc in BY_HAND.items():
        doc = replay.loads(text(doc).encode())
        print(f"{name}: {replay.describe(doc)}")
        s = replay.read(doc)
        if s.n > 1:
            brute.compare(s)


def test_schema():
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        print("schema: skipped, no python3-jsonschema")
        return
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    for name, doc in BY_HAND.items():
        validator.validate(json.loads(text(doc)))
    for kind in ("missing-field", "missing-root", "wrong-version", "empty-segment", "no-links"):
        doc = json.loads(mutate.mutate(text(BY_HAND["broadcast-chain"]).encode(), 1, kind)[0])
        assert not validator.is_valid(doc), kind
    print(f"schema: {len(BY_HAND)} schedules valid")


def test_mutants():
    made = dict.fromkeys(mutate.KINDS, 0)
    for name, doc in BY_HAND.items():
        original = text(doc).encode()
        for kind in mutate.KINDS:
            for seed in range(SEEDS):
                mutant = mutate.mutate(original, seed, kind)
                if mutant is None:
                    continue
                made[kind] += 1
                try:
                    replay.judge(replay.loads(mutant[0].encode()))
                except replay.Wrong:
                    continue
                sys.exit(f"{name}: {kind} with seed {seed} is not refused:\n{mutant[0]}")
    assert all(made.values()), made
    print(f"mutants: {sum(made.values())} of {len(made)} kinds, all refused")


# ---- brute force against what is plainer still, and against what is known ----------------------------------


def plain_partition(g):
    """Every assignment of vertices to parts, or of switches to none."""
    best = None
    for parts in product(range(-1, g.n), repeat=g.size):
        used = set(parts[:g.n])
        if -1 in used or len(used) < 2 or not set(parts) <= used | {-1}:
            continue
        total = sum(c for u, v, c in g.links if parts[u] >= 0 and parts[u] != parts[v])
        value = Fraction(total, 2 * (len(used) - 1))
        best = value if best is None else min(best, value)
    return best


def graph_of_topology(doc):
    """Ranks in order; all links."""
    names = [gpu["id"] for node in doc["nodes"] for gpu in node["gpus"]]
    vertex = {name: r for r, name in enumerate(names)}
    links = []
    for link in doc["links"]:
        capacity = Fraction(str(link["capacity"])) * link["count"]
        u, v = (vertex.get(link[end], link[end]) for end in ("from", "to"))
        links += [(u, v, capacity)] + [(v, u, capacity)] * (link["duplex"] == "full")
    return brute.Graph(len(names), links)


def test_brute():
    checked = 0
    for seed in range(60 if FULL else 20):
        rng = Lcg(seed)
        n, extra = rng.between(2, 4), rng.below(3)
        names = [*range(n), *(f"s{i}" for i in range(extra))]
        pairs = [(a, b) for a in names for b in names if a != b]
        g = brute.Graph(n, [(*rng.choice(pairs), Fraction(rng.between(1, 9), rng.between(1, 3))) for _ in range(12)])
        assert brute.partition_bound(g, brute.all_leaving(g), brute.rank_cuts(g, None)) == plain_partition(g), seed
    for seed in range(40 if FULL else 14):
        kind = rng.choice(list(KINDS))
        g = graph_of_topology(json.loads(random_topology(seed, kind, 2 + seed % 4)))
        for collective in replay.COLLECTIVES:
            root = seed % g.n if replay.COLLECTIVES[collective][0] else None
            least, best = brute.bound(g, collective, root), brute.optimum(g, collective, root)
            assert least > 0, (seed, kind)
            if best is None:
                continue
            assert 0 < best <= least, (seed, kind, collective, best, least)
            if g.direct() and (collective != "allreduce" or g.symmetric()):
                assert best == least, (seed, kind, collective, best, least)
            checked += 1
    print(f"brute: partitions agree, {checked} packings within their bounds")


def test_machines():
    for machine, known in (("dgx1v", (6, "48/7", "24/7")), ("dgx1p", (4, "32/7", "16/7"))):
        g = brute.Graph(8, both(*((*pair,) for pair, count in subsets.MACHINES[machine].items() for _ in range(count)),
                                capacity=1))
        for root in range(8):
            assert brute.bound(g, "broadcast", root) == brute.bound(g, "reduce", root) == known[0]
        assert brute.bound(g, "allgather", None) == brute.bound(g, "reducescatter", None) == Fraction(known[1])
        assert brute.bound(g, "allreduce", None) == Fraction(known[2])
        assert len(subsets.classes(machine)) == subsets.CLASSES[machine]
    print("machines: known bounds and classes")


def test_min_arborescence():
    rng = Lcg(1)
    for _ in range(300 if FULL else 100):
        n = rng.between(2, 5)
        hops = {(u, v): rng.below(10) for u in range(n) for v in range(n) if u != v and rng.below(10) < 7}
        trees = [sum(hops[hop] for hop in tree) for tree in brute.arborescences(n, 0, hops)]
        found = replay.min_arborescence(n, 0, [(cost, u, v) for (u, v), cost in hops.items()])
        assert found == (min(trees) if trees else None), hops
    print("minimum arborescences: as by enumeration")


def main(args):
    for name, doc in BY_HAND.items() if args else ():
        with open(os.path.join(args[0], f"{name}.json"), "w", encoding="utf-8") as file:
            file.write(text(doc))
    test_by_hand()
    test_schema()
    test_mutants()
    test_min_arborescence()
    test_brute()
    test_machines()


if __name__ == "__main__":
    main(sys.argv[1:])
