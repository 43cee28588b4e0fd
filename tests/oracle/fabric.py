#!/usr/bin/env python3
"""Servers with NICs behind PCIe switches, in racks on a leaf-spine network: a topology file on standard output.

usage: fabric.py abci RACKS NODES [OVER]        ABCI: racks of NODES servers of 4 V100 and 2 NICs; uplinks 1/OVER, 3 by
default
       fabric.py rails PODS NODES SPINE [RAILS] pods of NODES servers of RAILS GPUs (8 by default), NIC j of each on the
       pod's
                                                leaf j; SPINE 1: a spine joins all leaves, 0: one leaf for each rail and
                                                no spine
       [LAST] after these: LAST=N leaves N GPUs to the last server

The way between a GPU and the network is directed: a PCIe switch and a NIC are two vertices each, one that only leads
out and
one that only leads in, so no route turns round in them. GB/s each way: 2 NVLinks of 25 between any two GPUs of an ABCI
server,
450 of each GPU to an NVSwitch in a rail server; PCIe 12 and NIC 12.5 (ABCI), PCIe 64 and NIC 50 (rails).
"""
import json
import sys


class Fabric:
    def __init__(self, name):
        self.name, self.nodes, self.switches, self.links = name, [], [], []

    def link(self, a, b, kind, capacity, simplex=False):
        self.links.append({"from": a, "to": b, "class": kind, "capacity": capacity,
                           **({"duplex": "simplex"} if simplex else {})})

    def nic(self, node, j, gpus, pcie, net, leaf):
        """NIC j and its PCIe switch, for these GPUs, on a leaf."""
        for way in ("out", "in"):
            plx, nic = f"{node['id']}/plx{j}:{way}", f"{node['id']}/nic{j}:{way}"
            node["switches"] += [{"id": plx}, {"id": nic}]
            hops = [(g, plx, "pcie", pcie) for g in gpus] + [(plx, nic, "pcie", pcie), (nic, leaf, "net", net)]
            for a, b, kind, capacity in hops:
                self.link(*((a, b) if way == "out" else (b, a)), kind, capacity, True)

    def dump(self):
        print(json.dumps({"format": "blink-topology", "version": 1, "name": self.name, "nodes": self.nodes,
                          "switches": [{"id": s} for s in self.switches], "links": self.links}))


def abci(racks, nodes, over, last):
    f = Fabric(f"{racks} racks of {nodes} ABCI nodes")
    for r in range(racks):
        f.switches.append(f"leaf{r}")
        for n in range(nodes):
            left = last if last and (r, n) == (racks - 1, nodes - 1) else 4
            name = f"r{r}n{n}"
            gpus = [f"{name}/g{g}" for g in range(left)]
            node = {"id": name, "gpus": [{"id": g} for g in gpus], "switches": []}
            f.nodes.append(node)
            for i, a in enumerate(gpus):
                for b in gpus[i + 1:]:
                    f.link(a, b, "nvlink", 50)
            for j in range((left + 1) // 2):
                f.nic(node, j, gpus[2 * j:2 * j + 2], 12, 12.5, f"leaf{r}")
        if racks > 1:
            f.link(f"leaf{r}", "spine", "net", round(nodes * 2 * 12.5 / over, 6))
    if racks > 1:
        f.switches.append("spine")
    f.dump()


def rails(pods, nodes, spine, gpus, last):
    f = Fabric(f"{pods} pods of {nodes} servers on {gpus} rails")
    leaf = (lambda p, j: f"leaf{p}.{j}") if spine else (lambda p, j: f"rail{j}")
    f.switches = sorted({leaf(p, j) for p in range(pods) for j in range(gpus)}) + (["spine"] if spine else [])
    for p in range(pods):
        for n in range(nodes):
            name = f"p{p}n{n}"
            left = last if last and (p, n) == (pods - 1, nodes - 1) else gpus
            ids = [f"{name}/g{g}" for g in range(left)]
            node = {"id": name, "gpus": [{"id": g} for g in ids], "switches": [{"id": f"{name}/nvswitch"}]}
            f.nodes.append(node)
            for j, g in enumerate(ids):
                f.link(g, f"{name}/nvswitch", "nvlink", 450)
                f.nic(node, j, [g], 64, 50, leaf(p, j))
        for j in range(gpus if spine else 0):
            f.link(leaf(p, j), "spine", "net", nodes * 50)
    f.dump()


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if not w.startswith("LAST=")]
    left_over = [int(w[5:]) for w in sys.argv[1:] if w.startswith("LAST=")] or [0]
    numbers = [int(w) for w in words[1:]]
    if words[:1] == ["abci"] and len(numbers) in (2, 3):
        abci(*(numbers + [3])[:3], left_over[0])
    elif words[:1] == ["rails"] and len(numbers) in (3, 4):
        rails(*(numbers + [8])[:4], left_over[0])
    else:
        sys.exit(__doc__.split("\n\n")[1])
