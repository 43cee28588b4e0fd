#!/usr/bin/env python3
"""Are the baselines of schedules the fastest rings, and is the worth that pages state what the schedules give?

usage: worth.py rings MACHINE DIR [--most N]     every schedule of a batch: its baselines by a linear program over all
rings
       worth.py random SEED                      a machine: links between GPUs, one-way or full-duplex, and a PCIe
       switch
       worth.py table NAME DIR...                 rows of the table of geometric means and maxima, of batches
       worth.py latency SCHEDULE SIZE            us that a message of SIZE bytes takes, by the formulas of blinkc(1)

rings: all Hamiltonian cycles over links between GPUs, by permutations; for nccl-2.8 a hop between GPUs without a link
over two links,
through each other GPU; where there is no such ring, one over NVLink or PCIe. Over PCIe, which is a tree: each of the
links that separate GPUs is passed once in each direction. --most: jobs of
more GPUs are left out. The rate of a ring gives a broadcast as much, an allreduce n / (2 (n - 1)) of it. It needs
python3-scipy; exit
status 77 without.
"""
import itertools
import json
import math
import os
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict

from lcg import Lcg

FAST, BUS = ("nvlink", "xgmi"), ("pcie", "qpi")


def read_machine(path):
    """GPUs in order, and the capacity of each ordered pair of vertices by class, in GB/s."""
    if path.endswith(".json"):
        machine = json.load(open(path, encoding="utf-8"))
        gpus = [gpu["id"] for node in machine["nodes"] for gpu in node["gpus"]]
        links, classes = machine["links"], {}
    else:
        root = ElementTree.parse(path).getroot()
        gpus = [gpu.get("id") for gpu in root.iter("gpu")]
        classes = {c.get("name"): c.get("capacity") for c in root.iter("class")}
        links = [link.attrib for link in root.iter("link")]
    capacity = defaultdict(float)
    for link in links:
        each = float(link.get("capacity") or classes[link["class"]]) * int(link.get("count", 1))
        capacity[link["class"], link["from"], link["to"]] += each
        if link.get("duplex", "full") == "full":
            capacity[link["class"], link["to"], link["from"]] += each
    return gpus, capacity


# ---- rings over links between GPUs ----

def hops_of(n, direct, through):
    """Of each ordered pair, the ways from one to the other: tuples of links."""
    hops = {}
    for a, b in itertools.permutations(range(n), 2):
        ways = [((a, b),)] if (a, b) in direct else []
        if not ways and through:
            ways = [((a, v), (v, b)) for v in range(n) if (a, v) in direct and (v, b) in direct]
        hops[a, b] = ways
    return hops


def all_rings(n, hops):
    found = set()
    for rest in itertools.permutations(range(1, n)):
        order = (0, *rest)
        ways = [hops[order[i], order[(i + 1) % n]] for i in range(n)]
        if all(ways):
            for chosen in itertools.product(*ways):
                found.add(tuple(sorted(Counter(link for way in chosen for link in way).items())))
    return sorted(found)


def best_rate(direct, rings):
    """max sum x, such that the rings fit their links."""
    from scipy.optimize import linprog
    from scipy.sparse import lil_matrix
    if not rings:
        return 0.0
    row = {link: i for i, link in enumerate(sorted(direct))}
    matrix = lil_matrix((len(row), len(rings)))
    for j, ring in enumerate(rings):
        for link, times in ring:
            matrix[row[link], j] = times
    solved = linprog([-1.0] * len(rings), A_ub=matrix.tocsr(), b_ub=[direct[link] for link in sorted(direct)],
                     method="highs")
    assert solved.status == 0, solved.message
    return -solved.fun


# ---- rings over PCIe ----

