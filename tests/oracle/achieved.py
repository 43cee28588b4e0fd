#!/usr/bin/env python3
"""What blinkc achieves on DGX-1, DGX-2, and on boxes of A100 and MI250: the rows of the tables in docs/results.md.

usage: achieved.py [--all] [--said DIR] BLINKC      from the top directory; without --all only the rows that are planned
in
well under a second; DIR/MACHINE-COLLECTIVE: what blinkc said when somebody compiled that schedule, which is not done
again
"""
import argparse
import json
import math
import os
import subprocess
import tempfile
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
FAMILIES = [("16 GPUs of a DGX-2", cluster.boxes(1, 16, 150.0, 0.0, 16), "onehop",
             ["broadcast", "allgather", "allreduce"]),
            ("2 x 8 A100", cluster.boxes(2, 8, 300.0, 25.0, 8), "threephase", ["allgather", "allreduce"]),
            ("64 x 8 A100", cluster.boxes(64, 8, 300.0, 25.0, 8), "threephase", ["broadcast"]),
            ("128 x 8 A100", cluster.boxes(128, 8, 300.0, 25.0, 8), "threephase", ["allgather", "allreduce"])]
CLUSTERS = [("2048 GPUs of ABCI", "abci-2048", ["allgather", "allreduce", "broadcast"]),
            ("1024 GPUs of a SuperPOD", "superpod-h100-4su", ["allgather", "allreduce"])]
BOXES += [(f"{n} x 16 MI250", mi250.topology(n, 16), ["allgather", "allreduce"]) for n in (1, 2, 4)]


def planned(blinkc, machine, sets, collective, options):
    """A batch of these sets: trees, rate and bound of each, from each root. The suites exact and subsets hold it
    against compile."""
    with tempfile.TemporaryDirectory() as folder:
        args = [blinkc, "batch", "-q", f"topologies/{machine}.xml", "-g", "-", "--collectives", collective, *options,
                "-o", folder]
        subprocess.run(args, input="".join(",".join(map(str, gpus)) + "\n" for gpus in sets), text=True, check=True)
        with open(f"{folder}/index.json", encoding="utf-8") as file:
            return json.load(file)["schedules"]


def summary(blinkc, topology, collective, algorithm="trees", said=""):
    """Of a topology on standard input, or of a file of ours."""
    path = f"{said}/{topology}-{collective}"
    if isinstance(topology, str) and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return file.read()
    path = f"topologies/{topology}.xml" if isinstance(topology, str) else "-"
    done = subprocess.run([blinkc, "-c", collective, "-a", algorithm, "-o", "/dev/null", path],
                          input=json.dumps(topology) if path == "-" else "", capture_output=True, text=True, check=True)
    return done.stderr


def box_row(name, collective, text, algorithm="trees"):
    line = {words[0]: words[1:] for words in map(str.split, text.splitlines())}
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
    return (f"| {n} | {collective} | {nvlink['rate']:.4g} | {pcie['rate']:.3g} | {pcie['setup']} | {text} | "
            f"{other[-1]:.3g} |")


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


def main(blinkc, every, said):
    eight, many = [], []
    classes = {machine: subsets.classes(machine) for machine in NAMES}
    for machine, name in NAMES.items():
        for collective, options in ASKED:
            rooted = collective != "allreduce"
            if not every and (machine == "dgx1v" or "--tolerance" in options or (rooted and collective != "broadcast")):
                continue
            jobs = planned(blinkc, machine, classes[machine], collective, options)
            assert len(jobs) == sum(len(gpus) if rooted else 1 for gpus in classes[machine])
            text = f"{collective}, each root" if rooted else collective
            text += f" `{' '.join(options)}`" if options else ""
            whole = [job for job in jobs if len(job["gpus"]) == 8]
            trees, rates, bounds = ([job[key] for job in whole] for key in ("trees", "rate", "bound"))
            eight.append(f"| {name} | {text} | {one(trees)} | {one(rates)} | {one(bounds)} | "
                         f"{min(r / b for r, b in zip(rates, bounds)):.3f} |")
            trees, ratios = [job["trees"] for job in jobs], [job["rate"] / job["bound"] for job in jobs]
            many.append(f"| {name} | {text} | {len(jobs)} | {sum(trees) / len(trees):.2f}, {max(trees)} | "
                        f"{min(ratios):.3f} | {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} | "
                        f"{sum(r > 1 - 1e-9 for r in ratios)} |")
    asked = [(name, topology, collective) for name, topology, collectives in BOXES for collective in collectives]
    boxes = [box_row(name, collective, summary(blinkc, topology, collective)) for name, topology, collective in asked
             if every or not is_slow(name, collective)]
    asked = [(name, file, collective) for name, file, collectives in CLUSTERS for collective in collectives]
    clusters = [box_row(name, collective, summary(blinkc, file, collective, said=said)) for name, file,
                collective in asked
                if every or not is_slow(name, collective)]
    boxes += [box_row(name, collective, summary(blinkc, topology, collective, algorithm), algorithm)
              for name, topology, algorithm, collectives in FAMILIES
              for collective in collectives if every or not is_slow(name, collective)]
    ways = [hybrid_row(blinkc, n, collective) for collective in ("broadcast", "allreduce") for n in range(3, 9)
            if every or (n, collective) != (8, "allreduce")]
    print("\n".join(eight + [""] + many + [""] + boxes + [""] + clusters + [""] + ways + [""]))
    for machine, name in NAMES.items():
        print(f"{sum(not has_ring(machine, gpus) for gpus in classes[machine])} of {len(classes[machine])} on {name} "
              f"have no ring")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--said", default="")
    parser.add_argument("blinkc")
    told = parser.parse_args()
    main(told.blinkc, told.all, told.said)
