#!/usr/bin/env python3
"""A large irregular machine: one-way links of odd capacities, a cycle through all GPUs and others between random ones.

usage: sparse.py RANKS LINKS SEED      LINKS for each GPU, besides the cycle
"""
import json
import sys

from lcg import Lcg

CAPACITIES = [3, 7, 11, 12.5, 13, 19.3, 25]


def machine(n, degree, seed):
    rng = Lcg(seed)
    order = rng.shuffled(range(n))
    pairs = dict.fromkeys(zip(order, order[1:] + order[:1]))
    for _ in range(n * degree):
        pair = rng.below(n), rng.below(n)
        if pair[0] != pair[1]:
            pairs[pair] = None
    return {"format": "blink-topology", "version": 1, "name": f"{n} x {degree}",
            "nodes": [{"id": "n", "gpus": [{"id": f"g{i}"} for i in range(n)]}],
            "links": [{"from": f"g{a}", "to": f"g{b}", "class": "nvlink", "capacity": rng.choice(CAPACITIES),
                       "duplex": "simplex"} for a, b in pairs]}


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    json.dump(machine(*map(int, sys.argv[1:])), sys.stdout)
