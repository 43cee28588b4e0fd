#!/usr/bin/env python3
"""Bounds and optima of small schedules by brute force.

usage: brute.py SCHEDULE.json...     at most 8 ranks

For each file the bound is held against
  - every cut and, for allreduce, every partition of the ranks, switches put on whatever side or part (or outside)
    that makes it least; both are also computed by maximum flows, and the two ways must agree;
  - with at most 5 ranks, the best packing of all spanning trees, an exact linear program. On direct full-duplex links
    the bound must equal it (for broadcast, reduce, allgather and reducescatter: on any direct links).
One line per file, `FILE: ok ...`, `FILE: WRONG: why` or `FILE: skipped: why`; exit status 1 if any is wrong, else 3 if
any is skipped. Whether the schedule itself is right is replay.py's question.
"""
import sys
from collections import Counter, deque
from fractions import Fraction
from itertools import product
from math import lcm

import replay

MAX_RANKS, MAX_VERTICES = 8, 14  # subsets of all vertices are enumerated up to here; past it, flows alone
MAX_LP_RANKS, MAX_ROUTES = 5, 400

INWARD = {"reduce": "broadcast", "gather": "scatter", "reducescatter": "allgather"}  # mirrors: every link turned round
LP_COLLECTIVES = ("broadcast", "allgather", "allreduce")


class Graph:
    """Vertices 0 .. n-1 are the ranks, then switches; capacities are integers, `scale` to the GB/s."""

    def __init__(self, n, links):
        """links: (from, to, capacity), vertices as in a schedule file."""
        names = list(range(n)) + sorted({end for link in links for end in link[:2] if isinstance(end, str)})
        index = {name: v for v, name in enumerate(names)}
        self.n, self.size = n, len(names)
        self.scale = lcm(*(Fraction(capacity).denominator for _, _, capacity in links))
        self.links = [(index[u], index[v], int(capacity * self.scale)) for u, v, capacity in links]
        self.cap = [[0] * self.size for _ in names]
        for u, v, capacity in self.links:
            self.cap[u][v] += capacity

    def mirrored(self):
        other = Graph.__new__(Graph)
        other.__dict__.update(self.__dict__, links=[(v, u, c) for u, v, c in self.links],
                              cap=[list(row) for row in zip(*self.cap)])
        return other

    def direct(self):
        return self.size == self.n

    def balanced(self, vertices):
        """As much capacity enters each vertex as leaves it."""
        return all(sum(self.cap[v]) == sum(row[v] for row in self.cap) for v in vertices)

    def symmetric(self):
        return self.cap == [list(row) for row in zip(*self.cap)]


def graph_of(s):
    return Graph(s.n, [(link.src, link.dst, link.capacity) for link in s.links])


# ---- cuts and partitions ----------------------------------------------------------------------------------


def max_flow(g, sources, sinks):
    """Augmenting shortest paths from a set of vertices (bit mask) to another."""
    left = [row[:] for row in g.cap]
    total = 0
    while True:
        before = {v: None for v in range(g.size) if sources >> v & 1}
        queue, end = deque(before), None
        while queue and end is None:
            u = queue.popleft()
            for v in range(g.size):
                if left[u][v] and v not in before:
                    before[v] = u
                    if sinks >> v & 1:
                        end = v
                        break
                    queue.append(v)
        if end is None:
            return total
        path = []
        while before[end] is not None:
            path.append((before[end], end))
            end = before[end]
        step = min(left[u][v] for u, v in path)
        for u, v in path:
            left[u][v] -= step
            left[v][u] += step
        total += step


def all_leaving(g):
    """leaving[side] of every set of vertices (bit mask)."""
    leaving = [0] * (1 << g.size)
    for side in range(1, 1 << g.size):
        v = side.bit_length() - 1
        rest = side ^ (1 << v)
        leaving[side] = leaving[rest] + sum(g.cap[v][u] for u in range(g.size) if not side >> u & 1) \
            - sum(g.cap[u][v] for u in range(v) if rest >> u & 1)
    return leaving


