#!/usr/bin/env python3
"""An alltoall of trees into each rank, added up as blink-schedule(5) says what it is, sharing no code with blinkc.

usage: in_trees.py FILE.json [--list LIST.json]

Trees into each rank are in order and tile its blocks; of each tree and each vertex one link leads on, of one that a
single link leaves that one, and all ranks get to the root. Each pair's path is walked, tree by tree, and what it
carries added to each link. The rate is what the fullest link allows, the bound what lengths prove by shortest paths, or
that of the cut. Prints "rate bound", in GB/s.

--list: the paths of the pairs, those that go on from one tree to the next joined, are the trees of that file.
"""
import heapq
import json
import math
import sys
from fractions import Fraction


def fail(what):
    raise SystemExit(f"in_trees.py: {what}")


def trees_of(doc, n):
    """Of each root [(offset, length, {vertex: link})...]."""
    links, roots, end, now = doc["topology"]["links"], [[] for _ in range(n)], Fraction(1), {}
    root, leaving = -1, {}
    for l, link in enumerate(links):
        leaving.setdefault(link["from"], []).append(l)
    only = {v: out[0] for v, out in leaving.items() if len(out) == 1}
    for number, tree in enumerate(doc["trees"]):
        if end == 1:
            root, end, now = root + 1, Fraction(0), only
        offset, length = map(Fraction, tree["segment"])
        if tree["root"] != root or offset != end or length <= 0:
            fail(f"trees[{number}] is not the next")
        starts = [links[l]["from"] for l in tree["links"]]
        if len(set(starts)) != len(starts) or root in starts:
            fail(f"trees[{number}]: its links do not leave different vertices")
        now = {**now, **dict(zip(starts, tree["links"]))}
        end = offset + length
        roots[root].append((offset, length, now))
    if root != n - 1 or end != 1:
        fail("blocks of some rank are not tiled")
    return roots


def path(links, way, source, root):
    at, taken = source, []
    while at != root:
        if len(taken) > len(links) or at not in way:
            fail(f"no path from {source} to {root}")
        taken.append(way[at])
        at = links[way[at]]["to"]
    return taken


def distances(links, price, n):
    out = {}
    for l, link in enumerate(links):
        out.setdefault(link["from"], []).append((link["to"], price[l]))
    total = 0
    for source in range(n):
        best, queue, tie = {source: 0}, [(0, 0, source)], 0
        while queue:
            far, _, v = heapq.heappop(queue)
            if far > best[v]:
                continue
            for to, more in out.get(v, []):
                if to not in best or far + more < best[to]:
                    best[to] = far + more
                    tie += 1
                    heapq.heappush(queue, (far + more, tie, to))
        total += sum(best[to] for to in range(n))
    return total


def bound(doc, n):
    links, certificate = doc["topology"]["links"], doc["rate"]["certificate"]
    capacity = [Fraction(str(link["capacity"])) for link in links]
    if certificate["kind"] == "cut":
        side = set(certificate["side"])
        inside = sum(isinstance(v, int) for v in side)
        leaving = sum(c for c, link in zip(capacity, links) if link["from"] in side and link["to"] not in side)
        return leaving * n / (inside * (n - inside))
    price = [Fraction(x) for x in certificate["length"]]
    unit = math.lcm(*(x.denominator for x in price))
    if distances(links, [int(x * unit) for x in price], n) < n * unit:
        fail("lengths: paths of all pairs cost less than M by a block")
    return sum(c * x for c, x in zip(capacity, price))


def pieces_of(trees, links, source, root):
    """[[offset, length, path]...], those that follow each other with one path as one."""
    out = []
    for offset, length, way in trees:
        taken = path(links, way, source, root)
        if out and out[-1][2] == taken:
            out[-1][1] += length
        else:
            out.append([offset, length, taken])
    return out


def check_list(roots, links, n, trees):
    pairs = [(Fraction(source * n + root + offset) / n**2, length / n**2, source, taken)
             for root in range(n) for source in range(n) if source != root
             for offset, length, taken in pieces_of(roots[root], links, source, root)]
    listed = [(*map(Fraction, tree["segment"]), tree["root"], [l for edge in tree["down"] for l in edge[2]])
              for tree in trees]
    if pairs != listed:
        fail("the list has other paths")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        doc = json.load(file)
    n, links = len(doc["topology"]["ranks"]), doc["topology"]["links"]
    if doc["version"] != 3 or doc["collective"] != "alltoall":
        fail("not of version 3")
    roots = trees_of(doc, n)
    unit = math.lcm(*(length.denominator for trees in roots for _, length, _ in trees))
    load = [0] * len(links)
    for root in range(n):
        for _, length, way in roots[root]:
            part = int(length * unit)
            for source in range(n):
                if source != root:
                    for l in path(links, way, source, root):
                        load[l] += part
    rate = min(Fraction(str(link["capacity"])) * n * unit / x for link, x in zip(links, load) if x)
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="utf-8") as file:
            check_list(roots, links, n, json.load(file)["trees"])
    print(f"{float(rate):.9g} {float(bound(doc, n)):.9g}")


if __name__ == "__main__":
    main()
