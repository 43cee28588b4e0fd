#!/usr/bin/env python3
"""Make a compact alltoall of a list: servers of the most GPUs are rotated, the GPUs of the others stay.

usage: staying.py LISTED.json        prints the compact schedule

For lists of one direct path for each pair over equal servers, some of which lost GPUs. Shares no code with blinkc.
"""
import json
import sys
from fractions import Fraction


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        doc = json.load(file)
    own = {}
    for rank, vertex in enumerate(doc["topology"]["ranks"]):
        own.setdefault(vertex["node"], []).append(rank)
    most = max(map(len, own.values()))
    moved = [node for node, ranks in own.items() if len(ranks) == most]
    following = dict(zip(moved, moved[1:] + moved[:1]))
    ranks = list(range(len(doc["topology"]["ranks"])))
    for node, other in following.items():
        for a, b in zip(own[node], own[other]):
            ranks[a] = b

    def image(vertex):
        if isinstance(vertex, int):
            return ranks[vertex]
        node, slash, rest = vertex.partition("/")
        return following.get(node, node) + slash + rest

    links = doc["topology"]["links"]
    number = {(link["from"], link["to"]): i for i, link in enumerate(links)}
    doc["version"] = 2
    doc["symmetry"] = [{"order": len(moved), "ranks": ranks,
                        "links": [number[image(link["from"]), image(link["to"])] for link in links]}]
    n, trees = len(ranks), []
    for tree in doc["trees"]:
        offset, length = map(Fraction, tree["segment"])
        ends = [rank for rank in divmod(offset * n * n // 1, n) if ranks[rank] != rank]
        if not ends:
            length /= len(moved)
        if not ends or ends[0] in own[moved[0]]:
            tree["segment"] = [f"{x.numerator}/{x.denominator}" for x in (offset, length)]
            trees.append(tree)
    doc["trees"] = trees
    print(json.dumps(doc))


if __name__ == "__main__":
    main()
