#!/usr/bin/env python3
"""blinkc hierarchy, held against the formula worked by hand: rates of layers by maximum flows of its own over the
topology, times in fractions, all hierarchies one by one.

usage: hierarchy.py BLINKC best TOPOLOGY GPUS BYTES [COST]     the first ten of the job, and the flat ring
       hierarchy.py BLINKC fit TOPOLOGY GPUS DIR [all]         parameters come back from times with and without noise
"""
import json
import random
import subprocess
import sys
from collections import deque
from fractions import Fraction as F

EFFICIENCY = {"nvlink": F(744, 1000), "xgmi": F(744, 1000), "c2c": F(744, 1000), "pcie": F(1), "qpi": F(1),
              "net": F(744, 1000)}
DEFAULTS = {"alpha": F(48, 10), "steps": F(2), "layer": F(100), "server": F(1), "network": F(1)}


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(args)}: exit {done.returncode}: {done.stderr[:300]}")
    return done.stdout


class Machine:
    """The links of a job, as its schedule has them; bytes/s by (from, to), for a set of classes."""

    def __init__(self, blinkc, path, gpus):
        topology = json.loads(run(blinkc, "-q", path, "-g", gpus))["topology"]
        self.node = [rank.get("node") for rank in topology["ranks"]]
        self.n = len(self.node)
        self.links = [(link["from"], link["to"], link["class"],
                       F(str(link["capacity"])) * 10**9 * EFFICIENCY[link["class"]])
                      for link in topology["links"]]

    def server(self):
        first = [r for r in range(self.n) if self.node[r] == self.node[0]]
        k = len(first)
        if self.n % k:
            return 1
        groups = [{self.node[r] for r in range(b, b + k)} for b in range(0, self.n, k)]
        even = all(len(g) == 1 for g in groups) and len(set(map(tuple, groups))) == len(groups)
        return k if even else 1

    def flow(self, sources, sinks, classes=None):
        """Maximum flow, bytes/s: links that leave other GPUs than sources are closed. Edmonds and Karp."""
        left = {}
        for a, b, kind, rate in self.links:
            if (isinstance(a, str) or a in sources) and (classes is None or kind in classes):
                left.setdefault(a, {}).setdefault(b, F(0))
                left[a][b] += int(rate)
                left.setdefault(b, {}).setdefault(a, F(0))
        total = F(0)
        while True:
            came, queue = {s: None for s in sources}, deque(sources)
            end = None
            while queue and end is None:
                v = queue.popleft()
                for w, rate in left.get(v, {}).items():
                    if rate > 0 and w not in came:
                        came[w] = v
                        if w in sinks:
                            end = w
                            break
                        queue.append(w)
            if end is None:
                return total
            path = []
            while came[end] is not None:
                path.append((came[end], end))
                end = came[end]
            least = min(left[a][b] for a, b in path)
            for a, b in path:
                left[a][b] -= least
                left[b][a] += least
            total += least

    def rate(self, inner, outer):
        """Of the layer from blocks of `inner` ranks to blocks of `outer`: bytes/s of each rank."""
        least = None
        if outer <= self.server():
            mates = set(range(inner, outer, inner))
            rates = [self.flow({0}, mates, kinds) for kinds in ({"nvlink"}, {"xgmi"}, {*EFFICIENCY} - {"net"}, None)]
            least = int(next(rate for rate in rates if rate))
        for block in range(1, outer):
            if self.n % block == 0:
                out = sum(1 for r in range(block)
                          if (r + inner if r % outer + inner < outer else r + inner - outer) >= block)
                if out:
                    rate = int(self.out(block)) // out
                    least = rate if least is None else min(least, rate)
        return least

    def out(self, block):
        self.known = getattr(self, "known", {})
        if block not in self.known:
            self.known[block] = self.flow(set(range(block)), set(range(block, self.n)))
        return self.known[block]


