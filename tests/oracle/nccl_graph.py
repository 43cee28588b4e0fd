#!/usr/bin/env python3
"""A graph file for NCCL, read as NCCL reads it, and held against the machine and against the schedule.

usage: nccl_graph.py FILES SERVERS DEVICES NICS                     the files alone: DEVICES and NICS as 0-7 or 0,3;
NICS may be -
       nccl_graph.py FILES SERVERS DEVICES NICS MACHINE SCHEDULE LOST    also what links carry, and what the rings add
       up to

FILES: one that all servers read, or one for each, with commas between them; so, with slashes, are DEVICES.

What NCCL 2.8 to 2.30 do with a file: no prolog, a name and name="value" pairs in each tag, without line breaks; 1024
tags and 16
attributes at most; version 1. Of the graph with an id it takes nchannels and then every <channel>, which fills the next
row of
arrays that have a place for each GPU of the server, looks up dev (read as hexadecimal; older versions: as C has it)
among these
GPUs, and two places for NICs. It doubles the channels, of which there may be 32. Rings are joined from server to
server.

MACHINE is JSON of blink-topology(5), SCHEDULE of blink-schedule(5). LOST: GB/s of the rings that the channels do not
carry.
Hops are taken to go over the fewest links: of NVLink alone where these lead there, else of PCIe. The network is between
NICs.
Prints channels and speed.
"""
import collections
import functools
import json
import re
import sys

TAG = re.compile(r"<(/?)([a-z]+)((?: [a-z]+=\"[^\"\n]*\")*)(/?)>\s*")
PAIR = re.compile(r" ([a-z]+)=\"([^\"]*)\"")
INSIDE = {None: "graphs", "graphs": "graph", "graph": "channel", "channel": ("gpu", "net")}
PATHS = "LOC NVL NVB PIX PXB PXN PHB SYS".split()
PATTERN = {0: 4, 1: 1}


def fail(why):
    sys.exit(f"nccl_graph: {why}")


def parse(text):
    """Nested (name, attributes, children)."""
    root, stack, at, count = None, [], 0, 0
    while at < len(text):
        match = TAG.match(text, at)
        if not match:
            fail(f"no tag at byte {at}: {text[at:at + 40]!r}")
        closing, name, pairs, empty = match.groups()
        at = match.end()
        if closing:
            if not stack or stack.pop()[0] != name:
                fail(f"</{name}> closes nothing")
            continue
        attributes = PAIR.findall(pairs)
        if len(attributes) > 16 or len(dict(attributes)) != len(attributes):
            fail(f"<{name}>: {len(attributes)} attributes, or one twice")
        if name not in (INSIDE.get(stack[-1][0]) if stack else INSIDE[None]):
            fail(f"<{name}> out of place")
        node, count = (name, dict(attributes), []), count + 1
        if stack:
            stack[-1][2].append(node)
        elif root:
            fail("two roots")
        else:
            root = node
        if not empty:
            stack.append(node)
    if stack or not root or count > 1024:
        fail(f"{len(stack)} tags open at the end, {count} tags")
    return root


def device(text):
    if not re.fullmatch(r"0|0x[1-9a-f][0-9a-f]*", text):
        fail(f"dev {text}: other versions of NCCL read it as another number")
    return int(text, 16)


def read_channel(channel, devices, nics):
    """GPUs in order, NICs at both ends."""
    kinds = [kind for kind, _, _ in channel[2]]
    gpus = [device(a["dev"]) for kind, a, _ in channel[2] if kind == "gpu"]
    nets = [device(a["dev"]) for kind, a, _ in channel[2] if kind == "net"]
    if sorted(gpus) != devices:
        fail(f"a channel has GPUs {gpus}, the server {devices}")
    if nets and (len(nets) != 2 or kinds[0] != "net" or kinds[-1] != "net" or not set(nets) <= set(nics)):
        fail(f"a channel has NICs {nets}, the server {nics}")
    if bool(nets) != bool(nics):
        fail("NICs with one server, or none with several")
    return gpus, nets


def read_graph(graph, devices, nics):
    at = graph[1]
    for name in "id pattern crossnic nchannels samechannels".split():
        if not re.fullmatch(r"\d+", at.get(name, "")):
            fail(f"{name}: {at.get(name)}")
    channels = [read_channel(channel, devices, nics) for channel in graph[2]]
    if PATTERN.get(int(at["id"])) != int(at["pattern"]):
        fail(f"graph {at['id']} of pattern {at['pattern']}")
    if not 1 <= int(at["nchannels"]) <= 16 or len(channels) != int(at["nchannels"]):
        fail(f"nchannels {at['nchannels']}, of which {len(channels)} are there")
    if at["typeintra"] not in PATHS or at["typeinter"] not in PATHS:
        fail(f"types {at['typeintra']} and {at['typeinter']}")
    if int(at["samechannels"]) != all(channel == channels[0] for channel in channels):
        fail(f"samechannels {at['samechannels']}")
    if int(at["crossnic"]) != 0:  # 2.20 to 2.25 would exchange the rings of every other server
        fail(f"crossnic {at['crossnic']}")
    if float(at["latencyinter"]) < 0 or not 0 < float(at["speedintra"]) or at["speedintra"] != at["speedinter"]:
        fail(f"speeds {at['speedintra']} and {at['speedinter']}")
    return float(at["speedintra"]), channels


def numbers(text):
    spans = [span.split("-") for span in text.split(",")] if text != "-" else []
    return [n for span in spans for n in range(int(span[0]), int(span[-1]) + 1)]


