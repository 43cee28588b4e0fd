#!/usr/bin/env python3
"""The most that flat rings give an allreduce over two servers: rings through all GPUs, one server after the other.

usage: rings.py SCHEDULE        its topology is what the rings have; its trees are of no matter

All rings are looked at whose neighbours within a server have a direct link, both ways round, as many at once as links
allow: a linear
program in which a ring of rate y moves y over each of its hops, and a hop between servers may divide over all ways to
the network.
A ring of rate y gives an allreduce of n / (2 (n - 1)) y.
"""
import json
import sys
from collections import defaultdict
from itertools import permutations


def simplex(rows, most, gain):
    """max gain x, rows x <= most, x >= 0; most >= 0. Bland's rule, so that it ends. Floats."""
    n, m = len(gain), len(rows)
    table = [row + [float(i == k) for k in range(m)] + [limit] for i, (row, limit) in enumerate(zip(rows, most))]
    cost = [-g for g in gain] + [0.0] * (m + 1)
    basis = list(range(n, n + m))
    while True:
        enter = next((j for j in range(n + m) if cost[j] < -1e-9), None)
        if enter is None:
            return cost[-1]
        leave = min(((table[i][-1] / table[i][enter], basis[i], i) for i in range(m) if table[i][enter] > 1e-9))[2]
        pivot = table[leave][enter]
        table[leave] = [value / pivot for value in table[leave]]
        for row in [*(table[i] for i in range(m) if i != leave), cost]:
            factor = row[enter]
            if factor:
                row[:] = [a - factor * b for a, b in zip(row, table[leave])]
        basis[leave] = enter


def ways_out(gpu, ranks, leaving):
    """Paths of links from a GPU past others, to the first switch of the network; against links, if `leaving` lists
    those that enter."""
    found, paths = [], [(gpu, [])]
    for v, path in paths:
        for l, w, net in leaving[v]:
            if w in ranks:
                continue
            if net:
                found.append(path + [l])
            else:
                paths.append((w, path + [l]))
    return found


def best_rings(topology):
    ranks = range(len(topology["ranks"]))
    servers = defaultdict(list)
    for r, rank in enumerate(topology["ranks"]):
        servers[rank["node"]].append(r)
    first, second = servers.values()
    capacity, direct = [], {}
    out, into = defaultdict(list), defaultdict(list)
    for l, link in enumerate(topology["links"]):
        a, b, net = link["from"], link["to"], link["class"] == "net"
        capacity.append(link["capacity"])
        if a in ranks and b in ranks:
            direct[a, b] = l
        out[a].append((l, b, net))
        into[b].append((l, a, net))
    columns = []   # rows that a variable uses, and what it gains
    n_links, n = len(capacity), len(ranks)
    for one in permutations(first):
        for other in permutations(second):
            hops = [(a, b) for path in (one, other) for a, b in zip(path, path[1:])]
            if all(hop in direct for hop in hops):
                ends = [n_links + one[-1], n_links + n + other[0], n_links + other[-1], n_links + n + one[0]]
                columns.append(([direct[hop] for hop in hops] + ends, [], n / (2 * (n - 1))))
    for r in ranks:
        for base, leaving in ((n_links, out), (n_links + n, into)):
            for path in ways_out(r, ranks, leaving):
                columns.append((path, [base + r], 0.0))
    rows = [[0.0] * len(columns) for _ in range(n_links + 2 * n)]
    for j, (plus, minus, _) in enumerate(columns):
        for i in plus:
            rows[i][j] += 1
        for i in minus:
            rows[i][j] -= 1
    return simplex(rows, capacity + [0.0] * (2 * n), [gain for *_, gain in columns])


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(f"{best_rings(json.load(file)['topology']):.6g}")
