#!/usr/bin/env python3
"""How the ranks of a schedule reach the network, held against the machine: blinkc(1), Link classes.

usage: access.py MACHINE SCHEDULE...      MACHINE: a topology in JSON that spells everything out

Prints a line for each schedule: ok and how many NICs serve it, or what is wrong.
"""
import json
import sys
from collections import Counter, defaultdict


def machine_links(doc):
    for link in doc["links"]:
        given = next((c for c in doc.get("classes", []) if c["name"] == link["class"]), {})
        capacity = round(link.get("capacity", given.get("capacity")) * link.get("count", 1) * 1e9)
        yield link["from"], link["to"], link["class"], capacity
        if link.get("duplex") != "simplex":
            yield link["to"], link["from"], link["class"], capacity


def plain(name):
    return name.removesuffix(":out").removesuffix(":in")


def hops(start, ways, through):
    """Links from start to every vertex, through vertices of which through(v) holds."""
    distance, queue = {start: 0}, [start]
    for v in queue:
        for w in ways[v] if v == start or through(v) else []:
            if w not in distance:
                distance[w] = distance[v] + 1
                queue.append(w)
    return distance


def check(machine, schedule):
    kind = {v["id"]: name for node in machine["nodes"] for name in ("gpus", "cpus", "switches", "nics")
            for v in node.get(name, [])}
    all_links = list(machine_links(machine))
    ranks = [r["gpu"] for r in schedule["topology"]["ranks"]]
    links = [(*(ranks[v] if isinstance(v, int) else v for v in (l["from"], l["to"])), l["class"],
              round(l["capacity"] * 1e9)) for l in schedule["topology"]["links"]]
    # Each link of the job is one of the machine, and each of the machine is in the job once at most.
    left = Counter(all_links)
    for a, b, cls, capacity in links:
        key = (plain(a), plain(b), cls, capacity)
        if left[key] == 0:
            return f"the machine has no link {key}, or not so many"
        left[key] -= 1
    # What has gone over a link of a class that was not chosen comes to a GPU only through the network.
    chosen, ways = schedule["generator"]["options"]["links"], defaultdict(list)
    for a, b, cls, _ in links:
        if cls != "net":
            ways[a].append((b, cls not in chosen))
    for gpu in ranks:
        queue = [(gpu, False)]
        for v, other in queue:
            for w, leaves in ways[v]:
                state = (w, other or leaves)
                if state in queue:
                    continue
                if w in ranks:
                    if state[1]:
                        return f"{gpu} reaches {w} past the network"
                    continue
                queue.append(state)
    # The nearest NICs of each rank serve it, in both directions, over as few links.
    for out in (True, False):
        ending = ":out" if out else ":in"
        ways, job = defaultdict(list), defaultdict(list)
        net = {(a if out else b) for a, b, cls, _ in all_links if cls == "net"}
        for a, b, cls, _ in all_links:
            if cls != "net":
                ways[a if out else b].append(b if out else a)
        for a, b, cls, _ in links:
            if cls != "net":
                job[a if out else b].append(b if out else a)
        for gpu in ranks:
            far = hops(gpu, ways, lambda v: kind.get(v) in ("cpus", "switches"))
            nics = {v: d for v, d in far.items() if kind.get(v) == "nics" and v in net}
            near = hops(gpu, job, lambda v: v not in ranks)
            for nic in [v for v, d in nics.items() if d == min(nics.values())]:
                if near.get(nic + ending, near.get(nic)) != nics[nic]:
                    return f"{gpu} is {nics[nic]} links from {nic}, in the job {near.get(nic + ending)} ({ending})"
    return None


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        machine = json.load(file)
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            schedule = json.load(file)
        wrong = check(machine, schedule)
        nics = {plain(v) for l in schedule["topology"]["links"] for v in (l["from"], l["to"])
                if isinstance(v, str) and l["class"] == "net"} & {v["id"] for node in machine["nodes"]
                                                                  for v in node.get("nics", [])}
        print(wrong or f"ok {len(nics)} NICs")
        if wrong:
            sys.exit(1)


main()
