#!/usr/bin/env python3
"""Change one thing in a right schedule so that it stays right, or, `wrong`, so that it does not.

usage: change.py KIND SCHEDULE.json        the changed schedule on stdout; exit status 3 if the kind does not apply to
it
       change.py --plant OLD NEW FILE...   OLD/KIND/FILE as it is, and NEW/KIND/FILE changed, for every kind that
       applies
       change.py --expect DIFF.json        does `blinkc diff OLD NEW` find what was planted, and nothing else? rate,
       bound, trees and
                                           depth depend on the schedule, and are for diff.py to say
"""
import json
import os
import sys
from fractions import Fraction

import mutate
import replay

KINDS = {}


def change(*differences):
    def add(function):
        KINDS[function.__name__.replace("_", "-")] = function, differences
        return function
    return add


def right(doc):
    """With its rates stated anew, does the oracle take it?"""
    mutate.restate(doc)
    try:
        replay.judge(replay.loads(text_of(doc).encode()))
    except replay.Wrong:
        return False
    return True


def text_of(doc, indent=None):
    """Without indent it takes a tenth of the time."""
    return json.dumps(doc, indent=indent, default=float) + "\n"


def attempt(doc, edit, *args):
    """Make an edit of a copy, and keep it if it is right."""
    copy = json.loads(text_of(doc))
    edit(copy, *args)
    if not right(copy):
        return False
    doc.clear()
    doc.update(copy)
    return True


def phases(doc):
    return [(t, phase) for t, tree in enumerate(doc["trees"]) for phase in ("down", "up") if tree.get(phase)]


# ---- nothing in meaning -----------------------------------------------------------------------------------


@change()
def indent(doc):
    return True


@change()
def keys(doc):
    """Other order of members: of the file, the topology, trees and links."""
    def turn(value):
        if isinstance(value, dict):
            return {key: turn(value[key]) for key in reversed(value)}
        return [turn(item) for item in value] if isinstance(value, list) else value
    turned = turn(doc)
    doc.clear()
    doc.update(turned)
    return True


@change()
def generator(doc):
    doc["generator"].update(name="another\u001b[31m", version="99.1")
    return True


@change()
def name(doc):
    doc["topology"]["name"] = "other \u20ac"
    return True


@change()
def renumber(doc):
    """Links in reverse order; parallel ones of one class stay as they were among themselves."""
    links = doc["topology"]["links"]
    ends = [(json.dumps(link["from"]), json.dumps(link["to"]), link["class"]) for link in links]
    if len(set(ends)) < len(ends):
        return False
    last = len(links) - 1
    links.reverse()
    for tree in doc["trees"]:
        for edge in mutate.edges(tree):
            edge[2] = [last - link for link in edge[2]]
    certificate = doc["rate"]["certificate"]
    for member in ("price", "length"):
        if member in certificate:
            certificate[member].reverse()
    return right(doc)


@change()
def to_all(doc):
    """Every tree names the ranks that it serves anyway."""
    if replay.COLLECTIVES[doc["collective"]][2] or doc["collective"] == "reduce":
        return False
    for tree in doc["trees"]:
        tree.setdefault("to", list(range(mutate.n_ranks(doc))))
    return right(doc)


# ---- trees ------------------------------------------------------------------------------------------------


@change("order")
def swap_edges(doc):
    def swap(copy, t, phase, i):
        edges = copy["trees"][t][phase]
        edges[i], edges[i + 1] = edges[i + 1], edges[i]
    return any(attempt(doc, swap, t, phase, i) for t,
               phase in phases(doc) for i in range(len(doc["trees"][t][phase]) - 1))


@change("order")
def swap_trees(doc):
    def swap(copy, t):
        trees = copy["trees"]
        trees[t], trees[t + 1] = trees[t + 1], trees[t]
    return any(attempt(doc, swap, t) for t in range(len(doc["trees"]) - 1))


@change("segments")
def swap_segments(doc):
    """Two trees with segments as long change theirs; their edges differ, or nothing would have changed."""
    def swap(copy, t, u):
        a, b = copy["trees"][t], copy["trees"][u]
        a["segment"], b["segment"] = b["segment"], a["segment"]
    trees = doc["trees"]
    return any(attempt(doc, swap, t, u) for t in range(len(trees)) for u in range(t)
               if trees[t]["segment"][1] == trees[u]["segment"][1] and mutate.edges(trees[t]) != mutate.edges(trees[u]))


def set_segment(tree, begin, end):
    tree["segment"] = [mutate.show(begin), mutate.show(end - begin)]


def ends(tree):
    begin, length = (Fraction(text) for text in tree["segment"])
    return begin, begin + length


@change("segments")
def weight(doc):
    """A tree gives a tenth of what it carries to the one behind it."""
    def move(copy, t):
        (a, b), (c, d) = ends(copy["trees"][t]), ends(copy["trees"][t + 1])
        set_segment(copy["trees"][t], a, b - (b - a) / 10)
        set_segment(copy["trees"][t + 1], c - (b - a) / 10, d)
    return any(attempt(doc, move, t) for t in range(len(doc["trees"]) - 1))


