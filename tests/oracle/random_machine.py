#!/usr/bin/env python3
"""A random machine with odd numbers, on whose links every GPU can reach every other.

usage: random_machine.py SEED [--last SEED --into DIR]     one for each seed, as DIR/mSEED.json; else on standard output

What random_topology.py draws stays as it is; here shape, capacities and number of GPUs are drawn apart:

shapes        direct, one-way, one or several switches, several servers with links of several classes, a full mesh;
              switches that multicast, reduce or both
capacities    a few small numbers, primes, decimals of 15 digits, or all of these and extremes in one machine
GPUs          2 to 16, more often few

The same seed gives the same bytes in every version of Python.
"""
import argparse
import json
import os
import sys

from lcg import Lcg
from random_topology import PRIMES, Draft, odd, small, spread


def prime(rng):
    return str(rng.choice(PRIMES))


def long(rng):
    """15 digits, in bytes/s."""
    return f"{rng.between(1, 999999)}.{rng.below(10**9):09d}"


def any_size(rng):
    return rng.choice([small, prime, long, odd])(rng)


CAPACITIES = [small, small, prime, long, any_size]


def mesh(draft, capacity, **how):
    for i, a in enumerate(draft.gpus):
        for b in draft.gpus[i + 1:]:
            draft.link(a, b, capacity, **how)


def direct(draft, capacity):
    spread(draft, draft.gpus, capacity)
    for a, b in draft.extra_pairs(2 * draft.n):
        draft.link(a, b, capacity)


def oneway(draft, capacity):
    order = draft.rng.shuffled(draft.gpus)
    for a, b in zip(order, order[1:] + order[:1]):
        draft.link(a, b, capacity, duplex="simplex")
    for a, b in draft.extra_pairs(4 * draft.n):
        draft.link(a, b, capacity, duplex="simplex" if draft.rng.below(3) else "full")


def oneway_mesh(draft, capacity):
    mesh(draft, capacity, duplex="simplex")
    for i, a in enumerate(draft.gpus):
        for b in draft.gpus[:i]:
            draft.link(a, b, capacity, duplex="simplex")


def switched(draft, capacity):
    switches = [draft.switch() for _ in range(draft.rng.between(1, 3))]
    for gpu in draft.gpus:
        draft.link(gpu, draft.rng.choice(switches), capacity)
    spread(draft, switches, capacity)
    for gpu, _ in draft.extra_pairs(draft.n):
        draft.link(gpu, draft.rng.choice(switches), capacity, duplex=draft.rng.choice(["full", "simplex"]))
    for a, b in draft.extra_pairs(draft.n):
        draft.link(a, b, capacity)


def servers(draft, capacity):
    count = min(draft.n, draft.rng.between(2, 4))
    parts = [draft.gpus[i::count] for i in range(count)]
    draft.nodes = [{"id": f"n{i}", "gpus": gpus, "switches": []} for i, gpus in enumerate(parts)]
    uplinks = []
    for i, gpus in enumerate(parts):
        spread(draft, gpus, capacity)
        pcie = draft.switch(i)
        uplinks.append(draft.switch(i))
        for gpu in gpus:
            draft.link(gpu, pcie, capacity, cls="pcie")
        draft.link(pcie, uplinks[-1], capacity, cls="pcie")
    spread(draft, uplinks, capacity, cls="net")
    for a, b in draft.extra_pairs(draft.n):
        same = any(a in gpus and b in gpus for gpus in parts)
        draft.link(a, b, capacity, cls="nvlink" if same else "net")


SHAPES = [direct, direct, oneway, oneway_mesh, mesh, switched, switched, servers]


def random_machine(seed):
    """The machine as a JSON object whose capacities are decimal texts, and whether its switches do more than
    forward."""
    rng = Lcg(seed ^ 0x5eed)
    shape, capacity = rng.choice(SHAPES), rng.choice(CAPACITIES)
    draft = Draft(rng, rng.choice([2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 7, 8, 8, 9, 10, 12, 14, 16]))
    shape(draft, capacity)
    active = rng.choice([{"multicast": True}, {"reduce": True}, {"multicast": True, "reduce": True}]) \
        if shape in (switched, servers) and rng.below(4) == 0 else {}
    nodes = [{"id": node["id"], "gpus": [{"id": name} for name in node["gpus"]],
              **({"switches": [{"id": name, **active} for name in node["switches"]]} if node["switches"] else {})}
             for node in draft.nodes]
    return {"name": f"{shape.__name__} {capacity.__name__} {seed}", "nodes": nodes, "links": draft.links}, bool(active)


def text_of(machine):
    lines = []
    for link in machine["links"]:  # numbers as they were drawn, not as a float prints
        line = json.dumps(link)
        for name in ("capacity", "latency"):
            line = line.replace(f'"{name}": "{link[name]}"', f'"{name}": {link[name]}')
        lines.append(line)
    return (f'{{ "format": "blink-topology", "version": 1, "name": {json.dumps(machine["name"])},\n'
            f'  "nodes": {json.dumps(machine["nodes"])},\n  "links": [\n    ' + ",\n    ".join(lines) + "\n  ] }\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("seed", type=int)
    parser.add_argument("--last", type=int)
    parser.add_argument("--into")
    args = parser.parse_args()
    if not args.into:
        sys.stdout.write(text_of(random_machine(args.seed)[0]))
        return
    for seed in range(args.seed, (args.last or args.seed) + 1):
        with open(os.path.join(args.into, f"m{seed}.json"), "w", encoding="utf-8") as file:
            file.write(text_of(random_machine(seed)[0]))


if __name__ == "__main__":
    main()
