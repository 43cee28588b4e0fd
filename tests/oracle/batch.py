#!/usr/bin/env python3
"""Hold what `blinkc batch` wrote against the machine.

usage: batch.py BLINKC TOPOLOGY DIRECTORY [--sizes 2-8] [--collectives a,b] [--roots all|best|canonical] [--lists FILE]
                [--distinct] [--shapes] [--every N] [OPTION...]

An index must name every set of GPUs (of these sizes, or of the file's lists), each with every collective and root; each
file must be the schedule of a job that is the same machine as the entry's own job, under `ranks`: the own job's links
are those that `blinkc -g` finds (with the OPTIONs, given behind --), and vertices that are no GPUs are matched here.
Rates, trees and depths are computed from the files. Two files of a collective are never for the same machine: held
against brute force up to 6 GPUs. --every N: only of one set in N is the own job asked for, a process for each; all
others must have entries.

--shapes: the index has one set for each kind of sets; that there are no others is held against all sets, up to 16 GPUs.
"""
import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from itertools import combinations, permutations

import replay

ROOTED = {name for name, (rooted, _, _) in replay.COLLECTIVES.items() if rooted}


def sizes_of(text, n):
    out = set()
    for part in (text or f"2-{n}").split(","):
        first, _, last = part.partition("-")
        out.update(range(int(first), int(last or first) + 1))
    return out


class Machine:
    """Links of a job's topology as a file has them: ranks are integers, other vertices strings."""

    def __init__(self, topology):
        self.n = len(topology["ranks"])
        self.servers = [rank["node"] for rank in topology["ranks"]]
        self.links = [(l["from"], l["to"], f'{l["class"]} {l["capacity"]} {l["latency"]}') for l in topology["links"]]
        self.vertices = list(range(self.n)) + sorted({v for a, b,
                                                      _ in self.links for v in (a, b) if isinstance(v, str)})
        self.out = {v: [] for v in self.vertices}
        self.into = {v: [] for v in self.vertices}
        for a, b, what in self.links:
            self.out[a].append((b, what))
            self.into[b].append((a, what))

    def refine(self, colour):
        """Colours that tell apart what their neighbours tell apart, until no more come. The same in every machine."""
        while True:
            new = {v: hash((colour[v], tuple(sorted((colour[w], what) for w, what in self.out[v])),
                            tuple(sorted((colour[w], what) for w, what in self.into[v])))) for v in self.vertices}
            if len(set(new.values())) == len(set(colour.values())):
                return new
            colour = new


def same(a, b, of):
    """Is rank r of a as rank of[r] of b, for every r? Other vertices are matched by refinement, ties by trying."""
    if a.n != b.n or len(a.vertices) != len(b.vertices) or len(a.links) != len(b.links):
        return False
    for r in range(a.n):
        for s in range(a.n):
            if (a.servers[r] == a.servers[s]) != (b.servers[of[r]] == b.servers[of[s]]):
                return False

    def colours(machine, rank_colour, fixed):
        start = {v: rank_colour.get(v, "other") for v in machine.vertices}
        start.update({v: f"fixed {i}" for i, v in enumerate(fixed)})
        return machine.refine({v: hash(start[v]) for v in machine.vertices})

    def match(fixed_a, fixed_b):
        ca = colours(a, {r: f"rank {r}" for r in range(a.n)}, fixed_a)
        cb = colours(b, {of[r]: f"rank {r}" for r in range(a.n)}, fixed_b)
        if Counter(ca.values()) != Counter(cb.values()):
            return False
        cells = Counter(ca.values())
        many = [c for c in cells if cells[c] > 1]
        if many:
            first = next(v for v in a.vertices if ca[v] == min(many))
            return any(match(fixed_a + [first], fixed_b + [w]) for w in b.vertices if cb[w] == min(many))
        return sorted((ca[x], ca[y], what) for x, y, what in a.links) == sorted((cb[x], cb[y], what) for x, y,
                                                                                what in b.links)

    return match([], [])


