#!/usr/bin/env python3
"""Random jobs of several groups: times and bounds of their phases against linear programs.

usage: random_job.py BLINKC FIRST LAST [--most N]
       random_job.py --check DIR     one bundle that is there

For each seed a machine of up to N GPUs (default 16), a grid or lists of groups, and phases of random calls. Of what
blinkc job writes

- every schedule is replayed (replay.py); of an alltoall with blocks of unequal lengths it has the matrix of its group;
- the loads of the schedules, added up here, give the time of each level;
- each time and each bound is the optimum of a linear program of its own, by HiGHS, over flows in place of trees
  (pair_routes.py has them): all bytes of a level and of those before it, while those before are done in their time.

Without scipy there is no linear program: then each bound, which blinkc check has from prices of links alone, must be
the time. Prints a line for each job that differs; exit status 1 if any does.
"""
import importlib.util
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

import pair_routes
import replay

NEAR = 1e-6
HIGHS = importlib.util.find_spec("scipy") is not None
GB = 1e3  # bytes in a us at 1 GB/s


# ---- random jobs ----

def machine(rng, most):
    """Direct links of unequal rates, a switch, servers with NICs, or PCIe trees."""
    kind = rng.randrange(4)
    if kind == 0:
        n = rng.randint(3, min(most, 8))
        pairs = [(a, b) for a in range(n) for b in range(a)]
        rng.shuffle(pairs)
        ring = [(i, (i + 1) % n) for i in range(n)]
        chosen = dict.fromkeys(tuple(sorted(p)) for p in ring + pairs[:rng.randint(0, n * 2)])
        links = [{"from": f"gpu{a}", "to": f"gpu{b}", "class": "nvlink", "capacity": 25 * rng.randint(1, 3)}
                 for a, b in chosen]
        return {"format": "blink-topology", "version": 1, "name": "graph", "links": links,
                "nodes": [{"id": "s0", "gpus": [{"id": f"gpu{i}"} for i in range(n)]}]}
    if kind == 1:
        n = rng.randint(3, most)
        links = [{"from": f"gpu{i}", "to": "sw", "class": "nvlink", "capacity": rng.choice((100, 100, 100, 50))}
                 for i in range(n)]
        return {"format": "blink-topology", "version": 1, "name": "star", "links": links,
                "nodes": [{"id": "s0", "gpus": [{"id": f"gpu{i}"} for i in range(n)], "switches": [{"id": "sw"}]}]}
    if kind == 2:
        return f"server:{rng.randint(2, 4)} gpu:{rng.randint(2, max(2, most // 4))} switch:300 net:25"
    n = rng.randint(4, min(most, 8))
    links = [{"from": f"gpu{i}", "to": f"plx{i // 2}", "class": "pcie", "capacity": 12} for i in range(n)]
    links += [{"from": f"plx{i}", "to": "cpu0", "class": "pcie", "capacity": rng.choice((12, 24))}
              for i in range((n + 1) // 2)]
    return {"format": "blink-topology", "version": 1, "name": "pcie", "links": links, "nodes": [
        {"id": "s0", "gpus": [{"id": f"gpu{i}"} for i in range(n)], "cpus": [{"id": "cpu0"}],
         "switches": [{"id": f"plx{i}"} for i in range((n + 1) // 2)]}]}


def grid_of(rng, n):
    """Dimensions whose product is n."""
    sizes, left = [], n
    for p in (2, 3, 5, 7, 11, 13):
        while left % p == 0:
            sizes.append(p)
            left //= p
    rng.shuffle(sizes)
    while len(sizes) > 3 or (len(sizes) > 1 and rng.random() < 0.3):
        sizes[0] *= sizes.pop()
    return {name: size for name, size in zip(("pp", "dp", "tp"), sizes)}


def lists_of(rng, n):
    ranks, groups = list(range(n)), []
    rng.shuffle(ranks)
    while len(ranks) >= 2 and (not groups or rng.random() < 0.7):
        size = min(len(ranks), rng.randint(2, 4))
        groups.append(ranks[:size])
        ranks = ranks[size:]
    return groups


def uneven(rng, call, job, n):
    """Blocks of an alltoall as a matrix of the job, as a matrix of each group, by a skew, or equal."""
    kind, grid = call["groups"], job["grid"]
    size = 0 if kind == "some" else math.prod(grid[name] for name in kind.split("-"))
    how = rng.randrange(4)
    if size == 1 or how == 0:
        return
    if size and how < 3:
        weights = {end: [rng.randint(1, 4)] + [rng.choice((0, 1, 1, rng.randint(2, 9))) for _ in range(size - 2)]
                   + [rng.randint(1, 4)] for end in rng.choice((["to"], ["from"], ["from", "to"]))}
        if how == 1:
            call["skew"] = weights
            return
        rows = [[rng.randint(0, 8) << rng.choice((0, 10, 20)) for _ in range(size)] for _ in range(size)]
        rows[0][-1] += 12345
    else:
        # Some blocks between the ranks of any group.
        rows = [[rng.choice((1, rng.randint(1, 1 << 22), 1 << 20)) for _ in range(n)] for _ in range(n)]
    call["matrix"] = rows
    del call["bytes"]


def random_job(seed, most):
    rng = random.Random(seed)
    topology = machine(rng, most)
    if isinstance(topology, str):
        counts = dict(item.split(":") for item in topology.split())
        n = int(counts["server"]) * int(counts["gpu"])
    else:
        n = len(topology["nodes"][0]["gpus"])
    job = {"format": "blink-job", "version": 1, "grid": grid_of(rng, n), "groups": {"some": lists_of(rng, n)}}
    kinds = list(job["grid"]) + ["some"]
    if len(job["grid"]) > 1:
        kinds.append("-".join(list(job["grid"])[:2]))
    phases = []
    for p in range(rng.randint(1, 2)):
        calls = []
        for _ in range(rng.randint(1, 3)):
            call = {"groups": rng.choice(kinds),
                    "bytes": rng.randint(1, 64) << 20 if rng.random() < 0.7 else rng.randint(1 << 16, 1 << 26),
                    "collective": rng.choice(("allreduce", "allreduce", "broadcast", "reduce", "allgather",
                                              "reducescatter", "alltoall", "gather", "scatter"))}
            if call["collective"] == "alltoall":
                uneven(rng, call, job, n)
            if rng.random() < 0.2:
                call["priority"] = rng.randint(1, 3)
            if rng.random() < 0.2:
                call["times"] = rng.randint(2, 4)
            calls.append(call)
        phases.append({"name": f"phase{p}", "calls": calls})
    return topology, {**job, "phases": phases}


# ---- what is right ----

def without_copy(vertex, known):
    """plx0 of plx0:out, unless there is a vertex of that name."""
    if vertex in known or not isinstance(vertex, str):
        return vertex
    return vertex.removesuffix(":out").removesuffix(":in")


class Group:
    def __init__(self, doc, links, known):
        self.doc, self.machine = doc, pair_routes.Machine(doc)
        ids = [rank["gpu"] for rank in doc["topology"]["ranks"]]
        end = lambda v: ids[v] if isinstance(v, int) else without_copy(v, known)
        self.rows = None
        self.link = [links[end(link["from"]), end(link["to"]), link["class"]] for link in doc["topology"]["links"]]

    def loads(self):
        """Parts of the message that each link carries; with a matrix, bytes."""
        n = len(self.doc["topology"]["ranks"])
        load = {}
        for tree in self.doc["trees"]:
            offset, length = map(Fraction, tree["segment"])
            if self.rows:
                block = int(offset * n * n)
                length *= n * n * self.rows[block // n][block % n]
            elif self.doc["collective"] == "alltoall":
                length *= n
            for edge in tree.get("down", []) + tree.get("up", []):
                for link in edge[2]:
                    load[self.link[link]] = load.get(self.link[link], 0) + length
        return load


def add_demands(p, group, key, call):
    """Flows of all bytes of a call, in MB: hops ("hop", label, a, b) for each label."""
    m, n = group.machine, group.machine.n
    size = call["bytes"] * call["times"] / 1e6
    unit = [(size, p.one)]
    collective, root = call["collective"], call["root"]
    block = [(size / n, p.one)]
    if collective == "broadcast":
        trees = {("down", 0): (True, {root: unit}, unit)}
    elif collective == "reduce":
        trees = {("up", 0): (False, {root: unit}, unit)}
    elif collective == "allreduce":
        roots = {r: [(1, p.variable("root", key, r))] for r in range(n)}
        p.row("==", [(-size, p.one)] + [term for terms in roots.values() for term in terms])
        trees = {("down", 0): (True, roots, unit), ("up", 0): (False, roots, unit)}
    elif collective in ("allgather", "reducescatter"):
        trees = {("tree", r): (collective == "allgather", {r: block}, block) for r in range(n)}
    else:
        return add_paths(p, group, key, call, block)
    for label, (out, roots, rate) in trees.items():
        pair_routes.spread(p, m, (key, label), out, roots, rate)
    return [(key, label) for label in trees]


def add_paths(p, group, key, call, block):
    """One label for each source; of a gather for its root, against the flow."""
    m, collective = group.machine, call["collective"]
    sources = range(m.n) if collective == "alltoall" else (call["root"],)
    for s in sources:
        blocks = [[(b * call["times"] / 1e6, p.one)] for b in group.rows[s]] if group.rows else [block] * m.n
        balance = {u: [] if u == s else list(blocks[u]) for u in range(m.n)}
        for a, b in m.routes:
            tail, head = (b, a) if collective == "gather" else (a, b)
            hop = p.variable("hop", (key, s), a, b)
            if head != s:
                balance[head].append((-1, hop))
            if tail != s:
                balance[tail].append((1, hop))
        for u, terms in balance.items():
            if u != s:
                p.row("==", terms)
    return [(key, s) for s in sources]


def level_optimum(capacity, phase, groups, level):
    """us: the least time of a level, if those before it take what the file says."""
    p = pair_routes.Program()
    p.one, time, rest = p.variable("one"), p.variable("time"), p.variable("rest")
    p.row("==", [(1, p.one)], 1)
    priorities = [one["priority"] for one in phase["levels"]]
    loads = [{} for _ in priorities]
    for c, call in enumerate(phase["calls"]):
        mine = priorities.index(call["priority"])
        for g, group in enumerate(groups[c] if mine <= level else ()):
            labels = add_demands(p, group, (c, g), call)
            for (a, b), routes in group.machine.routes.items():
                terms = [(1, p.variable("hop", label, a, b)) for label in labels]
                for i, route in enumerate(routes):
                    use = p.variable("route", c, g, a, b, i)
                    terms.append((-1, use))
                    for link in route:
                        for j in range(mine, level + 1):
                            loads[j].setdefault(group.link[link], []).append((1, use))
                p.row("<=", terms)
    # MB over GB/s are ms; times are in us.
    for j in range(level + 1):
        for link, terms in loads[j].items():
            if j == level:
                p.row("<=", terms + [(-capacity[link] / GB, time)])
            else:
                p.row("<=", terms, capacity[link] / GB * phase["levels"][j]["time"] * (1 + 1e-9))
    most = 1e9
    p.row("==", [(1, time), (1, rest)], most)
    return most - p.maximise(rest)


def check(directory):
    """Of each phase: what is wrong."""
    with open(os.path.join(directory, "phases.json"), encoding="utf-8") as file:
        doc = json.load(file)
    ids = [rank["gpu"] for rank in doc["topology"]["ranks"]]
    end = lambda v: ids[v] if isinstance(v, int) else v
    links = {(end(l["from"]), end(l["to"]), l["class"]): i for i, l in enumerate(doc["topology"]["links"])}
    known = {v for name in links for v in name[:2]}
    capacity = [l["capacity"] for l in doc["topology"]["links"]]
    for phase in doc["phases"]:
        groups, sent = [], [[0] * len(capacity) for _ in phase["levels"]]
        for call in phase["calls"]:
            mine = [one["priority"] for one in phase["levels"]].index(call["priority"])
            groups.append([])
            for one in call["schedules"]:
                with open(os.path.join(directory, one["file"]), encoding="utf-8") as file:
                    text = file.read()
                replay.judge(replay.loads(text.encode()))
                group = Group(json.loads(text), links, known)
                if [ids[r] for r in one["ranks"]] != [r["gpu"] for r in group.doc["topology"]["ranks"]]:
                    yield f"{one['file']}: other ranks"
                groups[-1].append(group)
                if call.get("by_matrix"):
                    group.rows = group.doc["matrix"]["bytes"]
                for link, load in group.loads().items():
                    for level in range(mine, len(sent)):
                        sent[level][link] += load * (1 if group.rows else call["bytes"]) * call["times"]
        for level, of in enumerate(phase["levels"]):
            time = max(float(s) / GB / c for s, c in zip(sent[level], capacity))
            best = level_optimum(capacity, phase, groups, level) if HIGHS else time
            for what, value in (("time", time), ("bound", best), ("optimum", best)):
                stated = of["bound" if what == "bound" else "time"]
                if abs(stated - value) > NEAR * value:
                    yield f"{phase['name']}, level {level}: {what}: stated {stated} us, want {value}"


def blocks_of(job, call, ranks):
    """The matrix that a group's schedule should have; None: blocks are equal."""
    n = len(ranks)
    if "skew" in call:
        ends = [call["skew"].get(end, [1] * n) for end in ("from", "to")]
        return [[call["bytes"] * n * f * t // (sum(ends[0]) * sum(ends[1])) for t in ends[1]] for f in ends[0]]
    rows = call.get("matrix")
    return rows if rows is None or len(rows) == n else [[rows[a][b] for b in ranks] for a in ranks]


def check_blocks(job, directory):
    with open(os.path.join(directory, "phases.json"), encoding="utf-8") as file:
        doc = json.load(file)
    for phase, planned in zip(job["phases"], doc["phases"]):
        for call, found in zip(phase["calls"], planned["calls"]):
            for one in found["schedules"]:
                want = blocks_of(job, call, one["ranks"])
                with open(os.path.join(directory, one["file"]), encoding="utf-8") as file:
                    got = json.load(file).get("matrix", {}).get("bytes")
                if got != want or found.get("by_matrix", False) != (want is not None):
                    yield f"{one['file']}: another matrix"


def run(blinkc, seed, most, directory):
    topology, job = random_job(seed, most)
    path = os.path.join(directory, "machine.json")
    if isinstance(topology, str):
        subprocess.run([blinkc, "topology", "-q", "--synthetic", topology, "--format", "json", "-o", path], check=True)
    else:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(topology, file)
    with open(os.path.join(directory, "job.json"), "w", encoding="utf-8") as file:
        json.dump({"topology": "machine.json", **job}, file)
    out = os.path.join(directory, "out")
    done = subprocess.run([blinkc, "job", "-q", os.path.join(directory, "job.json"), "-o", out], capture_output=True,
                          check=False)
    # Groups of some lists have no links between them.
    if done.returncode == 5:
        return None
    if done.returncode:
        return [f"exit {done.returncode}: {done.stderr.decode()}"]
    done = subprocess.run([blinkc, "check", "-q", out], capture_output=True, check=False)
    return [f"check: {done.stderr.decode()}"] * (done.returncode != 0) + list(check_blocks(job, out)) + list(check(out))


def main():
    if sys.argv[1] == "--check":
        bad = list(check(sys.argv[2]))
        print("\n".join(bad))
        return bool(bad)
    blinkc, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    most = int(sys.argv[sys.argv.index("--most") + 1]) if "--most" in sys.argv else 16
    bad = planned = 0
    for seed in range(first, last + 1):
        with tempfile.TemporaryDirectory() as directory:
            found = run(blinkc, seed, most, directory)
        planned += found is not None
        for line in found or ():
            print(f"job {seed}: {line}")
        bad += bool(found)
    print(f"{planned} jobs planned, {bad} differ, by {'linear programs' if HIGHS else 'bounds, without scipy'}")
    return bad > 0 or planned == 0


if __name__ == "__main__":
    sys.exit(main())
