#!/usr/bin/python3
"""Hold what `blinkc show` prints against the schedule file, computed anew in fractions.

usage: show.py SCHEDULE.json SHOWN.txt [SCHEDULE.json SHOWN.txt]...

SHOWN is of `blinkc show --tree ALL --links all`, or of `blinkc show` alone: kinds of links instead of links, and the
first trees
of many. Checked: each tree's title and edges, each link's load and use, or those of each kind, and the sides, sums and
arithmetic of the bound. Prints
a line for each, with the first thing that is wrong; exit status 1 if there is any.
"""
import json
import re
import sys
from fractions import Fraction


class Wrong(Exception):
    pass


def want(ok, *what):
    if not ok:
        raise Wrong(": ".join(str(part) for part in what))


def near(shown, exact, what):
    """Six significant digits, rounded."""
    exact = float(exact)
    want(abs(float(shown) - exact) <= 5.1e-6 * max(abs(exact), 1e-12), what, f"{shown} where it is {exact}")


class Schedule:
    def __init__(self, doc):
        self.doc = doc
        topology = doc["topology"]
        self.links = topology["links"]
        self.n = len(topology["ranks"])
        self.gpus = [rank["gpu"] for rank in topology["ranks"]]
        if len(set(self.gpus)) < self.n:
            self.gpus = [f'{rank["node"]}/{rank["gpu"]}' for rank in topology["ranks"]]
        self.coll = doc["collective"]
        self.trees = doc["trees"]
        self.capacity = [Fraction(str(link["capacity"])) for link in self.links]
        load = [Fraction(0)] * len(self.links)
        for tree in self.trees:
            length = Fraction(tree["segment"][1]) * (self.n if self.coll == "alltoall" else 1)
            for edge in tree.get("down", []) + tree.get("up", []):
                for link in edge[2]:
                    load[link] += length
        self.achieved = 1 / max(a / c for a, c in zip(load, self.capacity))
        self.rate = [a * self.achieved for a in load]

    def name(self, vertex):
        return vertex if isinstance(vertex, str) else self.gpus[vertex]

    def segment(self, tree):
        begin, length = map(Fraction, tree["segment"])
        blocks = {"gather": self.n, "scatter": self.n, "allgather": self.n, "reducescatter": self.n,
                  "alltoall": self.n ** 2}.get(self.coll, 1)
        block = int(begin * blocks)
        lo, hi = begin * blocks - block, (begin + length) * blocks - block
        whole = (lo, hi) == (0, 1)
        text = "" if whole else f"{lo.numerator}/{lo.denominator} to {hi.numerator}/{hi.denominator} of "
        if blocks == 1:
            return text + ("all of the buffer" if whole else "the buffer")
        if self.coll == "alltoall":
            return text + f"the block from {self.gpus[block // self.n]} to {self.gpus[block % self.n]}"
        return text + f"the block of {self.gpus[block]}"


# ---- trees ----

def parse_drawing(lines, names):
    """Edges parent to child of a drawn tree, and whether siblings were left out."""
    edges, path, left_out = [], [], False
    for line in lines:
        bare = line.lstrip("│├└─ ")
        depth = (len(line) - len(bare)) // 3
        if bare.startswith("("):
            deep = re.match(r"\((\d+)\) ", bare)
            depth, bare = int(deep[1]), bare[deep.end():]
        if bare.startswith("…"):
            left_out = True
            continue
        name = re.sub(r" \[\d+\]$", "", bare.split("  ")[0])
        want(name in names, "a tree names a GPU that is not there", line)
        del path[depth:]
        if depth:
            want(len(path) == depth, "a line is too far to the right", line)
            edges.append((names[path[-1]], names[name]))
        path.append(name)
    return edges, left_out


def check_tree(sched, number, title, lines, names):
    tree = sched.trees[number]
    head = re.match(r"tree \d+: (.*?), ([0-9.e+-]+) GB/s(.*)$", title)
    want(head, "a title of another form", title)
    want(head[1] == sched.segment(tree), f"tree {number}: segment", head[1], sched.segment(tree))
    scale = sched.n if sched.coll == "alltoall" else 1
    near(head[2], Fraction(tree["segment"][1]) * scale * sched.achieved, f"tree {number}: GB/s")
    if "to" in tree:
        want(f'; for {", ".join(sched.gpus[r] for r in tree["to"][:16])}' in head[3], f"tree {number}: for whom", title)
    if "parts" in sched.doc:
        want(f'; part {",".join(sched.doc["parts"][tree["part"]]["links"])}' in head[3], f"tree {number}: part", title)
    down = sorted((a, b) for a, b, _ in tree.get("down", []))
    up = sorted((b, a) for a, b, _ in tree.get("up", []))
    if " → " in head[3]:
        ends = head[3].split(": ", 1)[1].split("  ")[0].split(" → ")
        ranks = [names[re.sub(r" \[\d+\]$", "", end)] for end in ends]
        hops = sorted(zip(ranks, ranks[1:]))
        want(hops == (down or sorted((b, a) for a, b in up)), f"tree {number}: path", title)
        return
    if "up" in lines and "down" in lines:
        middle = lines.index("down")
        phases = [("up", lines[1:middle], up), ("down", lines[middle + 1:], down)]
    else:
        phases = [("both", lines, down or up)]
        want(not (up and down) or up == down, f"tree {number}: drawn once, and is no mirror")
    for phase, drawn, edges in phases:
        got, left_out = parse_drawing(drawn, names)
        want(set(got) <= set(edges) if left_out else sorted(got) == edges, f"tree {number}, {phase}: edges",
             sorted(got), edges)


