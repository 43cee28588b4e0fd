#!/usr/bin/env python3
"""What blinkc achieves on DGX-1, DGX-2, and on boxes of A100 and MI250: the rows of the tables in docs/results.md.

usage: achieved.py [--all] BLINKC       from the top directory; without --all only the rows that are planned in well under a second
"""
import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import cluster
import mi250
import subsets

NAMES = {"dgx1v": "DGX-1V", "dgx1p": "DGX-1P"}
ASKED = [("broadcast", []), ("reduce", []), ("allreduce", []), ("allreduce", ["--tolerance", "0.05"]),
         ("broadcast", ["--packing", "mwu"]), ("allreduce", ["--packing", "mwu"])]
BOXES = [(f"{n} x 8 A100", cluster.boxes(n, 8, 300.0, 25.0, 8), collectives) for n, collectives in
         [(1, ["allgather", "allreduce"]), (4, ["broadcast", "allgather", "allreduce", "alltoall"]),
          (128, ["allgather", "reducescatter", "allreduce"])]]
FAMILIES = [("16 GPUs of a DGX-2", cluster.boxes(1, 16, 150.0, 0.0, 16), "onehop", ["broadcast", "allgather", "allreduce"]),
            ("2 x 8 A100", cluster.boxes(2, 8, 300.0, 25.0, 8), "threephase", ["allgather", "allreduce"]),
            ("64 x 8 A100", cluster.boxes(64, 8, 300.0, 25.0, 8), "threephase", ["broadcast"]),
            ("128 x 8 A100", cluster.boxes(128, 8, 300.0, 25.0, 8), "threephase", ["allgather", "allreduce"])]
CLUSTERS = [("2048 GPUs of ABCI", "abci-2048", ["allgather", "allreduce", "broadcast"]),
            ("1024 GPUs of a SuperPOD", "superpod-h100-4su", ["allgather", "allreduce"])]
BOXES += [(f"{n} x 16 MI250", mi250.topology(n, 16), ["allgather", "allreduce"]) for n in (1, 2, 4)]


def compiled(blinkc, machine, gpus, collective, root, options):
    args = [blinkc, "-q", f"topologies/{machine}.xml", "-g", ",".join(map(str, gpus)), "-c", collective, *options]
    done = subprocess.run(args + ([] if root is None else ["-r", str(root)]), capture_output=True, text=True, check=True)
    sched = json.loads(done.stdout)
    return len(sched["trees"]), sched["rate"]["achieved"], sched["rate"]["bound"]


def box_row(blinkc, name, topology, collective, algorithm="trees"):
    """Of a topology on standard input, or of a file of ours: what the summary says."""
    path = f"topologies/{topology}.xml" if isinstance(topology, str) else "-"
    done = subprocess.run([blinkc, "-c", collective, "-a", algorithm, "-o", "/dev/null", path],
                          input=json.dumps(topology) if path == "-" else "", capture_output=True, text=True, check=True)
    line = {words[0]: words[1:] for words in map(str.split, done.stderr.splitlines())}
    (trees, _, depth), rate, bound = line["trees"], float(line["rate"][0]), float(line["bound"][0])
    collective += f" `-a {algorithm}`" if algorithm != "trees" else ""
    return f"| {name} | {collective} | {trees.rstrip(',')} | {depth} | {rate:.5g} | {bound:.5g} | {line['ratio'][0]} |"


HYBRID_BYTES = [10**7, 10**8, 5 * 10**8, 10**9]


def hybrid(blinkc, n, collective, way):
    """GPUs 0 to n-1 of a DGX-1V: both parts, and what the second adds at some sizes and in the limit."""
    args = [blinkc, f"--hybrid={way}", "-g", ",".join(map(str, range(n))), "-c", collective,
            "--size", ",".join(map(str, HYBRID_BYTES)), "topologies/dgx1v.xml"]
    done = subprocess.run(args, capture_output=True, text=True, check=True)
    parts = json.loads(done.stdout)["parts"]
    lines = done.stderr.splitlines()[-len(HYBRID_BYTES):]
    return *parts, [float(line.split()[5]) for line in lines] + [parts[1]["rate"]]


