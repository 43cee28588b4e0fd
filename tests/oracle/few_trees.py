#!/usr/bin/env python3
"""The best rate of few trees on small machines of direct links, by a mixed-integer program over all trees.

usage: few_trees.py make SEED DIR                  a random machine: DIR/tSEED.json
       few_trees.py judge <LINES                   one claim a line: FILE COLLECTIVE ROOT TREES DEPTH RATE HOW

make: 3 to 5 GPUs, full-duplex links of equal capacities, each of one to three physical links.
judge: no TREES trees, none deeper than DEPTH (0: any), have more than RATE GB/s (HOW is "above"), or as much ("as"). A
tree of
an allreduce is an arborescence into some rank and one out of it. Prints what is false, and at the end the number of
claims that
were decided; where the solver has no answer in 4 s, it has not.

maximise sum w(t) such that w(t) <= narrowest(t) z(t), sum over trees of uses(l, t) w(t) <= capacity(l), sum z(t) <=
TREES.
It needs the solver HiGHS in python3-scipy; exit status 77 without.
"""
import itertools
import json
import os
import sys

from lcg import Lcg


def make(seed):
    rng = Lcg(seed)
    n = rng.choice([3, 4, 4, 4, 5])
    extra = {3: 1, 4: 2, 5: 1}[n]
    order = rng.shuffled(range(n))
    pairs = {tuple(sorted((order[i], rng.choice(order[:i])))) for i in range(1, n)}
    if rng.below(2):
        pairs |= {tuple(sorted((order[i], order[i - 1]))) for i in range(n)}
    for _ in range(rng.below(extra + 1)):
        a, b = rng.below(n), rng.below(n)
        if a != b:
            pairs.add((min(a, b), max(a, b)))
    most = rng.choice([1, 2, 2, 3])
    links = [{"from": f"g{a}", "to": f"g{b}", "class": "nvlink", "count": rng.between(1, most), "capacity": 1} for a,
             b in sorted(pairs)]
    return {"format": "blink-topology", "version": 1, "name": f"few-{seed}",
            "nodes": [{"id": "n0", "gpus": [{"id": f"g{i}"} for i in range(n)]}], "links": links}


def read(path):
    with open(path, encoding="utf-8") as file:
        machine = json.load(file)
    number = {gpu["id"]: i for i, gpu in enumerate(gpu for node in machine["nodes"] for gpu in node["gpus"])}
    links = []
    for link in machine["links"]:
        a, b, c = number[link["from"]], number[link["to"]], float(link["capacity"]) * link.get("count", 1)
        links.append((a, b, c))
        if link.get("duplex", "full") == "full":
            links.append((b, a, c))
    return len(number), links


def arborescences(n, links, root, into):
    """Each as its links and its hops: every other rank has one link on its side towards the root."""
    ends = [(b, a) if into else (a, b) for a, b, _ in links]
    choices = [[l for l, (_, far) in enumerate(ends) if far == r] for r in range(n) if r != root]
    for chosen in itertools.product(*choices):
        near = {ends[l][1]: ends[l][0] for l in chosen}
        deepest = 0
        for r in near:
            hops = 0
            while r != root and hops <= n:
                r, hops = near[r], hops + 1
            deepest = max(deepest, hops)
        if deepest < n:
            yield chosen, deepest


def trees(n, links, collective, root):
    """Uses of links, and hops."""
    for r in range(n) if collective == "allreduce" else [root]:
        down = list(arborescences(n, links, r, False)) if collective != "reduce" else [((), 0)]
        up = list(arborescences(n, links, r, True)) if collective != "broadcast" else [((), 0)]
        for (a, depth), (b, more) in itertools.product(down, up):
            yield a + b, depth + more


def best(n, links, collective, root, most, max_depth):
    """The highest rate of at most `most` trees, none deeper than max_depth (0: any); None: not decided."""
    import numpy
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_matrix
    columns = {tuple(sorted(uses)) for uses,
               depth in trees(n, links, collective, root) if not max_depth or depth <= max_depth}
    columns = sorted(columns)
    if not columns or most < 1:
        return 0
    entries, t = [], len(columns)
    for c, uses in enumerate(columns):
        count = {l: uses.count(l) for l in uses}
        entries += [(l, c, times) for l, times in count.items()]
        entries += [(len(links) + c, c, 1),
                    (len(links) + c, t + c, -min(links[l][2] / times for l, times in count.items()))]
        entries.append((len(links) + t, t + c, 1))
    matrix = coo_matrix(([v for _, _, v in entries], ([r for r, _, _ in entries], [c for _, c, _ in entries])),
                        shape=(len(links) + t + 1, 2 * t))
    limit = [c for _, _, c in links] + [0] * t + [most]
    answer = milp(numpy.array([-1.0] * t + [0.0] * t), constraints=LinearConstraint(matrix.tocsr(), -numpy.inf, limit),
                  bounds=Bounds(0, numpy.array([numpy.inf] * t + [1] * t)), integrality=numpy.array([0] * t + [1] * t),
                  options={"time_limit": 4})
    return -answer.fun if answer.status == 0 else None


def judge():
    decided = 0
    for line in sys.stdin:
        path, collective, root, most, max_depth, rate, how = line.split()
        n, links = read(path)
        found = best(n, links, collective, int(root) if root != "-" else -1, int(most), int(max_depth))
        decided += found is not None
        slack = 1e-5 * float(rate)
        if found is not None and found > float(rate) + (slack if how == "above" else -slack):
            print("false:", line.strip(), f"{most} trees have {found:.6g}", flush=True)
    print(decided)


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"] and len(sys.argv) == 4:
        with open(os.path.join(sys.argv[3], f"t{sys.argv[2]}.json"), "w", encoding="utf-8") as out:
            json.dump(make(int(sys.argv[2])), out)
    elif sys.argv[1:] == ["judge"]:
        try:
            judge()
        except ImportError:
            print("few_trees.py: scipy is not installed", file=sys.stderr)
            sys.exit(77)
    else:
        sys.exit(__doc__.split("\n\n")[1])
