#!/usr/bin/env python3
"""Rates over random racks that lost parts, by linear programs over flows that know no trees.

usage: racks.py BLINKC FIRST LAST       clusters of these seeds

Three or four racks of 9 to 14 GPUs, or two of 18 to 23, each GPU with several links to the switch of its rack and a
NIC, on one network or on rails, so that switches and NICs both limit; they lost GPUs, NICs, links to a switch, a tray
of four GPUs, or a rail. What is lost is told to the program as --without, and taken out of the machine here. All
links are full duplex, and switches forward, so that rates are those of flows through switches (Bang-Jensen, Frank and
Jackson 1995):

broadcast                  the least flow from the root to another GPU
allgather, reducescatter   x such that x/n from each GPU reach each other one
allreduce                  half of the sum of x(v), such that x(v) from all GPUs v reach each other one, in capacities
                           of which a link and the one back have the sum that they have
alltoall                   x/n from each GPU to each other one, all at once

GPUs that some exchange of GPUs, or of rails, maps to each other have the same flows, of which one is in the program.
No rate may be higher, no bound lower, and rates must be within 1e-4, but for a share of allreduces. It needs the solver
HiGHS in python3-scipy; exit status 77 without.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

from exact_flow import Program
from lcg import Lcg

COLLECTIVES = ["broadcast", "allgather", "reducescatter", "allreduce", "alltoall"]
CLOSE, NEAR = 1e-7, 1e-4
LEAST = {"broadcast": 1, "allgather": 1, "reducescatter": 1, "allreduce": 0.98, "alltoall": 1}  # share within NEAR
FLOOR = 0.9	# no rate is less, of the optimum


class Racks:
    """links: {(gpu, switch): capacity}, as much in the other direction."""

    def __init__(self, seed):
        rng = Lcg(seed)
        n_racks, n_gpus, self.rails = rng.between(2, 4), rng.between(9, 14), rng.below(2)
        n_gpus += 9 if n_racks == 2 else 3 if n_racks * n_gpus < 34 else 0
        count, rate, net = rng.choice([4, 6, 9]), rng.choice([10, 25]), rng.choice([10, 25, 40])
        gpus = [[f"s{r}/gpu{g}" for g in range(n_gpus)] for r in range(n_racks)]
        self.rack = {gpu: r for r, own in enumerate(gpus) for gpu in own}
        self.place = {gpu: g for own in gpus for g, gpu in enumerate(own)}
        self.links = {(gpu, f"s{r}/switch"): count * rate for r, own in enumerate(gpus) for gpu in own}
        self.links.update({(gpu, self.network(g)): net for own in gpus for g, gpu in enumerate(own)})
        self.document = {
            "format": "blink-topology", "version": 1, "name": f"racks {seed}",
            "classes": [{"name": "nvlink", "capacity": rate}, {"name": "net", "capacity": net}],
            "nodes": [{"id": f"s{r}", "gpus": [{"id": gpu} for gpu in own], "switches": [{"id": f"s{r}/switch"}]}
                      for r, own in enumerate(gpus)],
            "switches": [{"id": self.network(g)} for g in range(n_gpus if self.rails else 1)],
            "links": [{"from": a, "to": b, "class": "net" if b.startswith("net") else "nvlink",
                       "count": 1 if b.startswith("net") else count} for a, b in self.links]}
        self.without = []
        for r in rng.shuffled(range(n_racks))[:rng.between(1, 3)]:
            self.lose(rng, rng.below(5), gpus[r], rate)
        self.gpus = sorted({gpu for gpu, _ in self.links}, key=lambda v: (self.rack[v], self.place[v]))
        self.root = rng.choice(self.gpus)

    def network(self, g):
        return f"net{g}" if self.rails else "net"

    def take(self, link):
        if link in self.links:
            self.without.append("-".join(link))
            del self.links[link]

    def lose(self, rng, kind, own, rate):
        gpu = rng.choice(own)
        left = [v for v in own if any(v == a for a, _ in self.links)]
        lost = [gpu] if kind == 0 else left[4 * rng.below(2):][:4] if kind == 3 else []
        for v in lost:
            if v in left and len(left) > 2:
                self.without.append(v)
                self.links = {link: c for link, c in self.links.items() if link[0] != v}
        nic, port = (gpu, self.network(self.place[gpu])), (gpu, f"s{self.rack[gpu]}/switch")
        if kind == 1:
            self.take(nic)
        if kind == 2 and port in self.links and self.links[port] > rate:
            self.without.append("-".join(port) + ":1")
            self.links[port] -= rate
        if kind == 4 and self.rails and nic[1] not in self.without and any(b == nic[1] for _, b in self.links):
            self.without.append(nic[1])
            self.links = {link: c for link, c in self.links.items() if link[1] != nic[1]}

    def kinds(self, root=None):
        """Of each GPU: which are the same. On one network those of a rack with the same links; on rails, rails whose
        GPUs are, in all racks."""
        def own(v):
            return tuple(sorted((b.split("/")[-1] if not b.startswith("net") else "net", c)
                                for (a, b), c in self.links.items() if a == v)), v == root
        if not self.rails:
            return {v: (self.rack[v], own(v)) for v in self.gpus}
        state = collections.defaultdict(dict)
        for v in self.gpus:
            state[self.place[v]][self.rack[v]] = own(v)
        return {v: (self.rack[v], str(sorted(state[self.place[v]].items()))) for v in self.gpus}


class Flows:
    def __init__(self, racks, root=None):
        kind = racks.kinds(root)
        self.gpus, self.p = racks.gpus, Program()
        self.n = len(self.gpus)
        self.arcs = [arc for link in racks.links for arc in (link, link[::-1])]
        self.capacity = {arc: racks.links[arc if arc in racks.links else arc[::-1]] for arc in self.arcs}
        self.first = {}
        for v in self.gpus:
            self.first.setdefault(kind[v], v)
        self.size = collections.Counter(self.first[kind[v]] for v in self.gpus)
        self.of = {v: self.first[kind[v]] for v in self.gpus}
        self.orbit = {}
        for a, b in self.arcs:  # the kind of its GPU, what it leads to, and which way
            gpu, out = (a, True) if a in self.of else (b, False)
            self.orbit[a, b] = (self.of[gpu], out, (b if out else a).startswith("net"))
        self.sizes = collections.Counter(self.orbit.values())

    def flow(self, give):
        """{arc: variable}: what GPUs give, as terms, enters there and goes on."""
        f = {arc: self.p.variables(1)[0] for arc in self.arcs}
        rows = collections.defaultdict(list)
        for (a, b), variable in f.items():
            rows[a].append((variable, 1.0))
            rows[b].append((variable, -1.0))
        for v, terms in rows.items():
            self.p.equal(terms + [(variable, -factor) for variable, factor in give.get(v, [])])
        return f

    def to_each(self, give, fits):
        """From each GPU v give[v], in the end to one GPU of each kind; fits(arc, variable) limits it."""
        for target in self.first.values():
            to = {v: give[v] for v in give if v != target}
            to[target] = [(variable, -factor) for terms in to.values() for variable, factor in terms]
            for arc, variable in self.flow(to).items():
                fits(arc, variable)

    def fits(self, arc, variable):
        self.p.at_most([(variable, 1.0)], self.capacity[arc])


def broadcast(racks):
    f = Flows(racks, racks.root)
    x = f.p.variables(1)[0]
    for target in f.first.values():
        if target != racks.root:
            for arc, variable in f.flow({racks.root: [(x, 1.0)], target: [(x, -1.0)]}).items():
                f.fits(arc, variable)
    return f.p.best(x)


def allgather(racks):
    f = Flows(racks)
    x = f.p.variables(1)[0]
    f.to_each({v: [(x, 1.0 / f.n)] for v in f.gpus}, f.fits)
    return f.p.best(x)


def allreduce(racks):
    f = Flows(racks)
    x = f.p.variables(1)[0]
    share = {v: f.p.variables(1)[0] for v in f.first.values()}
    c = {orbit: f.p.variables(1)[0] for orbit in f.sizes}
    f.p.equal([(share[v], f.size[v]) for v in share] + [(x, -2.0)])
    balance = collections.defaultdict(list)
    for a, b in f.arcs:
        if a in f.of:
            out, back = f.orbit[a, b], f.orbit[b, a]
            f.p.at_most([(c[out], 1.0), (c[back], 1.0)], 2.0 * f.capacity[a, b])
            balance[b] += [(c[out], 1.0), (c[back], -1.0)]
    for terms in balance.values():
        total = collections.Counter()
        for variable, factor in terms:
            total[variable] += factor
        f.p.equal(list(total.items()))
    f.to_each({v: [(share[f.of[v]], 1.0)] for v in f.gpus},
              lambda arc, variable: f.p.at_most([(variable, 1.0), (c[f.orbit[arc]], -1.0)]))
    return f.p.best(x)


def alltoall(racks):
    f = Flows(racks)
    x = f.p.variables(1)[0]
    use = collections.defaultdict(list)
    for source in f.first.values():
        give = {v: [(x, -1.0 / f.n)] for v in f.gpus if v != source}
        give[source] = [(x, (f.n - 1.0) / f.n)]
        for arc, variable in f.flow(give).items():
            use[f.orbit[arc]].append((variable, float(f.size[source])))
    of_orbit = {f.orbit[arc]: f.capacity[arc] for arc in f.arcs}
    for orbit, terms in use.items():
        f.p.at_most(terms, float(of_orbit[orbit] * f.sizes[orbit]))
    return f.p.best(x)


RATES = {"broadcast": broadcast, "allgather": allgather, "reducescatter": allgather, "allreduce": allreduce,
         "alltoall": alltoall}


def planned(blinkc, racks, path, collective):
    command = [blinkc, path, "-l", "all", "-c", collective, "--summary", "json", "-o", os.devnull, "--format", "json"]
    command += ["--without", ",".join(racks.without)] if racks.without else []
    command += ["-r", racks.root] if collective == "broadcast" else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{racks.document['name']} {collective}: exit {done.returncode}: {done.stderr[:300]}")
    summary = json.loads(next(line for line in done.stderr.splitlines() if line.startswith("{")))
    return summary["rate_gb_per_s"], summary["bound_gb_per_s"], summary["depth"]


def main():
    try:
        import scipy.optimize  # noqa: F401
    except ImportError:
        print("racks.py: scipy is not installed")
        return 77
    blinkc, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    near, depth, bad, known = collections.Counter(), collections.Counter(), [], {}
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "racks.json")
        for seed in range(first, last + 1):
            racks = Racks(seed)
            with open(path, "w") as file:
                json.dump(racks.document, file)
            for collective in COLLECTIVES:
                if collective != "reducescatter":
                    best = RATES[collective](racks)
                rate, bound, hops = planned(blinkc, racks, path, collective)
                case = (f"seed {seed} {collective}: {rate:.9g} GB/s, bound {bound:.9g}, by flows {best:.9g}, "
                        f"depth {hops}")
                if rate > best * (1 + CLOSE) or bound < best * (1 - CLOSE) or rate < best * FLOOR:
                    bad.append(case)
                near[collective] += rate >= best * (1 - NEAR)
                depth[collective] = max(depth[collective], hops)
    n = last - first + 1
    bad += [f"{c}: {near[c]} of {n} within {NEAR}, want {LEAST[c]}" for c in COLLECTIVES if near[c] < LEAST[c] * n]
    print("\n".join(bad + [f"{n} clusters; within {NEAR}, and depth: "
                           + ", ".join(f"{c} {near[c]}, {depth[c]}" for c in COLLECTIVES)]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
