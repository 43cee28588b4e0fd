#!/usr/bin/env python3
"""A plain and slow simulator of schedules, held against `blinkc simulate`.

usage: simulated.py BLINKC [--executor NAME] [--parameters FILE] [--chunk N] [--size N,N...] SCHEDULE.json...

For each file and size: the time and the bytes on each link that blinkc states must be equal, to the ps. The model is
that of docs/simulator.md, "What is simulated": at each time everything that happens is taken, then what waits begins,
then links share. Nothing is kept between two times but what the model names: all steps, all links, everything anew.
Levels of links and what steps have still to get are fractions.
"""
import argparse
import heapq
import json
import math
import subprocess
import sys
from fractions import Fraction

PS = 10**12


def has_lines(schedule, longest):
    """May a message go by lines? Over NVLinks between GPUs of one server, not of the P100, no switch adds or copies,
    and there is room for all that a pair has of the longest segment."""
    links, ranks = schedule["topology"]["links"], schedule["topology"]["ranks"]
    edges = [e for tree in schedule["trees"] for phase in ("up", "down") for e in tree.get(phase, [])]
    pairs = [(src, dst) for src, dst, _ in edges]
    fast = all(links[l]["class"] == "nvlink" and Fraction(str(links[l]["capacity"])) / links[l].get("count", 1) >= 23
               for _, _, path in edges for l in path)
    straight = all(links[path[0]]["from"] == src and links[path[-1]]["to"] == dst
                   and ranks[src].get("node") == ranks[dst].get("node") for src, dst, path in edges)
    room = min(max((32 << 20) // len(ranks) // 4096 * 4096, 256 << 10), 2304 << 10)
    lanes = max((pairs.count(pair) for pair in set(pairs)), default=1)
    return bool(edges) and fast and straight and longest + math.ceil(longest / 15) <= room // lanes


class Simulation:
    def __init__(self, schedule, p, m, chunk):
        self.p, self.m, self.chunk, self.now = p, m, chunk, 0
        topology = schedule["topology"]
        self.n = len(topology["ranks"])
        self.links = topology["links"]
        self.rate = [max(1, scaled(l["capacity"], 10**9) * scaled(p["efficiency"][l["class"]], 10**6) // 10**6)
                     for l in self.links]
        self.events, self.moving, self.pushed = [], {}, 0
        self.sending = [0] * self.n
        self.queued = {}  # by link, what waits for room on it
        self.has_paths = schedule["collective"] in ("gather", "scatter", "alltoall")
        self.moved = [0] * len(self.links)
        self.sizes_of_blocks = self.blocks()
        self.make_edges(schedule)

    # ---- edges and segments

    def latency(self, path):
        total = 0
        for l in path:
            ps = scaled(self.links[l].get("latency", 0) or self.p["latency"][self.links[l]["class"]], 1000) * 1000
            part = self.p["packet_hop"] if self.packets else self.p["line_hop"] if self.lines else 10**6
            total += ps * part // 10**6
        return total

    def make_edges(self, schedule):
        reduces = schedule["collective"] in ("reduce", "allreduce", "reducescatter")
        blocks = self.n if schedule["collective"] in ("gather", "scatter", "allgather", "reducescatter",
                                                      "alltoall") else 1
        in_all = self.n**2 if schedule["collective"] == "alltoall" else blocks
        block = -(-self.m // blocks)
        self.edges, self.sizes, self.roots = [], [], []
        lengths = [math.ceil(Fraction(tree["segment"][1]) * in_all * block) for tree in schedule["trees"]]
        longest = max(lengths, default=0)
        self.lines = self.p["line_above"] < self.m <= self.p["line_most"] and has_lines(schedule, longest)
        self.packets = self.m <= self.p["packet_most"] and not self.lines
        for t, tree in enumerate(schedule["trees"]):
            length = Fraction(tree["segment"][1])
            self.sizes.append(math.ceil(length * in_all * block))
            self.roots.append(tree["root"])
            for phase in ("up", "down"):
                for src, dst, links in tree.get(phase, []):
                    self.edges.append(self.edge(schedule, t, phase, src, dst, links, reduces))
        longest = max(self.sizes, default=0)
        for e in self.edges:
            size = self.sizes[e["tree"]]
            e["chunks"] = [min(self.chunk, size - at) for at in range(0, size, self.chunk)]
            e["weight"] = max(1, size * 2**20 // longest) if self.p["by_length"] and longest else 2**20

    def edge(self, schedule, t, phase, src, dst, links, reduces):
        e = {"tree": t, "up": phase == "up", "src": src, "dst": dst, "links": links, "path": links, "feeder": None,
             "adds": phase == "up" and reduces, "begun": 0, "bytes_begun": 0, "arrived": 0, "busy": False}
        ends = [(self.links[l]["from"], self.links[l]["to"]) for l in links]
        mine = [o for o in self.edges if o["tree"] == t and o["up"] == e["up"]]
        if phase == "down" and ends[0][0] != src:
            s = ends[0][0]
            e["feeder"] = f = [o for o in mine if o["src"] == src
                               and s in [self.links[l]["to"] for l in o["links"]]][-1]
            at = [self.links[l]["to"] for l in f["path"]].index(s)
            e["path"] = f["path"][:at + 1] + links
        if phase == "up" and ends[-1][1] != dst:
            s = ends[-1][1]
            c = [o for o in mine if o["dst"] == dst and s in [self.links[l]["from"] for l in o["path"]]][-1]
            e["path"] = links + c["path"][[self.links[l]["from"] for l in c["path"]].index(s):]
            e["adds"] = False
        e["latency"] = self.latency(e["path"])
        return e

    def inputs(self, e):
        """Edges that a chunk must have come by before this edge takes it on."""
        tree = [o for o in self.edges if o["tree"] == e["tree"]]
        if e["up"]:
            return [o for o in tree if o["up"] and o["dst"] == e["src"]]
        if e["src"] == self.roots[e["tree"]]:
            return [o for o in tree if o["up"] and o["dst"] == e["src"]]
        return [o for o in tree if not o["up"] and o["dst"] == e["src"]]

    # ---- what happens

    def at(self, wait, what, *of):
        self.pushed += 1
        heapq.heappush(self.events, (self.now + wait, self.pushed, what, of))

    def add_time(self, e, size):
        rates = [self.p["reduce"]] if self.p["reduce"] else []
        if self.p["reduce_by_link"]:
            rates += [max(1, self.rate[l] * self.p["reduce_by_link"] // 10**6) for l in e["links"]]
        return -(-size * PS // min(rates)) if rates else 0

    def complete(self, e):
        """Chunks that this edge may take on."""
        if e["feeder"]:
            return e["feeder"]["bytes_begun"]
        ins = self.ins[id(e)]
        if not ins:
            return len(e["chunks"]) if self.now >= self.p["call"] * 1000 else 0
        return min(o["done"] for o in ins)

    def begin(self, e):
        e["busy"] = True
        e["begun"] += 1
        step = self.p["packet_step"] if self.packets or self.lines else self.p["step"]
        if e["feeder"]:
            self.move(e)
            return
        self.sending[e["src"]] += 1
        if step:
            self.at(step * 1000, "enter", e)
        else:
            self.enter(e)

    def enter(self, e):
        if self.p["in_order"]:
            self.queued.setdefault(e["links"][0], []).append(e)
        else:
            self.move(e)

    def advance(self):
        """The first that waits for each link with room moves, then links share, and the next may have room."""
        rate = lambda s: s["level"] * s["edge"]["weight"]
        while True:
            used = {l: sum(rate(s) for s in self.moving.values() if s["edge"]["links"][0] == l) for l in self.queued}
            ready = [those.pop(0) for l, those in self.queued.items() if those and used[l] < self.rate[l]]
            if not ready:
                return
            for e in ready:
                self.move(e)
            self.share()

    def move(self, e):
        size = e["chunks"][e["begun"] - 1]
        e["bytes_begun"] += 1
        for l in e["links"]:
            self.moved[l] += size
        on_links = 2 * size if self.packets else size + math.ceil(size / 15) if self.lines else size
        self.moving[id(e)] = {"edge": e, "left": Fraction((on_links + self.p["header"]) * PS, e["weight"]),
                              "level": 0, "since": self.now, "end": None}
        for f in self.edges:
            if f["feeder"] is e and not f["busy"] and f["begun"] < f["feeder"]["bytes_begun"]:
                self.begin(f)

    def moved_all(self, e):
        del self.moving[id(e)]
        wait = self.add_time(e, e["chunks"][e["begun"] - 1]) if e["adds"] and self.p["fused"] else 0
        if wait:
            self.at(wait, "end", e)
        else:
            self.end(e)

    def end(self, e):
        e["busy"] = False
        if not e["feeder"]:
            self.sending[e["src"]] -= 1
        if e["latency"]:
            self.at(e["latency"], "arrive", e)
        else:
            self.arrive(e)
        if e["feeder"] and e["begun"] < e["feeder"]["bytes_begun"]:
            self.begin(e)

    def arrive(self, e):
        e["arrived"] += 1
        e["done"] += not self.serial(e)
        self.last = self.now

    def serial(self, e):
        return not self.p["fused"] and any(o["adds"] for o in self.same(e))

    def same(self, e):
        """Edges whose chunks meet at the receiver."""
        return [o for o in self.edges if o["tree"] == e["tree"] and o["up"] == e["up"] and o["dst"] == e["dst"]]

    def add(self):
        """The receivers' next additions: in the order of chunks, and of the file."""
        for e in self.edges:
            if not e["up"] or not self.serial(e):
                continue
            group = self.same(e)
            if any(o["adding"] for o in group):
                continue
            first = min(group, key=lambda o: o["done"])
            if e is first and e["arrived"] > e["done"]:
                e["adding"] = True
                wait = self.p["reduce_step"] * 1000 + self.add_time(e, e["chunks"][e["done"]]) if e["adds"] else 0
                if wait:
                    self.at(wait, "added", e)
                else:
                    self.added(e)
                return True
        return False

    def added(self, e):
        e["adding"] = False
        e["done"] += 1
        self.last = self.now

    def blocks(self):
        """Sizes of blocks of ranks, each in the next: one ends before a rank that is farther from rank 0 than the first
        ranks
        of the blocks before it."""
        out, distance, queue = {}, {0: 0}, [0]
        for l in self.links:
            out.setdefault(l["from"], []).append(l["to"])
        for v in queue:
            for w in out.get(v, []):
                if w not in distance:
                    distance[w] = distance[v] + 1
                    queue.append(w)
        sizes, most = [1], distance.get(1, 0)
        for r in range(2, self.n):
            if r % sizes[-1] == 0 and distance[r] > most:
                most = distance[r]
                sizes += [r] if self.n % r == 0 else []
        return sizes + [self.n]

    def turns(self, src, root):
        """In which place a rank issues for trees of that root: around its own block, then the next, in the same
        order."""
        return [(root % b // a - src % b // a) % (b // a) for a,
                b in reversed(list(zip(self.sizes_of_blocks, self.sizes_of_blocks[1:])))]

    def grant(self):
        """Of one chunk, each rank begins with the trees whose root it is, and goes on to those of the next ranks; of
        one root, where trees are paths, with that to the rank after it."""
        ready = [(e["begun"], self.turns(e["src"], self.roots[e["tree"]]),
                  self.turns(e["src"], e["dst"]) if self.has_paths else 0, i) for i, e in enumerate(self.edges)
                 if not e["busy"] and not e["feeder"] and e["begun"] < self.complete(e)]
        for *_, i in sorted(ready):
            e = self.edges[i]
            if not self.p["at_once"] or self.sending[e["src"]] < self.p["at_once"]:
                self.begin(e)

    def fair(self):
        """Levels by progressive filling: all steps rise together, until a link is full and stops those on it."""
        levels, on = {}, {}
        for k, s in self.moving.items():
            for l in s["edge"]["links"]:
                on.setdefault(l, set()).add(k)
        left = {l: Fraction(self.rate[l]) for l in on}
        weight = lambda k: self.moving[k]["edge"]["weight"]
        while on:
            level = {l: left[l] / sum(map(weight, on[l])) for l in on}
            lowest = min(level.values())
            for k in set().union(*(on[l] for l in on if level[l] == lowest)):
                levels[k] = lowest
                for l in self.moving[k]["edge"]["links"]:
                    left[l] -= lowest * weight(k)
                    on[l].remove(k)
            on = {l: those for l, those in on.items() if those}
        return levels

    def share(self):
        """Nothing is rounded but ends, up to whole ps."""
        for k, level in self.fair().items():
            s = self.moving[k]
            if level != s["level"]:
                s["left"] -= s["level"] * (self.now - s["since"])
                s["since"], s["level"] = self.now, level
                s["end"] = self.now + math.ceil(s["left"] / level)

    def run(self):
        for e in self.edges:
            e["done"], e["adding"] = 0, False
        self.ins = {id(e): self.inputs(e) for e in self.edges}
        self.last = 0
        if any(e["chunks"] for e in self.edges):
            self.at(self.p["call"] * 1000, "call")
        while self.events or self.moving:
            self.now = min([e[0] for e in self.events[:1]] + [s["end"] for s in self.moving.values()])
            again = True
            while again:
                again = False
                for s in list(self.moving.values()):
                    if s["end"] == self.now:
                        self.moved_all(s["edge"])
                        again = True
                while self.events and self.events[0][0] == self.now:
                    _, _, what, of = heapq.heappop(self.events)
                    if what != "call":
                        {"enter": self.enter, "end": self.end, "arrive": self.arrive, "added": self.added}[what](*of)
                    again = True
                again |= self.add()
            self.grant()
            self.share()
            self.advance()
        return self.last


def scaled(value, by):
    return round(Fraction(repr(value)) * by) if isinstance(value, float) else value * by


def units(parameters):
    """As blinkc writes them, in us and GB/s: ns and bytes/s."""
    p = dict(parameters)
    for name in ("call", "step", "reduce_step", "packet_step"):
        p[name] = scaled(p[name], 1000)
    p["reduce"] = scaled(p["reduce"], 10**9)
    return p


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("blinkc")
    parser.add_argument("file", nargs="+")
    parser.add_argument("--executor", default="kernel")
    parser.add_argument("--parameters")
    parser.add_argument("--chunk", default="64K")
    parser.add_argument("--size", default="1M")
    args = parser.parse_args()
    wrong = 0
    for path in args.file:
        options = ["--executor", args.executor, "--chunk", args.chunk, "--size", args.size, "--format", "json"]
        options += ["--parameters", args.parameters] if args.parameters else []
        stated = json.loads(subprocess.run([args.blinkc, "simulate", path] + options, check=True, timeout=120,
                                           stdout=subprocess.PIPE).stdout)
        schedule = json.load(open(path))
        for row in stated["sizes"]:
            chunk = int(args.chunk[:-1]) << 10 if args.chunk.endswith("K") else int(args.chunk)
            own = Simulation(schedule, units(stated["parameters"]), row["bytes"], chunk)
            time = own.run()
            moved = {l["link"]: l["bytes"] for l in row["links"]}
            want = {l: n for l, n in enumerate(own.moved) if n}
            if time != row["time_ps"] or moved != want:
                print("%s: %d bytes: WRONG: %d ps, want %d%s" % (path, row["bytes"], row["time_ps"], time,
                                                                 "" if moved == want else "; bytes of links"))
                wrong += 1
            else:
                print("%s: %d bytes: ok %d ps" % (path, row["bytes"], time))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
