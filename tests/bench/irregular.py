#!/usr/bin/env python3
"""Machines without symmetry, as JSON: failed links, unequal servers, networks drawn at random. Of 256 GPUs, for callers
in Python of any multiple of 8, of broken_torus a square.

    tests/bench/irregular.py KIND [SEED]        one of them on standard output; KIND: a name of KINDS
    tests/bench/irregular.py --into DIR [SEED]  one of each kind, as DIR/KIND-SEED.json

The same kind and seed give the same bytes in every version of Python. Capacities are in GB/s.
"""
import argparse
import itertools
import json
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
from lcg import Lcg  # noqa: E402

GPUS = 256


class Machine:
    """Servers of GPUs and switches, switches between servers, and links."""

    def __init__(self, name, gpus=GPUS):
        """gpus: how many it is to have."""
        self.name, self.gpus, self.nodes, self.switches, self.links = name, gpus, [], [], []

    def server(self, gpus, switches=0):
        """The ids of its GPUs, and of its switches."""
        s = len(self.nodes)
        gpu, switch = [f"s{s}/g{i}" for i in range(gpus)], [f"s{s}/w{i}" for i in range(switches)]
        self.nodes.append({"id": f"s{s}", "gpus": [{"id": i} for i in gpu],
                           **({"switches": [{"id": i} for i in switch]} if switch else {})})
        return gpu, switch

    def switch(self, name):
        self.switches.append({"id": name})
        return name

    def link(self, a, b, capacity, back=None, kind="nvlink"):
        """Of equal capacity in both directions; back: another one from b to a."""
        ends = [(a, b, capacity, "full")] if back in (None, capacity) else [
            (a, b, capacity, "simplex"), (b, a, back, "simplex")]
        for tail, head, rate, duplex in ends:
            self.links.append({"from": tail, "to": head, "class": kind, "capacity": rate, "duplex": duplex})

    def json(self):
        return {"format": "blink-topology", "version": 1, "name": self.name, "nodes": self.nodes,
                **({"switches": self.switches} if self.switches else {}), "links": self.links}


def spanning(rng, items):
    """Pairs: each item with one before it, in random order; so all are connected."""
    order = rng.shuffled(items)
    return [(order[i], rng.choice(order[:i])) for i in range(1, len(order))]


def pairs(rng, items, count):
    """That many pairs more, none of an item with itself."""
    drawn = [(rng.choice(items), rng.choice(items)) for _ in range(count)]
    return [(a, b) for a, b in drawn if a != b]


def regular(rng, n, degree):
    """Pairs: ends of links are paired at random; a loop or a second link of a pair changes ends with another one."""
    ends = rng.shuffled([v for v in range(n) for _ in range(degree)])
    drawn = [tuple(sorted(ends[i:i + 2])) for i in range(0, len(ends), 2)]
    while True:
        known = set()
        wrong = [i for i, (a, b) in enumerate(drawn) if a == b or (a, b) in known or known.add((a, b))]
        if not wrong:
            return drawn
        for i in wrong:
            j = rng.below(len(drawn))
            (a, b), (c, d) = drawn[i], drawn[j]
            drawn[i], drawn[j] = tuple(sorted((a, d))), tuple(sorted((c, b)))


