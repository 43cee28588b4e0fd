#!/usr/bin/env python3
"""The exact rates of all collectives on small machines, by linear programs over flows that know no trees.

usage: exact_flow.py [--most N] BLINKC FIRST LAST     random machines of these seeds, with at most N GPUs (default 5)
       exact_flow.py BLINKC FILE...                   these topologies

Switches forward. A linear program over w(u, v), the capacity of hops from one GPU to another, first: flows of each GPU
to all others
through switches alone, which together fit the links. Then, over GPUs (Edmonds 1973, Ford and Fulkerson 1956):

broadcast, reduce          x such that each other GPU has a flow of x from (to) the root in w
allgather, reducescatter   the same from (to) a vertex that feeds each GPU with x/n
gather, scatter, alltoall  flows over vertices of the machine, x/n for each block; an alltoall has one for each GPU that
sends
allreduce                  x(v) from each GPU v: broadcasts of x(v) from all v in one w, reduces in another, which share
the links

The program blinkc plans, over the same links, must have the same rate, but for 1e-7 of it: no higher, no lower. It
needs the solver
HiGHS in python3-scipy; exit status 77 without.
"""
import argparse
import json
import subprocess
import sys

import random_machine

COLLECTIVES = ["broadcast", "reduce", "gather", "scatter", "allgather", "reducescatter", "alltoall", "allreduce"]
CLOSE = 1e-7


class Machine:
    def __init__(self, document):
        vertices = [gpu["id"] for node in document["nodes"] for gpu in node["gpus"]]
        self.n = len(vertices)
        vertices += [switch["id"] for node in document["nodes"] for switch in node.get("switches", [])]
        vertices += [switch["id"] for switch in document.get("switches", [])]
        number = {name: v for v, name in enumerate(vertices)}
        self.n_vertices, self.links = len(vertices), []
        for link in document["links"]:
            a, b, c = number[link["from"]], number[link["to"]], float(link["capacity"]) * link.get("count", 1)
            self.links.append((a, b, c))
            if link.get("duplex", "full") == "full":
                self.links.append((b, a, c))
        self.unit = max(c for _, _, c in self.links)

    def capacity(self, l):
        """Near 1 for the solver. What no rate near the unit can use up is cut off: a tree uses a link less than 2 n
        times."""
        return min(self.links[l][2] / self.unit, 40.0 * self.n)


class Program:
    """maximise `rate`, with variables from 0 up and rows of at most, or of just, a number."""

    def __init__(self):
        self.n, self.rows = 0, []

    def variables(self, count):
        self.n += count
        return list(range(self.n - count, self.n))

    def at_most(self, terms, limit=0.0):
        self.rows.append((terms, -float("inf"), limit))

    def equal(self, terms, limit=0.0):
        self.rows.append((terms, limit, limit))

    def best(self, goal):
        import numpy
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_matrix
        entries = [(value, row, column) for row, (terms, _, _) in enumerate(self.rows) for column, value in terms]
        matrix = coo_matrix(([e[0] for e in entries], ([e[1] for e in entries], [e[2] for e in entries])),
                            shape=(len(self.rows), self.n)).tocsr()
        cost = numpy.zeros(self.n)
        cost[goal] = -1.0
        answer = milp(cost, bounds=Bounds(0, numpy.inf), constraints=LinearConstraint(
            matrix, [low for _, low, _ in self.rows], [high for _, _, high in self.rows]))
        if answer.status != 0:
            raise ArithmeticError(answer.message)
        return -answer.fun


def hops(p, m):
    """Variables for capacities of hops u to v, which fit the links: {(u, v): variable}, and the use of each link as
    terms."""
    w = {(u, v): p.variables(1)[0] for u in range(m.n) for v in range(m.n) if u != v}
    use = [[] for _ in m.links]
    for u in range(m.n):
        leaves, enters = [[] for _ in range(m.n_vertices)], [[] for _ in range(m.n_vertices)]
        for l, (a, b, _) in enumerate(m.links):
            if b == u or (a < m.n and a != u):  # it comes back, or passes another GPU
                continue
            f = p.variables(1)[0]
            use[l].append((f, 1.0))
            leaves[a].append((f, 1.0))
            enters[b].append((f, -1.0))
        for v in range(m.n_vertices):
            if v != u:
                p.equal(enters[v] + leaves[v] + ([(w[u, v], 1.0)] if v < m.n else []))
    return w, use


def fit(p, m, *uses):
    for l in range(len(m.links)):
        p.at_most([term for use in uses for term in use[l]], m.capacity(l))


def deliver(p, n, w, target, sources, x, into):
    """A flow in w of sum x: sources[s] terms from each s to the target; into: the other way round, from it to them."""
    leaves, enters = [[] for _ in range(n)], [[] for _ in range(n)]
    for (a, b), capacity in w.items():
        u, v = (b, a) if into else (a, b)
        if u == target:
            continue
        f = p.variables(1)[0]
        p.at_most([(f, 1.0), (capacity, -1.0)])
        leaves[u].append((f, 1.0))
        enters[v].append((f, -1.0))
    for v in range(n):
        if v != target:
            p.equal(leaves[v] + enters[v] + [(variable, -value) for variable, value in sources.get(v, [])])
    own = sources.get(target, [])
    p.equal([(f, -value) for f, value in enters[target]] + own + [(variable, -value) for variable, value in x])


