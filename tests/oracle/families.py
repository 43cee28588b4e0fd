#!/usr/bin/env python3
"""One-hop and three-phase schedules: is each tree of its family, and is the rate the best of the family?

usage: families.py [--shape] TOPOLOGY SCHEDULE...      --shape: do not ask for the best rate

TOPOLOGY is the file that the schedules were compiled from, whose switches know their servers. The best rate comes from
an exact
linear program over all trees of the family, written down one by one: for few ranks only. One line per file, `FILE: ok
...` or
`FILE: WRONG: why`; exit status 1 if any is wrong.
"""
import json
import sys
from collections import Counter
from fractions import Fraction
from itertools import product
from math import lcm

from brute import maximise

SPREAD, COLLECT, BOTH, CARRY = range(4)


class Wrong(Exception):
    pass


def need(what, why):
    if not what:
        raise Wrong(why)


def demands(collective, n, root):
    """(kind, from, to) of each block."""
    others = [r for r in range(n) if r != root]
    return {"broadcast": [(SPREAD, root, None)], "reduce": [(COLLECT, None, root)], "allreduce": [(BOTH, None, None)],
            "allgather": [(SPREAD, r, None) for r in range(n)], "reducescatter": [(COLLECT, None, r) for r in range(n)],
            "scatter": [(CARRY, root, r) for r in others], "gather": [(CARRY, r, root) for r in others],
            "alltoall": [(CARRY, a, b) for a in range(n) for b in range(n) if a != b]}[collective]


class Machine:
    def __init__(self, topology, schedule):
        self.node = {r: rank["node"] for r, rank in enumerate(schedule["ranks"])}
        for node in topology["nodes"]:
            for kind in ("switches", "nics", "cpus"):
                self.node.update({vertex["id"]: node["id"] for vertex in node.get(kind, [])})
        self.n = len(schedule["ranks"])
        self.links = [(link["from"], link["to"]) for link in schedule["links"]]
        self.capacity = [Fraction(str(link["capacity"])) for link in schedule["links"]]
        self.servers = sorted({self.node[r] for r in range(self.n)})

    def members(self, server):
        return [r for r in range(self.n) if self.node[r] == server]

    def is_local(self, links):
        ends = {end for l in links for end in self.links[l]}
        return None not in (self.node.get(end) for end in ends) and len({self.node[end] for end in ends}) == 1

    def routes(self):
        """(src, dst): ways through no third rank and no switch twice, as tuples of links."""
        found = {}
        for source in range(self.n):
            stack = [(source, (), {source})]
            while stack:
                at, path, seen = stack.pop()
                for l, (u, v) in enumerate(self.links):
                    if u != at or v in seen:
                        continue
                    if isinstance(v, int):
                        found.setdefault((source, v), []).append(path + (l,))
                    else:
                        stack.append((v, path + (l,), seen | {v}))
        return found


# ---- shapes: edges are (src, dst, links) ----


def onehop_shape(m, kind, root, down, up):
    if kind == CARRY:
        need(len(down) + len(up) == 1, "a path of more than one hop")
    elif kind == BOTH:
        need(all(dst == root for _, dst, _ in up) and all(src == root for src, _, _ in down),
             "an edge that the root has no part in")
    else:
        near = {(e[0] if kind == SPREAD else e[1]) for e in down + up}
        relay = near - {root}
        need(len(relay) <= 1, f"{len(relay)} ranks besides the root relay")
        at_root = sum((e[0] if kind == SPREAD else e[1]) == root for e in down + up)
        need(not relay or at_root == 1, "the root and another rank have stars")


def cross_edges(m, edges, inward):
    """{server: (near, far)} of edges between servers, which lead to far, of that server (inward: come from it)."""
    found = {}
    for src, dst, links in edges:
        if m.node[src] == m.node[dst]:
            need(m.is_local(links), f"edge {src} to {dst} leaves its server")
            continue
        near, far = (dst, src) if inward else (src, dst)
        need(m.node[far] not in found, f"two edges between servers for {m.node[far]}")
        found[m.node[far]] = near, far
    return found