def random_switches(rng, m):
    """Switches of 4 GPUs each, two or so links of unequal rates for each of them."""
    switches = [m.switch(f"w{i}") for i in range(m.gpus // 4)]
    for w in switches:
        for gpu in m.server(4)[0]:
            m.link(gpu, w, rng.choice([50, 100]))
    for a, b in spanning(rng, switches) + pairs(rng, switches, 2 * len(switches)):
        m.link(a, b, rng.choice([12.5, 25, 50, 100, 200]), kind="net")


def broken_dgx(rng, m):
    """Servers of 8 GPUs in a cube mesh that has lost links, each with a port or two on 16 switches."""
    cube = [(a, b) for a in range(8) for b in range(a) if a // 4 == b // 4 or a - b == 4]
    switches = [m.switch(f"w{i}") for i in range(16)]
    for s in range(m.gpus // 8):
        gpu, _ = m.server(8)
        for a, b in cube:
            if rng.below(8):
                m.link(gpu[a], gpu[b], 25 * rng.between(1, 2))
        for i in range(0, 8, rng.choice([2, 4])):
            m.link(gpu[i], switches[(s + i) % 16], rng.choice([6.25, 12.5, 25]), kind="net")
    for a, b in spanning(rng, switches) + pairs(rng, switches, 32):
        m.link(a, b, rng.choice([12.5, 25, 50]), kind="net")


def unequal_directions(rng, m):
    """4 links for each GPU, of other rates in the other direction."""
    gpu, _ = m.server(m.gpus)
    for a, b in regular(rng, m.gpus, 4):
        m.link(gpu[a], gpu[b], rng.between(4, 10) * 5, rng.between(4, 10) * 5)


def pcie_trees(rng, m):
    """Servers of two sockets, two PCIe switches at each, two GPUs at each of these; all links differ."""
    net = m.switch("net")
    for _ in range(m.gpus // 8):
        gpu, w = m.server(8, 6)
        m.link(w[0], w[1], rng.choice([16, 20, 24]), kind="qpi")
        for i in range(4):
            m.link(w[2 + i], w[i // 2], rng.choice([10, 12, 20, 24]), kind="pcie")
        for i in range(8):
            m.link(gpu[i], w[2 + i // 2], rng.choice([10, 12, 20, 24]), kind="pcie")
        m.link(w[0], net, rng.choice([6.25, 12.5, 25]), kind="net")


def broken_torus(rng, m):
    """A square of GPUs, each with its 4 neighbours around; one of 12 links is lost."""
    gpu, _ = m.server(m.gpus)
    side = math.isqrt(m.gpus)
    for x, y in itertools.product(range(side), range(side)):
        for b in ((x + 1) % side, y), (x, (y + 1) % side):
            if rng.below(12):
                m.link(gpu[side * x + y], gpu[side * b[0] + b[1]], 25)


def dragonfly(rng, m):
    """Groups of 3 to 6 switches, all joined, with 2 to 5 GPUs each; two links or more between groups at random."""
    groups, left = [], m.gpus
    while left > 0:
        group = []
        for _ in range(rng.between(3, 6)):
            if left > 0:
                n = min(left, rng.between(2, 5))
                left -= n
                group.append(m.switch(f"w{len(groups)}.{len(group)}"))
                for g in m.server(n)[0]:
                    m.link(g, group[-1], 50)
        for a, b in itertools.combinations(group, 2):
            m.link(a, b, 50, kind="net")
        groups.append(group)
    for i, j in itertools.combinations(range(len(groups)), 2):
        for _ in range(rng.below(3) + (j == i + 1)):
            m.link(rng.choice(groups[i]), rng.choice(groups[j]), 25, kind="net")


def broken_fat_tree(rng, m):
    """Leaves of 8 GPUs, 8 spines; one of 6 uplinks is lost."""
    spines = [m.switch(f"spine{i}") for i in range(8)]
    for s in range(m.gpus // 8):
        leaf = m.switch(f"leaf{s}")
        for g in m.server(8)[0]:
            m.link(g, leaf, 25, kind="net")
        for i, spine in enumerate(spines):
            if i == s % 8 or rng.below(6):
                m.link(leaf, spine, 25, kind="net")


def islands(rng, m):
    """Servers of 3 to 8 GPUs on a switch, or joined each to each, with 1 to 3 unequal NICs to two networks."""
    nets, left = [m.switch("net0"), m.switch("net1")], m.gpus
    m.link(nets[0], nets[1], 400, kind="net")
    while left > 0:
        n = min(left, rng.between(3, 8))
        n = left if left - n < 3 else n
        left -= n
        nics = rng.between(1, 3)
        gpu, w = m.server(n, 1 + nics)
        if rng.below(2):
            for g in gpu:
                m.link(g, w[0], 300)
        else:
            for a, b in itertools.combinations(gpu, 2):
                m.link(a, b, 50)
        for i in range(nics):
            for g in gpu[i::nics]:
                m.link(g, w[1 + i], 24, kind="net")
            m.link(w[1 + i], nets[rng.below(2)], rng.choice([12.5, 25, 50]), kind="net")


def cubic(rng, m):
    """3 links for each GPU."""
    gpu, _ = m.server(m.gpus)
    for a, b in regular(rng, m.gpus, 3):
        m.link(gpu[a], gpu[b], 25)


KINDS = {"rsw256": random_switches, "dgx256": broken_dgx, "asym256": unequal_directions, "pcie256": pcie_trees,
         "torus256": broken_torus, "dragonfly256": dragonfly, "fattree256": broken_fat_tree, "islands256": islands,
         "cubic256": cubic}


def machine(kind, seed, gpus=GPUS):
    made = Machine(f"{kind} {seed}", gpus)
    KINDS[kind](Lcg(seed), made)
    return made.json()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", help="a directory")
    parser.add_argument("kind", nargs="?", help=" ".join(KINDS))
    parser.add_argument("seed", nargs="?", type=int, default=1)
    options = parser.parse_args()
    if options.into:
        seed = options.seed if options.kind is None else int(options.kind)
        for kind in KINDS:
            with open(f"{options.into}/{kind}-{seed}.json", "w", encoding="utf-8") as file:
                json.dump(machine(kind, seed), file)
    elif options.kind in KINDS:
        json.dump(machine(options.kind, options.seed), sys.stdout)
    else:
        parser.error(f"want one of {' '.join(KINDS)}")


if __name__ == "__main__":
    main()
