#!/usr/bin/env python3
"""Random cluster files: servers by reference, of one server or of several with a fabric, in either spelling; fabrics
over NICs and GPUs.

usage: random_cluster.py SEED DIR      Writes files into DIR; prints the name of the one that names the others
"""
import json
import os
import sys
from xml.sax.saxutils import quoteattr

from lcg import Lcg

SINGULAR = {"classes": "class", "switches": "switch"}
SHIPPED = ["dgx1v.xml", "dgx1p.json", "gb200-tray.xml", "hgx-b200.xml", "kesch.xml", "pcie-8gpu.xml"]


def xml(name, value):
    def spelled(v):
        return str(v).lower() if isinstance(v, bool) else str(v)
    lists = {k: v for k, v in value.items() if isinstance(v, list)}
    inside = "".join(xml(SINGULAR.get(k, k[:-1]), v) for k, list_ in lists.items() for v in list_)
    return f"<{name}" + "".join(f" {k}={quoteattr(spelled(v))}" for k,
                                v in value.items() if k not in lists) + f">{inside}</{name}>\n"


def maybe(rng, doc, member, *values):
    if rng.below(2):
        doc[member] = rng.choice(values)


def classes(rng):
    out = []
    for name in ("nvlink", "pcie", "net"):
        if rng.below(3) == 0:
            out.append({"name": name, "capacity": rng.choice([5, 12.5, 0.3])})
            maybe(rng, out[-1], "latency", 0, 1.5, 2.0005)
            maybe(rng, out[-1], "source", "nominal", "somebody")
    return out


def server(rng, name, links):
    gpus = [f"{name}.g{i}" for i in range(rng.between(1, 3))]
    nics = [f"{name}.n{i}" for i in range(rng.between(1, 3))]
    node = {"id": name, "gpus": [{"id": g} for g in gpus], "switches": [{"id": f"{name}.plx"}],
            "nics": [{"id": n} for n in nics]}
    maybe(rng, node["switches"][0], "multicast", True, False)
    for nic in node["nics"]:
        maybe(rng, nic, "capacity", 25, 6.25, 0.1)
    for v in gpus + nics:
        links.append({"from": v, "to": f"{name}.plx", "class": "pcie", "capacity": rng.choice([12, 24.5])})
        maybe(rng, links[-1], "latency", 0.7, 3)
        maybe(rng, links[-1], "duplex", "full", "simplex")
    for a, b in zip(gpus, gpus[1:]):
        links.append({"from": a, "to": b, "class": "nvlink", "count": rng.between(1, 3), "capacity": 25})
    return node


def fabric(rng, name, nested):
    """With a capacity that holds whatever other files say; ports that a nested fabric has taken are few, so that some
    are left."""
    out = {"id": name, "capacity": rng.choice([12.5, 25, 1.0000001])} if rng.below(2) or nested else {"id": name,
                                                                                                      "class": "net"}
    maybe(rng, out, "count", 1, 2, 5)
    maybe(rng, out, "latency", 0, 0.7)
    maybe(rng, out, "rails", True, False)
    maybe(rng, out, "servers", 1, 2, 3)
    maybe(rng, out, "oversubscription", 1, 3, 0.7, 1.333333)
    maybe(rng, out, "multicast", True)
    maybe(rng, out, "reduce", True, False)
    maybe(rng, out, "source", "the vendor")
    if rng.below(4) == 0:
        out["ports"], out["class"], out["capacity"] = "gpus", "xgmi", 40
    elif rng.below(3) == 0:
        out["class"], out["capacity"] = rng.choice(["net", "qpi"]), 9
    return out


def write(rng, place, name, doc):
    path = os.path.join(place, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # XML has no order between kinds, so members are as good as shuffled.
    with open(path, "w", encoding="utf-8") as file:
        file.write(xml("topology", doc) if rng.below(2) else json.dumps(doc))


def cluster(rng, place, name, depth):
    doc = {"format": "blink-topology", "version": 1, "name": name, "classes": classes(rng), "nodes": [], "links": []}
    plain = []
    for i in range(rng.between(1, 3)):
        what = rng.below(4)
        entry = {"id": f"e{i}"}
        if what == 0 or (what == 1 and depth == 0):
            entry = server(rng, f"own{i}", doc["links"])
            plain.append(entry["gpus"][0]["id"])
        elif what == 1:
            inner = rng.choice(["", "below/"]) + f"{os.path.basename(name)}{i}"
            cluster(rng, place, os.path.join(os.path.dirname(name), inner), depth - 1)
            entry["file"] = inner
            maybe(rng, entry, "count", 1, 2)
        else:
            entry["file"] = rng.choice(SHIPPED)
            maybe(rng, entry, "count", 1, 2, 3)
        doc["nodes"].append(entry)
    if rng.below(2):
        doc["switches"] = [{"id": "loose"}]
        maybe(rng, doc["switches"][0], "reduce", True, False)
        doc["links"] += [{"from": g, "to": "loose", "class": "nvlink", "capacity": 7} for g in plain]
    doc["fabrics"] = [fabric(rng, f"f{i}", depth) for i in range(rng.below(3))]
    write(rng, place, name, doc)


def main():
    rng = Lcg(int(sys.argv[1]))
    cluster(rng, sys.argv[2], "top", rng.below(3))
    print(os.path.join(sys.argv[2], "top"))


main()
