#!/usr/bin/env python3
"""Read a schedule file, trust nothing in it, and replay it exactly.

usage: replay.py SCHEDULE.json...

Written from the description of the format alone and sharing no code with blinkc, so that the two check each other.
One line per file, `FILE: ok ...` or `FILE: WRONG: why`; exit status 1 if any is wrong. All arithmetic is exact:
numbers are taken from the decimal text of the file, and only the stated rates are compared with a tolerance.

As a module: load(path) is strict JSON, read(document) the checked structure, judge(document) everything.
"""
import heapq
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import count
from math import floor, gcd, lcm

TOLERANCE = Fraction(1, 10**12)  # relative, of stated rates and of prices, which a file may hold rounded

# collective: has a root, reduces, e where the buffer has n**e blocks
COLLECTIVES = {
    "broadcast": (True, False, 0),
    "reduce": (True, True, 0),
    "allreduce": (False, True, 0),
    "gather": (True, False, 1),
    "scatter": (True, False, 1),
    "allgather": (False, False, 1),
    "reducescatter": (False, True, 1),
    "alltoall": (False, False, 2),
}


class Wrong(Exception):
    """What is wrong with a file, and where."""


def wrong(where, what):
    return Wrong(f"{where or 'document'}: {what}")


def need(condition, where, what):
    """Where it is asked a million times, `if` and `raise wrong` are cheaper: they make no text that nobody reads."""
    if not condition:
        raise wrong(where, what)


# ---- strict JSON ------------------------------------------------------------------------------------------


def unique_keys(pairs):
    out = {}
    for key, value in pairs:
        need(key not in out, repr(key), "key given twice")
        out[key] = value
    return out


def decimal(text):
    try:
        value = Decimal(text)
        if abs(value.adjusted()) <= 300:  # else a Fraction of it would be huge
            return value
    except InvalidOperation:
        pass
    raise Wrong(f"{text}: exponent out of range")


def constant(text):
    raise Wrong(f"{text}: not a JSON number")


