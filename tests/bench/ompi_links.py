#!/usr/bin/env python3
"""What the rules of `blinkc tune --format ompi-rules` are worth to Open MPI, over TCP on links of known rates.

usage: make bench-ompi [BENCH_OMPI="..."], as root

The links are those of links.py: a network namespace for each GPU of one server, a bridge for its switch. Rules are
made for these links, with the rates that they have there, the token buckets of the kernel, and as the start-up of a
message what one of 8 bytes takes between two ranks, times the ranks that share a processor. A line for each collective
and size: ms of a call as Open MPI chooses, and by the rules, in turn, the median of some runs; and what the rules name.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys

import links
import links_peers

GB = 8000  # Mbit/s
BURST = 64 << 10  # bytes of a token bucket: links.Lab
# An allgather of peers_mpi.c is in place, for which Open MPI looks up no rule; its reducescatter has none.
COLLECTIVES = ["allreduce", "broadcast", "reduce", "gather", "scatter", "alltoall"]


def scaled(args, lab, build, folder):
    """The topology with the rates of the lab."""
    path = f"{folder}/scaled.json"
    done = subprocess.run([f"{build}/blinkc", "convert", args.topology, "--format", "json"], capture_output=True,
                          text=True, check=True)
    topology = json.loads(done.stdout)
    for part in topology["classes"] + topology["links"]:
        if "capacity" in part:
            part["capacity"] *= lab.scale / GB * links.GOODPUT
    with open(path, "w", encoding="utf-8") as file:
        json.dump(topology, file)
    return path


def parameters(args, lab, build, gpus, folder):
    """Of the host executor, as blinkc has them."""
    if args.parameters:
        return args.parameters
    there_and_back = links_peers.openmpi(lab, build, gpus[:2], "pingpong", 8, None, args.calls)
    shared = max(1, len(gpus) / os.cpu_count())
    with open(f"{folder}/parameters", "w", encoding="utf-8") as file:
        json.dump({"host": {"step": there_and_back / 2 * 1e6 * shared, "burst": BURST}}, file)
    print(f"# a message of 8 bytes takes {there_and_back / 2 * 1e6:.0f} us")
    return f"{folder}/parameters"


def make_rules(args, lab, build, gpus, folder):
    with open(f"{folder}/gpus", "w", encoding="utf-8") as file:
        print(",".join(map(str, gpus)), file=file)
    words = [f"{build}/blinkc", "tune", scaled(args, lab, build, folder), "-l", lab.classes, "-g", f"{folder}/gpus",
             "--collectives", ",".join(args.collectives), "--format", "ompi-rules", "-o", f"{folder}/rules",
             "--parameters", parameters(args, lab, build, gpus, folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return f"{folder}/rules"


def named(path, collective, size):
    """The algorithm of a message by the file, for people."""
    last, mine = "Open MPI's", False
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if len(words) == 3 and words[2] in COLLECTIVES + ["allgather", "reducescatter"]:
                mine = words[2] == collective
            elif mine and len(words) > 5 and words[4] == "#" and words[1] != "0" and int(words[0]) <= size:
                last = words[5] + (f", {words[3]}" if words[3] != "0" else "")
    return last


def compare(lab, args, build, folder):
    gpus = list(map(int, args.gpus.split(","))) if args.gpus else list(range(len(lab.gpus)))
    rules = make_rules(args, lab, build, gpus, folder)
    worth = []
    print(f"# {args.topology}, {len(gpus)} ranks, {args.mbit} Mbit/s for a link of {links.NOMINAL} GB/s, the median of "
          f"{args.times}; ms")
    print(f"# {'collective':13} {'bytes':>8} | Open MPI |  by rules | ratio | rule")
    for collective in args.collectives:
        for size in args.sizes:
            took = [[], []]
            for _ in range(args.times):
                for by, file in enumerate((None, rules)):
                    seconds = links_peers.openmpi(lab, build, gpus, collective, size, file, args.calls)
                    if seconds is None:
                        print("skipped: want Open MPI")
                        return
                    took[by].append(seconds * 1e3)
            own, ruled = map(statistics.median, took)
            worth.append(own / ruled)
            print(f"  {collective:13} {size:8} | {own:8.2f} | {ruled:9.2f} | {worth[-1]:5.2f} | "
                  f"{named(rules, collective, size)}", flush=True)
    print(f"# geometric mean {math.exp(sum(map(math.log, worth)) / len(worth)):.2f}, {min(worth):.2f} to "
          f"{max(worth):.2f}, of {len(worth)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="topologies/dgx1v.xml", help="of one server, at most 16 GPUs")
    parser.add_argument("--gpus", help="those of ranks 0, 1 ..., as 0,1,4; default: all")
    parser.add_argument("--collectives", default=COLLECTIVES, type=lambda text: text.split(","))
    parser.add_argument("--sizes", default=[4096, 65536, 1 << 20, 4 << 20],
                        type=lambda text: list(map(int, text.split(","))), help="of those of peers.h")
    parser.add_argument("--parameters", help="of the host executor, as blinkc fit writes them")
    parser.add_argument("--mbit", type=float, default=40, help="of a link of 25 GB/s; 40")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--calls", type=int, default=20, help="of a round, at most; 20")
    args = parser.parse_args()
    return links.in_lab(args, lambda lab, build, folder: compare(lab, args, build, folder))


if __name__ == "__main__":
    sys.exit(main())
