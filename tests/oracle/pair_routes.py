#!/usr/bin/env python3
"""Random boxes with bridges: the default links against linear programs, against all spanning trees, and against
--links.

usage: pair_routes.py BLINKC FIRST LAST [--most N] [--every N]
       pair_routes.py --edges SCHEDULE...      only: are they by the routes of pairs, with no edge that leaves its
       route?

For each box (pair_box.py) and each of broadcast, allreduce, allgather and alltoall, with every Nth box all eight, the
schedule

- is replayed (replay.py), and where it was made with the routes of pairs, no edge leaves the route of its pair;
- has the rate of a linear program of its own, by HiGHS, over hops that keep to these routes. It has no trees: by the
theorem
  of Edmonds arborescences of a rate fit hops whose capacities let a flow of that rate reach each rank;
- with up to 4 GPUs has the rate of the best packing of all arborescences, for broadcast;
- is not slower than any of -l CLASS, -l with PCIe and what is between sockets, and -l LIST --routes pair, this last
where
  the default is by the routes of pairs, too: a class that connects the GPUs by itself is used alone.

Prints a line for each box, and `skip: ...` where there is no scipy; exit status 1 if anything differs.
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile

import pair_box
import replay

COLLECTIVES = ("broadcast", "allreduce", "allgather", "alltoall")
OTHERS = ("reduce", "gather", "scatter", "reducescatter")
KINDS = ({"nvlink"}, {"xgmi"}, {"nvlink", "xgmi", "c2c", "pcie", "qpi"},
         {"nvlink", "xgmi", "c2c", "pcie", "qpi", "net"})
NEAR = 1e-6


class Machine:
    """The links of a schedule file, and the routes of its pairs: simple paths over the first kind of links that leads
    there."""

    def __init__(self, doc):
        self.n = len(doc["topology"]["ranks"])
        self.links = doc["topology"]["links"]
        self.pairwise = doc["generator"]["options"].get("routes") == "pair"
        self.out = {}
        for number, link in enumerate(self.links):
            self.out.setdefault(link["from"], []).append((number, link["to"], link["class"]))
        self.kind, self.routes = {}, {}
        for a, b in itertools.permutations(range(self.n), 2):
            for kind in KINDS if self.pairwise else KINDS[-1:]:
                found = list(self.paths(a, b, kind, (a,)))
                if found:
                    self.kind[a, b], self.routes[a, b] = kind, found
                    break

    def paths(self, at, end, classes, seen):
        for number, to, cls in self.out.get(at, ()):
            if cls not in classes or to in seen:
                continue
            if to == end:
                yield (number,)
            elif isinstance(to, str):
                for rest in self.paths(to, end, classes, (*seen, to)):
                    yield (number, *rest)

    def edges_outside(self, doc):
        """Edges over links that are no route of their pair."""
        return [edge for tree in doc["trees"] for edge in tree.get("down", []) + tree.get("up", [])
                if not {self.links[l]["class"] for l in edge[2]} <= self.kind[edge[0], edge[1]]]


class Program:
    """A linear program: variables by name, each with a largest value; rows are sums of (coefficient, name)."""

    def __init__(self):
        self.names, self.most = {}, {}
        self.rows = {"<=": [], "==": []}

    def variable(self, *name):
        return self.names.setdefault(name, len(self.names))

    def row(self, kind, terms, value=0):
        self.rows[kind].append((terms, value))

    def matrix(self, kind):
        from scipy.sparse import coo_matrix
        data, i, j = [], [], []
        for number, (terms, _) in enumerate(self.rows[kind]):
            for coefficient, variable in terms:
                data.append(coefficient)
                i.append(number)
                j.append(variable)
        values = [value for _, value in self.rows[kind]]
        return (coo_matrix((data, (i, j)), shape=(len(values), len(self.names))), values) if values else (None, None)

    def maximise(self, variable):
        from scipy.optimize import linprog
        goal = [0] * len(self.names)
        goal[variable] = -1
        (a, b), (c, d) = self.matrix("<="), self.matrix("==")
        done = linprog(goal, A_ub=a, b_ub=b, A_eq=c, b_eq=d, method="highs")
        assert done.success, done.message
        return -done.fun


def spread(p, m, label, out, root_rates, rate):
    """Trees of `label` from (out) or to all ranks, each of the rate `rate` (a list of terms): hops (label, a, b) have
    room for a
    flow of it to each rank. root_rates: terms of each root's share."""
    for v in range(m.n):
        balance = {u: [(-c, x) for c, x in root_rates.get(u, [])] for u in range(m.n)}
        balance[v] += rate
        for a, b in m.routes:
            flow = p.variable("flow", label, v, a, b)
            p.row("<=", [(1, flow), (-1, p.variable("hop", label, a, b))])
            tail, head = (a, b) if out else (b, a)
            balance[tail].append((1, flow))
            balance[head].append((-1, flow))
        for terms in balance.values():
            p.row("==", terms)


