#!/usr/bin/env python3
"""Random servers whose GPUs have NVLinks, with NICs somewhere in trees of PCIe switches and CPUs, and a network.

usage: random_servers.py SEED [--job]      --job: print GPUs of a job instead of the topology
"""
import json
import sys

from lcg import Lcg


def server(rng, s, links):
    """CPUs in a chain, PCIe switches under CPUs or other switches, GPUs and NICs under any of these."""
    def link(a, b, cls, capacity):
        links.append({"from": a, "to": b, "class": cls, "capacity": capacity})
    cpus = [f"s{s}/cpu{i}" for i in range(rng.between(1, 2))]
    for a, b in zip(cpus, cpus[1:]):
        link(a, b, "qpi", rng.choice([6, 20]))
    places = list(cpus)
    switches = []
    for i in range(rng.between(0, 4)):
        switches.append(f"s{s}/plx{i}")
        link(switches[-1], rng.choice(places), "pcie", 12)
        places.append(switches[-1])
    gpus = [f"s{s}/gpu{i}" for i in range(rng.between(1, 5))]
    for i, gpu in enumerate(gpus):
        link(gpu, rng.choice(places), "pcie", 12)
        if i:
            link(gpu, gpus[rng.below(i)], "nvlink", rng.choice([20, 25, 50]))
    nics = [f"s{s}/nic{i}" for i in range(rng.between(1, 4))]
    for nic in nics:
        link(nic, rng.choice(places), "pcie", 12)
    return {"id": f"s{s}", **{kind: [{"id": v} for v in ids] for kind, ids in
                              (("gpus", gpus), ("cpus", cpus), ("switches", switches), ("nics", nics)) if ids}}


def main():
    rng, links = Lcg(int(sys.argv[1])), []
    nodes = [server(rng, s, links) for s in range(rng.between(2, 3))]
    fabric = {"capacity": rng.choice([5, 12.5]), "rails": False}
    doc = {"format": "blink-topology", "version": 1, "name": "random servers", "nodes": nodes, "fabrics": [fabric],
           "links": links}
    # A prefix of each server's GPUs, which its NVLinks connect.
    job = [g["id"] for node in nodes for g in node["gpus"][:rng.between(1, len(node["gpus"]))]]
    print(",".join(job) if "--job" in sys.argv else json.dumps(doc))


main()