def bus_rate(gpus, chosen, capacity):
    """The least capacity of the links that separate chosen GPUs, as a ring in the order of a walk around the tree
    passes each once."""
    near = defaultdict(dict)
    for (kind, a, b), value in capacity.items():
        if kind in BUS:
            near[a][b] = near[a].get(b, 0) + value
    def side(start, without):
        seen, todo = {start}, [start]
        for v in todo:
            for w in near[v]:
                if w not in seen and {v, w} != without and (w not in gpus or w in chosen):
                    seen.add(w)
                    todo.append(w)
        return seen
    if not set(chosen) <= side(chosen[0], set()):
        return 0.0
    least = math.inf
    for a in near:
        for b, value in near[a].items():
            beyond = side(a, {a, b})
            assert b not in beyond or (a in gpus and a not in chosen) or (b in gpus
                                                                          and b not in chosen), "PCIe is no tree"
            if 0 < len(beyond & set(chosen)) < len(chosen):
                least = min(least, value)
    return least


def bus_path(start, end, near, gpus):
    """The links from one GPU to another over PCIe."""
    before, todo = {start: None}, [start]
    for v in todo:
        for w in near[v]:
            if w not in before and (w == end or w not in gpus):
                before[w] = v
                todo.append(w)
    path, v = [], end
    while v in before and before[v] is not None:
        path.append(("bus", before[v], v))
        v = before[v]
    return tuple(reversed(path))


def mixed_rate(gpus, chosen, capacity, direct):
    """Each hop over its NVLink, if it has one, or over PCIe."""
    links, near, hops = {("fast", chosen[a], chosen[b]): c for (a, b), c in direct.items()}, defaultdict(set), {}
    for (kind, a, b), value in capacity.items():
        if kind in BUS:
            links["bus", a, b] = links.get(("bus", a, b), 0) + value
            near[a].add(b)
    for a, b in itertools.permutations(range(len(chosen)), 2):
        own, path = ("fast", chosen[a], chosen[b]), bus_path(chosen[a], chosen[b], near, gpus)
        hops[a, b] = [(own,)] if own in links else [path] if path else []
    return best_rate(links, all_rings(len(chosen), hops))


# ---- the schedules of a batch ----

def wanted_of(gpus, capacity, chosen, most):
    """Rates of rings by the name of the baseline."""
    n, number = len(chosen), {gpu: i for i, gpu in enumerate(chosen)}
    direct = defaultdict(float)
    for (kind, a, b), value in capacity.items():
        if kind in FAST and a in number and b in number:
            direct[number[a], number[b]] += value
    plain = best_rate(direct, all_rings(n, hops_of(n, direct, False)))
    bus = bus_rate(set(gpus), chosen, capacity)
    wanted = {"nccl-2.4": (plain or bus, FAST if plain else BUS)}
    if n <= most:
        through = best_rate(direct, all_rings(n, hops_of(n, direct, True)))
        wanted["nccl-2.8"] = (through, FAST) if through else (mixed_rate(set(gpus), chosen, capacity, direct),
                                                              FAST + BUS)
    return wanted


def algorithm_bandwidth(collective, n, rate):
    return {"allreduce": n / (2 * (n - 1)), "allgather": n / (n - 1),
            "reducescatter": n / (n - 1)}.get(collective, 1) * rate


def schedules_below(directory):
    for folder, _, files in sorted(os.walk(directory)):
        for name in sorted(files):
            if name != "index.json" and name.endswith(".json"):
                yield os.path.join(folder, name)


def judge_rings(machine, directory, most):
    gpus, capacity = read_machine(machine)
    known, n_right = {}, 0
    for path in schedules_below(directory):
        schedule = json.load(open(path, encoding="utf-8"))
        chosen = tuple(rank["gpu"] for rank in schedule["topology"]["ranks"])
        collective, n, name = schedule["collective"], len(chosen), os.path.relpath(path, directory)
        if chosen not in known:
            known[chosen] = wanted_of(gpus, capacity, chosen, most)
        found = {b["name"]: b for b in schedule.get("baselines", [])}
        if list(found) != ["nccl-2.4", "nccl-2.8"]:
            print(f"not ok {name}: baselines {list(found)}")
            continue
        for key, (rate, classes) in known[chosen].items():
            want, got = algorithm_bandwidth(collective, n, rate), found[key]
            off = abs(got["rate"] - want) > 1e-9 * max(want, 1)
            if off or not set(got["links"]) <= set(classes) or bool(want) != (got["rings"] > 0):
                print(f"not ok {name}: {key}: {got}, want {want:.9g} over {classes}")
                break
        else:
            n_right += 1
    print(f"ok baselines of {n_right} schedules" if n_right else "not ok no schedules")