def hybrid_row(blinkc, n, collective):
    nvlink, pcie, gains = hybrid(blinkc, n, collective, "peer")
    *_, other = hybrid(blinkc, n, collective, "host")
    # Nothing has to be set up, so that only latency takes from the gain of small messages.
    assert other == sorted(other) and other[-2] > 0.9 * other[-1], other
    text = " | ".join(f"{gain:.3g}" for gain in gains)
    return f"| {n} | {collective} | {nvlink['rate']:.4g} | {pcie['rate']:.3g} | {pcie['setup']} | {text} | {other[-1]:.3g} |"


def has_ring(machine, gpus):
    links = subsets.MACHINES[machine]
    return any(all(subsets.count(links, a, b) for a, b in zip(ring, ring[1:] + ring[:1]))
               for ring in (gpus[:1] + rest for rest in permutations(gpus[1:])))


def one(values):
    """What all of them are."""
    low, high = min(values), max(values)
    return f"{low:.4g}" if high == low else f"{low:.4g} to {high:.4g}"


def is_slow(name, collective):
    """Those rows take most of the time."""
    return (name.startswith(("1 x 16", "2 x 16", "4 x 16", "64 x", "128 x", "1024 ", "2048 ")) or
            (name, collective) == ("4 x 8 A100", "broadcast"))


def main(blinkc, every):
    eight, many = [], []
    classes = {machine: subsets.classes(machine) for machine in NAMES}
    for machine, name in NAMES.items():
        for collective, options in ASKED:
            rooted = collective != "allreduce"
            if not every and (machine == "dgx1v" or "--tolerance" in options or (rooted and collective != "broadcast")):
                continue
            asked = [(blinkc, machine, gpus, collective, root, options) for gpus in classes[machine]
                     for root in (range(len(gpus)) if rooted else [None])]
            with ThreadPoolExecutor() as pool:
                results = list(pool.map(lambda ask: compiled(*ask), asked))
            text = f"{collective}, each root" if rooted else collective
            text += f" `{' '.join(options)}`" if options else ""
            whole = [result for ask, result in zip(asked, results) if len(ask[2]) == 8]
            trees, rates, bounds = zip(*whole)
            eight.append(f"| {name} | {text} | {one(trees)} | {one(rates)} | {one(bounds)} | "
                         f"{min(r / b for r, b in zip(rates, bounds)):.3f} |")
            trees, rates, bounds = zip(*results)
            ratios = [r / b for r, b in zip(rates, bounds)]
            many.append(f"| {name} | {text} | {len(results)} | {sum(trees) / len(trees):.2f}, {max(trees)} | "
                        f"{min(ratios):.3f} | {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} | "
                        f"{sum(r > 1 - 1e-9 for r in ratios)} |")
    boxes = [box_row(blinkc, name, topology, collective) for name, topology, collectives in BOXES for collective in collectives
             if every or not is_slow(name, collective)]
    clusters = [box_row(blinkc, name, path, collective) for name, path, collectives in CLUSTERS for collective in collectives
                if every or not is_slow(name, collective)]
    boxes += [box_row(blinkc, name, topology, collective, algorithm) for name, topology, algorithm, collectives in FAMILIES
              for collective in collectives if every or not is_slow(name, collective)]
    ways = [hybrid_row(blinkc, n, collective) for collective in ("broadcast", "allreduce") for n in range(3, 9)
            if every or (n, collective) != (8, "allreduce")]
    print("\n".join(eight + [""] + many + [""] + boxes + [""] + clusters + [""] + ways + [""]))
    for machine, name in NAMES.items():
        print(f"{sum(not has_ring(machine, gpus) for gpus in classes[machine])} of {len(classes[machine])} on {name} have no ring")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1:-1] not in ([], ["--all"]):
        sys.exit(__doc__)
    main(sys.argv[-1], sys.argv[1] == "--all")
