#!/usr/bin/env python3
"""Spell out a cluster: files by reference and fabrics, as blink-topology(5) says, and nothing of blinkc.

usage: expand.py FILE [DIR...]      DIR: where files are looked for that are not beside the one that names them

Prints a flat topology in JSON, in which nothing is left to a reader: capacities and latencies are at their links.
"""
import json
import math
import os
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction

KINDS = ["gpus", "cpus", "switches", "nics"]
PLURAL = {"class": "classes", "switch": "switches"}


def from_xml(element):
    out = {name: value for name, value in element.attrib.items()}
    for child in element:
        out.setdefault(PLURAL.get(child.tag, child.tag + "s"), []).append(from_xml(child))
    return out


def read(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return from_xml(ET.fromstring(text)) if text.lstrip().startswith("<") else json.loads(text, parse_float=str,
                                                                                          parse_int=str)


def true(value):
    return value is True or value == "true"


def number(value, scale):
    return math.floor(Fraction(str(value)) * scale + Fraction(1, 2))


class Flat:
    """nodes: [id, {kind: [vertex...]}]; fabric: vertices in no node; links: [from, to, class, count, bytes/s of all,
    ns]."""

    def __init__(self, path, dirs):
        doc = read(path)
        self.name, self.nodes, self.fabric, self.links = doc["name"], [], [], []
        self.classes = {c["name"]: c for c in doc.get("classes", [])}
        taken = []
        for node in doc["nodes"]:
            if "file" in node:
                taken += self.graft(node, path, dirs)
            else:
                self.nodes.append([node["id"], {kind: node.get(kind, []) for kind in KINDS}])
        self.fabric += doc.get("switches", [])
        for fabric in doc.get("fabrics", []):
            self.join(fabric, taken)
        for link in doc.get("links", []):
            self.link(link)

    def graft(self, node, path, dirs):
        places = [os.path.join(d, node["file"]) for d in [os.path.dirname(path), *dirs]]
        inner = Flat(next(p for p in places if os.path.isfile(p)), dirs)
        count = int(node.get("count", 1))
        before = len(self.links)
        for copy in range(count):
            own = node["id"] + (str(copy) if "count" in node else "")
            for name, kinds in inner.nodes:
                self.nodes.append([own if len(inner.nodes) == 1 else f"{own}/{name}",
                                   {kind: [{**v, "id": f"{own}/{v['id']}"} for v in kinds[kind]] for kind in KINDS}])
            self.fabric += [{**v, "id": f"{own}/{v['id']}"} for v in inner.fabric]
            self.links += [[f"{own}/{a}", f"{own}/{b}", *rest] for a, b, *rest in inner.links]
        for name, given in inner.classes.items():
            self.classes.setdefault(name, given)
        return self.links[before:]

    def put(self, a, b, cls, count, capacity, latency, simplex=False):
        self.links.append([a, b, cls, count, capacity, latency])
        if not simplex:
            self.links.append([b, a, cls, count, capacity, latency])

    def link(self, link):
        given = self.classes.get(link["class"], {})
        count = int(link.get("count", 1))
        capacity = number(link.get("capacity", given.get("capacity")), 10**9)
        self.put(link["from"], link["to"], link["class"], count, capacity * count,
                 number(link.get("latency", given.get("latency", 0)), 1000), link.get("duplex") == "simplex")

    def join(self, fabric, taken):
        cls, kind, name = fabric.get("class", "net"), fabric.get("ports", "nics"), fabric.get("id", "net")
        used = {end for a, b, c, *_ in taken if c == cls for end in (a, b)}
        ports = [[v for v in kinds[kind] if v["id"] not in used] for _, kinds in self.nodes]
        ports = [p for p in ports if p]
        rails, per_leaf = true(fabric.get("rails")), int(fabric["servers"]) if "servers" in fabric else None
        leaves = {}
        for server, vertices in enumerate(ports):
            for j, vertex in enumerate(vertices):
                leaves.setdefault((server // per_leaf if per_leaf else 0, j if rails else 0), []).append(vertex)
        flags = {flag: True for flag in ("multicast", "reduce") if true(fabric.get(flag))}
        names = {}
        for group, rail in sorted(leaves):
            names[group, rail] = name + (f"/leaf{group}" if per_leaf else "") + (f"/rail{rail}" if rails else "")
            self.fabric.append({"id": names[group, rail], **flags})
        spine = len(leaves) > 1 and ("oversubscription" in fabric or per_leaf)
        if spine:
            self.fabric.append({"id": name + "/spine", **flags})
        given = self.classes.get(cls, {})
        latency = number(fabric.get("latency", given.get("latency", 0)), 1000)
        count = int(fabric.get("count", 1))
        total = dict.fromkeys(names, 0)
        for server, vertices in enumerate(ports):
            for j, vertex in enumerate(vertices):
                at = (server // per_leaf if per_leaf else 0, j if rails else 0)
                own = vertex.get("capacity") if kind == "nics" else None
                capacity = count * number(fabric.get("capacity",
                                                     own if own is not None else given.get("capacity")), 10**9)
                self.put(vertex["id"], names[at], cls, count, capacity, latency)
                total[at] += capacity
        for at in sorted(names) if spine else []:
            over = Fraction(number(fabric.get("oversubscription", 1), 10**6), 10**6)
            self.put(names[at], name + "/spine", cls, 1, math.floor(total[at] / over), latency)


def vertex(v, kind):
    out = {"id": v["id"]}
    if kind == "switches":
        out.update({flag: True for flag in ("multicast", "reduce") if true(v.get(flag))})
    if kind == "nics" and "capacity" in v:
        out["capacity"] = float(v["capacity"])
    return out


def decimal(value, scale):
    """Exactly, in as many digits as it needs."""
    whole, rest = divmod(value, scale)
    return f"{whole}.{rest:0{len(str(scale)) - 1}d}"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    flat = Flat(sys.argv[1], sys.argv[2:])
    doc = {"format": "blink-topology", "version": 1, "name": flat.name,
           "nodes": [{"id": name, **{kind: [vertex(v, kind) for v in kinds[kind]] for kind in KINDS if kinds[kind]}}
                     for name, kinds in flat.nodes],
           "switches": [vertex(v, "switches") for v in flat.fabric], "links": []}
    text = json.dumps(doc)[:-3]
    links = [f'{{"from": "{a}", "to": "{b}", "class": "{cls}", "count": {count}, "duplex": "simplex", '
             f'"capacity": {decimal(capacity // count, 10**9)}, "latency": {decimal(latency, 1000)}}}'
             for a, b, cls, count, capacity, latency in flat.links]
    print(text + "[" + ",\n".join(links) + "]}")


main()