def paths(p, m, source, share):
    """A flow of `share` from a rank to each other one, over hops of its own."""
    balance = {u: [] if u == source else [(c, x) for c, x in share] for u in range(m.n)}
    for a, b in m.routes:
        hop = p.variable("hop", source, a, b)
        if b != source:
            balance[b].append((-1, hop))
        if a != source:
            balance[a].append((1, hop))
    for u, terms in balance.items():
        if u != source:
            p.row("==", terms)


def optimum(m, collective):
    """GB/s of algorithm bandwidth."""
    p = Program()
    rate = p.variable("rate")
    labels = range(m.n) if collective in ("allgather", "alltoall") else ("down",
            "up") if collective == "allreduce" else ("down",)
    if collective == "broadcast":
        spread(p, m, "down", True, {0: [(1, rate)]}, [(1, rate)])
    elif collective == "allreduce":
        roots = {r: [(1, p.variable("root", r))] for r in range(m.n)}
        p.row("==", [(-1, rate)] + [term for terms in roots.values() for term in terms])
        spread(p, m, "down", True, roots, [(1, rate)])
        spread(p, m, "up", False, roots, [(1, rate)])
    for r in labels if collective == "allgather" else ():
        spread(p, m, r, True, {r: [(1 / m.n, rate)]}, [(1 / m.n, rate)])
    for r in labels if collective == "alltoall" else ():
        paths(p, m, r, [(1 / m.n, rate)])
    loads = [[] for _ in m.links]
    for (a, b), routes in m.routes.items():
        terms = [(1, p.variable("hop", label, a, b)) for label in labels]
        for i, route in enumerate(routes):
            use = p.variable("route", a, b, i)
            terms.append((-1, use))
            for link in route:
                loads[link].append((1, use))
        p.row("<=", terms)
    for link, terms in zip(m.links, loads):
        if terms:
            p.row("<=", terms, link["capacity"])
    return p.maximise(rate)


def best_of_all_trees(m):
    """Broadcast from rank 0: every arborescence over every choice of routes is a column."""
    p = Program()
    trees = []
    for parents in itertools.product(range(m.n), repeat=m.n - 1):
        up = dict(enumerate(parents, 1))
        hops = [(a, b) for b, a in up.items()]
        def depth(v):
            steps = 0
            while v and steps <= m.n:
                v, steps = up[v], steps + 1
            return steps
        if all(hop in m.routes for hop in hops) and all(depth(v) <= m.n for v in up):
            trees += [sum(choice, ()) for choice in itertools.product(*(m.routes[hop] for hop in hops))]
    rate = p.variable("rate")
    p.row("==", [(-1, rate)] + [(1, p.variable("tree", i)) for i in range(len(trees))])
    for number, link in enumerate(m.links):
        terms = [(tree.count(number), p.variable("tree", i)) for i, tree in enumerate(trees) if number in tree]
        if terms:
            p.row("<=", terms, link["capacity"])
    return p.maximise(rate)


