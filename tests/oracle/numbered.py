#!/usr/bin/env python3
"""An allgather or reducescatter of numbered edges, added up as blink-schedule(5) says what it is, sharing no code with
blinkc.

usage: numbered.py FILE.json [--list LIST.json]

Trees of each rank are in order and tile its block; each is followed from every rank to the root, and its edges along
their links. The rate is what the fullest link allows, the bound that of the cut. Prints "rate bound", in GB/s.

--list: these trees, with edges in the order that the page has, are those of that file.
"""
import json
import math
import sys
from fractions import Fraction


def fail(what):
    raise SystemExit(f"numbered.py: {what}")


def check_edges(doc, n):
    links, seen = doc["topology"]["links"], set()
    for number, (src, dst, along) in enumerate(doc["edges"]):
        stops = [links[l]["from"] for l in along] + [links[along[-1]]["to"]]
        joined = all(links[a]["to"] == links[b]["from"] for a, b in zip(along, along[1:]))
        ranks = [v for v in stops if isinstance(v, int)]
        if not joined or ranks != [src, dst] or stops[0] != src or not 0 <= max(src, dst) < n:
            fail(f"edges[{number}] leads elsewhere")
        seen.add((src, dst, *along))
    if len(seen) != len(doc["edges"]):
        fail("two edges are alike")


def trees_of(doc, n):
    """[(root, offset, length, {rank: edge})...]"""
    end_of, out = 1 if doc["collective"] == "allgather" else 0, []
    root, end, now = -1, Fraction(1), {}
    for number, tree in enumerate(doc["trees"]):
        if end == 1:
            root, end, now = root + 1, Fraction(0), {}
        offset, length = map(Fraction, tree["segment"])
        ranks = [doc["edges"][e][end_of] for e in tree["edges"]]
        if tree["root"] != root or offset != end or length <= 0:
            fail(f"trees[{number}] is not the next")
        if ranks != sorted(set(ranks)) or root in ranks:
            fail(f"trees[{number}]: its edges are not those of other ranks, in order")
        now = {**now, **dict(zip(ranks, tree["edges"]))}
        if len(now) != n - 1:
            fail(f"trees[{number}]: a rank is missing")
        end = offset + length
        out.append((root, offset, length, now))
    if root != n - 1 or end != 1:
        fail("the block of some rank is not tiled")
    return out


def ordered(doc, n, root, way):
    """Its edges: for each rank those of the way from the root to it that are not there yet."""
    nearer, there, out = 0 if doc["collective"] == "allgather" else 1, {root}, []
    for rank in range(n):
        new, at = [], rank
        while at not in there:
            if len(new) == n:
                fail(f"rank {rank} is not joined to root {root}")
            new.append(way[at])
            at = doc["edges"][way[at]][nearer]
        out += reversed(new)
        there |= {doc["edges"][e][1 - nearer] for e in new}
    return out if nearer == 0 else out[::-1]


def bound(doc, n):
    links, side = doc["topology"]["links"], set(doc["rate"]["certificate"]["side"])
    inside = sum(isinstance(v, int) for v in side)
    out = sum(Fraction(str(link["capacity"])) for link in links if link["from"] in side and link["to"] not in side)
    return out * n / inside


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        doc = json.load(file)
    n, links = len(doc["topology"]["ranks"]), doc["topology"]["links"]
    if doc["version"] != 3 or doc["collective"] not in ("allgather", "reducescatter"):
        fail("not of version 3")
    check_edges(doc, n)
    trees = trees_of(doc, n)
    unit = math.lcm(*(length.denominator for _, _, length, _ in trees))
    load, listed = [0] * len(links), []
    for root, offset, length, way in trees:
        edges = [doc["edges"][e] for e in ordered(doc, n, root, way)]
        for edge in edges:
            for l in edge[2]:
                load[l] += int(length * unit)
        listed.append(((root + offset) / n, length / n, root, edges))
    rate = min(Fraction(str(link["capacity"])) * n * unit / x for link, x in zip(links, load) if x)
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="utf-8") as file:
            there = [(*map(Fraction, tree["segment"]), tree["root"],
                      tree["down" if doc["collective"] == "allgather" else "up"]) for tree in json.load(file)["trees"]]
        if there != listed:
            fail("the list has other trees")
    print(f"{float(rate):.9g} {float(bound(doc, n)):.9g}")


if __name__ == "__main__":
    main()
