#!/usr/bin/env python3
"""Laws of rates: what happens to them when a topology changes in a known way.

usage: laws.py variants DIRECTORY FIRST LAST KIND...    of DIRECTORY/tSEED.json, as DIRECTORY/vSEED-KIND.json
       laws.py judge DIRECTORY                          a line for each case on standard input

double    all capacities doubled: the bound is, too
reverse   ranks in reverse order: the bound stays
shuffled  ranks in a random order: rate and bound stay
link      one more link: the bound does not fall

`variants` prints a line for each: SEED KIND GPUS ROOT, the GPUs in the order of their ranks and the rank of GPU 0.
A case is SEED COLLECTIVE KIND. Its schedule before is DIRECTORY/sSEED-COLLECTIVE.json, and afterwards
vSEED-KIND-COLLECTIVE.json; the verdict is `ok seed SEED COLLECTIVE KIND`, or `not ok` and why.
"""
import json
import os
import random
import sys

TOLERANCE = 1e-9


def load(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def variant(topology, kind, seed):
    """Changes the topology. Returns the order of its GPUs."""
    gpus = [gpu["id"] for node in topology["nodes"] for gpu in node["gpus"]]
    order = list(range(len(gpus)))
    if kind == "double":
        for link in topology["links"]:
            link["capacity"] *= 2
    elif kind == "link":
        topology["links"].append({"from": gpus[0], "to": gpus[-1], "class": "nvlink", "capacity": 7, "latency": 1})
    elif kind == "reverse":
        order.reverse()
    elif kind == "shuffled":
        random.Random(seed).shuffle(order)
    return order


def variants(directory, first, last, kinds):
    for seed in range(first, last + 1):
        for kind in kinds:
            topology = load(directory, f"t{seed}.json")
            order = variant(topology, kind, seed)
            with open(os.path.join(directory, f"v{seed}-{kind}.json"), "w", encoding="utf-8") as file:
                json.dump(topology, file)
            print(seed, kind, ",".join(map(str, order)), order.index(0))


def fault(kind, was, now):
    """What is wrong with the rates now, or None."""
    for name in ("achieved", "bound") if kind == "shuffled" else ("bound",):
        want = was[name] * (2 if kind == "double" else 1)
        if now[name] < want * (1 - TOLERANCE) or (kind != "link" and now[name] > want * (1 + TOLERANCE)):
            return f"{name} {was[name]}, now {now[name]}"
    return None


def judge(directory):
    wrong = False
    for line in sys.stdin:
        seed, collective, kind = line.split()
        was = load(directory, f"s{seed}-{collective}.json")["rate"]
        now = load(directory, f"v{seed}-{kind}-{collective}.json")["rate"]
        why = fault(kind, was, now)
        print(f"not ok seed {seed} {collective} {kind}: {why}" if why else f"ok seed {seed} {collective} {kind}")
        wrong = wrong or why
    return bool(wrong)


def main(args):
    if args[:1] == ["variants"] and len(args) > 4:
        return variants(args[1], int(args[2]), int(args[3]), args[4:])
    if args[:1] == ["judge"] and len(args) == 2:
        return judge(args[1])
    return __doc__.split("\n\n")[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