def lists_of(machine):
    """--links, --routes: each class, PCIe and what is between sockets, and all lists by the routes of pairs."""
    classes = sorted({link["class"] for link in machine["links"]} | ({"net"} if "fabrics" in machine else set()))
    net = ["net"] if "net" in classes else []
    several = [c for c in classes if c != "net"]
    for cls in several:
        yield [cls] + net, "any"
    bus = [c for c in ("pcie", "qpi") if c in classes]
    yield bus + net, "any"
    for k in range(1, len(several) + 1):
        for some in itertools.combinations(several, k):
            yield list(some) + net, "pair"


class Boxes:
    def __init__(self, blinkc, directory):
        self.blinkc, self.directory, self.bad = blinkc, directory, 0

    def report(self, text):
        print(text)
        self.bad += 1

    def compile(self, path, collective, *options):
        run = subprocess.run([self.blinkc, "-q", path, "-c", collective, *options], capture_output=True, check=False)
        if run.returncode not in (0, 5):
            self.report(f"{path}, {collective}, {' '.join(options)}: exit {run.returncode}: {run.stderr.decode()}")
        return json.loads(run.stdout) if run.returncode == 0 else None

    def judge(self, name, collective, doc):
        try:
            replay.judge(replay.loads(json.dumps(doc).encode()))
        except Exception as e:
            self.report(f"{name}, {collective}: {e}")
        m = Machine(doc)
        achieved = doc["rate"]["achieved"]
        outside = m.edges_outside(doc)
        if outside:
            self.report(f"{name}, {collective}: edge {outside[0]} leaves the route of its pair")
        found = {}
        if collective in COLLECTIVES:
            found["the linear program"] = optimum(m, collective)
        if collective == "broadcast" and m.n <= 4:
            found["all trees"] = best_of_all_trees(m)
        for what, rate in found.items():
            if abs(achieved - rate) > NEAR * rate:
                self.report(f"{name}, {collective}: {achieved} GB/s, by {what} {rate}")
        return m.pairwise

    def box(self, seed, most, every):
        machine, pairwise = pair_box.box(seed, most), False
        path = os.path.join(self.directory, f"box-{seed}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(machine, file)
        rates = []
        for collective in COLLECTIVES + (OTHERS if seed % every == 0 else ()):
            doc = self.compile(path, collective)
            if not doc:
                continue
            pairwise = self.judge(f"box {seed}", collective, doc)
            rates.append(doc["rate"]["achieved"])
            for classes, routes in lists_of(machine):
                if routes == "pair" and not pairwise:
                    continue
                other = self.compile(path, collective, "-l", ",".join(classes), "--routes", routes, "--no-minimise")
                if other and other["rate"]["achieved"] > rates[-1] * (1 + NEAR):
                    self.report(f"box {seed}, {collective}: {rates[-1]} GB/s, with -l {','.join(classes)} --routes "
                                f"{routes} "
                                f"{other['rate']['achieved']}")
        gpus = sum(len(node["gpus"]) for node in machine["nodes"])
        print(f"box {seed}: {gpus} GPUs, {'pairs' if pairwise else 'one class'}: "
              f"{' '.join(f'{rate:.6g}' for rate in rates)} GB/s")
        return pairwise


def option(name, otherwise):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else otherwise


def check_edges(paths):
    bad = 0
    for path in paths:
        doc = replay.load(path)
        replay.judge(doc)
        m = Machine(doc)
        if not m.pairwise or m.edges_outside(doc):
            print(f"{path}: {'edges leave their routes' if m.pairwise else 'not by the routes of pairs'}")
            bad += 1
    return 1 if bad else 0


def main():
    if sys.argv[1] == "--edges":
        return check_edges(sys.argv[2:])
    try:
        import scipy.optimize  # noqa: F401
    except ImportError:
        print("skip: no scipy")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        boxes = Boxes(sys.argv[1], directory)
        first, last = int(sys.argv[2]), int(sys.argv[3])
        pairs = sum(boxes.box(seed, option("--most", 6), option("--every", 6)) for seed in range(first, last + 1))
    print(f"{last - first + 1} boxes, {pairs} by the routes of pairs, {boxes.bad} bad")
    return 1 if boxes.bad or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
