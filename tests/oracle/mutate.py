#!/usr/bin/env python3
"""Make one thing wrong in a right schedule.

usage: mutate.py SCHEDULE.json SEED [--kind KIND]          the mutant on stdout, the name of its kind on stderr
       mutate.py --each SEED DIRECTORY SCHEDULE.json...    DIRECTORY/KIND.SCHEDULE.json of every kind that applies
       mutate.py --list                                    the kinds

Every mutant of a right schedule must be refused. Where the mutation changes loads or the certificate, the stated rates
are made to fit again, so that only what was broken can give it away. Exit status 3 if the kind (without --kind: every
kind) does not apply to this schedule.

Each kind is a function of the document and a random source. It changes the document and returns True, or returns
False if it finds nothing to break.
"""
import json
import os
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import replay
from lcg import Lcg

PHASES = ("down", "up")
KINDS = {}


def mutation(function):
    KINDS[function.__name__.replace("_", "-")] = function
    return function


# ---- what is there to break -------------------------------------------------------------------------------


def n_ranks(doc):
    return len(doc["topology"]["ranks"])


def block_of(doc, tree):
    n_blocks = n_ranks(doc) ** replay.COLLECTIVES[doc["collective"]][2]
    return int(Fraction(tree["segment"][0]) * n_blocks)


def holder(doc, tree):
    return replay.holder(doc["collective"], n_ranks(doc), doc["root"], block_of(doc, tree))


def needers(doc, tree):
    return replay.needers(doc["collective"], n_ranks(doc), doc["root"], block_of(doc, tree))


def served(doc, tree):
    """Ranks that get from this tree what they do not hold before."""
    return [r for r in tree.get("to", needers(doc, tree)) if r != holder(doc, tree)]


def unserved(doc, tree):
    """Ranks that other trees serve with this segment."""
    return [r for r in needers(doc, tree) if r not in tree.get("to", needers(doc, tree)) and r != holder(doc, tree)]


def reduces(doc):
    return replay.COLLECTIVES[doc["collective"]][1]


def edges(tree):
    return tree.get("up", []) + tree.get("down", [])


def phases(doc):
    """(tree, list of edges) of every phase that has an edge."""
    return [(tree, tree[phase]) for tree in doc["trees"] for phase in PHASES if tree.get(phase)]


def working(doc):
    """Trees without which some rank lacks something."""
    return [tree for tree in doc["trees"] if edges(tree) and served(doc, tree)]


def pick(rng, items):
    return rng.choice(items) if items else None