def star_or_relay(m, root, found):
    """One rank of the root's server deals with all others; or with one rank, and that one with the rest."""
    home = {near for near, _ in found.values() if m.node[near] == m.node[root]}
    need(len(home) == 1, f"{len(home)} ranks of the root's server deal with other servers")
    first = [far for near, far in found.values() if near in home]
    others = {near for near, _ in found.values() if near not in home}
    need(not others or (len(first) == 1 and others == set(first)), "a server that two others are between")


def threephase_shape(m, kind, root, down, up):
    there, back = cross_edges(m, down, False), cross_edges(m, up, True)
    if kind == CARRY:
        need(len(there) + len(back) <= 1, "a path between three servers")
    elif kind == BOTH:
        ends = list(there.values()) + list(back.values())
        need(all(near == root for near, _ in ends), "an edge between servers that the root has no part in")
        need(there == back, "a server with two local roots")
    elif len(m.servers) > 1:
        star_or_relay(m, root, there if kind == SPREAD else back)


SHAPES = {"onehop": onehop_shape, "threephase": threephase_shape}


# ---- all trees, as tuples of hops ----


def arborescences(root, ranks, hops):
    others = [v for v in ranks if v != root]
    for parents in product(*([u for u in ranks if (u, v) in hops] for v in others)):
        into = dict(zip(others, parents))

        def reaches(v):
            for _ in ranks:
                v = into.get(v, root)
            return v == root

        if all(map(reaches, others)):
            yield tuple((into[v], v) for v in others)


def turned(tree):
    return tuple((h[1], h[0]) + h[2:] for h in tree)


def inside(hop):
    """Over links of the server."""
    return hop + (True,)


def stars(n, v):
    return tuple((v, w) for w in range(n) if w != v)


def onehop_trees(m, kind, a, b, hops, _):
    if kind == CARRY:
        return [((a, b),)]
    if kind == BOTH:
        return [turned(stars(m.n, v)) + stars(m.n, v) for v in range(m.n)]
    root = a if kind == SPREAD else b
    out = [stars(m.n, root)] + [((root, v),) + tuple(h for h in stars(m.n, v) if h[1] != root) for v in range(m.n)
                                if v != root]
    return [tree if kind == SPREAD else turned(tree) for tree in out]


def paths(a, b, ranks, hops):
    """Simple ones over some ranks."""
    if a == b:
        yield ()
        return
    for v in ranks:
        if v != a and (a, v) in hops:
            for rest in paths(v, b, [r for r in ranks if r != a], hops):
                yield ((a, v),) + rest


def stars_of_servers(m, w, without, hops, out):
    """A hop from w to one rank of each server but some, with the arborescences of that rank."""
    rest = [[((w, v),) + tree for v in m.members(s) if (w, v) in hops for tree in out[v]] for s in m.servers
            if s not in without]
    return [sum(choice, ()) for choice in product(*rest)]


def threephase_trees(m, kind, a, b, hops, local):
    if kind == COLLECT:
        flip = threephase_trees(m, SPREAD, b, None, {(v, u) for u, v in hops}, {(v, u) for u, v in local})
        return [turned(tree) for tree in flip]
    if kind == CARRY:
        here, there = m.members(m.node[a]), m.members(m.node[b])
        if m.node[a] == m.node[b]:
            return [tuple(map(inside, path)) for path in paths(a, b, here, local)]
        return [tuple(map(inside, p)) + ((u, v),) + tuple(map(inside, q)) for u in here for v in there if (u, v) in hops
                for p in paths(a, u, here, local) for q in paths(v, b, there, local)]
    out = {r: [tuple(map(inside, t)) for t in arborescences(r, m.members(m.node[r]), local)] for r in range(m.n)}
    into = {r: [tuple(inside(h) for h in turned(t))
                for t in arborescences(r, m.members(m.node[r]), {(v, u) for u, v in local})]
            for r in range(m.n)}
    made = []
    if kind == SPREAD:
        # Ways to lead on from the root's server: by one of its ranks w, or by w and a rank v of another server.
        home, ways = m.node[a], []
        for w in m.members(home):
            ways += stars_of_servers(m, w, [home], hops, out)
            for v in range(m.n):
                if m.node[v] != home and (w, v) in hops:
                    ways += [((w, v),) + own + rest for own in out[v]
                             for rest in stars_of_servers(m, v, [home, m.node[v]], hops, out)]
        made = [own + way for own in out[a] for way in ways]
        return made
    for w in range(m.n):
        rest = [[((w, v), (v, w)) + down + up for v in m.members(s) if (w, v) in hops and (v, w) in hops
                 for down in out[v] for up in into[v]] for s in m.servers if s != m.node[w]]
        made += [down + up + sum(choice, ()) for down in out[w] for up in into[w] for choice in product(*rest)]
    return made


