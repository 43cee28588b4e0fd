#!/usr/bin/env python3
"""List all trees of a compact schedule file, as blink-schedule(5) says what they are.

usage: images.py COMPACT.json LISTED.json     writes LISTED.json, of version 1
       images.py COMPACT.json --same FILE.json        has FILE.json these trees, in this order?

Written from the description of the format alone, sharing no code with blinkc. Exit status 1: they are not the same.
"""
import itertools
import json
import sys
from fractions import Fraction

BLOCKS = {"gather": 1, "scatter": 1, "allgather": 1, "reducescatter": 1, "alltoall": 2}


def elements(maps, n_ranks, n_links):
    """Each element of the group in order, as images of ranks and links."""
    for counts in itertools.product(*(range(m["order"]) for m in reversed(maps))):
        ranks, links = list(range(n_ranks)), list(range(n_links))
        for m, times in zip(maps, reversed(counts)):
            for _ in range(times):
                ranks = [m["ranks"][r] for r in ranks]
                links = [m["links"][l] for l in links]
        yield ranks, links


def moved(maps, rank):
    return any(m["ranks"][rank] != rank for m in maps)


def listed(doc):
    n, maps = len(doc["topology"]["ranks"]), doc["symmetry"]
    kind = BLOCKS.get(doc["collective"], 0)
    blocks = n**kind
    trees = []
    for e, (ranks, links) in enumerate(elements(maps, n, len(doc["topology"]["links"]))):
        for t, tree in enumerate(doc["trees"]):
            offset, length = (Fraction(x) for x in tree["segment"])
            block = offset * blocks // 1
            owners = [] if kind == 0 else [block] if kind == 1 else [block // n, block % n]
            if any(moved(maps, r) for r in owners):
                image = ranks[owners[0]] if kind == 1 else ranks[owners[0]] * n + ranks[owners[1]]
                offset += Fraction(image - block, blocks)
            else:
                offset += e * length
            new = {"segment": [f"{x.numerator}/{x.denominator}" for x in (offset, length)], "root": ranks[tree["root"]]}
            for phase in ("down", "up"):
                if phase in tree:
                    new[phase] = [[ranks[s], ranks[d], [links[l] for l in way]] for s, d, way in tree[phase]]
            trees.append((offset, t, e, new))
    return [tree for *_, tree in sorted(trees, key=lambda x: x[:3])]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        doc = json.load(file)
    trees = listed(doc)
    if sys.argv[2] == "--same":
        with open(sys.argv[3], encoding="utf-8") as file:
            other = json.load(file)
        return int(other["version"] != 1 or "symmetry" in other or other["trees"] != trees)
    doc["version"], doc["trees"] = 1, trees
    del doc["symmetry"]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(doc, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