def spread(m, sources_of, into):
    """Broadcasts (into: reduces) whose shares of x are sources_of(x): {GPU: terms}."""
    p = Program()
    x = p.variables(1)[0]
    w, use = hops(p, m)
    fit(p, m, use)
    sources = sources_of(x)
    for v in range(m.n):
        deliver(p, m.n, w, v, sources, [(x, 1.0)], into)
    return p.best(x)


def allreduce(m):
    p = Program()
    share, x = p.variables(m.n), p.variables(1)[0]
    p.equal([(s, 1.0) for s in share] + [(x, -1.0)])
    down, use_down = hops(p, m)
    up, use_up = hops(p, m)
    fit(p, m, use_down, use_up)
    sources = {v: [(share[v], 1.0)] for v in range(m.n)}
    for v in range(m.n):
        deliver(p, m.n, down, v, sources, [(x, 1.0)], False)
        deliver(p, m.n, up, v, sources, [(x, 1.0)], True)
    return p.best(x)


def blocks(m, senders, receivers, into):
    """Flows over all vertices: each sender has x/n for each receiver but itself. into: every link reversed."""
    p = Program()
    x = p.variables(1)[0]
    use = [[] for _ in m.links]
    for s in senders:
        leaves, enters = [[] for _ in range(m.n_vertices)], [[] for _ in range(m.n_vertices)]
        for l, (a, b, _) in enumerate(m.links):
            f = p.variables(1)[0]
            use[l].append((f, 1.0))
            leaves[b if into else a].append((f, 1.0))
            enters[a if into else b].append((f, -1.0))
        for v in range(m.n_vertices):
            if v != s:
                p.equal(enters[v] + leaves[v] + ([(x, 1.0 / m.n)] if v in receivers else []))
    fit(p, m, use)
    return p.best(x)


def rate(m, collective, root):
    ranks, one = range(m.n), {root: 1.0}
    if collective == "allreduce":
        found = allreduce(m)
    elif collective == "alltoall":
        found = blocks(m, ranks, ranks, False)
    elif collective in ("gather", "scatter"):
        found = blocks(m, [root], ranks, collective == "gather")
    else:
        shares = one if collective in ("broadcast", "reduce") else {v: 1.0 / m.n for v in ranks}
        found = spread(m, lambda x: {v: [(x, share)] for v, share in shares.items()},
                       collective in ("reduce", "reducescatter"))
    return found * m.unit


def planned(blinkc, text, collective, root):
    rooted = collective in ("broadcast", "reduce", "gather", "scatter")
    args = [blinkc, "-", "-q", "-l", "all", "-c", collective, "-o", "-"] + (["-r", str(root)] if rooted else [])
    done = subprocess.run(args, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ArithmeticError(done.stderr.strip())
    return json.loads(done.stdout)["rate"]["achieved"]


def judge(blinkc, name, text, root):
    """How many rates were compared, and of these how many differ."""
    machine, wrong, worst = Machine(json.loads(text)), 0, 0.0
    for collective in COLLECTIVES:
        got = machine.unit = planned(blinkc, text, collective, root % machine.n)
        want = rate(machine, collective, root % machine.n)
        worst = max(worst, abs(got / want - 1))
        if not abs(got / want - 1) <= CLOSE:
            wrong += 1
            print(f"WRONG {name}: {collective} from {root % machine.n}: {got:.10g}, the flows have {want:.10g}",
                  flush=True)
    return len(COLLECTIVES), wrong, worst


def documents(args):
    if not args.what[0].isdigit():
        for path in args.what:
            with open(path, encoding="utf-8") as file:
                yield path, file.read(), 0
        return
    for seed in range(int(args.what[0]), int(args.what[1]) + 1):
        machine, active = random_machine.random_machine(seed)
        if not active and sum(len(node["gpus"]) for node in machine["nodes"]) <= args.most:
            yield f"machine {seed} ({machine['name']})", random_machine.text_of(machine), seed


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--most", type=int, default=5)
    parser.add_argument("blinkc")
    parser.add_argument("what", nargs="+")
    args = parser.parse_args()
    try:
        import scipy.optimize  # noqa: F401  pylint: disable=unused-import
    except ImportError:
        print("exact_flow.py: scipy is not installed", file=sys.stderr)
        sys.exit(77)
    machines = compared = wrong = 0
    worst = 0.0
    for name, text, root in documents(args):
        tried, differ, off = judge(args.blinkc, name, text, root)
        machines, compared, wrong, worst = machines + 1, compared + tried, wrong + differ, max(worst, off)
    print(f"{machines} machines, {compared} rates, {wrong} differ; the others by at most {worst:.1g}" if not wrong else
          f"{machines} machines, {compared} rates, {wrong} differ")
    sys.exit(1 if wrong or not machines else 0)


if __name__ == "__main__":
    main()