TREES = {"onehop": onehop_trees, "threephase": threephase_trees}


def optimum(m, algorithm, collective, root):
    """GB/s. Columns: trees, ways of each hop, r. Rows: r <= trees of each demand, a hop's trees <= its ways, links."""
    ways = m.routes()
    local = {hop: [w for w in some if m.is_local(w)] for hop, some in ways.items() if m.node[hop[0]] == m.node[hop[1]]}
    local = {hop: some for hop, some in local.items() if some}
    asked = demands(collective, m.n, root)
    columns = sorted({(d, tuple(sorted(tree))) for d, (kind, a, b) in enumerate(asked)
                      for tree in TREES[algorithm](m, kind, a, b, set(ways), set(local))})
    used = sorted({hop for _, tree in columns for hop in tree})
    choices = {hop: local[hop[:2]] if len(hop) == 3 else ways[hop] for hop in used}
    scale = lcm(*(c.denominator for c in m.capacity))
    # Rows: links, then demands, then hops. A hop with one route needs no row: its trees use the route.
    of_demand = len(m.links)
    some = [hop for hop in used if len(choices[hop]) > 1]
    row_of = {hop: of_demand + len(asked) + i for i, hop in enumerate(some)}
    rows_of = {hop: [row_of[hop]] if hop in row_of else choices[hop][0] for hop in used}
    table = [(0, {of_demand + d: -1, **Counter(row for hop in tree for row in rows_of[hop])}) for d, tree in columns]
    table += [(0, {row_of[hop]: -1, **dict.fromkeys(way, 1)}) for hop in some for way in choices[hop]]
    table.append((1, {of_demand + d: 1 for d in range(len(asked))}))
    best = maximise(table, [int(c * scale) for c in m.capacity] + [0] * (len(asked) + len(some)))
    blocks = m.n if collective in ("gather", "scatter", "allgather", "reducescatter", "alltoall") else 1
    return best * blocks / scale, len(columns)


def check(topology, schedule, shape_only):
    m = Machine(topology, schedule["topology"])
    algorithm, collective, root = schedule["algorithm"], schedule["collective"], schedule["root"]
    kinds = {kind for kind, _, _ in demands(collective, m.n, root)}
    for t, tree in enumerate(schedule["trees"]):
        try:
            SHAPES[algorithm](m, min(kinds), tree["root"], tree.get("down", []), tree.get("up", []))
        except Wrong as wrong:
            raise Wrong(f"trees[{t}]: {wrong}") from None
    if shape_only:
        return f"{len(schedule['trees'])} {algorithm} trees"
    best, n = optimum(m, algorithm, collective, root)
    rate = schedule["rate"]["achieved"]
    need(abs(rate / float(best) - 1) < 1e-9, f"rate {rate}: the best of {n} trees is {float(best)}")
    return f"{algorithm} {collective}: {rate:.6g} GB/s, the best of {n} trees"


def main(args):
    shape_only = args[:1] == ["--shape"]
    args = args[shape_only:]
    if len(args) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    with open(args[0], encoding="utf-8") as file:
        topology = json.load(file)
    wrong = False
    for path in args[1:]:
        try:
            with open(path, encoding="utf-8") as file:
                print(f"{path}: ok {check(topology, json.load(file), shape_only)}")
        except Wrong as error:
            print(f"{path}: WRONG: {error}")
            wrong = True
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
