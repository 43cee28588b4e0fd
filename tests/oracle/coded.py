#!/usr/bin/env python3
"""Broadcast, reduce, allgather and reducescatter by any algorithm at all, network coding included, on small machines
whose switches
combine messages but do not copy them (reduce and reducescatter: copy and do not combine).

usage: coded.py BLINKC FIRST LAST     machines of innetwork.py, with these seeds, changed to be of that kind

What is received as one message, but combined from several on its way, is an arc with several tails and one head, over
one set of links.
The linear program has every such arc, and asks only for what every algorithm needs: that enough comes into each set of
GPUs, of
arcs that have their head in the set and a tail outside. Its optimum is no lower than the rate of any algorithm.
docs/bounds.md proves that
trees reach it, whose routes combine nothing: so blinkc must plan that rate, and prove it. It needs the solver HiGHS in
python3-scipy;
exit status 77 without.
"""
import itertools
import json
import subprocess
import sys

import innetwork
from exact_flow import CLOSE, Machine, Program


def machine(seed):
    """Some switches reduce, the others forward."""
    made = innetwork.machine(seed)
    switches = made["nodes"][0]["switches"]
    for i, switch in enumerate(switches):
        for ability in ("reduce", "multicast"):
            switch.pop(ability, None)
        if i == 0 or (seed >> i) & 1:
            switch["reduce"] = True
    return made


def reversed_machine(made):
    """Links the other way, switches that multicast instead of reducing."""
    node = made["nodes"][0]
    switches = [{"id": s["id"], **({"multicast": True} if s.get("reduce") else {})} for s in node["switches"]]
    links = [{**link, "from": link["to"], "to": link["from"]} for link in made["links"]]
    return {**made, "nodes": [{**node, "switches": switches}], "links": links}


def routes(m, tail, head):
    """Lists of links through switches."""
    found = []

    def go(at, path, seen):
        for l, (a, b, _) in enumerate(m.links):
            if a != at or b in seen:
                continue
            if b == head:
                found.append(path + [l])
            elif b >= m.n:
                go(b, path + [l], seen | {b})

    go(tail, [], {tail})
    return found


def combined(m, chosen, combining):
    """How often each link carries the message that these routes become; None: they do not become one."""
    uses = {}

    def walk(suffixes):
        """Routes from their last links backwards: all of these end in one message here."""
        if all(not s for s in suffixes):
            return len(suffixes) == 1
        if any(not s for s in suffixes):  # a tail is a GPU, which is no switch of another route
            return False
        by_link = {}
        for s in suffixes:
            by_link.setdefault(s[-1], []).append(s[:-1])
        if len(by_link) > 1 and m.links[suffixes[0][-1]][1] not in combining:
            return False
        for l, rest in by_link.items():
            uses[l] = uses.get(l, 0) + 1
            if not walk(rest):
                return False
        return True

    last = {route[-1] for route in chosen}
    return uses if len(last) == 1 and walk(chosen) else None


def arcs(m, combining):
    """(tails, head, uses) of each set of tails and each way in which their messages can become one."""
    for head in range(m.n):
        others = [v for v in range(m.n) if v != head]
        for size in range(1, m.n):
            for tails in itertools.combinations(others, size):
                seen = set()
                for chosen in itertools.product(*(routes(m, tail, head) for tail in tails)):
                    uses = combined(m, list(chosen), combining)
                    key = uses and tuple(sorted(uses.items()))
                    if key and key not in seen:
                        seen.add(key)
                        yield set(tails), head, uses


def best(m, combining, need):
    """need(inside): what share of the buffer must come into the set."""
    p = Program()
    x = p.variables(1)[0]
    load, found = [[] for _ in m.links], []
    for tails, head, uses in arcs(m, combining):
        w = p.variables(1)[0]
        found.append((tails, head, w))
        for l, times in uses.items():
            load[l].append((w, float(times)))
    for l in range(len(m.links)):
        p.at_most(load[l], m.capacity(l))
    for size in range(1, m.n):
        for inside in map(set, itertools.combinations(range(m.n), size)):
            share = need(inside)
            if share:
                p.at_most([(x, share)] + [(w, -1.0) for tails, head, w in found if head in inside and tails - inside])
    return p.best(x) * m.unit


def planned(blinkc, made, collective):
    args = [blinkc, "-", "-l", "all", "-c", collective, "-o",
            "-"] + (["-r", "0"] if collective in ("broadcast", "reduce") else [])
    done = subprocess.run(args, input=json.dumps(made), capture_output=True, text=True, check=False)
    if done.returncode:
        raise ArithmeticError(done.stderr.strip())
    rate = json.loads(done.stdout)["rate"]
    return rate["achieved"], rate["bound"]


def judge(blinkc, seed):
    made = machine(seed)
    m = Machine(made)
    names = [s["id"] for s in made["nodes"][0]["switches"]]
    combining = {m.n + i for i, _ in enumerate(names) if made["nodes"][0]["switches"][i].get("reduce")}
    needs = {"broadcast": lambda inside: 0.0 if 0 in inside else 1.0, "allgather": lambda inside: 1 - len(inside) / m.n}
    wrong = 0
    for collective, need in needs.items():
        want = best(m, combining, need)
        for coll, of in ((collective, made),
                         ({"broadcast": "reduce", "allgather": "reducescatter"}[collective], reversed_machine(made))):
            rate, bound = planned(blinkc, of, coll)
            if not (abs(rate / want - 1) <= CLOSE and abs(bound / want - 1) <= CLOSE):
                wrong += 1
                print(f"WRONG seed {seed}: {coll}: rate {rate:.9g}, bound {bound:.9g}; with coding at most {want:.9g}",
                      flush=True)
    return wrong


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.split("\n\n")[1])
    try:
        import scipy.optimize  # noqa: F401  pylint: disable=unused-import
    except ImportError:
        print("coded.py: scipy is not installed", file=sys.stderr)
        sys.exit(77)
    seeds = range(int(sys.argv[2]), int(sys.argv[3]) + 1)
    wrong = sum(judge(sys.argv[1], seed) for seed in seeds)
    print(f"{len(seeds)} machines, {4 * len(seeds)} rates and bounds, {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