def check_trees(sched, lines):
    names = {name: rank for rank, name in enumerate(sched.gpus)}
    number, title, drawn, seen = None, None, [], 0
    more = 0
    for line in lines + ["tree -1"]:
        start = re.match(r"tree (-?\d+)", line)
        rest = re.match(r"(\d+) more trees; ", line)
        if start or rest:
            if number is not None:
                check_tree(sched, number, title, drawn, names)
                seen += 1
            number, title, drawn = (int(start[1]) if start else None), line, []
            number = None if number == -1 else number
            more += int(rest[1]) if rest else 0
        elif line:
            drawn.append(line)
    want(seen + more == len(sched.trees), f"{seen} trees and {more} more, of {len(sched.trees)}")


# ---- links ----

def enters_parts(sched):
    """Does a switch copy outside all parts? Then what enters parts is counted."""
    inside = {v for part in sched.doc["rate"]["certificate"]["parts"] for v in part}
    return any(s.get("multicast") and s["id"] not in inside for s in sched.doc["topology"].get("switches", ()))


def claim(sched):
    """Of which algorithms the certificate proves something."""
    proof = sched.doc["rate"]["certificate"]
    if proof["kind"] == "partition" and len(proof["parts"]) > 2:
        return " that treats elements separately"
    if proof["kind"] == "prices" and sched.coll == "allreduce":
        return " by pairs of trees"
    return " that forwards blocks" if proof["kind"] == "lengths" and sched.coll == "alltoall" else ""


def tight(sched):
    proof = sched.doc["rate"]["certificate"]
    if proof["kind"] == "cut":
        side = set(map(str, proof["side"]))
        enters = sched.coll in ("reduce", "gather", "reducescatter")
        inside = [(str(link["from"]) in side, str(link["to"]) in side) for link in sched.links]
        return [(b and not a) if enters else (a and not b) for a, b in inside]
    if proof["kind"] == "partition":
        part = {str(v): p for p, vertices in enumerate(proof["parts"]) for v in vertices}
        inner, outer = ("to", "from") if enters_parts(sched) else ("from", "to")
        return [str(link[inner]) in part and part[str(link[inner])] != part.get(str(link[outer]))
                for link in sched.links]
    return [Fraction(str(price)) > 0 for price in proof["price" if proof["kind"] == "prices" else "length"]]


def check_use(shown, use, what):
    if use == 1 or shown == "100":
        want(use == 1 and shown == "100", what, f"{shown} % where it is {float(use * 100)}")
    else:
        want(abs(float(shown) - float(use * 100)) <= 5.1e-4 * float(use * 100) + 1e-9
             or (use > 0.9999 and shown == "99.99"),
             what, f"{shown} % where it is {float(use * 100)}")


def check_each_link(sched, rows):
    marks = tight(sched)
    kind = sched.doc["rate"]["certificate"]["kind"]
    prices = sched.doc["rate"]["certificate"].get("price") or sched.doc["rate"]["certificate"].get("length")
    left = {}
    for number, link in enumerate(sched.links):
        left.setdefault((sched.name(link["from"]), sched.name(link["to"]), link["class"]), []).append(number)
    uses = []
    for row in rows:
        start, end, link_class, capacity, load, use, _, *rest = row.split()
        number = left[start, end, link_class].pop(0)
        near(capacity, sched.capacity[number], row)
        near(load, sched.rate[number], row)
        check_use(use, sched.rate[number] / sched.capacity[number], row)
        uses.append(sched.rate[number] / sched.capacity[number])
        rest = [word for word in rest if not set(word) <= set("▏▎▍▌▋▊▉█")]
        want(bool(rest) == marks[number], "marked, or not", row)
        if rest:
            want(rest[0] == {"prices": "price", "lengths": "length"}.get(kind, kind), "mark", row)
        if rest and prices:
            want(Fraction(rest[1]) == Fraction(str(prices[number])), "price", row)
        cells = sum("▏▎▍▌▋▊▉█".find(c) + 1 for c in row)
        want(abs(cells - 80 * uses[-1]) <= 0.51, "bar", row)
    want(uses == sorted(uses, reverse=True), "links in another order than by use")
    want(not any(left.values()), "links that are not shown", left)