def loads(data):
    """Strict JSON of bytes: UTF-8, no key twice, no NaN; numbers with a point or an exponent as Decimal."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique_keys, parse_float=decimal,
                          parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise Wrong(f"not JSON: {error}") from None


def load(path):
    with open(path, "rb") as file:
        return loads(file.read())


# ---- structure --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Link:
    src: object  # a rank (int) or the id of a switch or NIC (str)
    dst: object
    capacity: Fraction  # GB/s
    kind: str = ""  # its class


@dataclass(frozen=True)
class Edge:
    src: int
    dst: int
    links: tuple  # link numbers, in order


@dataclass(frozen=True)
class Tree:
    offset: Fraction  # of the buffer
    length: Fraction
    block: int
    part: int  # 0 where there are no parts
    root: int
    down: tuple
    up: tuple
    to: tuple  # the ranks it serves
    depth: int  # hops of the longest way up, and then of the longest way down


@dataclass(frozen=True)
class Part:
    links: frozenset  # classes
    rate: Fraction  # as stated, GB/s
    setup: Fraction  # us


@dataclass(frozen=True)
class Schedule:
    collective: str
    root: object
    n: int
    links: tuple
    multicast: set  # switches that copy
    reduce: set  # switches that add
    parts: tuple  # empty: there are none
    trees: tuple
    achieved: Fraction  # as stated, GB/s
    bound: Fraction
    certificate: dict


def field(obj, name, kind, where):
    need(isinstance(obj, dict), where, "want an object")
    need(name in obj, where, f"no {name}")
    value = obj[name]
    where = f"{where}.{name}" if where else name
    if kind is int:
        need(is_int(value), where, "want an integer")
    elif kind is Fraction:
        need(is_int(value) or isinstance(value, Decimal), where, "want a number")
        return Fraction(value)
    else:
        need(isinstance(value, kind), where, f"want {kind.__name__}")
    return value


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def fraction(value, where):
    """A fraction, 0 or above, in lowest terms, as text "p/q"."""
    match = isinstance(value, str) and re.fullmatch(r"(0|[1-9][0-9]{0,999})/([1-9][0-9]{0,999})", value)
    need(match, where, f'{value!r}: want "p/q"')
    p, q = int(match[1]), int(match[2])
    need(gcd(p, q) == 1, where, f"{value}: not in lowest terms")
    return Fraction(p, q)


def is_rank(value, n):
    return is_int(value) and 0 <= value < n


def rank(value, n, where):
    if not is_rank(value, n):
        raise wrong(where, f"{value!r}: want a rank below {n}")
    return value


def holder(collective, n, root, block):
    """The one rank that holds a block before; None where every rank has a contribution of its own."""
    return {"broadcast": root, "scatter": root, "gather": block, "allgather": block,
            "alltoall": block // n}.get(collective)


def needers(collective, n, root, block):
    """The ranks that need a block after."""
    if collective in ("broadcast", "allreduce", "allgather"):
        return tuple(range(n))
    return ({"reduce": root, "gather": root, "scatter": block, "reducescatter": block,
             "alltoall": block % n}[collective],)


def read_links(topology, n):
    links = []
    for i, entry in enumerate(field(topology, "links", list, "topology")):
        where = f"topology.links[{i}]"
        ends = []
        for name in ("from", "to"):
            vertex = field(entry, name, object, where)
            need(is_rank(vertex, n) or isinstance(vertex, str) and vertex, f"{where}.{name}",
                 f"{vertex!r}: want a rank below {n}, or an id")
            ends.append(vertex)
        need(ends[0] != ends[1], where, "leads from a vertex to itself")
        need(field(entry, "class", str, where), f"{where}.class", "empty")
        capacity = field(entry, "capacity", Fraction, where)
        need(capacity > 0, f"{where}.capacity", "want a number above 0")
        need(field(entry, "latency", Fraction, where) >= 0, f"{where}.latency", "want a number, 0 or above")
        links.append(Link(*ends, capacity, entry["class"]))
    return tuple(links)


def read_abilities(topology, links):
    """Switches that copy, and switches that add."""
    multicast, reduce = set(), set()
    for i, entry in enumerate(field(topology, "switches", list, "topology") if "switches" in topology else []):
        where = f"topology.switches[{i}]"
        switch = field(entry, "id", str, where)
        need(any(switch in (link.src, link.dst) for link in links), where, f"{switch!r}: no such switch")
        for name, able in (("multicast", multicast), ("reduce", reduce)):
            if name in entry and field(entry, name, bool, where):
                able.add(switch)
    return multicast, reduce


def read_parts(doc):
    parts, taken = [], set()
    for i, entry in enumerate(field(doc, "parts", list, "") if "parts" in doc else []):
        where = f"parts[{i}]"
        links = field(entry, "links", list, where)
        need(links and all(isinstance(kind, str) for kind in links), f"{where}.links", "want link classes")
        need(len(set(links)) == len(links) and not set(links) & taken, f"{where}.links", "a class twice")
        taken |= set(links)
        setup = field(entry, "setup", Fraction, where)
        need(0 <= setup <= 10**6, f"{where}.setup", "want 0 to 1000000")
        parts.append(Part(frozenset(links), field(entry, "rate", Fraction, where), setup))
    need(parts or "parts" not in doc, "parts", "empty")
    return tuple(parts)


def read_edges(values, n, links, copies, adds, where):
    """A phase. An edge starts at its source, or at a switch of `copies` if the last edge through that switch had the
    same
    source; it ends at its destination, or at one of `adds` if the last edge through that switch had the same one."""
    edges, last = [], {}
    for i, value in enumerate(values):
        edge = read_edge(value, n, links, copies, adds, last, f"{where}[{i}]")
        rank_of = edge.dst if adds is not None else edge.src
        for number in edge.links:
            last[links[number].src] = last[links[number].dst] = rank_of
        edges.append(edge)
    return tuple(edges)


def read_edge(value, n, links, copies, adds, last, where):
    need(isinstance(value, list) and len(value) == 3 and isinstance(value[2], list), where,
         "want [src, dst, [link...]]")
    src, dst, route = rank(value[0], n, where), rank(value[1], n, where), value[2]
    need(src != dst, where, "leads from a rank to itself")
    need(route, where, "no links")
    at, end = src, dst
    for number in route:
        if not is_rank(number, len(links)):
            raise wrong(where, "no such link")
    if copies and links[route[0]].src in copies and last.get(links[route[0]].src) == src:
        at = links[route[0]].src
    if adds and links[route[-1]].dst in adds and last.get(links[route[-1]].dst) == dst:
        end = links[route[-1]].dst
    for i, number in enumerate(route):
        if links[number].src != at:
            raise wrong(where, f"link {number} starts at {links[number].src}, data is at {at}")
        at = links[number].dst
        if i < len(route) - 1 and not isinstance(at, str):
            raise wrong(where, f"passes through rank {at}")
    if at != end:
        raise wrong(where, f"links lead to {at}, not to {end}")
    need(len(set(route)) == len(route), where, "uses a link twice")
    return Edge(src, dst, tuple(route))


def depth_down(edges, root, where):
    """Longest way from the root; every source must be reached before it sends."""
    depth = {root: 0}
    for i, edge in enumerate(edges):
        if edge.src not in depth:
            raise wrong(f"{where}.down[{i}]", f"rank {edge.src} is not reached yet")
        if edge.dst in depth:
            raise wrong(f"{where}.down[{i}]", f"rank {edge.dst} is reached already")
        depth[edge.dst] = depth[edge.src] + 1
    return max(depth.values())


def depth_up(edges, root, where):
    """Longest way to the root; every rank sends once, after all that it receives."""
    sent, height = set(), {root: 0}
    for i, edge in enumerate(edges):
        if edge.src == root:
            raise wrong(f"{where}.up[{i}]", f"the root, rank {root}, sends")
        if edge.src in sent:
            raise wrong(f"{where}.up[{i}]", f"rank {edge.src} sends twice")
        if edge.dst in sent:
            raise wrong(f"{where}.up[{i}]", f"rank {edge.dst} has sent already")
        sent.add(edge.src)
        height[edge.dst] = max(height.get(edge.dst, 0), height.get(edge.src, 0) + 1)
    for i, edge in enumerate(edges):
        if edge.dst != root and edge.dst not in sent:
            raise wrong(f"{where}.up[{i}]", f"rank {edge.dst} never sends to the root")
    return height[root]


def read_tree(entry, collective, root, n, links, abilities, parts, where):
    segment = field(entry, "segment", list, where)
    need(len(segment) == 2, f"{where}.segment", "want [offset, length]")
    offset, length = (fraction(value, f"{where}.segment[{i}]") for i, value in enumerate(segment))
    need(length > 0, f"{where}.segment", "empty")
    need(offset + length <= 1, f"{where}.segment", "ends after the buffer")
    n_blocks = n ** COLLECTIVES[collective][2]
    block = floor(offset * n_blocks)
    need((offset + length) * n_blocks <= block + 1, f"{where}.segment", f"not inside one of the {n_blocks} blocks")

    tree_root = rank(field(entry, "root", object, where), n, f"{where}.root")
    edges = {}
    for phase in ("down", "up"):
        values = field(entry, phase, list, where) if phase in entry else []
        adds = abilities[1] if COLLECTIVES[collective][1] else set()
        edges[phase] = read_edges(values, n, links, abilities[0] if phase == "down" else set(),
                                  adds if phase == "up" else None, f"{where}.{phase}")
    part = field(entry, "part", int, where) if parts else 0
    need(not parts or 0 <= part < len(parts), f"{where}.part", f"{part}: no such part")
    need(not parts or all(links[number].kind in parts[part].links for edge in edges["up"] + edges["down"]
                          for number in edge.links),
         f"{where}.part", "a link of another class")
    depth = depth_up(edges["up"], tree_root, where) + depth_down(edges["down"], tree_root, where)

    to = serves = needers(collective, n, root, block)
    if "to" in entry:
        to = tuple(rank(r, n, f"{where}.to") for r in field(entry, "to", list, where))
        need(to, f"{where}.to", "empty")
        need(len(set(to)) == len(to), f"{where}.to", "a rank twice")
        need(set(to) <= set(serves), f"{where}.to", "a rank that needs nothing of this segment")
    return Tree(offset, length, block, part, tree_root, edges["down"], edges["up"], to, depth)


def read(doc):
    """Check the kind of every field and the shape of every tree."""
    need(field(doc, "format", str, "") == "blink-schedule", "format", 'want "blink-schedule"')
    need(field(doc, "version", int, "") == 1, "version", "want 1")
    generator = field(doc, "generator", dict, "")
    for name, kind in (("name", str), ("version", str), ("options", dict)):
        field(generator, name, kind, "generator")

    topology = field(doc, "topology", dict, "")
    field(topology, "name", str, "topology")
    digest = field(topology, "digest", str, "topology")
    need(re.fullmatch("sha256:[0-9a-f]{64}", digest), "topology.digest", 'want "sha256:" and 64 hex digits')
    ranks = field(topology, "ranks", list, "topology")
    need(ranks, "topology.ranks", "empty")
    for i, entry in enumerate(ranks):
        for name in ("gpu", "node"):
            need(field(entry, name, str, f"topology.ranks[{i}]"), f"topology.ranks[{i}].{name}", "empty")
    need(len({entry["gpu"] for entry in ranks}) == len(ranks), "topology.ranks", "a GPU twice")
    n = len(ranks)
    links = read_links(topology, n)
    abilities = read_abilities(topology, links)

    collective = field(doc, "collective", str, "")
    need(collective in COLLECTIVES, "collective", f"{collective!r}: unknown")
    root = field(doc, "root", object, "")
    if COLLECTIVES[collective][0]:
        rank(root, n, "root")
    else:
        need(root is None, "root", f"want null for {collective}")
    need(field(doc, "algorithm", str, ""), "algorithm", "empty")

    parts = read_parts(doc)
    trees = tuple(read_tree(entry, collective, root, n, links, abilities, parts, f"trees[{i}]")
                  for i, entry in enumerate(field(doc, "trees", list, "")))
    rate = field(doc, "rate", dict, "")
    return Schedule(collective, root, n, links, *abilities, parts, trees, field(rate, "achieved", Fraction, "rate"),
                    field(rate, "bound", Fraction, "rate"), field(rate, "certificate", dict, "rate"))


# ---- who holds whose data ---------------------------------------------------------------------------------


FIELD = 2  # bits of a count in a multiset


def replay(s, tree):
    """The multiset of contributions that each rank holds of the tree's segment in the end: an integer with a field of
    FIELD bits for each rank, how often its contribution is there. A sum of multisets is one addition. As no rank sends
    up twice (depth_up), a contribution comes to a rank by one way, and to its own once more: no count is above 2."""
    reduces = COLLECTIVES[s.collective][1]
    owner = holder(s.collective, s.n, s.root, tree.block)
    state = [1 << FIELD * r if reduces or r == owner else 0 for r in range(s.n)]
    for edge in tree.up:
        state[edge.dst] = state[edge.dst] + state[edge.src] if reduces else state[edge.src]
    for edge in tree.down:
        state[edge.dst] = state[edge.src]
    return state


def told(state, n):
    """A multiset for people: how often each contribution is there."""
    counts = {r: state >> FIELD * r & (1 << FIELD) - 1 for r in range(n)}
    return {r: count for r, count in counts.items() if count}


def check_results(s):
    everyone = sum(1 << FIELD * r for r in range(s.n))
    for i, tree in enumerate(s.trees):
        owner = holder(s.collective, s.n, s.root, tree.block)
        want = everyone if owner is None else 1 << FIELD * owner
        state = replay(s, tree)
        for r in tree.to:
            if state[r] != want:
                raise wrong(f"trees[{i}]", f"rank {r} ends with {told(state[r], s.n)}, not {told(want, s.n)}")


def check_cover(s):
    """For each rank: segments that serve it are disjoint and cover all that it needs and does not hold before. Offsets
    and lengths are integers, in a unit that all of them are multiples of."""
    n_blocks = s.n ** COLLECTIVES[s.collective][2]
    unit = lcm(n_blocks, *(end.denominator for tree in s.trees for end in (tree.offset, tree.length)))
    served = [[] for _ in range(s.n)]
    for i, tree in enumerate(s.trees):
        segment = int(tree.offset * unit), int((tree.offset + tree.length) * unit), i
        for r in tree.to:
            served[r].append(segment)
    covered = Counter()  # (rank, block): how much of the buffer
    for r, segments in enumerate(served):
        segments.sort()
        for (_, end, i), (offset, _, j) in zip(segments, segments[1:]):
            if end > offset:
                raise wrong(f"trees[{j}].segment", f"overlaps trees[{i}] for rank {r}")
        for offset, end, i in segments:
            covered[r, s.trees[i].block] += end - offset
    for block in range(n_blocks):
        owner = holder(s.collective, s.n, s.root, block)
        for r in needers(s.collective, s.n, s.root, block):
            if r != owner and s.n > 1 and covered[r, block] != unit // n_blocks:
                raise wrong("trees", f"rank {r} lacks data of block {block}")


# ---- rate -------------------------------------------------------------------------------------------------


def achieved(s, part=None):
    """GB/s of algorithm bandwidth, of all trees or those of a part; 0 where nothing moves."""
    trees = [tree for tree in s.trees if part in (None, tree.part)]
    unit = lcm(*(tree.length.denominator for tree in trees))
    load = Counter()  # of each link, in units
    for tree in trees:
        length = int(tree.length * unit)
        for edge in tree.up + tree.down:
            for link in edge.links:
                load[link] += length
    sent = Fraction(s.n if s.collective == "alltoall" else 1, unit)
    slowest = max((sent * load[link] / s.links[link].capacity for link in load), default=0)
    return 1 / slowest if slowest else Fraction(0)


def leaving(links, side):
    return sum((link.capacity for link in links if link.src in side and link.dst not in side), Fraction(0))


def vertex_set(s, value, where):
    need(isinstance(value, list), where, "want an array of vertices")
    known = set(range(s.n)) | {end for link in s.links for end in (link.src, link.dst)}
    for vertex in value:
        need((is_int(vertex) or isinstance(vertex, str)) and vertex in known, where, f"{vertex!r}: no such vertex")
    need(len(set(value)) == len(value), where, "a vertex twice")
    return set(value)


def cut_bound(s, side, where):
    """What leaves (or for reduce, gather and reducescatter enters) the side must carry, per byte of algorithm size:
    broadcast, reduce and allreduce 1; allgather and reducescatter the blocks of the ranks on the side; gather and
    scatter the blocks of the ranks beyond; alltoall a block from each rank on the side to each beyond."""
    inside = sum(is_int(v) for v in side)
    need(0 < inside < s.n, where, "want some rank inside and some rank outside")
    if s.root is not None:
        need(s.root in side, where, f"the root, rank {s.root}, is outside")
    inward = s.collective in ("reduce", "gather", "reducescatter")
    links = [Link(l.dst, l.src, l.capacity) for l in s.links] if inward else s.links
    n, outside = s.n, s.n - inside
    amount = {"allgather": Fraction(inside, n), "reducescatter": Fraction(inside, n), "gather": Fraction(outside, n),
              "scatter": Fraction(outside, n), "alltoall": Fraction(inside * outside, n)}.get(s.collective, 1)
    return leaving(links, side) / amount


def partition_bound(s, parts, where):
    need(s.collective == "allreduce", where, f"a partition proves nothing for {s.collective}")
    need(len(parts) >= 2, where, "want two parts or more")
    seen = set()
    for i, part in enumerate(parts):
        need(any(is_int(v) for v in part), f"{where}[{i}]", "holds no rank")
        need(not seen & part, f"{where}[{i}]", "overlaps an earlier part")
        seen |= part
    need(set(range(s.n)) <= seen, where, "some rank is in no part")
    copies, adds = s.multicast - seen, s.reduce - seen
    need(not copies or not adds, where, "switches in no part copy and add")
    links = [Link(l.dst, l.src, l.capacity) for l in s.links] if copies else s.links
    return sum(leaving(links, part) for part in parts) / (2 * (len(parts) - 1))


def hop_prices(n, links, price):
    """(cost, src, dst) of the cheapest way between each two ranks that passes only switches."""
    out = {}
    for link, cost in zip(links, price):
        out.setdefault(link.src, []).append((link.dst, cost))
    hops = []
    for src in range(n):
        best, heap, tie = {}, [(0, 0, src)], count()  # a rank and an id do not compare
        while heap:
            cost, _, at = heapq.heappop(heap)
            if at in best:
                continue
            best[at] = cost
            if at == src or isinstance(at, str):
                for to, more in out.get(at, ()):
                    heapq.heappush(heap, (cost + more, next(tie), to))
        hops += [(cost, src, dst) for dst, cost in best.items() if is_int(dst) and dst != src]
    return hops


def min_arborescence(n, root, hops):
    """Cost of the cheapest tree from root to all of 0..n-1 (Chu and Liu, Edmonds); None where there is none."""
    total = 0
    while True:
        into = [None] * n
        for cost, u, v in hops:
            if u != v and v != root and (into[v] is None or cost < into[v][0]):
                into[v] = (cost, u)
        if any(into[v] is None for v in range(n) if v != root):
            return None
        total += sum(into[v][0] for v in range(n) if v != root)
        group, seen, n_groups = [None] * n, [None] * n, 0
        for start in range(n):  # number the cycles of the cheapest hops
            v = start
            while v != root and seen[v] is None:
                seen[v], v = start, into[v][1]
            if v != root and seen[v] == start and group[v] is None:
                while group[v] is None:
                    group[v], v = n_groups, into[v][1]
                n_groups += 1
        if n_groups == 0:
            return total
        for v in range(n):
            if group[v] is None:
                group[v], n_groups = n_groups, n_groups + 1
        hops = [(cost - (into[v][0] if v != root else 0), group[u], group[v]) for cost, u, v in hops
                if group[u] != group[v]]
        n, root = n_groups, group[root]


def block_trees(s, price):
    """(share of M, price of the cheapest tree) of each part that the collective moves; None where there is no tree."""
    hops = hop_prices(s.n, s.links, price)
    back = [(cost, v, u) for cost, u, v in hops]
    ranks, one = range(s.n), Fraction(1, s.n)
    if s.collective == "broadcast":
        return [(1, min_arborescence(s.n, s.root, hops))]
    if s.collective == "reduce":
        return [(1, min_arborescence(s.n, s.root, back))]
    if s.collective == "allreduce":
        both = [(min_arborescence(s.n, r, hops), min_arborescence(s.n, r, back)) for r in ranks]
        return [(1, min((down + up for down, up in both if down is not None and up is not None), default=None))]
    if s.collective == "allgather":
        return [(one, min_arborescence(s.n, r, hops)) for r in ranks]
    if s.collective == "reducescatter":
        return [(one, min_arborescence(s.n, r, back)) for r in ranks]
    pairs = {"gather": [(r, s.root) for r in ranks], "scatter": [(s.root, r) for r in ranks],
             "alltoall": [(u, v) for u in ranks for v in ranks]}[s.collective]
    # All-pairs shortest paths (Floyd and Warshall): other GPUs may relay.
    far = {(u, v): cost for cost, u, v in sorted(hops, reverse=True)}
    for k in ranks:
        for u in ranks:
            for v in ranks:
                if (u, k) in far and (k, v) in far:
                    far[u, v] = min(far.get((u, v), far[u, k] + far[k, v]), far[u, k] + far[k, v])
    return [(one, far.get(pair)) for pair in pairs if pair[0] != pair[1]]


def price_bound(s, values, where):
    """Prices (of whole buffers) and lengths (of blocks): the trees that move M bytes cost at least 1 a byte of M, and
    no
    link takes in more than capacity times price."""
    need(len(values) == len(s.links), where, f"want {len(s.links)}, one per link")
    price = []
    for i, value in enumerate(values):
        if isinstance(value, str):
            price.append(fraction(value, f"{where}[{i}]"))
        else:
            need(is_int(value) or isinstance(value, Decimal), f"{where}[{i}]", "want a number")
            price.append(Fraction(value))
        need(price[-1] >= 0, f"{where}[{i}]", "want 0 or above")
    scale = lcm(*(p.denominator for p in price))
    trees = block_trees(s, [int(p * scale) for p in price])
    need(all(cost is not None for _, cost in trees), where, "no tree reaches every rank")
    cost = sum(share * Fraction(cost, scale) for share, cost in trees)
    need(cost >= 1 - TOLERANCE, where, f"the trees cost {float(cost)}, less than 1")
    return sum(l.capacity * p for l, p in zip(s.links, price)) / min(cost, 1)


def bound(s):
    """GB/s that the certificate proves no algorithm can exceed."""
    where = "rate.certificate"
    kind = field(s.certificate, "kind", str, where)
    if kind == "cut":
        return cut_bound(s, vertex_set(s, field(s.certificate, "side", list, where), f"{where}.side"), f"{where}.side")
    if kind == "partition":
        parts = field(s.certificate, "parts", list, where)
        return partition_bound(s, [vertex_set(s, part, f"{where}.parts[{i}]") for i, part in enumerate(parts)],
                               f"{where}.parts")
    blocks = COLLECTIVES[s.collective][2] > 0
    need(kind == ("lengths" if blocks else "prices"), f"{where}.kind", f"{kind!r}: proves nothing for {s.collective}")
    shared = (s.multicast if s.collective in ("broadcast", "allgather", "allreduce") else set()) | (
        s.reduce if COLLECTIVES[s.collective][1] else set())
    need(not shared, f"{where}.kind", f"{kind!r}: proves nothing where trees share links at switches")
    name = "length" if blocks else "price"
    return price_bound(s, field(s.certificate, name, list, where), f"{where}.{name}")


def check_rate(s):
    """Stated rates are what trees and certificate give. Returns the exact two; one rank alone moves nothing: 0, 0."""
    exact = achieved(s), (bound(s) if s.n > 1 else Fraction(0))
    for name, stated, value in (("achieved", s.achieved, exact[0]), ("bound", s.bound, exact[1])):
        need(abs(stated - value) <= TOLERANCE * value, f"rate.{name}", f"{float(stated)}, but it is {float(value)}")
    need(exact[0] <= exact[1], "rate", f"achieved {float(exact[0])} is above the bound {float(exact[1])}")
    return exact


def part_spans(s):
    """The interval that each part has of a block, the same in all blocks in which it has trees."""
    n_blocks, spans = s.n ** COLLECTIVES[s.collective][2], []
    for i in range(len(s.parts)):
        found = {}
        for tree in s.trees:
            if tree.part == i:
                begin = tree.offset * n_blocks - tree.block
                low, high = found.get(tree.block, (begin, begin))
                found[tree.block] = min(low, begin), max(high, begin + tree.length * n_blocks)
        need(found, f"parts[{i}]", "no tree")
        need(len(set(found.values())) == 1, f"parts[{i}]", "other shares of other blocks")
        spans.append(found.popitem()[1])
    return spans


def part_rates(s):
    """Exact GB/s of each part by itself. Shares are in proportion to them, and parts lie in order."""
    spans = part_spans(s)
    rates = [achieved(s, i) * (end - begin) for i, (begin, end) in enumerate(spans)]
    at = Fraction(0)
    for i, (part, rate, span) in enumerate(zip(s.parts, rates, spans)):
        need(rate > 0 and abs(part.rate - rate) <= TOLERANCE * rate, f"parts[{i}].rate",
             f"{float(part.rate)}, but it is {float(rate)}")
        need(span == (at, at + rate / sum(rates)), f"parts[{i}]", f"{span[0]} to {span[1]} of a block: not by "
                                                                  f"the rates")
        at = span[1]
    return rates


def judge(doc):
    """Everything. Returns the structure and the exact achieved rate and bound; raises Wrong."""
    s = read(doc)
    check_results(s)
    check_cover(s)
    part_rates(s)
    return s, *check_rate(s)


def describe(doc):
    s, rate, limit = judge(doc)
    depth = max((tree.depth for tree in s.trees), default=0)
    ratio = float(rate / limit) if limit else 1.0
    trees = "1 tree" if len(s.trees) == 1 else f"{len(s.trees)} trees"
    return (f"{s.collective} {s.n} ranks, {trees}, depth {depth}, "
            f"{float(rate):.3f} of {float(limit):.3f} GB/s, ratio {ratio:.3f}")


def main(paths):
    wrong = 0
    for path in paths:
        try:
            print(f"{path}: ok {describe(load(path))}")
        except (Wrong, OSError, OverflowError) as error:
            print(f"{path}: WRONG: {error}")
            wrong = 1
    return wrong


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
