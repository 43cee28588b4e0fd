"""Exhaustive Study of Hierarchical AllReduce Patterns for Large Messages Between GPUs. Ueno and Yokota, CCGrid 2019."""

import json

from figure import Figure, Paper, Point, Table

MESSAGE = 128 << 20
ALPHA, STARTS, RATE = 4.80, 2, 9.30119          # us, start-ups in a step, GB/s: the paper's, on ABCI

# ---- the formula, with one rate for all layers: GPUs below one switch ----

HIERARCHIES = {16: ("16", "4x4", "2x8", "8x2", "2x2x2x2"), 64: ("64", "4x4x4", "8x8", "2x4x8", "2x2x2x2x2x2")}


def formula_us(layers, n):
    """T(n) = 2 s alpha (sum p_i - h) + 2 n beta sum of (p_i - 1)/(p_1 ... p_i)"""
    inside, part = 1, 0
    for p in layers:
        inside *= p
        part += (p - 1) / inside
    return 2 * STARTS * ALPHA * (sum(layers) - len(layers)) + 2 * n / (RATE * 1000) * part


def layers_of(text):
    return [int(p) for p in text.split("x")]


def formulas(_):
    return [Point("formula", name, f"{p} GPUs, {size >> 20} MB", "", formula_us(layers_of(name), size), "us",
                  "section 3: formula, with alpha, s and the "
                  "rate of the network on ABCI") for p,
                  names in HIERARCHIES.items() for size in (1 << 20, MESSAGE) for name in names]


def simulated(lab, point):
    gpus, size = (int(part.split()[0]) for part in point.x.split(", "))
    host = {"call": 0, "step": STARTS * ALPHA, "at_once": 0, "reduce": 0, "efficiency": {"nvlink": 1},
            "latency": {"nvlink": 0}}
    schedule = lab.plan(lab.topology("--synthetic", f"server:1 gpu:{gpus} switch:{RATE}"), "-a", "hierarchical-ring",
                        "--hierarchy", point.series)
    return lab.us(schedule, size << 20, "--executor", "host", "--chunk", "1G", "--parameters",
                  lab.parameters(host=host))


# ---- the best hierarchies of ABCI, by blinkc's search with that cost ----

SERVER = 4              # GPUs of a server
SCALES = {128: "4x8x4", 256: "4x8x4x2", 512: "4x8x4x4", 1024: "4x8x8x4", 2048: "4x8x8x8"}


def searched(lab, gpus):
    """The first five hierarchies as (name, us), the flat ring's us, and the parameters of the cost."""
    machine = lab.topology("--servers", str(gpus // SERVER), "abci")
    found = json.loads(lab.run("hierarchy", "-q", "--no-simulate", "--top", "5", "--size", str(MESSAGE), "--format",
                               "json", machine).stdout)
    return [("x".join(map(str, one["layers"])), one["cost_us"])
            for one in found["hierarchies"]], found["ring"]["cost_us"], found["cost"]


def over_ring(lab, point):
    best, ring, _ = searched(lab, int(point.x))
    times = dict(best)
    return ring / times[point.series] if point.series in times else None


def first_places(_):
    return [Point("place", best, float(gpus), "GPUs", 1.0, "count", "text: the best of its scale") for gpus,
            best in SCALES.items()]


def place(lab, point):
    names = [name for name, _ in searched(lab, int(point.x))[0]]
    return names.index(point.series) + 1 if point.series in names else None


def first_five(lab):
    return Table(["GPUs", "the first five by cost"],
                 [[str(gpus), ", ".join(name for name, _ in searched(lab, gpus)[0])] for gpus in SCALES])


def parameter(lab, point):
    cost = searched(lab, 128)[2]
    return {"alpha": cost["alpha"], "s": cost["steps"], "network": 12.5e3 * 0.744 * cost["network"]}[point.series]


FLAT = "The cost lets a flat ring have both NICs of every server all the time; what was measured had two thirds of that."
NEAR = "The first three of 256 GPUs are within 0.25 % by cost, less than a measurement's noise."

PAPER = Paper("ueno", "Ueno and Yokota", "Ueno and Yokota, Exhaustive Study of Hierarchical AllReduce Patterns for "
                                         "Large Messages Between GPUs, CCGrid 2019.",
              2019, "ueno.csv", [
    Figure("parameters", "parameters of the cost", parameter, calibrates="the defaults of blinkc hierarchy are these; "
                                                                         "the rate is that of an EDR link by the "
           "efficiency of the simulator's network.", pairs=False),
    Figure("formula", "formula of a hierarchical ring", simulated, "GPUs below one switch, so that all layers have one "
                                                                   "rate; the simulator has the same numbers, "
           "no latency and one chunk.", points=formulas, formula=True),
    Figure("best", "best hierarchies of ABCI, times as fast as a flat ring", over_ring,
           "128 MiB, by the cost of blinkc hierarchy, of which hierarchy.md says what it "
           "adds to the paper's formula, and where it is wrong.", causes={None: FLAT}, pairs=False),
    Figure("place", "place of the published best hierarchies", place, "128 MiB, by the same cost.", points=first_places,
           causes={None: NEAR}, tables=first_five,
           calibrates="the start-up of a layer, 100 us, for which the paper has no parameter, was chosen so that most "
                      "of these are best."),
])