def rank_cuts(g, leaving):
    """Least capacity that leaves each proper set of ranks, switches put where it is least."""
    ranks = (1 << g.n) - 1
    flows = [None] + [max_flow(g, side, ranks ^ side) for side in range(1, ranks)] + [0]
    if leaving:
        least = [None] * (1 << g.n)
        for side, value in enumerate(leaving):
            inside = side & ranks
            if inside and (least[inside] is None or value < least[inside]):
                least[inside] = value
        assert least[1:ranks] == flows[1:ranks], "cuts and flows differ"
    return flows


def amount(collective, n, inside):
    """What must leave a side of `inside` ranks, the root among them, per byte of algorithm size."""
    return {"scatter": Fraction(n - inside, n), "allgather": Fraction(inside, n),
            "alltoall": Fraction(inside * (n - inside), n)}.get(collective, Fraction(1))


def cut_bound(g, collective, root, cuts):
    """Least bound that any cut proves, times g.scale. Collectives in INWARD: mirror the graph first."""
    return min(cuts[side] / amount(collective, g.n, side.bit_count()) for side in range(1, (1 << g.n) - 1)
               if root is None or side >> root & 1)


def least_partition(n, extra, weight, start):
    """Least sum over disjoint parts of leaving / (2 (parts - 1)); each part holds a rank, together all of n ranks.

    weight: of each set of vertices, n ranks and `extra` more. start: the value of some partition.
    Dinkelbach: at value p/q, search the partition with the least sum of (q leaving - 2p) over its parts, by dynamic
    programming over the vertices used so far, the lowest free rank next; while that beats -2p, take it and repeat."""
    full = (1 << (n + extra)) - 1
    ranks = (1 << n) - 1
    value = start
    while True:
        p, q = value.numerator, value.denominator
        best, choice = {0: 0}, {}
        for used in range(full + 1):
            free = ranks & ~used
            if used not in best or not free:
                continue
            lowest = free & -free
            rest = sub = full & ~used & ~lowest
            here = best[used] - 2 * p
            while True:
                part = sub | lowest
                cost = here + q * weight[part]
                if used | part not in best or cost < best[used | part]:
                    best[used | part], choice[used | part] = cost, part
                if not sub:
                    break
                sub = (sub - 1) & rest
        least, used = min((cost, used) for used, cost in best.items() if not ranks & ~used)
        if least >= -2 * p:
            return value
        parts = []
        while used:
            parts.append(choice[used])
            used ^= choice[used]
        value = Fraction(sum(weight[part] for part in parts), 2 * (len(parts) - 1))


def partition_bound(g, leaving, cuts):
    """Least partition bound times g.scale.

    With cuts from flows the parts may overlap in switches, so that they bound from below; they are exact where
    every switch is balanced (least sets are then disjoint). None where neither way is exact."""
    n = g.n
    start = Fraction(sum(cuts[1 << r] for r in range(n)), 2 * (n - 1))
    by_flow = least_partition(n, 0, cuts, start)
    balanced = g.balanced(range(n, g.size))
    if leaving:
        start = Fraction(sum(leaving[1 << r] for r in range(n)), 2 * (n - 1))
        exact = least_partition(n, g.size - n, leaving, start)
        assert by_flow == exact if balanced else by_flow <= exact, "partitions and flows differ"
        return exact
    return by_flow if balanced else None


CUTS = {}  # by graph: schedules of one machine have the same


def cuts_of(g):
    """What leaves each set of vertices, if they are few enough, and the least that leaves each set of ranks."""
    key = g.n, tuple(map(tuple, g.cap))
    if key not in CUTS:
        leaving = all_leaving(g) if g.size <= MAX_VERTICES else None
        CUTS[key] = leaving, rank_cuts(g, leaving)
    return CUTS[key]


