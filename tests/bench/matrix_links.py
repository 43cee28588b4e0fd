#!/usr/bin/env python3
"""An alltoall of unequal blocks, executed by libblink over links of known rates.

usage: make bench-matrix-links [BENCH_MATRIX="..."], as root

The links are those of links.py: a network namespace for each GPU of a DGX-1V. blinkAlltoAllv moves the bytes of a
matrix by two schedules: that which `blinkc -c alltoall --matrix` plans for them, and that for blocks of one length. A
line for each: the time by its links, less what headers take, and measured.
"""
import argparse
import json
import sys
from fractions import Fraction

import groups_links
import links


def time_of(path, rows):
    """us: what the fullest link takes for these bytes."""
    with open(path, encoding="utf-8") as file:
        doc = json.load(file)
    n, capacity = len(rows), [link["capacity"] for link in doc["topology"]["links"]]
    load = [0.0] * len(capacity)
    for tree in doc["trees"]:
        offset, length = map(Fraction, tree["segment"])
        block = int(offset * n * n)
        for edge in tree["down"]:
            for link in edge[2]:
                load[link] += float(length * n * n) * rows[block // n][block % n]
    return max(one / rate for one, rate in zip(load, capacity)) / 1e3


def compare(lab, args, build, folder):
    slower = links.NOMINAL * 1e9 / (args.mbit * 1e6 / 8) / links.GOODPUT
    gpus = range(len(lab.gpus))
    rows = None
    print(f"# {args.mbit} Mbit/s for a link of {links.NOMINAL} GB/s, the best of {args.times}; s")
    print(f"# {'planned for':16} |  by links | measured ratio CPUs")
    for way in "the matrix", "equal blocks":
        path = f"{folder}/{way.split()[0]}.json"
        groups_links.run(f"{build}/blinkc", "-q", args.topology, "-l", "nvlink", "-c", "alltoall", "-o", path,
                         *(["--matrix", args.matrix] if rows is None else []))
        if rows is None:
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)["matrix"]["bytes"]
            with open(f"{folder}/calls", "w", encoding="utf-8") as file:
                print("alltoallv 0 0 1", *[0] * len(rows), file=file)
                print(*(count // 4 for row in rows for count in row), file=file)
        planned = time_of(path, rows) * 1e-6 * slower
        seconds, busy = groups_links.measure(lab, build, args, f"{folder}/calls", path, gpus)
        print(f"  {way:16} | {planned:9.3f} | {seconds:8.3f} {seconds / planned:5.3f} {busy:4.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="topologies/dgx1v.xml", help="of one server, at most 16 GPUs")
    parser.add_argument("--matrix", default="examples/moe-dgx1v.matrix")
    parser.add_argument("--mbit", type=float, default=40, help="of a link of 25 GB/s; 40")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    return links.in_lab(args, lambda lab, build, folder: compare(lab, args, build, folder))


if __name__ == "__main__":
    sys.exit(main())
