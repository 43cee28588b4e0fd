#!/usr/bin/python3
"""What `blinkc show` says of a machine, worked out again from its file.

usage: machine.py text FLAT.json SHOWN.txt [FLAT.json SHOWN.txt]...    hold the text against the file
       machine.py smi FLAT.json SMI.txt                                 does nvidia-smi topo -m say the same?
       machine.py shuffle SEED FLAT.json                                the machine with its parts in another order, and
       other names

FLAT.json is what `blinkc convert` writes: a topology in which every vertex and link is spelled out. The matrix is
worked out with
costs (links between sockets, CPUs, switches) that are compared in this order, by Dijkstra's algorithm. Prints a line
for each
file; exit status 1 if any is wrong.
"""
import heapq
import json
import random
import re
import sys
from collections import Counter, defaultdict
from functools import cache

MOST = 64	# devices of a matrix


class Wrong(Exception):
    pass


def want(ok, *what):
    if not ok:
        raise Wrong(": ".join(str(part) for part in what))


class Machine:
    def __init__(self, doc):
        self.name = doc["name"]
        self.kind, self.node, self.gpus, self.servers = {}, {}, [], []
        defaults = {one["name"]: one for one in doc.get("classes", [])}
        for node in doc["nodes"]:
            self.servers.append(node["id"])
            for plural, kind in ("gpus", "gpu"), ("cpus", "cpu"), ("switches", "switch"), ("nics", "nic"):
                for one in node.get(plural, []):
                    self.kind[one["id"]], self.node[one["id"]] = kind, node["id"]
                    if kind == "gpu":
                        self.gpus.append(one["id"])
        for one in doc.get("switches", []):
            self.kind[one["id"]], self.node[one["id"]] = "switch", None
        duplex = doc.get("duplex", "full")
        self.links = []		# from, to, class, count, capacity of all
        for link in doc["links"]:
            count = link.get("count", 1)
            each = link.get("capacity", defaults.get(link["class"], {}).get("capacity"))
            ends = [(link["from"], link["to"])]
            if link.get("duplex", duplex) == "full":
                ends.append((link["to"], link["from"]))
            self.links += [(a, b, link["class"], count, count * each) for a, b in ends]
        self.out, self.into = defaultdict(list), defaultdict(list)
        for link in self.links:
            self.out[link[0]].append(link)
            self.into[link[1]].append(link)

    def devices(self, server):
        return ([v for v in self.kind if self.node[v] == server and self.kind[v] == "gpu"]
                + [v for v in self.kind if self.node[v] == server and self.kind[v] == "nic"])

    # ---- between GPUs ----

    def planes(self, kind):
        """For each switch the set of switches that links of this class join, in either direction."""
        plane = {v: {v} for v in self.kind if self.kind[v] == "switch"}
        for a, b, c, _, _ in self.links:
            if c == kind and a in plane and b in plane and plane[a] is not plane[b]:
                both = plane[a] | plane[b]
                for v in both:
                    plane[v] = both
        return {v: frozenset(members) for v, members in plane.items()}

    def joined(self, a, b, kind, plane):
        direct = sum(n for _, y, c, n, _ in self.out[a] if (y, c) == (b, kind))
        leave, enter = Counter(), Counter()
        for _, y, c, n, _ in self.out[a]:
            if c == kind and y in plane:
                leave[plane[y]] += n
        for x, _, c, n, _ in self.into[b]:
            if c == kind and x in plane:
                enter[plane[x]] += n
        return direct + sum((leave & enter).values())

    # ---- through the host ----

    def host_costs(self, start):
        best, heap, done = {start: (0, 0, 0)}, [((0, 0, 0), start)], {}
        while heap:
            cost, v = heapq.heappop(heap)
            if v in done:
                continue
            done[v] = cost
            if v != start and self.kind[v] not in ("switch", "cpu"):
                continue
            for _, w, c, _, _ in self.out[v]:
                host = c in ("pcie", "qpi") or (c != "net" and "cpu" in (self.kind[v], self.kind[w]))
                if not host or self.node[w] != self.node[start]:
                    continue
                step = (int(c == "qpi"), int(self.kind[w] == "cpu"), int(self.kind[w] == "switch"))
                new = tuple(x + y for x, y in zip(cost, step))
                if w not in best or new < best[w]:
                    best[w] = new
                    heapq.heappush(heap, (new, w))
        return done

    @cache
    def matrix(self, server):
        devices = self.devices(server)[:MOST]
        planes = {kind: self.planes(kind) for kind in ("nvlink", "xgmi")}
        entry = {}
        for a in devices:
            costs = self.host_costs(a)
            for b in devices:
                nv, xgmi = (self.joined(a, b, kind, planes[kind]) if self.kind[a] == self.kind[b] == "gpu" else 0
                            for kind in ("nvlink", "xgmi"))
                if a == b:
                    text = "X"
                elif nv or xgmi:
                    text = f"NV{nv}" if nv else f"XGMI{xgmi}"
                elif b not in costs:
                    text = "-"
                else:
                    sockets, cpus, switches = costs[b]
                    cpus -= self.kind[b] == "cpu"
                    text = ("SYS" if sockets else "NODE" if cpus > 1 else "PHB" if cpus else "PXB"
                            if switches > 1 else "PIX")
                entry[a, b] = text
        return devices, entry