def kind_of(sched, vertex):
    if isinstance(vertex, int):
        return "gpu"
    classes = {link["class"] for link in sched.links if vertex in (link["from"], link["to"])}
    return ("network" if classes == {"net"} else "nic" if "net" in classes else "cpu" if "qpi" in classes else "switch")


def check_kinds(sched, rows):
    marks = tight(sched)
    kinds, known = {}, {}
    for number, link in enumerate(sched.links):
        ends = [known.setdefault(v, None) or known.__setitem__(v, kind_of(sched, v)) or known[v]
                for v in (link["from"], link["to"])]
        kinds.setdefault((*ends, link["class"], sched.capacity[number]), []).append(number)
    want(len(rows) == len(kinds), f"{len(rows)} kinds of links, of {len(kinds)}")
    for row in rows:
        start, end, link_class, capacity, n, full, counted, least, _, average, _, most, _ = row.split()
        numbers = next(v for k, v in kinds.items() if k[:3] == (start, end, link_class)
                       and abs(float(k[3]) - float(capacity)) < 1e-5 * float(k[3]))
        uses = [sched.rate[l] / sched.capacity[l] for l in numbers]
        want((int(n), int(full), int(counted)) == (len(numbers), uses.count(1), sum(marks[l] for l in numbers)),
             "counts", row)
        check_use(least, min(uses), row)
        check_use(average, sum(uses) / len(uses), row)
        check_use(most, max(uses), row)


def check_links(sched, lines):
    head = re.match(r"links: (\d+), of which (\d+) carry data and (\d+) are saturated$", lines[0])
    want(head, "the head of links", lines[0])
    counts = (len(sched.links), sum(r > 0 for r in sched.rate), sum(r == c for r, c in zip(sched.rate, sched.capacity)))
    want(tuple(map(int, head.groups())) == counts, "links", lines[0], counts)
    rows = [line for line in lines[3:] if line and not line.startswith("--links")]
    if "least use" in lines[2]:
        check_kinds(sched, rows)
    else:
        check_each_link(sched, rows)


# ---- the bound ----

def named(sched, text, vertices):
    """A list of names, which may end in "and N more"."""
    more = re.search(r" and (\d+) more$", text)
    names = (text[:more.start()] if more else text).split(", ")
    want(len(names) + int(more[1] if more else 0) == len(vertices), "how many", text, len(vertices))
    want(set(names) <= {sched.name(v) for v in vertices}, "names", text)


def figures(text):
    return [float(number) for number in re.findall(r"[0-9.e+]+", text)]


def check_sum(text, terms):
    """ "25 + 25 + 3 more = 125 GB/s" """
    shown, total = text.rsplit(" = ", 1)
    near(total.split()[0], sum(terms), text)
    shown = shown.split(" + ")
    more = 0
    if shown[-1].endswith(" more"):
        more = int(shown.pop().split()[0])
    want(len(shown) + more == len(terms), "terms", text)
    for one, term in zip(shown, terms):
        near(one, term, text)


def check_arithmetic(line, bound):
    """Every number behind "at most" is computed: left and right of each "=" are alike, and the last is the bound."""
    text = line.split("at most ")[-1].split("; no ")[0]
    sides = text.split(" = ")
    for side in sides:
        if "sum of" in side:
            continue
        expression = side.replace("GB/s", "").replace(" x ", " * ")
        want(re.fullmatch(r"[0-9.e+*/()\- ]+", expression), "arithmetic", side)
        near(eval(expression), bound, line)   # digits and operators only