def all_of(n):
    """Ordered factorisations."""
    if n == 1:
        yield ()
    for p in range(2, n + 1):
        if n % p == 0:
            for rest in all_of(n // p):
                yield (p, *rest)


def kept_to_servers(layers, server):
    inner = 1
    for p in layers:
        outer = inner * p
        if server > 1 and inner % server and (outer > server or server % outer):
            return False
        inner = outer
    return True


def time_of(layers, m, rate, server, cost):
    """us, as Ueno and Yokota have it: 2 s alpha (sum p - h) + 2 m sum beta (p - 1) / prod; and the start of layers."""
    us = 2 * cost["steps"] * cost["alpha"] * (sum(layers) - len(layers)) + cost["layer"] * len(layers)
    product = 1
    for p in layers:
        beta = F(10**6, rate(product, product * p)) * cost["server" if product * p <= server else "network"]
        product *= p
        us += 2 * m * beta * F(p - 1, product)
    return us


def rates_of(machine):
    known = {}

    def rate(inner, outer):
        if (inner, outer) not in known:
            known[inner, outer] = machine.rate(inner, outer)
        return known[inner, outer]
    return rate


def check_best(blinkc, path, gpus, m, text=""):
    machine = Machine(blinkc, path, gpus)
    rate, server = rates_of(machine), machine.server()
    cost = {**DEFAULTS, **{k: F(v) for k, v in (item.split("=") for item in text.split(",") if item)}}
    asked = (["--cost", text] if text else []) + ["--size", str(m), "--top", "10", "--no-simulate", "--format", "json"]
    got = json.loads(run(blinkc, "hierarchy", path, "-g", gpus, *asked))
    if got["server_ranks"] != server:
        raise SystemExit(f"server_ranks {got['server_ranks']}, want {server}")
    for row in got["rates"]:
        want = rate(row["from"], row["to"])
        if abs(row["rate"] * 1e9 - want) > 1:
            raise SystemExit(f"rate {row}: want {want / 1e9}")
    best = sorted((round(time_of(h, m, rate, server, cost), 4), len(h), [-p for p in h])
                  for h in all_of(machine.n) if kept_to_servers(h, server))[:10]
    want = [([-p for p in h], float(time)) for time, _, h in best]
    have = [(row["layers"], row["cost_us"]) for row in got["hierarchies"]]
    if [h for h, _ in want] != [h for h, _ in have] or any(abs(a - b) > 1e-3 for (_, a), (_, b) in zip(want, have)):
        raise SystemExit(f"{have}\nwant {want}")
    flat = float(time_of((machine.n,), m, rate, server, cost))
    if got["ring"]["layers"] != [machine.n] or abs(got["ring"]["cost_us"] - flat) > 1e-3:
        raise SystemExit(f"{got['ring']}: want {flat}")


def measurements(machine, rate, cost, noise, rng):
    server = machine.server()
    lines = ["# hierarchy, bytes, us: made", ""]
    for h in all_of(machine.n):
        for m in (1 << 16, 1 << 22, 1 << 27):
            us = float(time_of(h, m, rate, server, cost)) * rng.uniform(1 - noise, 1 + noise)
            lines.append(f"{'x'.join(map(str, h))},{m},{us:.9g}")
    return "\n".join(lines) + "\n"


def check_fit(blinkc, path, gpus, where, all_of_them=None):
    machine = Machine(blinkc, path, gpus)
    rate, rng = rates_of(machine), random.Random(7)
    for noise, tolerance in ((0, 1e-4), (0.02, 0.1)):
        known = ((3, 40, 1.5, 2.25), (12.5, 0, 0.8, 1), (0.75, 250, 3, 0.5))
        for alpha, layer, server, network in known if all_of_them else known[:1]:
            cost = {"alpha": F(alpha), "steps": F(2), "layer": F(layer), "server": F(server), "network": F(network)}
            with open(f"{where}/measured.csv", "w") as out:
                out.write("hierarchy,bytes,us\r\n" + measurements(machine, rate, cost, noise, rng))
            got = json.loads(run(blinkc, "hierarchy", path, "-g", gpus, "--measurements", f"{where}/measured.csv",
                                 "--top", "1",
                                 "--no-simulate", "--format", "json"))
            if got["fit"]["fitted"] != ["alpha", "layer", "server",
                                        "network"] or not got["fit"]["rms"] <= max(noise, 1e-4):
                raise SystemExit(f"{got['fit']}")
            for name, value in cost.items():
                # Start-ups of a few us are told from noise by small messages alone.
                if abs(got["cost"][name] - float(value)) > tolerance * max(float(value), 10 if name == "layer" else 0):
                    raise SystemExit(f"noise {noise}: {name} is {got['cost'][name]}, want {float(value)}: {got['fit']}")


if __name__ == "__main__":
    if sys.argv[2] == "best":
        check_best(sys.argv[1], *sys.argv[3:5], int(sys.argv[5]), *sys.argv[6:])
    else:
        check_fit(sys.argv[1], *sys.argv[3:])