def local(machine, v):
    server = machine.node[v]
    return v[len(server) + 1:] if v.startswith(f"{server}/") and len(v) > len(server) + 1 else v


def tables(text):
    """(names of columns, rows by name) of each matrix in a text."""
    found, lines = [], text.splitlines()
    for i, line in enumerate(lines):
        if not line.rstrip().endswith("CPU") or not line.startswith(" "):
            continue
        columns, rows = line.split()[:-1], {}
        for row in lines[i + 1:i + 1 + len(columns)]:
            name, *cells = row.split()
            want(len(cells) == len(columns) + 1, "a row of another length", row)
            rows[name] = cells
        server = re.match(r"server ([^\s,:]+)", lines[i - 1])
        found.append((server and server[1], columns, rows))
    return found


def check_matrix(machine, server, columns, rows):
    devices, entry = machine.matrix(server)
    names = [local(machine, v) for v in devices]
    want(columns == names, "columns", f"{columns} where they are {names}")
    want(list(rows) == names, "rows", list(rows))
    for a in devices:
        for b, cell in zip(devices, rows[local(machine, a)]):
            want(cell == entry[a, b], f"{a} to {b}", f"{cell} where it is {entry[a, b]}")


def check_links(machine, text):
    """Rows of the table of links: pairs, and the capacity of all of a class."""
    pairs, capacity = Counter(), Counter()
    for a, b, c, n, all_of_it in machine.links:
        capacity[c] += all_of_it
    for c, pair in {(c, frozenset((a, b))) for a, b, c, _, _ in machine.links}:
        pairs[c] += 1
    shown_pairs, shown = Counter(), Counter()
    table = text.split("\nlinks ", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    for row in table:
        cells = re.match(r"(\w+) +\w+ - \w+ +(\d+) +(.*?) +([0-9.e+-]+) +\S+$", row)
        want(cells, "a row of links", row)
        ways = cells[3].split(" / ")
        each = [0 if way == "none" else eval(way.replace("x", "*")) for way in ways * (3 - len(ways))]
        shown_pairs[cells[1]] += int(cells[2])
        shown[cells[1]] += int(cells[2]) * sum(each)
    want(shown_pairs == pairs, "pairs", f"{shown_pairs} where there are {pairs}")
    for c in capacity:
        want(abs(shown[c] - capacity[c]) <= 1e-5 * capacity[c], f"capacity of {c}",
             f"{shown[c]} where it is {capacity[c]}")


def signature(machine, server):
    devices, entry = machine.matrix(server)
    return tuple(entry[a, b] for a in devices for b in devices)


def check(flat, shown):
    with open(flat, encoding="utf-8") as file:
        machine = Machine(json.load(file))
    with open(shown, encoding="utf-8") as file:
        text = file.read()
    kinds = Counter(machine.kind.values())
    parts = re.search(r"^parts +(\d+) servers?, (\d+) GPUs?, (\d+) CPUs?, (\d+) switch(?:es)?, (\d+) NICs?$",
                      text, re.M)
    want(parts, "no line of parts")
    want([int(n) for n in parts.groups()] == [len(machine.servers), kinds["gpu"], kinds["cpu"], kinds["switch"],
                                              kinds["nic"]],
         "parts", parts[0])
    check_links(machine, text)
    found = tables(text)
    want(found, "no matrix")
    seen = set()
    for server, columns, rows in found:
        check_matrix(machine, server or machine.servers[0], columns, rows)
        seen.add(signature(machine, server or machine.servers[0]))
    if len(found) < 8 and len(machine.servers) <= 64:
        for server in machine.servers:
            want(signature(machine, server) in seen, f"server {server} is like none that is shown")
    kinds_seen = {re.sub(r"\d+$", "#", cell) for _, _, rows in found for cells in rows.values() for cell in cells[:-1]}
    legend = set(re.findall(r"^(\S+) += ", text, re.M))
    want(kinds_seen == legend, "legend", f"{sorted(legend)} for {sorted(kinds_seen)}")
    return f"{len(found)} matrices, {len(machine.links)} links"


# ---- nvidia-smi ----

def check_smi(flat, smi):
    """GPU i is gpui, NICs have their names; columns may come in any order."""
    with open(flat, encoding="utf-8") as file:
        machine = Machine(json.load(file))
    with open(smi, encoding="utf-8") as file:
        lines = [line.split("\t") for line in file.read().splitlines()]
    columns = [cell.strip() for cell in lines[0][1:]]
    columns = columns[:columns.index("CPU Affinity")]
    _, entry = machine.matrix(machine.servers[0])
    for line in lines[1:]:
        if line[0].strip() not in columns:
            break
        for column, cell in zip(columns, line[1:]):
            a, b = (name.strip().lower() for name in (line[0], column))
            want(entry[a, b] == cell.strip(), f"{a} to {b}", f"{cell.strip()} where the file has {entry[a, b]}")
    return f"{len(columns)} columns"


# ---- another order ----

def shuffle(seed, flat):
    rng = random.Random(seed)
    with open(flat, encoding="utf-8") as file:
        doc = json.load(file)
    assert len(doc["nodes"]) == 1
    node = doc["nodes"][0]
    new = {}
    for kind in "gpus", "cpus", "switches", "nics":
        rng.shuffle(node.get(kind, []))
        for one in node.get(kind, []):
            new[one["id"]] = one["id"] = f"p{one['id']}"
    rng.shuffle(doc["links"])
    for link in doc["links"]:
        link["from"], link["to"] = f"p{link['from']}", f"p{link['to']}"
        if link.get("duplex", doc.get("duplex", "full")) == "full" and rng.random() < 0.5:
            link["from"], link["to"] = link["to"], link["from"]
    json.dump(doc, sys.stdout)


def main(what, *arguments):
    if what == "shuffle":
        return shuffle(int(arguments[0]), arguments[1])
    judge, wrong = {"text": check, "smi": check_smi}[what], False
    for first, second in zip(arguments[::2], arguments[1::2]):
        try:
            print(f"{second}: ok: {judge(first, second)}")
        except (Wrong, KeyError, ValueError, IndexError) as error:
            print(f"{second}: WRONG: {type(error).__name__}: {error}"[:400])
            wrong = True
    return int(wrong)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
