#!/usr/bin/env python3
"""All images of a compact alltoall, added up as blink-schedule(5) says what they are, sharing no code with blinkc.

usage: pairs.py COMPACT.json

Maps keep ends and capacities of links; paths lead from the rank that has a block to the one that needs it; the images
tile all blocks of two different ranks; the rate is what the fullest link allows, and the bound that of the cut. Prints
"rate bound", in GB/s.
"""
import itertools
import json
import math
import sys
from fractions import Fraction


def fail(what):
    raise SystemExit(f"pairs.py: {what}")


def check_maps(maps, links):
    for number, m in enumerate(maps):
        where = {}
        for link, image in zip(links, (links[i] for i in m["links"])):
            for end, other in ((link["from"], image["from"]), (link["to"], image["to"])):
                other = m["ranks"][end] if isinstance(end, int) else where.setdefault(end, other)
                if other != (image["from"] if end is link["from"] else image["to"]):
                    fail(f"map {number} takes the ends of a link elsewhere")
            if (link["capacity"], link["class"], link["latency"]) != (image["capacity"], image["class"],
                                                                      image["latency"]):
                fail(f"map {number} takes a link to another kind")


def check_path(tree, number, source, target, links):
    at, has = None, {source}
    for src, dst, way in tree["down"]:
        if src not in has or dst in has:
            fail(f"trees[{number}]: rank {src} passes on what it has not")
        at = src
        for l in way:
            if links[l]["from"] != at:
                fail(f"trees[{number}]: link {l} does not begin where the one before ends")
            at = links[l]["to"]
        if at != dst:
            fail(f"trees[{number}]: its links end elsewhere")
        has.add(dst)
    if tree["root"] != source or target not in has or "up" in tree:
        fail(f"trees[{number}]: no path from {source} to {target}")


def elements(maps, n, n_links):
    """Each element of the group in order, as images of ranks and links."""
    powers = []
    for m in maps:
        own = [(list(range(n)), list(range(n_links)))]
        for _ in range(m["order"] - 1):
            own.append(tuple([m[kind][i] for i in last] for kind, last in zip(("ranks", "links"), own[-1])))
        powers.append(own)
    for each in itertools.product(*reversed(powers)):
        ranks, links = list(range(n)), list(range(n_links))
        for r, l in reversed(each):
            ranks, links = [r[i] for i in ranks], [l[i] for i in links]
        yield ranks, links


def check_tiles(n, whole, pieces, unit):
    """whole: how often each block has an image of all of it; pieces: {block: [(begin, end)...]} of the others."""
    for i, j in itertools.product(range(n), range(n)):
        at, own = 0, pieces.get(i * n + j, [])
        for begin, end in sorted(own):
            if begin != at:
                fail(f"images of block {i}, {j} leave a gap, or meet")
            at = end
        if at not in (0, unit) or whole[i * n + j] + (at == unit) != (i != j):
            fail(f"images do not tile block {i}, {j}")


def cut(doc, n):
    side = set(doc["rate"]["certificate"]["side"])
    inside = sum(isinstance(v, int) for v in side)
    leaving = sum(Fraction(str(l["capacity"])) for l in doc["topology"]["links"]
                  if l["from"] in side and l["to"] not in side)
    return leaving * n / (inside * (n - inside))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        doc = json.load(file)
    n, links, maps, trees = len(doc["topology"]["ranks"]), doc["topology"]["links"], doc["symmetry"], doc["trees"]
    check_maps(maps, links)
    segments = [[Fraction(x) * n * n for x in tree["segment"]] for tree in trees]
    unit = math.lcm(*(x.denominator for segment in segments for x in segment))
    moved = [any(m["ranks"][r] != r for m in maps) for r in range(n)]
    paths = []
    for t, (tree, (offset, length)) in enumerate(zip(trees, segments)):
        source, target = divmod(offset // 1, n)
        check_path(tree, t, source, target, links)
        paths.append((source, target, int(offset % 1 * unit), int(length * unit), moved[source] or moved[target],
                      [l for edge in tree["down"] for l in edge[2]]))
    load, whole, pieces = [0] * len(links), bytearray(n * n), {}
    for e, (rank, link) in enumerate(elements(maps, n, len(links))):
        for source, target, begin, length, moves, way in paths:
            block = rank[source] * n + rank[target]
            for l in way:
                load[link[l]] += length
            if length == unit:
                whole[block] += 1
            else:
                begin += 0 if moves else e * length
                pieces.setdefault(block, []).append((begin, begin + length))
    check_tiles(n, whole, pieces, unit)
    rate = min(Fraction(str(link["capacity"])) * unit * n / x for link, x in zip(links, load) if x)
    print(f"{float(rate):.9g} {float(cut(doc, n)):.9g}")


if __name__ == "__main__":
    main()
