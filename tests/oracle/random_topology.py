#!/usr/bin/env python3
"""A random topology that any job can run on: every GPU can reach every other.

usage: random_topology.py SEED [--kind direct|oneway|switched|mixed|odd] [--ranks N]     2 <= N <= 26
       random_topology.py SEED --last SEED --into DIR ...     one for each seed, as DIR/tSEED.json

direct    full-duplex links between GPUs, small whole capacities
oneway    simplex links between GPUs, the two directions of a pair different or absent
switched  switches that forward, some pairs direct as well
mixed     two servers and several classes of links: NVLink within, PCIe by switches, a network between
odd       as direct, with capacities that are primes or decimals between 1e-6 and 1e6

The same seed gives the same bytes in every version of Python.
"""
import argparse
import json
import os
import sys

from lcg import Lcg

PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 97, 101, 997, 7919, 104729, 999983]


def small(rng):
    return str(rng.choice([1, 1, 2, 3, 4, 10, 12, 18, 20, 25, 50]))


def odd(rng):
    """Capacity in GB/s as decimal text, never finer than 1000 bytes/s."""
    kind = rng.below(4)
    if kind == 0:
        return str(rng.choice(PRIMES))
    if kind == 1:
        return rng.choice(["0.000001", "0.000007", "1000000", "999999.999999", "1e-6", "1e6", "1.5e+3"])
    if kind == 2:
        return f"{rng.below(1000)}.{rng.between(1, 999999):06d}"
    return f"{rng.between(1, 99)}.{rng.between(0, 9)}"


class Draft:
    """Links so far; a pair of vertices gets at most one link of a class in a direction."""

    def __init__(self, rng, n):
        self.rng, self.n = rng, n
        self.gpus = [f"gpu{i}" for i in range(n)]
        self.nodes = [{"id": "n0", "gpus": self.gpus, "switches": []}]
        self.links, self.taken = [], set()

    def link(self, a, b, capacity, cls="nvlink", duplex="full"):
        ways = {(a, b, cls)} | ({(b, a, cls)} if duplex == "full" else set())
        if a == b or ways & self.taken:
            return
        self.taken |= ways
        latency = self.rng.choice(["0", "0.5", "1", "1.9", "5"])
        self.links.append({"from": a, "to": b, "class": cls, "count": self.rng.choice([1, 1, 1, 2]),
                           "capacity": capacity(self.rng), "latency": latency, "duplex": duplex})

    def switch(self, node=0):
        name = f"sw{sum(len(entry['switches']) for entry in self.nodes)}"
        self.nodes[node]["switches"].append(name)
        return name

    def extra_pairs(self, most):
        for _ in range(self.rng.below(most + 1)):
            yield self.rng.choice(self.gpus), self.rng.choice(self.gpus)


def spread(draft, gpus, capacity, **how):
    """A random tree over the GPUs."""
    order = draft.rng.shuffled(gpus)
    for i in range(1, len(order)):
        draft.link(draft.rng.choice(order[:i]), order[i], capacity, **how)


def direct(draft, capacity=small):
    spread(draft, draft.gpus, capacity)
    for a, b in draft.extra_pairs(2 * draft.n):
        draft.link(a, b, capacity)


def oneway(draft):
    order = draft.rng.shuffled(draft.gpus)
    for a, b in zip(order, order[1:] + order[:1]):
        draft.link(a, b, small, duplex="simplex")
    for a, b in draft.extra_pairs(3 * draft.n):
        draft.link(a, b, draft.rng.choice([small, odd]), duplex="simplex")


def switched(draft):
    switches = [draft.switch() for _ in range(draft.rng.between(1, 3))]
    for i, gpu in enumerate(draft.gpus):
        draft.link(gpu, draft.rng.choice(switches[:1] if i == 0 else switches), small)
    spread(draft, switches, small)
    for gpu, _ in draft.extra_pairs(draft.n):
        draft.link(gpu, draft.rng.choice(switches), small)
    for a, b in draft.extra_pairs(draft.n):
        draft.link(a, b, small)


def mixed(draft):
    half = max(1, draft.n // 2)
    halves = [draft.gpus[:half], draft.gpus[half:]]
    draft.nodes = [{"id": f"n{i}", "gpus": gpus, "switches": []} for i, gpus in enumerate(halves)]
    for i, gpus in enumerate(halves):
        spread(draft, gpus, small)
        pcie, net = draft.switch(i), draft.switch(i)
        for gpu in gpus:
            draft.link(gpu, pcie, lambda rng: "12", cls="pcie")
        draft.link(pcie, net, lambda rng: "16", cls="pcie")
    draft.link("sw1", "sw3", lambda rng: rng.choice(["12.5", "25"]), cls="net")
    for a, b in draft.extra_pairs(draft.n):
        draft.link(a, b, small, cls="nvlink" if (a in halves[0]) == (b in halves[0]) else "net")


KINDS = {"direct": direct, "oneway": oneway, "switched": switched, "mixed": mixed,
         "odd": lambda draft: direct(draft, odd)}


def random_topology(seed, kind=None, ranks=None):
    """JSON text of a topology."""
    rng = Lcg(seed)
    any_kind, any_ranks = rng.choice(list(KINDS)), rng.choice([2, 3, 3, 4, 4, 5, 5, 6, 7, 8])  # drawn always, so that
    kind, ranks = kind or any_kind, ranks or any_ranks  # a kind that is asked for changes nothing else
    draft = Draft(rng, ranks)
    KINDS[kind](draft)

    def ids(names):
        return [{"id": name} for name in names]

    nodes = [{"id": node["id"], "gpus": ids(node["gpus"]), **({"switches": ids(node["switches"])} if node["switches"]
                                                               else {})} for node in draft.nodes]
    lines = [json.dumps(link) for link in draft.links]
    for i, link in enumerate(draft.links):  # numbers as they were drawn, not as a float prints
        for name in ("capacity", "latency"):
            lines[i] = lines[i].replace(f'"{name}": "{link[name]}"', f'"{name}": {link[name]}')
    return (f'{{ "format": "blink-topology", "version": 1, "name": "random {kind} {seed}",\n'
            f'  "nodes": {json.dumps(nodes)},\n  "links": [\n    ' + ",\n    ".join(lines) + "\n  ] }\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("seed", type=int)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--ranks", type=int, choices=range(2, 27))
    parser.add_argument("--last", type=int)
    parser.add_argument("--into")
    args = parser.parse_args()
    if not args.into:
        sys.stdout.write(random_topology(args.seed, args.kind, args.ranks))
        return
    for seed in range(args.seed, (args.last or args.seed) + 1):
        with open(os.path.join(args.into, f"t{seed}.json"), "w", encoding="utf-8") as file:
            file.write(random_topology(seed, args.kind, args.ranks))


if __name__ == "__main__":
    main()