# ---- the table ----

def table(name, directories):
    """| name | collective | classes | geometric mean and maximum over nccl-2.4 | over nccl-2.8 |"""
    ratios = defaultdict(lambda: defaultdict(dict))
    for directory in directories:
        for path in schedules_below(directory):
            schedule = json.load(open(path, encoding="utf-8"))
            chosen = tuple(rank["gpu"] for rank in schedule["topology"]["ranks"])
            if len(chosen) < 3:
                continue
            for baseline in schedule["baselines"]:
                ratio = schedule["rate"]["bound"] / baseline["rate"]
                of = ratios[schedule["collective"]][baseline["name"]]
                # Of several roots the best.
                of[chosen] = max(ratio, of.get(chosen, 0))
    for collective, of in sorted(ratios.items(), reverse=True):
        cells = [f"{math.exp(sum(map(math.log, r.values())) / len(r)):.2f}, {max(r.values()):.2f}" for r in of.values()]
        counts = {len(r) for r in of.values()}
        assert len(counts) == 1, counts
        print(f"| {name} | {collective} | {counts.pop()} | {' | '.join(cells)} |")


# ---- latency ----

def latency(schedule, size):
    links = schedule["topology"]["links"]
    longest = 0
    for tree in schedule["trees"]:
        children, above = defaultdict(list), defaultdict(list)
        for src, dst, route in tree.get("up", []):
            above[dst].append((src, sum(links[l]["latency"] for l in route)))
        for src, dst, route in tree.get("down", []):
            children[src].append((dst, sum(links[l]["latency"] for l in route)))
        def far(v, of):
            return max((us + far(w, of) for w, us in of[v]), default=0)
        longest = max(longest, far(tree["root"], above) + far(tree["root"], children))
    return longest + size / schedule["rate"]["achieved"] / 1e3


def random_machine(seed):
    rng = Lcg(seed)
    n = rng.between(2, 6)
    links = []
    for a, b in itertools.combinations(range(n), 2):
        if rng.below(10) < 6:
            links.append({"from": f"g{a}", "to": f"g{b}", "class": "nvlink", "count": rng.between(1, 3),
                "capacity": rng.choice([1, 2.5, 7, 20, 25]), "duplex": rng.choice(["full", "full", "full", "simplex"])})
    for a in range(n):
        links.append({"from": f"g{a}", "to": f"plx{a % 2}", "class": "pcie", "capacity": rng.choice([3, 12])})
    links.append({"from": "plx0", "to": "plx1", "class": "pcie", "capacity": rng.choice([3, 6, 12])})
    node = {"id": "n0", "gpus": [{"id": f"g{i}"} for i in range(n)], "switches": [{"id": "plx0"}, {"id": "plx1"}]}
    return {"format": "blink-topology", "version": 1, "name": f"worth-{seed}", "nodes": [node], "links": links}


def main(what, *rest):
    if what == "random":
        print(json.dumps(random_machine(int(rest[0]))))
    elif what == "table":
        table(rest[0], rest[1:])
    elif what == "latency":
        print(f"{latency(json.load(open(rest[0], encoding='utf-8')), int(rest[1])):.6g}")
    else:
        try:
            import scipy.optimize  # noqa: F401
        except ImportError:
            sys.exit(77)
        most = int(rest[3]) if len(rest) > 2 else 8
        judge_rings(rest[0], rest[1], most)


if __name__ == "__main__":
    main(*sys.argv[1:])
