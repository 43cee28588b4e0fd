#!/usr/bin/env python3
"""Hold what `blinkc diff --format json` says against the two files, or the files of the two directories, that it
compared.

usage: diff.py OLD NEW DIFF.json       exit status 1, and a line for each disagreement

Both sides are read, replayed and measured by replay.py. Which kinds of differences there must be follows from sets: of
edges,
without their order; of edges with segments; and from the order of both.
"""
import json
import math
import os
import sys
from collections import Counter
from fractions import Fraction
from functools import lru_cache

import replay


class Side:
    """A schedule, and what can be compared of it."""

    def __init__(self, doc):
        self.doc = doc
        self.s, self.rate, self.bound = replay.judge(self.doc)
        self.depth = max(tree.depth for tree in self.s.trees)
        seen = Counter()
        self.links = []
        for link in self.s.links:
            ends = link.src, link.dst, link.kind
            self.links.append((*ends, seen[ends]))
            seen[ends] += 1

    def edges(self, edges):
        return tuple((edge.src, edge.dst, tuple(self.links[link] for link in edge.links)) for edge in edges)

    def body(self, tree):
        return tree.root, frozenset(self.edges(tree.down)), frozenset(self.edges(tree.up))

    def segment(self, tree):
        return tree.offset, tree.length, tuple(sorted(tree.to))

    def exact(self, tree):
        return self.segment(tree), tree.root, self.edges(tree.down), self.edges(tree.up)

    def topology(self):
        topology = self.doc["topology"]
        numbers = {name: (link["capacity"], link["latency"]) for name, link in zip(self.links, topology["links"])}
        return topology["digest"], [(rank["gpu"], rank["node"]) for rank in topology["ranks"]], numbers

    def abilities(self):
        named = {end for link in self.s.links for end in (link.src, link.dst) if isinstance(end, str)}
        said = {switch["id"]: switch for switch in self.doc["topology"].get("switches", [])}
        return {name: tuple(said.get(name, {}).get(word, False) for word in ("multicast", "reduce")) for name in named}

    def parts(self):
        ends = [end for _, end in replay.part_spans(self.s)]
        return [(part.links, part.setup, replay.achieved(self.s, i), end) for i,
                (part, end) in enumerate(zip(self.s.parts, ends))]


def kinds(old, new):
    """The kinds that there must be, and those of which nothing can be said without knowing which tree was matched with
    which."""
    must, open_kinds = set(), set()
    abilities = old.abilities(), new.abilities()
    if old.topology() != new.topology() or any(abilities[0][v] != abilities[1][v]
                                               for v in set(abilities[0]) & set(abilities[1])):
        must.add("topology")
    for kind, was, now in [("collective", old.s.collective, new.s.collective), ("root", old.s.root, new.s.root),
                           ("algorithm", old.doc["algorithm"], new.doc["algorithm"]), ("rate", old.rate, new.rate),
                           ("options", old.doc["generator"]["options"], new.doc["generator"]["options"]),
                           ("bound", old.bound, new.bound), ("trees", len(old.s.trees), len(new.s.trees)),
                           ("depth", old.depth, new.depth), ("parts", old.parts(), new.parts())]:
        if was != now:
            must.add(kind)
    if (old.s.collective, old.s.root, old.s.n) != (new.s.collective, new.s.root, new.s.n):
        return must, set()
    bodies, whole, exact = ([[getattr(side, name)(tree) for tree in side.s.trees] for side in (old, new)]
                            for name in ("body", "segment", "exact"))
    whole = [list(zip(*both)) for both in zip(bodies, whole)]
    if Counter(bodies[0]) != Counter(bodies[1]):
        must.add("edges")
        open_kinds = {"segments", "order", "parts"}
    elif Counter(whole[0]) != Counter(whole[1]):
        must.add("segments")
        open_kinds = {"order", "parts"}
    elif exact[0] != exact[1]:
        must.add("order")
    return must, open_kinds


def near(one, other):
    return abs(Fraction(one) - Fraction(other)) <= Fraction(1, 10**12) * max(abs(Fraction(other)), 1)


def check_numbers(said, name, side):
    """The entry's `old` or `new`."""
    want = {"rate": side.rate, "bound": side.bound, "trees": len(side.s.trees), "depth": side.depth}
    yield from (f"{name}.{key}: {said[key]}, want {float(value)}" for key,
                value in want.items() if not near(said[key], value))
    generator = side.doc["generator"]
    words = {"collective": side.s.collective, "root": side.s.root, "algorithm": side.doc["algorithm"],
             "generator": generator["name"], "version": generator["version"]}
    yield from (f"{name}.{key}: {said[key]}, want {value}" for key, value in words.items() if said[key] != value)


def check_difference(item, old, new):
    """One that has numbers of its own."""
    kind = item["kind"]
    numbers = {"rate": (old.rate, new.rate, 1), "bound": (old.bound, new.bound, 0), "depth": (old.depth, new.depth, -1),
               "trees": (len(old.s.trees), len(new.s.trees), -1)}
    if kind in numbers:
        was, now, better = numbers[kind]
        change = "other" if not better else "better" if (now > was) == (better > 0) else "worse"
        if not near(item["old"], was) or not near(item["new"], now) or item["change"] != change:
            yield (f"{kind}: {item['old']} to {item['new']} is {item['change']}: "
                   f"want {float(was)} to {float(now)}, {change}")
    elif item["change"] != "other":
        yield f"{kind}: {item['change']}: want other"
    for side, name in (old, "old"), (new, "new"):
        tree = item.get(f"{name}_tree")
        if tree is not None and not 0 <= tree < len(side.s.trees):
            yield f"{kind}: {name}_tree: {tree}"
        elif kind == "segments" and [Fraction(text) for text in item[name]["segment"]] != [side.s.trees[tree].offset,
                                                                                           side.s.trees[tree].length]:
            yield f"segments: {name}: tree {tree} does not carry {item[name]}"