def isomorphic(a, b, root_a, root_b):
    """By all orders of ranks; what colours tell apart at once needs none."""
    def plain(machine, root):
        return Counter(machine.refine({v: hash("root" if v == root else "rank" if isinstance(v, int) else "other")
                                       for v in machine.vertices}).values())

    return plain(a, root_a) == plain(b, root_b) and any(same(a, b, of) for of in permutations(range(a.n))
                                                        if root_a is None or of[root_a] == root_b)


class Check:
    def __init__(self, args):
        self.args = args
        self.wrong = 0
        self.own = {}       # machine of each set, as blinkc -g has it
        self.files = {}     # document and machine of each file
        with open(os.path.join(args.directory, "index.json")) as f:
            self.index = json.load(f)

    def fault(self, text):
        self.wrong += 1
        if self.wrong <= 10:
            print(f"{self.args.directory}: {text}")

    def asks(self, gpus):
        """Is it one of the sets whose own job is asked for?"""
        return sum(1 << g for g in gpus) % self.args.every == 0

    def machine_of(self, gpus):
        key = tuple(gpus)
        if key not in self.own:
            # Only the topology of the schedule is read, so there is no need to look for fewer trees.
            command = [self.args.blinkc, "-q", "--no-minimise", self.args.topology, "-g", ",".join(map(str, gpus))]
            run = subprocess.run([*command, *self.args.options], capture_output=True, text=True)
            if run.returncode not in (0, 5):
                raise SystemExit(f"blinkc -g {gpus}: {run.stderr}")
            self.own[key] = Machine(json.loads(run.stdout)["topology"]) if run.returncode == 0 else None
        return self.own[key]

    def file(self, name):
        if name not in self.files:
            document = replay.load(os.path.join(self.args.directory, name))
            with open(os.path.join(self.args.directory, name)) as f:
                plain = json.load(f)
            self.files[name] = (plain, Machine(plain["topology"]), replay.judge(document))
        return self.files[name]

    def entry(self, e):
        name = f'{e["gpus"]} {e["collective"]} {e["root"]}'
        plain, machine, _ = self.file(e["file"])
        if sorted(e["ranks"]) != list(range(len(e["gpus"]))):
            return self.fault(f"{name}: ranks {e['ranks']}")
        if plain["collective"] != e["collective"]:
            self.fault(f"{name}: {e['file']} is of {plain['collective']}")
        if plain["root"] != (None if e["root"] is None else e["ranks"][e["root"]]):
            self.fault(f"{name}: {e['file']} has root {plain['root']}")
        if plain["topology"]["digest"] != self.index["topology"]["digest"]:
            self.fault(f"{name}: {e['file']} is of another machine")
        for field in ("achieved", "bound"):
            stated = e["rate" if field == "achieved" else "bound"]
            if abs(stated - plain["rate"][field]) > 1e-12 * stated:
                self.fault(f"{name}: {field} {stated}, the file has {plain['rate'][field]}")
        if e["trees"] != len(plain["trees"]) or e["depth"] != max(map(depth, plain["trees"])):
            self.fault(f"{name}: {e['trees']} trees, depth {e['depth']}: the file has others")
        if not self.asks(e["gpus"]):
            return None
        own = self.machine_of(e["gpus"])
        if own is None:
            return self.fault(f"{name}: blinkc -g finds no such job")
        if not same(own, machine, e["ranks"]):
            self.fault(f"{name}: {e['file']} is of other links under ranks {e['ranks']}")
        return None

    def expected(self):
        """(gpus, collective, root) of all jobs; roots of one kind by their files."""
        n = len(self.index["topology"]["gpus"])
        sizes = sizes_of(self.args.sizes, n)
        if self.args.lists:
            with open(self.args.lists) as f:
                sets = {tuple(map(int, line.split(","))) for line in f if line.strip()}
            sets = {s for s in sets if len(s) in sizes}
        else:
            sets = {s for k in sorted(sizes) for s in combinations(range(n), k)}
        return sets

    def complete(self):
        have = Counter((tuple(e["gpus"]), e["collective"], e["root"]) for e in self.index["schedules"])
        if any(count > 1 for count in have.values()):
            self.fault("two entries for one job")
        for gpus in sorted(self.expected()):
            if self.asks(gpus) and self.machine_of(gpus) is None:
                if any(key[0] == gpus for key in have):
                    self.fault(f"{gpus}: has entries, and no job")
                continue
            for collective in self.args.collectives.split(","):
                roots = [root for g, c, root in have if g == gpus and c == collective]
                want = list(range(len(gpus))) if collective in ROOTED else [None]
                if collective in ROOTED and self.args.roots == "best":
                    if len(roots) != 1:
                        self.fault(f"{gpus} {collective}: {len(roots)} roots, want the best")
                elif collective in ROOTED and self.args.roots == "canonical":
                    self.canonical(gpus, collective, roots)
                elif sorted(roots, key=str) != sorted(want, key=str):
                    self.fault(f"{gpus} {collective}: roots {roots}, want {want}")

    def canonical(self, gpus, collective, roots):
        own = self.machine_of(gpus)
        if own.n > 6:
            return
        kinds = []
        for root in range(own.n):
            if not any(isomorphic(own, own, root, other) for other in kinds):
                kinds.append(root)
        if sorted(roots) != kinds:
            self.fault(f"{gpus} {collective}: roots {sorted(roots)}, want one of each kind, {kinds}")

    def kinds(self):
        """No two files of a collective are for the same machine."""
        by = {}
        for name, (plain, machine, _) in self.files.items():
            key = (plain["collective"], machine.n, len(machine.vertices),
                   tuple(sorted(what for _, _, what in machine.links)))
            by.setdefault(key, []).append(name)
        pairs = 0
        for key, names in by.items():
            for a, b in combinations(names, 2):
                if key[1] > 6:
                    continue
                pairs += 1
                (pa, ma, _), (pb, mb, _) = self.files[a], self.files[b]
                if isomorphic(ma, mb, pa["root"], pb["root"]):
                    self.fault(f"{a} and {b} are the same machine")
        return pairs

    def shapes(self):
        """Every set of GPUs is one of the index under some order; files that are not the same are told apart by
        kinds()."""
        sets = {}
        for e in self.index["schedules"]:
            machine = self.machine_of(e["gpus"])
            sets.setdefault(machine.n, []).append(machine)
        n = len(self.index["topology"]["gpus"])
        for k in sorted(sizes_of(self.args.sizes, n)):
            for gpus in combinations(range(n), k):
                own = self.machine_of(gpus)
                if own and not any(isomorphic(own, machine, None, None) for machine in sets.get(k, [])):
                    self.fault(f"{gpus}: no set of the index is like it")

    def run(self):
        for e in self.index["schedules"]:
            self.entry(e)
        if self.args.shapes:
            self.shapes()
        elif not self.args.distinct:
            self.complete()
        pairs = self.kinds()
        print(f"{self.args.directory}: {len(self.index['schedules'])} jobs, {len(self.files)} files, {pairs} pairs "
              f"told apart, "
              f"{self.wrong} wrong")
        return 1 if self.wrong else 0


def depth(tree):
    """Hops of the longest chain up, and from the root down."""
    down = {tree["root"]: 0}
    for src, dst, _ in tree.get("down", []):
        down[dst] = down[src] + 1
    up = Counter()
    for src, dst, _ in tree.get("up", []):
        up[dst] = max(up[dst], up[src] + 1)
    return max(down.values()) + up[tree["root"]]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("blinkc")
    parser.add_argument("topology")
    parser.add_argument("directory")
    parser.add_argument("--sizes")
    parser.add_argument("--collectives", default="allreduce")
    parser.add_argument("--roots", default="all")
    parser.add_argument("--lists")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--distinct", action="store_true")
    parser.add_argument("--shapes", action="store_true")
    own = sys.argv[1:]
    options = own[own.index("--") + 1:] if "--" in own else []
    args = parser.parse_args(own[:own.index("--")] if "--" in own else own)
    args.options = options
    return Check(args).run()


if __name__ == "__main__":
    sys.exit(main())
