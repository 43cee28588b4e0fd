#!/usr/bin/env python3
"""A few random servers of few GPUs, each connected by links of its own, and a network: a topology file on standard
output.

usage: servers.py SEED [SIZE,SIZE...]       GPUs of each server; at random two or three servers of 1 to 3

Within a server there are direct links, both ways or one way round, or a switch; to the other servers GPUs have NICs of
their own
or one for the server, at several speeds, or links to single GPUs of others. The same seed gives the same bytes.
"""
import json
import sys

from lcg import Lcg

SPEEDS = [1, 2, 3, 4, 5, 6, 8, 10, 12, 20]


def inside(rng, gpus, switch, link):
    kind = rng.below(3)
    if kind == 0:
        for gpu in gpus:
            link(gpu, switch, "nvlink")
    elif kind == 1:
        for a, b in zip(gpus, gpus[1:] + gpus[:1]):
            if a != b:
                link(a, b, "nvlink", "simplex")
    else:
        for i in range(1, len(gpus)):
            link(rng.choice(gpus[:i]), gpus[i], "nvlink")
    for a in gpus:
        for b in gpus:
            if a != b and rng.below(3) == 0:
                link(a, b, "pcie", "simplex")


def servers(seed, sizes):
    rng = Lcg(seed)
    drawn = [rng.between(1, 3) for _ in range(rng.between(2, 3))]
    if sum(drawn) > 6:
        drawn.pop()
    sizes = sizes or drawn
    gpus = [[f"n{s}g{i}" for i in range(size)] for s, size in enumerate(sizes)]
    links = []

    def link(a, b, kind, duplex="full"):
        links.append({"from": a, "to": b, "class": kind, "capacity": rng.choice(SPEEDS), "duplex": duplex})

    for s, own in enumerate(gpus):
        inside(rng, own, f"n{s}sw", link)
    # Every server is on the network, some way or other; now and then two GPUs are linked as well.
    for s, own in enumerate(gpus):
        if rng.below(3) == 0:
            for gpu in own:
                link(gpu, f"n{s}nic", "pcie")
            link(f"n{s}nic", "net", "net")
        else:
            first = rng.below(len(own))
            for i, gpu in enumerate(own):
                if i == first or rng.below(3):
                    link(gpu, "net", "net")
    if rng.below(2):
        link(rng.choice(gpus[0]), rng.choice(gpus[1]), "net", rng.choice(["full", "simplex"]))
    used = {end for one in links for end in (one["from"], one["to"])}
    nodes = [{"id": f"n{s}", "gpus": [{"id": gpu} for gpu in own],
              "switches": [{"id": f"n{s}sw"}] if f"n{s}sw" in used else [],
              "nics": [{"id": f"n{s}nic"}] if f"n{s}nic" in used else []} for s, own in enumerate(gpus)]
    return {"format": "blink-topology", "version": 1, "name": f"servers {seed}", "nodes": nodes,
            "switches": [{"id": "net"}],
            "links": links}


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.split("\n\n")[1])
    print(json.dumps(servers(int(sys.argv[1]),
                             [int(n) for n in sys.argv[2].split(",")] if len(sys.argv) > 2 else None)))
