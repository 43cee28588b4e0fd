#!/usr/bin/env python3
"""Write a schedule of any size for boxes of GPUs, at the rate of its bound.

usage: boxes.py COLLECTIVE BOXES GPUS       allgather, allreduce or alltoall; at least 2 boxes of at least 2 GPUs

Each GPU has a link each way to its box's switch (300 GB/s) and one to a switch between the boxes (25 GB/s). The tree of
a
rank leads to the GPUs in the same place in the other boxes, and from each of them to the others of its box; that of a
block of an alltoall is one edge. The bytes are what blinkc itself would write.
"""
import json
import sys
from fractions import Fraction

INSIDE, OUTSIDE = 300, 25
TO_BOX, FROM_BOX, TO_NET, FROM_NET = range(4)  # link 4r + k of rank r


def route(boxed, src, dst):
    return (4 * src + TO_BOX, 4 * dst + FROM_BOX) if boxed else (4 * src + TO_NET, 4 * dst + FROM_NET)


def spread(boxes, gpus, root):
    """Edges out of root, parent-first: (src, dst, links)."""
    heads = [box * gpus + root % gpus for box in range(boxes)]
    out = [(root, head, route(False, root, head)) for head in heads if head != root]
    for head in heads:
        first = head // gpus * gpus
        out += [(head, g, route(True, head, g)) for g in range(first, first + gpus) if g != head]
    return out


def collect(boxes, gpus, root):
    """Edges into root, leaf-first."""
    return [(dst, src, route(src // gpus == dst // gpus, dst, src)) for src, dst,
            _ in reversed(spread(boxes, gpus, root))]


def trees(collective, boxes, gpus):
    """(blocks of the buffer, block, root, down, up)"""
    n = boxes * gpus
    if collective == "alltoall":
        for i in range(n):
            for j in range(n):
                if i != j:
                    yield n * n, n * i + j, i, [(i, j, route(i // gpus == j // gpus, i, j))], []
    else:
        for r in range(n):
            yield n, r, r, spread(boxes, gpus, r), collect(boxes, gpus, r) if collective == "allreduce" else []


def rate(collective, boxes, gpus):
    """Of these trees, where the links between the boxes are the narrow ones; and what proves it."""
    n = boxes * gpus
    vertices = [[*range(box * gpus, (box + 1) * gpus), f"box{box}"] for box in range(boxes)]
    if collective == "allreduce":
        return Fraction(n * OUTSIDE, 2 * (boxes - 1)), f'"kind": "partition", "parts": {json.dumps(vertices)}'
    if collective == "alltoall":
        return Fraction(n * OUTSIDE, n - gpus), f'"kind": "cut", "side": {json.dumps(vertices[0])}'
    side = [*range(gpus, n), "net", *(box[-1] for box in vertices[1:])]  # switches in the order of their first links
    return Fraction(n * OUTSIDE, boxes - 1), f'"kind": "cut", "side": {json.dumps(side)}'


def edges(phase, some):
    return f',\n      "{phase}": [{", ".join(f"[{s}, {d}, [{a}, {b}]]" for s, d, (a, b) in some)}]' if some else ""


def write(collective, boxes, gpus, out):
    n = boxes * gpus
    narrow, certificate = rate(collective, boxes, gpus)
    ranks = ",\n".join(f'      {{ "gpu": "gpu{r}", "node": "node{r // gpus}" }}' for r in range(n))
    ends = [(u, v, link) for r in range(n) for switch,
            link in ((f'"box{r // gpus}"', (INSIDE, "nvlink")), ('"net"', (OUTSIDE, "net")))
            for u, v in ((r, switch), (switch, r))]
    links = ",\n".join(f'      {{ "from": {u}, "to": {v}, "class": "{name}", "capacity": {capacity}, "latency": 1 }}'
                       for u, v, (capacity, name) in ends)
    out.write('{\n  "format": "blink-schedule",\n  "version": 1,\n  "generator": {\n    "name": "boxes",\n    '
              '"version": "1",\n'
              '    "options": {}\n  },\n  "topology": {\n    "name": "boxes",\n'
              f'    "digest": "sha256:{0:064}",\n    "ranks": [\n{ranks}\n    ],\n    "links": [\n{links}\n    ]\n  '
              f'}},\n  "collective": "{collective}",\n'
              f'  "root": null,\n  "algorithm": "hand",\n  "rate": {{\n    "achieved": {float(narrow):.15g},\n'
              f'    "bound": {float(narrow):.15g},\n    "certificate": {{ {certificate} }}\n  }},\n  "trees": [')
    comma = ""
    for blocks, block, root, down, up in trees(collective, boxes, gpus):
        at, length = Fraction(block, blocks), Fraction(1, blocks)
        out.write(f'{comma}\n    {{\n      "segment": ["{at.numerator}/{at.denominator}", '
                  f'"{length.numerator}/{length.denominator}"],'
                  f'\n      "root": {root}{edges("down", down)}{edges("up", up)}\n    }}')
        comma = ","
    out.write("\n  ]\n}\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.stdout)