def check_bound(sched, lines):
    proof = sched.doc["rate"]["certificate"]
    counted = [c for c, mark in zip(sched.capacity, tight(sched)) if mark]
    n = sched.n
    vertices = list(range(n)) + sorted({v for link in sched.links for v in (link["from"], link["to"])
                                        if isinstance(v, str)})
    words = {"cut": "a cut", "partition": "a partition", "prices": "prices of links", "lengths": "lengths of links"}
    if proof["kind"] == "cut":
        side = proof["side"]
        s = sum(isinstance(v, int) for v in side)
        t = n - s
        factor = {"allgather": Fraction(n, s), "reducescatter": Fraction(n, s), "gather": Fraction(n, t),
                  "scatter": Fraction(n, t),
                  "alltoall": Fraction(n, s * t)}.get(sched.coll, 1)
        bound = factor * sum(counted)
        shown = re.match(r"side: (.*) \((\d+) of (\d+) ranks\)$", lines[2])
        named(sched, shown[1], side)
        want((int(shown[2]), int(shown[3])) == (s, n), "ranks of the side", lines[2])
        named(sched, lines[3].removeprefix("rest: "), [v for v in vertices if v not in side])
        shown = re.match(r"(\d+) links (enter|leave) the side: (.*)$", lines[4])
        want(int(shown[1]) == len(counted), "links of the cut", lines[4])
        check_sum(shown[3], counted)
        last = lines[5]
    elif proof["kind"] == "partition":
        k = len(proof["parts"])
        bound = sum(counted) / (2 * (k - 1))
        total = Fraction(0)
        for p, (part, line) in enumerate(zip(proof["parts"], lines[2:2 + min(k, 16)])):
            inner, outer, word = ("to", "from", "enter") if enters_parts(sched) else ("from", "to", "leave")
            out = [c for c, link in zip(sched.capacity, sched.links) if link[inner] in part and link[outer] not in part]
            shown = re.match(rf"part {p}: (.*): (\d+) links {word} it, (\S+) GB/s$", line)
            named(sched, shown[1], part)
            want(int(shown[2]) == len(out), "links of a part", line)
            near(shown[3], sum(out), line)
            total += sum(out)
        at = 2 + min(k, 16)
        if k > 16:
            shown = re.match(r"(\d+) more parts: (\S+) GB/s$", lines[at])
            want(int(shown[1]) == k - 16, "more parts", lines[at])
            near(shown[2], sum(counted) - total, lines[at])
            at += 1
        near(re.match(r"sum: (\S+) GB/s$", lines[at])[1], sum(counted), lines[at])
        last = lines[at + 1]
        want(f"between {k} parts" in last and f"2 x ({k} - 1)" in last, "parts", last)
    else:
        price = [Fraction(str(p)) for p in proof.get("price") or proof["length"]]
        bound = sum(c * p for c, p in zip(sched.capacity, price))
        links, total = 0, 0.0
        for line in lines[2:-1]:
            shown = re.match(r"(\d+) links of (\S+) GB/s x (\d+/\d+) = (\S+) GB/s$", line)
            if not shown:
                want(line.startswith("and "), "a price", line)
                break
            like = [c for c, p in zip(sched.capacity, price) if p == Fraction(shown[3])
                    and abs(float(c) - float(shown[2])) <= 5.1e-6 * float(c)]
            want(len(like) == int(shown[1]), "links of a price", line)
            near(shown[4], sum(like) * Fraction(shown[3]), line)
            links += len(like)
            total += float(shown[4])
        else:
            want(links == len(counted), f"{links} links have prices, of {len(counted)}")
            near(total, bound, "sum of prices") if total else None
        last = lines[-1]
    want(lines[0].endswith(f", by {words[proof['kind']]}"), "kind", lines[0])
    near(lines[0].split()[1], bound, lines[0])
    check_arithmetic(last, bound)
    want(last.endswith(f"; no {sched.coll}{claim(sched)} is faster"), "the last line", last)
    near(sched.doc["rate"]["bound"], bound, "the file's bound")


def check(schedule, shown):
    with open(schedule, encoding="utf-8") as file:
        sched = Schedule(json.load(file))
    with open(shown, encoding="utf-8") as file:
        text = file.read()
    head, rest = re.split(r"\ntrees(?:; in brackets the ranks of GPUs)?\n\n", text, maxsplit=1)
    trees, rest = rest.split("\nlinks: ", 1)
    links, bound = ("links: " + rest).split("\nbound: ", 1)
    try:
        near(re.search(r"^rate +(\S+)", head, re.M)[1], sched.achieved, "rate of the summary")
        proven = re.search(r"^bound .*, proven by [a-z ]* for any algorithm(.*)$", head, re.M)
        want(proven and proven[1] == claim(sched), "claim of the summary", head)
        check_trees(sched, trees.splitlines())
        check_links(sched, links.splitlines())
        check_bound(sched, ("bound: " + bound).splitlines())
    except Wrong as error:
        print(f"{shown}: WRONG: {error}"[:600])
        return 1
    print(f"{shown}: {len(sched.trees)} trees, {len(sched.links)} links, {sched.doc['rate']['certificate']['kind']}: "
          f"as shown")
    return 0


def main(paths):
    return max([check(*pair) for pair in zip(paths[::2], paths[1::2])])


if __name__ == "__main__":
    if len(sys.argv) < 3 or len(sys.argv) % 2 == 0:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