def bound(g, collective, root):
    """Least bound in GB/s that a cut or a partition proves; None where it is too large to know."""
    if collective in INWARD:
        return bound(g.mirrored(), INWARD[collective], root)
    leaving, cuts = cuts_of(g)
    least = cut_bound(g, collective, root, cuts)
    if collective == "allreduce":
        parts = partition_bound(g, leaving, cuts)
        if parts is None:
            return None
        least = min(least, parts)
    return Fraction(least) / g.scale


# ---- the best packing of all trees ------------------------------------------------------------------------


def maximise(columns, limits):
    """Maximise gain.x, x >= 0, each row.x <= its limit >= 0. All integers; returns the exact optimum.

    columns: for each x its gain and {row: coefficient}. There are many more columns than rows, so this is the revised
    simplex method: `inverse` is that of the basis, in integers over one denominator, and a column is multiplied by it
    only when it enters. Greatest gain enters, except that after a degenerate pivot the lowest variable enters (Bland),
    so that it cannot cycle."""
    m = len(limits)
    slacks = [(0, [(i, 1)]) for i in range(m)]
    columns = [(gain, list(terms.items())) for gain, terms in columns] + slacks
    basis = list(range(len(columns) - m, len(columns)))
    inverse = [[int(i == k) for k in range(m)] + [limit] for i, limit in enumerate(limits)]  # and the basic solution
    dual = [0] * (m + 1)
    den, stalled = 1, False
    while True:
        enter, excess = None, 0
        for j, (gain, terms) in enumerate(columns):
            cost = -gain * den
            for i, value in terms:
                cost += value * dual[i]
            if cost < excess:
                enter, excess = j, cost
                if stalled:
                    break
        if enter is None:
            return Fraction(dual[m], den)
        column = [sum(value * row[i] for i, value in columns[enter][1]) for row in inverse]
        able = [i for i in range(m) if column[i] > 0]
        assert able, "unbounded"
        r = min(able, key=lambda i: (Fraction(inverse[i][m], column[i]), basis[i]))
        row, pivot = inverse[r], column[r]
        stalled = row[m] == 0
        for other, factor in zip(inverse + [dual], column + [excess]):
            if other is row:
                continue
            if factor:
                other[:] = [(a * pivot - factor * b) // den for a, b in zip(other, row)]
            elif pivot != den:
                other[:] = [a * pivot // den for a in other]
        basis[r], den = enter, pivot


def arborescences(n, root, hops):
    """Every spanning tree out of root, as a tuple of hops (u, v)."""
    others = [v for v in range(n) if v != root]
    for parents in product(*([u for u in range(n) if (u, v) in hops] for v in others)):
        into = dict(zip(others, parents))

        def reaches(v):
            for _ in range(n):
                v = into.get(v, root)
            return v == root

        if all(map(reaches, others)):
            yield tuple((into[v], v) for v in others)


def routes(g):
    """(u, v, link numbers) of every way between two ranks that passes each switch at most once and no rank."""
    found = []
    for source in range(g.n):
        stack = [(source, (), {source})]
        while stack:
            at, path, seen = stack.pop()
            for l, (u, v, _) in enumerate(g.links):
                if u == at and v not in seen:
                    if v < g.n:
                        found.append((source, v, path + (l,)))
                    else:
                        stack.append((v, path + (l,), seen | {v}))
    return found


OPTIMA = {}  # by graph, collective and root


def optimum(g, collective, root):
    """GB/s of the best weighted set of trees, one route or more for each hop; None where it is too large to know."""
    if collective in INWARD:
        return optimum(g.mirrored(), INWARD[collective], root)
    key = g.n, g.scale, tuple(sorted(g.links)), collective, root
    if key not in OPTIMA:
        OPTIMA[key] = best_packing(g, collective, root)
    return OPTIMA[key]


def best_packing(g, collective, root):
    """By a linear program over all spanning trees.

    Columns: x of each tree, y of each route, z of each root. Rows: trees that use a hop <= its routes; routes that
    use a link <= its capacity; z of a root <= its trees outward (allreduce: and <= its trees inward).
    broadcast: max z of the root; allgather: n z, the same z for each root; allreduce: max of the sum of z."""
    ways = routes(g)
    if g.n > MAX_LP_RANKS or len(ways) > MAX_ROUTES or collective not in LP_COLLECTIVES:
        return None
    hops = {(u, v) for u, v, _ in ways}
    roots = range(g.n) if root is None else [root]
    out = [(r, "out", tree) for r in roots for tree in arborescences(g.n, r, hops)]
    back = []
    if collective == "allreduce":
        turned = {(v, u) for u, v in hops}
        back = [(r, "in", tuple((v, u) for u, v in tree)) for r in roots for tree in arborescences(g.n, r, turned)]
    trees = out + back
    # Rows: links, then roots outward, then roots inward, then hops. A hop with one route needs no row: its trees use
    # the route.
    paths = {hop: [path for u, v, path in ways if (u, v) == hop] for hop in sorted(hops)}
    of_root = {(r, direction): len(g.links) + i
               for i, (direction, r) in enumerate(product(("out", "in") if back else ("out",), roots))}
    some = [hop for hop in paths if len(paths[hop]) > 1]
    row_of = {hop: len(g.links) + len(of_root) + i for i, hop in enumerate(some)}
    rows_of = {hop: [row_of[hop]] if hop in row_of else paths[hop][0] for hop in paths}
    columns = [(0, {of_root[r, direction]: -1, **Counter(row for hop in tree for row in rows_of[hop])})
               for r, direction, tree in trees]
    columns += [(0, {row_of[hop]: -1, **dict.fromkeys(path, 1)}) for hop in some for path in paths[hop]]
    if collective == "allgather":
        columns.append((1, {row: 1 for row in of_root.values()}))
    else:
        columns += [(1, {row: 1 for (root_of, _), row in of_root.items() if root_of == r}) for r in roots]
    best = maximise(columns, [capacity for _, _, capacity in g.links] + [0] * (len(of_root) + len(some)))
    return best * (g.n if collective == "allgather" else 1) / g.scale


# ---- command ----------------------------------------------------------------------------------------------


def compare(s):
    """Hold a schedule's bound against brute force. Returns a line of text; raises replay.Wrong."""
    g = graph_of(s)
    stated, rate, kind = replay.bound(s), replay.achieved(s), s.certificate["kind"]
    least, best = bound(g, s.collective, s.root), optimum(g, s.collective, s.root)
    where = "rate.bound"
    replay.need(least is None or stated <= least, where, f"{float(stated)} is above {float(least or 0)}, brute force")
    replay.need(least is None or kind in ("prices", "lengths") or stated == least, where,
                f"{float(stated)} is below {float(least or 0)}, brute force")
    text = "bound too large to check" if least is None else f"bound {float(stated):.3f}, brute force {float(least):.3f}"
    if best is not None:
        replay.need(best <= stated, where, f"{float(stated)} is below the best packing, {float(best)}")
        replay.need(rate <= best, "rate.achieved", f"{float(rate)} is above the best packing, {float(best)}")
        if g.direct() and (s.collective != "allreduce" or g.symmetric()):
            replay.need(stated == best, where, f"{float(stated)} is above the best packing, {float(best)}")
        text += f", best packing {float(best):.3f}"
    return f"{s.collective} {s.n} ranks, {text}, achieved {float(rate):.3f} GB/s"


def main(paths):
    wrong = skipped = False
    for path in paths:
        try:
            s = replay.read(replay.load(path))
            if not 2 <= s.n <= MAX_RANKS:
                print(f"{path}: skipped: {s.n} ranks, want 2 to {MAX_RANKS}")
                skipped = True
                continue
            print(f"{path}: ok {compare(s)}")
        except (replay.Wrong, OSError) as error:
            print(f"{path}: WRONG: {error}")
            wrong = True
    return 1 if wrong else 3 if skipped else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