def rank_hops(ways):
    """Pairs of (server, GPU), from server to server as NCCL joins them: each GPU of all is entered once."""
    order = [(server, gpu) for server, (gpus, _) in enumerate(ways) for gpu in gpus]
    hops = list(zip(order, order[1:] + order[:1]))
    if len({to for _, to in hops}) != len(order):
        fail("a ring enters a GPU twice")
    return hops


# ---- the machine ----


def links_of(machine):
    defaults = {c["name"]: c.get("capacity") for c in machine.get("classes", [])}
    links = {}
    for link in machine["links"]:
        capacity = link.get("capacity", defaults.get(link["class"])) or float("inf")
        ends = [(link["from"], link["to"])]
        if link.get("duplex", "full") == "full":
            ends.append((link["to"], link["from"]))
        for end in ends:
            key = (*end, link["class"])
            links[key] = links.get(key, 0) + capacity * link.get("count", 1)
    return links


def route(links, start, goal, classes, within):
    """The fewest links from a vertex to another, through no third GPU and no CPU if there is another way."""
    before, queue = {start: None}, collections.deque([start])
    while queue and goal not in before:
        at = queue.popleft()
        for link in links:
            if link[0] == at and link[2] in classes and link[1] not in before and (link[1] == goal
                                                                                   or not within(link[1])):
                before[link[1]] = link
                queue.append(link[1])
    path, at = [], goal
    while at != start:
        if at not in before:
            return None
        path.append(before[at])
        at = before[at][0]
    return path


def judge_loads(machine, speed, channels, both_ways):
    """What the channels carry is within the capacities: a chain, as a tree, s / 2 over each of its hops both ways."""
    links, load = links_of(machine), collections.Counter()
    gpus = {gpu["id"] for node in machine["nodes"] for gpu in node["gpus"]}
    nodes = [{int(re.search(r"\d+$", gpu["id"])[0]): gpu["id"] for gpu in node["gpus"]} for node in machine["nodes"]]
    nics = [{int(re.search(r"\d+$", nic["id"])[0]): nic["id"] for nic in node.get("nics", [])}
            for node in machine["nodes"]]

    @functools.lru_cache(maxsize=None)
    def way(start, goal):
        return route(links, start, goal, ("nvlink",), gpus.__contains__) or \
            route(links, start, goal, ("pcie", "qpi"), gpus.__contains__) or \
            route(links, start, goal, ("net",), gpus.__contains__)

    def add(start, goal, amount):
        path = way(start, goal)
        if not path:
            fail(f"no way from {start} to {goal}")
        load.update({link: amount for link in path})

    for ways in channels:
        hops = rank_hops(ways)
        for a, b in hops[:-1] if both_ways else hops:
            start, goal = nodes[a[0]][a[1]], nodes[b[0]][b[1]]
            if a[0] != b[0]:
                out, into = nics[a[0]][ways[a[0]][1][1]], nics[b[0]][ways[b[0]][1][0]]
                add(start, out, speed)
                add(out, into, speed)
                add(into, goal, speed)
            else:
                add(start, goal, speed / 2 if both_ways else speed)
                if both_ways:
                    add(goal, start, speed / 2)
    for link, carried in load.items():
        if carried > links[link] * (1 + 1e-9):
            fail(f"{' '.join(link)}: {carried:g} of {links[link]:g} GB/s")


def read(path, devices, nics):
    """Of each graph its speed and channels."""
    with open(path, encoding="ascii") as file:
        root = parse(file.read())
    if root[1] != {"version": "1"}:
        fail(f"graphs {root[1]}")
    graphs = {int(graph[1]["id"]): read_graph(graph, devices, nics) for graph in root[2]}
    if len(graphs) != len(root[2]) or 0 not in graphs:
        fail("a graph twice, or no rings")
    return graphs


def main():
    servers, nics = int(sys.argv[2]), numbers(sys.argv[4])
    paths, devices = sys.argv[1].split(","), [numbers(text) for text in sys.argv[3].split("/")]
    files = [read(paths[s % len(paths)], devices[s % len(devices)], nics) for s in range(servers)]
    graphs = {}
    for graph, (speed, channels) in files[0].items():
        if any(graph not in file or file[graph][0] != speed or len(file[graph][1]) != len(channels) for file in files):
            fail("files of servers that do not fit together")
        graphs[graph] = speed, list(zip(*(file[graph][1] for file in files)))
    speed, channels = graphs[0]
    for ways in channels:
        rank_hops(ways)
    if 1 in graphs and len(graphs[1][1]) != len(channels):
        fail("fewer trees than rings: NCCL leaves the others out")
    if len(sys.argv) > 5:
        with open(sys.argv[5], encoding="utf-8") as file:
            machine = json.load(file)
        with open(sys.argv[6], encoding="utf-8") as file:
            schedule = json.load(file)
        for graph, (s, c) in graphs.items():
            judge_loads(machine, s, c, graph == 1)
        n = len(schedule["topology"]["ranks"])
        ways = 2 if schedule["collective"] == "allreduce" else 1
        want = schedule["rate"]["achieved"] * ways * (n - 1) / n - float(sys.argv[7])
        if abs(speed * len(channels) - want) > 1e-3 * len(channels):
            fail(f"{len(channels)} channels of {speed:g} GB/s: the rings of the schedule have {want:g}")
    print(f"{'rings and trees' if 1 in graphs else 'rings'}, {len(channels)} x {speed:g} GB/s")


main()