def check_matches(items, old, new):
    """Each tree has one mate at most; what is gone and new accounts for the number of trees."""
    pairs = {(item["old_tree"], item["new_tree"]) for item in items if "old_tree" in item and "new_tree" in item}
    gone = [item["old_tree"] for item in items if "old_tree" in item and "new_tree" not in item]
    more = [item["new_tree"] for item in items if "new_tree" in item and "old_tree" not in item]
    for name, trees in (("old", [pair[0] for pair in pairs] + gone), ("new", [pair[1] for pair in pairs] + more)):
        yield from (f"{name} tree {tree}: matched twice" for tree, count in Counter(trees).items() if count > 1)
    comparable = (old.s.collective, old.s.root, old.s.n) == (new.s.collective, new.s.root, new.s.n)
    if comparable and len(old.s.trees) - len(gone) != len(new.s.trees) - len(more):
        yield f"trees: {len(gone)} gone and {len(more)} new of {len(old.s.trees)} and {len(new.s.trees)}"
    same = {item["new_tree"]: item["old_tree"] for item in items if item["kind"] == "order"}
    for n, o in same.items():
        if old.body(old.s.trees[o]) != new.body(new.s.trees[n]):
            yield f"order: tree {n} has other edges than tree {o} had"


@lru_cache(maxsize=64)
def side_of(data):
    return Side(replay.loads(data))


def read_side(path):
    """Many files of a directory are the same: those are replayed once."""
    with open(path, "rb") as file:
        return side_of(file.read())


def check_pair(entry, old_path, new_path):
    """The entry of two files that are both there. Returns the ratio of rates, or None."""
    try:
        old, new = read_side(old_path), read_side(new_path)
    except replay.Wrong as error:
        found = [] if entry["state"] == "wrong" else [f"{entry['state']}, but wrong: {error}"]
        return found, None
    items, state = entry["differences"], entry["state"]
    found = [item["kind"] for item in items]
    must, open_kinds = kinds(old, new)
    wrong = [f"{kind}: not said" for kind in sorted(must - set(found))]
    wrong += [f"{kind}: said" for kind in sorted(set(found) - must - open_kinds)]
    if state != ("changed" if found else "same"):
        wrong.append(f"{state}: with {found}")
    for name, side in (("old", old), ("new", new)):
        wrong += check_numbers(entry[name], name, side)
    for item in items:
        wrong += check_difference(item, old, new)
    wrong += check_matches(items, old, new)
    return wrong, new.rate / old.rate if old.s.collective == new.s.collective else None


def check_summary(diff, ratios):
    """ratios: (file, new rate / old rate) of all files that both have."""
    summary = diff["summary"]
    states = Counter(entry["state"] for entry in diff["files"])
    yield from (f"summary.{state}: {summary[state]}" for state in ("same", "changed", "missing", "new", "wrong")
                if summary[state] != states[state])
    if summary["failing"] != sum(entry["fails"] for entry in diff["files"]):
        yield f"summary.failing: {summary['failing']}"
    if not ratios:
        if summary["rate"] is not None:
            yield "summary.rate: want null"
        return
    rate, values = summary["rate"], [ratio for _, ratio in ratios]
    want = {"compared": len(values), "lower": sum(v < 1 for v in values), "higher": sum(v > 1 for v in values),
            "mean": math.exp(sum(map(math.log, values)) / len(values)), "worst": min(1, *values, 1)}
    yield from (f"summary.rate.{key}: {rate[key]}, want {float(value)}" for key,
                value in want.items() if abs(float(rate[key]) - value) > 2e-9)
    worst = min(ratios, key=lambda pair: pair[1])
    if rate["worst_file"] != (worst[0] if worst[1] < 1 else None):
        yield f"summary.rate.worst_file: {rate['worst_file']}"


def below(directory):
    return {os.path.relpath(os.path.join(at, name), directory) for at, _, names in os.walk(directory) for name in names
            if name.endswith(".json")}


def check(old, new, diff):
    """Lines for what does not hold."""
    ratios, wrong = [], []
    if not os.path.isdir(old):
        pairs = {None: (old, new)}
    else:
        names = sorted(below(old) | below(new), key=os.fsencode)
        pairs = {name: (os.path.join(old, name), os.path.join(new, name)) for name in names}
    if [entry["file"] for entry in diff["files"]] != list(pairs):
        return [f"files: {[entry['file'] for entry in diff['files']]}, want {list(pairs)}"]
    for entry, (was, now) in zip(diff["files"], pairs.values()):
        name = entry["file"] or old
        if os.path.basename(name) == "index.json":
            continue
        if not (os.path.exists(was) and os.path.exists(now)):
            if entry["state"] != ("missing" if os.path.exists(was) else "new"):
                wrong.append(f"{name}: {entry['state']}")
            continue
        found, ratio = check_pair(entry, was, now)
        wrong += [f"{name}: {text}" for text in found]
        if ratio is not None:
            ratios.append((entry["file"], ratio))
    return wrong + list(check_summary(diff, ratios))


def main(old, new, path):
    with open(path, encoding="utf-8") as file:
        diff = json.load(file)
    wrong = check(old, new, diff)
    print("\n".join(wrong) or f"{len(diff['files'])} files: as it says")
    return int(bool(wrong))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
