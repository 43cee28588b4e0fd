#!/usr/bin/env python3
"""Random boxes of GPUs on PCIe of which some have bridges, links or switches of NVLink or xGMI.

usage: pair_box.py SEED [--most N]      --most: GPUs, at most (default 6); every fifth box is two servers and a network
"""
import json
import sys

from lcg import Lcg

STYLES = ("bridges", "chain", "islands", "some", "switch", "half")


def fast_links(rng, gpus, style):
    """Pairs that have a link, or none and the GPUs of a switch."""
    n = len(gpus)
    if style == "bridges":
        return list(zip(gpus[::2], gpus[1::2])), []
    if style == "chain":
        end = rng.between(2, n)
        return list(zip(gpus[:end - 1], gpus[1:end])), []
    if style == "islands":
        cut = rng.between(1, n - 1)
        return [(a, b) for part in (gpus[:cut], gpus[cut:]) for i, a in enumerate(part) for b in part[i + 1:]], []
    if style == "some":
        return [(a, b) for i, a in enumerate(gpus) for b in gpus[i + 1:] if rng.below(3) == 0], []
    if style == "switch":
        return [], gpus[:rng.between(2, n)]
    return [(a, b) for a, b in zip(gpus[::2], gpus[1::2]) if rng.below(2)], []


def server(rng, s, most, links):
    """CPUs in a chain, PCIe switches below them, GPUs and a NIC or two anywhere; bus: at most what a bridge has."""
    def link(a, b, cls, capacity, count=1):
        links.append({"from": a, "to": b, "class": cls, "capacity": capacity, "count": count})
    bus = rng.choice([6, 12, 24])
    fast = rng.choice(["nvlink", "nvlink", "nvlink", "xgmi"])
    cpus = [f"s{s}/cpu{i}" for i in range(rng.between(1, 2))]
    for a, b in zip(cpus, cpus[1:]):
        link(a, b, "qpi", rng.choice([6, 20, 40]))
    places, switches = list(cpus), []
    for i in range(rng.between(0, 3)):
        switches.append(f"s{s}/plx{i}")
        link(switches[-1], rng.choice(cpus), "pcie", bus)
        places.append(switches[-1])
    gpus = [f"s{s}/gpu{i}" for i in range(rng.between(2 if s else 3, most))]
    for gpu in gpus:
        link(gpu, rng.choice(places), "pcie", bus)
    nics = [f"s{s}/nic{i}" for i in range(rng.between(1, 2))]
    for nic in nics:
        link(nic, rng.choice(places), "pcie", bus)
    pairs, behind = fast_links(rng, gpus, STYLES[rng.below(len(STYLES))])
    for a, b in pairs:
        link(a, b, fast, 25, rng.between(1, 4))
    if behind:
        switches.append(f"s{s}/fast")
    for gpu in behind:
        link(gpu, switches[-1], fast, 25, 2)
    return {"id": f"s{s}", **{kind: [{"id": v} for v in ids] for kind, ids in
                              (("gpus", gpus), ("cpus", cpus), ("switches", switches), ("nics", nics)) if ids}}


def box(seed, most):
    rng, links = Lcg(seed), []
    several = seed % 5 == 0
    nodes = [server(rng, s, min(most, 4) if several else most, links) for s in range(2 if several else 1)]
    fabrics = {"fabrics": [{"capacity": rng.choice([5, 12.5]), "rails": False}]} if several else {}
    return {"format": "blink-topology", "version": 1, "name": f"box {seed}", "nodes": nodes, **fabrics, "links": links}


if __name__ == "__main__":
    print(json.dumps(box(int(sys.argv[1]), int(sys.argv[3]) if "--most" in sys.argv else 6)))