@change("edges", "segments")
def drop_tree(doc):
    """The one before it carries its part."""
    def drop(copy, t):
        (a, _), (_, d) = ends(copy["trees"][t - 1]), ends(copy["trees"][t])
        set_segment(copy["trees"][t - 1], a, d)
        del copy["trees"][t]
    return any(attempt(doc, drop, t) for t in range(1, len(doc["trees"])))


@change("edges", "segments")
def split_tree(doc):
    def split(copy, t):
        a, b = ends(copy["trees"][t])
        second = json.loads(text_of(copy["trees"][t]))
        set_segment(copy["trees"][t], a, a + (b - a) / 3)
        set_segment(second, a + (b - a) / 3, b)
        copy["trees"].insert(t + 1, second)
    return attempt(doc, split, len(doc["trees"]) // 2)


@change("edges")
def reroute(doc):
    """A rank gets its data from another one, over a link of its own."""
    def turn(copy, t, phase, i, link):
        edge = copy["trees"][t][phase][i]
        other = copy["topology"]["links"][link]
        edge[:] = [other["from"], other["to"], [link]]
    links = doc["topology"]["links"]
    return any(attempt(doc, turn, t, phase, i, l) for t, phase in phases(doc) for i,
               edge in enumerate(doc["trees"][t][phase])
               for l, link in enumerate(links) if isinstance(link["from"], int) and isinstance(link["to"], int)
               and [l] != edge[2]
               and (link["to"] == edge[1] if phase == "down" else link["from"] == edge[0]))


# ---- the machine, and what was asked ----------------------------------------------------------------------


@change("topology")
def capacity(doc):
    """Of all links, twice what it was."""
    for link in doc["topology"]["links"]:
        link["capacity"] *= 2
    doc["rate"]["bound"] *= 2
    return right(doc)


@change("topology")
def latency(doc):
    doc["topology"]["links"][-1]["latency"] += 0.5
    return True


@change("topology")
def digest(doc):
    doc["topology"]["digest"] = "sha256:" + 64 * "0"
    return True


@change("topology")
def gpu(doc):
    doc["topology"]["ranks"][-1]["gpu"] = "other"
    return True


@change("topology")
def link(doc):
    """One more, between two ranks, that no tree uses."""
    certificate, links = doc["rate"]["certificate"], doc["topology"]["links"]
    extra = dict(links[0], capacity=0.001)
    extra["from"], extra["to"], extra["class"] = 0, 1, "c2c"
    links.append(extra)
    for member in ("price", "length"):
        if member in certificate:
            certificate[member].append(0)
    mutate.restate(doc)
    document = replay.loads(text_of(doc).encode())
    try:
        doc["rate"]["bound"] = float(replay.bound(replay.read(document)))
    except replay.Wrong:
        return False
    return right(doc)


@change("options")
def option(doc):
    doc["generator"]["options"]["epsilon"] = 0.0625
    return True


@change("options")
def option_gone(doc):
    return doc["generator"]["options"].pop("minimise", None) is not None


@change("algorithm")
def algorithm(doc):
    doc["algorithm"] = "mine"
    return True


@change("parts")
def setup(doc):
    for part in doc.get("parts", []):
        part["setup"] += 100
    return bool(doc.get("parts"))


@change("wrong")
def wrong(doc):
    """A tree carries less than it did, and nothing else carries that."""
    begin, end = ends(doc["trees"][-1])
    set_segment(doc["trees"][-1], begin, (begin + end) / 2)
    return True


def changed(kind, path):
    """The text of the changed schedule; None: the kind does not apply."""
    with open(path, encoding="utf-8") as file:
        doc = json.load(file)
    return text_of(doc, 1 if kind == "indent" else 2) if KINDS[kind][0](doc) else None


def plant(old, new, paths):
    for kind in KINDS:
        for path in paths:
            text = changed(kind, path)
            if text is None:
                continue
            with open(path, encoding="utf-8") as file:
                before = file.read()
            for directory, content in ((old, before), (new, text)):
                os.makedirs(os.path.join(directory, kind), exist_ok=True)
                with open(os.path.join(directory, kind, os.path.basename(path)), "w", encoding="utf-8") as file:
                    file.write(content)
    return 0


def expect(path):
    with open(path, encoding="utf-8") as file:
        diff = json.load(file)
    seen, wrong = set(), 0
    for entry in diff["files"]:
        kind = os.path.dirname(entry["file"])
        seen.add(kind)
        want, found = set(KINDS[kind][1]), {item["kind"] for item in entry["differences"]} - {"rate", "bound",
                                                                                              "trees", "depth"}
        # Capacities are what the rates of parts come from.
        if kind == "capacity" and "parts" in found:
            want.add("parts")
        if found != want:
            print(f"{entry['file']}: {sorted(found)}, want {sorted(want)}")
            wrong = 1
    if seen != set(KINDS):
        print(f"planted nowhere: {sorted(set(KINDS) - seen)}")
        wrong = 1
    return wrong


def main(args):
    if args[:1] == ["--plant"] and len(args) > 3:
        return plant(args[1], args[2], args[3:])
    if args[:1] == ["--expect"] and len(args) == 2:
        return expect(args[1])
    if len(args) != 2 or args[0] not in KINDS:
        sys.exit(__doc__)
    text = changed(*args)
    if text is None:
        return 3
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