def number(value):
    """An exact fraction as a JSON number of 28 digits."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def restate(doc):
    """State the achieved rate that the trees give now, where they still give one."""
    load, links = Counter(), doc["topology"]["links"]
    for tree in doc["trees"]:
        for edge in edges(tree):
            for link in edge[2]:
                if link < len(links):
                    load[link] += Fraction(tree["segment"][1])
    slowest = max((load[link] / Fraction(links[link]["capacity"]) for link in load), default=0)
    if slowest:
        scale = n_ranks(doc) if doc["collective"] == "alltoall" else 1
        doc["rate"]["achieved"] = number(1 / slowest / scale)
    for i, part in enumerate(doc.get("parts", [])):
        rate = rate_of_part(doc, i)
        if rate:
            part["rate"] = number(rate)
    return True


def rate_of_part(doc, i):
    """What the trees of a part carry by themselves; 0 where they carry nothing."""
    n_blocks = n_ranks(doc) ** replay.COLLECTIVES[doc["collective"]][2]
    scale = n_ranks(doc) if doc["collective"] == "alltoall" else 1
    load, ends, links = Counter(), [], doc["topology"]["links"]
    for tree in doc["trees"]:
        if tree.get("part") != i:
            continue
        begin, length = (Fraction(text) for text in tree["segment"])
        ends += [begin * n_blocks % 1, begin * n_blocks % 1 + length * n_blocks]
        for edge in edges(tree):
            for link in edge[2]:
                if link < len(links):
                    load[link] += length * scale
    slowest = max((load[link] / Fraction(links[link]["capacity"]) for link in load), default=0)
    return (max(ends) - min(ends)) / slowest if slowest else 0


def show(fraction):
    return f"{fraction.numerator}/{fraction.denominator}"


# ---- trees ------------------------------------------------------------------------------------------------


@mutation
def drop_edge(doc, rng):
    found = []
    for tree in working(doc):
        need = served(doc, tree)
        found += [(tree["down"], edge) for edge in tree.get("down", []) if edge[1] in need]
        up = tree.get("up", [])
        if reduces(doc):
            found += [(up, edge) for edge in up]
        elif tree["root"] != holder(doc, tree):  # what the last edge into the root brings is what the root has
            found += [(up, edge) for edge in up if edge[1] == tree["root"]][-1:]
    if not found:
        return False
    phase, edge = rng.choice(found)
    phase.remove(edge)
    return restate(doc)


@mutation
def drop_phase(doc, rng):
    tree = pick(rng, [tree for tree in working(doc) if len([1 for phase in PHASES if tree.get(phase)]) == 2])
    if not tree:
        return False
    del tree[rng.choice(PHASES)]
    return restate(doc)


@mutation
def drop_tree(doc, rng):
    tree = pick(rng, working(doc))
    if not tree:
        return False
    doc["trees"].remove(tree)
    return restate(doc)


@mutation
def duplicate_tree(doc, rng):
    tree = pick(rng, working(doc))
    if not tree:
        return False
    doc["trees"].append(json.loads(json.dumps(tree)))
    return restate(doc)


@mutation
def duplicate_edge(doc, rng):
    tree, phase = pick(rng, phases(doc)) or (None, None)
    if not phase:
        return False
    i = rng.below(len(phase))
    phase.insert(i, phase[i])
    return restate(doc)


@mutation
def duplicate_contribution(doc, rng):
    """A rank sends up to two ranks, so that its contribution counts twice."""
    ways = [edge for _, phase in phases(doc) for edge in phase]
    found = []
    for tree in doc["trees"] if reduces(doc) else []:
        up = tree.get("up", [])
        for i, (src, dst, _) in enumerate(up):
            later = {edge[0] for edge in up[i + 1:]} | {tree["root"]}
            found += [(up, i, way) for way in ways if way[0] == src and way[1] != dst and way[1] in later]
    if not found:
        return False
    up, i, way = rng.choice(found)
    up.insert(i + 1, way)
    return restate(doc)


@mutation
def add_cycle(doc, rng):
    """Give the root a parent."""
    ways = [edge for _, phase in phases(doc) for edge in phase]
    found = []
    for tree in doc["trees"]:
        reached = {edge[1] for edge in tree.get("down", [])}
        found += [(tree, way) for way in ways if way[1] == tree["root"] and way[0] in reached]
    if not found:
        return False
    tree, way = rng.choice(found)
    tree["down"].append(way)
    return restate(doc)


@mutation
def reverse_edge(doc, rng):
    tree, phase = pick(rng, phases(doc)) or (None, None)
    if not phase:
        return False
    i = rng.below(len(phase))
    src, dst, route = phase[i]
    phase[i] = [dst, src, route]
    return True


@mutation
def reverse_edge_and_links(doc, rng):
    """As reverse-edge, over links that do lead that way."""
    links = doc["topology"]["links"]
    number_of = {(link["from"], link["to"]): l for l, link in enumerate(links)}
    found = []
    for _, phase in phases(doc):
        for i, (_, _, route) in enumerate(phase):
            back = [number_of.get((links[l]["to"], links[l]["from"])) for l in reversed(route)]
            if None not in back:
                found.append((phase, i, back))
    if not found:
        return False
    phase, i, back = rng.choice(found)
    phase[i] = [phase[i][1], phase[i][0], back]
    return restate(doc)


@mutation
def unorder(doc, rng):
    """Move an edge before the one that brings its data (down), or after the one that takes it on (up)."""
    found = [(phase, i, j) for _, phase in phases(doc) for i, first in enumerate(phase)
             for j, second in enumerate(phase) if i < j and first[1] == second[0]]
    if not found:
        return False
    phase, i, j = rng.choice(found)
    phase.insert(i, phase.pop(j))
    return True


@mutation
def swap_phases(doc, rng):
    tree = pick(rng, [tree for tree, _ in phases(doc)])
    if not tree:
        return False
    up, down = tree.pop("up", None), tree.pop("down", None)
    tree.update({name: value for name, value in (("down", up), ("up", down)) if value})
    return True


@mutation
def swap_root(doc, rng):
    tree = pick(rng, [tree for tree in doc["trees"] if edges(tree)])
    if not tree:
        return False
    tree["root"] = (tree["root"] + rng.between(1, n_ranks(doc) - 1)) % n_ranks(doc)
    return True


@mutation
def third_rank(doc, rng):
    """Two edges made one that passes through the rank between them."""
    found = [(phase, j, [first[0], second[1], first[2] + second[2]]) for _, phase in phases(doc) for first in phase
             for j, second in enumerate(phase) if first[1] == second[0] and first[0] != second[1]]
    if not found:
        return False
    phase, j, edge = rng.choice(found)
    phase[j] = edge
    return restate(doc)


@mutation
def wrong_link(doc, rng):
    links = doc["topology"]["links"]
    _, phase = pick(rng, phases(doc)) or (None, None)
    if not phase:
        return False
    edge = rng.choice(phase)
    i = rng.below(len(edge[2]))
    ends = [(link["from"], link["to"]) for link in links]
    other = pick(rng, [l for l in range(len(links)) if ends[l] != ends[edge[2][i]]])
    if other is None:
        return False
    edge[2][i] = other
    return restate(doc)


@mutation
def no_links(doc, rng):
    _, phase = pick(rng, phases(doc)) or (None, None)
    if not phase:
        return False
    rng.choice(phase)[2].clear()
    return restate(doc)


@mutation
def link_out_of_range(doc, rng):
    _, phase = pick(rng, phases(doc)) or (None, None)
    if not phase:
        return False
    rng.choice(phase)[2][-1] = len(doc["topology"]["links"])
    return restate(doc)


@mutation
def rank_out_of_range(doc, rng):
    _, phase = pick(rng, phases(doc)) or (None, None)
    if not phase:
        return False
    rng.choice(phase)[rng.below(2)] = rng.choice([-1, n_ranks(doc)])
    return True


# ---- segments and whom they serve -------------------------------------------------------------------------


def resize(doc, rng, change):
    """Replace the segment of a tree by change(offset, length)."""
    tree = pick(rng, working(doc))
    if not tree:
        return False
    tree["segment"] = [show(part) for part in change(*map(Fraction, tree["segment"]))]
    return restate(doc)


@mutation
def shift_segment(doc, rng):
    return resize(doc, rng, lambda offset, length: (offset + length / rng.between(2, 9), length))


@mutation
def shorten_segment(doc, rng):
    return resize(doc, rng, lambda offset, length: (offset, length * Fraction(rng.between(1, 99), 100)))


@mutation
def lengthen_segment(doc, rng):
    return resize(doc, rng, lambda offset, length: (offset, length * (1 + Fraction(1, rng.between(1, 99)))))


@mutation
def empty_segment(doc, rng):
    return resize(doc, rng, lambda offset, length: (offset, Fraction(0)))


@mutation
def not_lowest_terms(doc, rng):
    tree = pick(rng, doc["trees"])
    if not tree:
        return False
    i, times = rng.below(2), rng.between(2, 9)
    p, q = tree["segment"][i].split("/")
    tree["segment"][i] = f"{int(p) * times}/{int(q) * times}"
    return True


@mutation
def swap_blocks(doc, rng):
    """Two trees exchange segments of different blocks."""

    def differ(a, b):
        if reduces(doc):
            return a["root"] != b["root"] and not a.get("down") and not b.get("down")
        return holder(doc, a) != holder(doc, b) or not set(needers(doc, a)) <= {r for e in edges(b) for r in e[:2]}

    found = [(a, b) for a in working(doc) for b in working(doc) if block_of(doc, a) != block_of(doc, b)
             and differ(a, b)]
    if not found:
        return False
    a, b = rng.choice(found)
    a["segment"], b["segment"] = b["segment"], a["segment"]
    return restate(doc)


@mutation
def unserve(doc, rng):
    """Leave a rank out of `to`."""
    tree = pick(rng, [tree for tree in working(doc) if len(tree.get("to", needers(doc, tree))) > 1])
    if not tree:
        return False
    out = rng.choice(served(doc, tree))
    tree["to"] = [r for r in tree.get("to", needers(doc, tree)) if r != out]
    return True


@mutation
def serve_twice(doc, rng):
    """A rank more in `to`, which other trees serve already."""
    tree = pick(rng, [tree for tree in working(doc) if unserved(doc, tree)])
    if not tree:
        return False
    tree["to"] = sorted(tree["to"] + [rng.choice(unserved(doc, tree))])
    return True


@mutation
def drop_to(doc, rng):
    tree = pick(rng, [tree for tree in working(doc) if unserved(doc, tree)])
    if not tree:
        return False
    del tree["to"]
    return True


# ---- parts ------------------------------------------------------------------------------------------------


def parts_of(doc, least=1):
    parts = doc.get("parts", [])
    return parts if len(parts) >= least else None


@mutation
def part_rate(doc, rng):
    parts = parts_of(doc)
    if not parts:
        return False
    part = rng.choice(parts)
    part["rate"] = number(Fraction(part["rate"]) * (1 + Fraction(rng.choice([-1, 1]), 10 ** rng.between(1, 6))))
    return True


@mutation
def part_shares(doc, rng):
    """Another boundary between two parts, to which both keep; their rates stay, their shares are no longer in
    proportion."""
    parts = parts_of(doc, 2)
    if not parts:
        return False
    n_blocks = n_ranks(doc) ** replay.COLLECTIVES[doc["collective"]][2]
    trees = [tree for tree in doc["trees"] if tree["part"] in (0, 1)]
    inside = [(block_of(doc, tree), Fraction(tree["segment"][0]) * n_blocks % 1,
               Fraction(tree["segment"][1]) * n_blocks)
              for tree in trees]
    first = max(begin + length for tree, (_, begin, length) in zip(trees, inside) if tree["part"] == 0)
    both = max(begin + length for _, begin, length in inside)
    new = first * Fraction(rng.between(1, 99), 100)
    for tree, (block, begin, length) in zip(trees, inside):
        old_at, new_at, by = (0, 0, new / first) if tree["part"] == 0 else (first, new, (both - new) / (both - first))
        begin, length = new_at + (begin - old_at) * by, length * by
        tree["segment"] = [show((block + begin) / n_blocks), show(length / n_blocks)]
    return restate(doc)


@mutation
def part_of_other_links(doc, rng):
    parts = parts_of(doc, 2)
    if not parts:
        return False
    tree = rng.choice([tree for tree in doc["trees"] if edges(tree)])
    tree["part"] = (tree["part"] + rng.between(1, len(parts) - 1)) % len(parts)
    return restate(doc)


@mutation
def part_out_of_range(doc, rng):
    parts = parts_of(doc)
    if not parts:
        return False
    rng.choice(doc["trees"])["part"] = rng.choice([-1, len(parts)])
    return True


@mutation
def part_of_no_tree(doc, rng):
    parts = parts_of(doc)
    if not parts:
        return False
    unused = [kind for kind in ("xgmi", "c2c", "net") if all(kind not in part["links"] for part in parts)]
    parts.append({"links": unused[:1], "rate": 1, "setup": 0})
    return True


@mutation
def part_links_twice(doc, rng):
    parts = parts_of(doc, 2)
    if not parts:
        return False
    a, b = rng.shuffled(parts)[:2]
    a["links"].append(rng.choice(b["links"]))
    return True


@mutation
def part_links_none(doc, rng):
    parts = parts_of(doc)
    if not parts:
        return False
    rng.choice(parts)["links"].clear()
    return True


@mutation
def part_setup(doc, rng):
    parts = parts_of(doc)
    if not parts:
        return False
    rng.choice(parts)["setup"] = rng.choice([-1, 1000001, None, "1"])
    return True


@mutation
def part_swapped(doc, rng):
    """Parts in another order than that of their trees in the buffer."""
    parts = parts_of(doc, 2)
    if not parts:
        return False
    parts[0], parts[1] = parts[1], parts[0]
    for tree in doc["trees"]:
        tree["part"] = {0: 1, 1: 0}.get(tree["part"], tree["part"])
    return restate(doc)


@mutation
def parts_none(doc, rng):
    if not parts_of(doc):
        return False
    doc["parts"].clear()
    return True


@mutation
def part_missing_in_tree(doc, rng):
    if not parts_of(doc):
        return False
    del rng.choice(doc["trees"])["part"]
    return True


# ---- rate and certificate ---------------------------------------------------------------------------------


def scale_rate(doc, name, by):
    doc["rate"][name] = number(Fraction(doc["rate"][name]) * by)
    return bool(doc["rate"][name])


@mutation
def raise_achieved(doc, rng):
    return scale_rate(doc, "achieved", 1 + Fraction(1, 10 ** rng.between(1, 6)))


@mutation
def lower_achieved(doc, rng):
    return scale_rate(doc, "achieved", 1 - Fraction(1, 10 ** rng.between(1, 6)))


@mutation
def raise_bound(doc, rng):
    return scale_rate(doc, "bound", 1 + Fraction(1, 10 ** rng.between(1, 6)))


@mutation
def lower_bound(doc, rng):
    return scale_rate(doc, "bound", 1 - Fraction(1, 10 ** rng.between(1, 6)))


@mutation
def scale_capacities(doc, rng):
    by = rng.choice([2, 3, 10])
    for link in doc["topology"]["links"]:
        link["capacity"] *= by
    return bool(doc["rate"]["achieved"])


def certificate(doc, kind):
    """The certificate, if it is of that kind and proves something."""
    found = doc["rate"]["certificate"]
    return found if found["kind"] == kind and n_ranks(doc) > 1 else None


def prove(doc, parts):
    """State what the parts would prove if they were sound."""
    links = [replay.Link(link["from"], link["to"], Fraction(link["capacity"])) for link in doc["topology"]["links"]]
    total = sum(replay.leaving(links, set(part)) for part in parts)
    doc["rate"]["bound"] = number(total / max(1, 2 * (len(parts) - 1)))
    return True


@mutation
def cut_without_outside(doc, rng):
    """Every rank on the side."""
    cut = certificate(doc, "cut")
    if not cut:
        return False
    cut["side"] = list(range(n_ranks(doc))) + [v for v in cut["side"] if isinstance(v, str)]
    return True


@mutation
def cut_without_root(doc, rng):
    """The other side of the cut."""
    cut = certificate(doc, "cut")
    if not cut or doc["root"] is None:
        return False
    ends = {link[end] for link in doc["topology"]["links"] for end in ("from", "to")} | set(range(n_ranks(doc)))
    cut["side"] = [r for r in range(n_ranks(doc)) if r not in cut["side"]] \
        + sorted(v for v in ends if isinstance(v, str) and v not in cut["side"])
    return True


@mutation
def part_overlaps(doc, rng):
    partition = certificate(doc, "partition")
    if not partition:
        return False
    a, b = rng.shuffled(partition["parts"])[:2]
    a.append(rng.choice(b))
    return prove(doc, partition["parts"])


@mutation
def part_missing(doc, rng):
    partition = certificate(doc, "partition")
    if not partition:
        return False
    partition["parts"].remove(rng.choice(partition["parts"]))
    return prove(doc, partition["parts"])


@mutation
def part_without_rank(doc, rng):
    partition = certificate(doc, "partition")
    if not partition:
        return False
    partition["parts"].append([])
    return prove(doc, partition["parts"])


def prices_of(doc):
    prices = certificate(doc, "prices")
    return (prices, "price") if prices else (certificate(doc, "lengths"), "length")


@mutation
def prices_too_low(doc, rng):
    """All prices and the bound scaled down, so that some tree costs less than 1."""
    prices, name = prices_of(doc)
    if not prices:
        return False
    by = Fraction(rng.between(1, 9), 10)
    for i, price in enumerate(prices[name]):
        prices[name][i] = show(Fraction(price) * by)
    return scale_rate(doc, "bound", by)


@mutation
def price_missing(doc, rng):
    prices, name = prices_of(doc)
    if not prices:
        return False
    prices[name].pop()
    return True


@mutation
def certificate_kind(doc, rng):
    kinds = [kind for kind in ("cut", "partition", "prices", "lengths", "oracle")
             if kind != doc["rate"]["certificate"]["kind"]]
    doc["rate"]["certificate"]["kind"] = rng.choice(kinds)
    return n_ranks(doc) > 1


@mutation
def certificate_vertex(doc, rng):
    """A vertex that there is not."""
    cut, partition = certificate(doc, "cut"), certificate(doc, "partition")
    if not cut and not partition:
        return False
    side = cut["side"] if cut else rng.choice(partition["parts"])
    side.append(rng.choice([n_ranks(doc), -1, "no such vertex"]))
    return True


# ---- head -------------------------------------------------------------------------------------------------


@mutation
def wrong_collective(doc, rng):
    """The data still moves, but it is not what was asked."""
    if not working(doc):
        return False
    other = {"broadcast": "reduce", "reduce": "broadcast", "gather": "scatter", "scatter": "gather",
             "allgather": "reducescatter", "reducescatter": "allgather", "allreduce": "broadcast",
             "alltoall": "broadcast"}[doc["collective"]]
    if other == "broadcast" and doc["root"] is None:
        doc["root"] = working(doc)[0]["root"]  # in allreduce, what comes up to a root replaces what it holds
    doc["collective"] = other
    return True


@mutation
def wrong_root(doc, rng):
    n = n_ranks(doc)
    if doc["root"] is None:
        doc["root"] = rng.below(n)
    elif n > 1 and working(doc):
        doc["root"] = (doc["root"] + rng.between(1, n - 1)) % n
    else:
        return False
    return True


@mutation
def missing_root(doc, rng):
    if doc["root"] is None:
        return False
    doc["root"] = None
    return True


@mutation
def wrong_version(doc, rng):
    doc["version"] = rng.choice([0, 2, "1", True])
    return True


@mutation
def duplicate_gpu(doc, rng):
    ranks = doc["topology"]["ranks"]
    if len(ranks) < 2:
        return False
    a, b = rng.shuffled(ranks)[:2]
    a["gpu"] = b["gpu"]
    return True


@mutation
def missing_field(doc, rng):
    place, name = rng.choice([(doc, name)
                              for name in ("format", "version", "generator", "topology", "collective", "root",
                                                       "algorithm", "rate", "trees")]
                             + [(doc["rate"], name) for name in ("achieved", "bound", "certificate")]
                             + [(doc["topology"], name) for name in ("name", "digest", "ranks", "links")])
    del place[name]
    return True


@mutation
def duplicate_key(doc, rng):
    doc[rng.choice([Twice("version"), Twice("trees")])] = []
    return True


class Twice(str):
    """A key that differs from its equal in a dictionary, but not in the text."""
    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other


# ---- command ----------------------------------------------------------------------------------------------


def dumps(value, indent="\n"):
    """JSON text; unlike the json module's it writes a Decimal as the number that it is."""
    inner = indent + "  "
    if isinstance(value, dict):
        return "{" + ",".join(f"{inner}{json.dumps(k)}: {dumps(v, inner)}" for k, v in value.items()) + indent + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dumps(v, inner) for v in value) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def mutate(data, seed, kind=None):
    """Text of a mutant of a schedule file's bytes, and the name of its kind; None if the kind does not apply."""
    rng = Lcg(seed)
    for name in [kind] if kind else rng.shuffled(KINDS):
        doc = replay.loads(data)  # afresh: a function that gives up may have begun
        if KINDS[name](doc, rng):
            return dumps(doc) + "\n", name
    return None


def mutate_each(seed, directory, paths):
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        for kind in KINDS:
            mutant = mutate(data, seed, kind)
            if mutant:
                with open(os.path.join(directory, f"{kind}.{os.path.basename(path)}"), "w", encoding="utf-8") as file:
                    file.write(mutant[0])
    return 0


def main(args):
    if args == ["--list"]:
        print("\n".join(KINDS))
        return 0
    if args[:1] == ["--each"] and len(args) > 3:
        return mutate_each(int(args[1]), args[2], args[3:])
    kind = args.pop() if len(args) == 4 and args[2] == "--kind" else None
    if len(args) != (3 if kind else 2) or kind and kind not in KINDS:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    with open(args[0], "rb") as file:
        mutant = mutate(file.read(), int(args[1]), kind)
    if mutant is None:
        return 3
    sys.stdout.write(mutant[0])
    print(mutant[1], file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
