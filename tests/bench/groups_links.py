#!/usr/bin/env python3
"""Phases of a job, in which several groups call at the same time, executed by libblink over links of known rates.

usage: make bench-groups-links [BENCH_GROUPS="..."], as root

The links are those of links.py: a network namespace for each GPU of a DGX-1V. Each rank has a communicator for each of
its groups, and all calls of the phase are under way at once. A line for each job: the time that was planned, less what
headers take, and measured, by the schedules of blinkc job, by those that are each the best for their group alone, and
by rings; and by those of blinkc job with each rank on the GPU that blinkc advise --job gives it.
"""
import argparse
import json
import shutil
import subprocess
import sys

import links

# Bytes in MiB, times --mib; of an alltoall over all ranks maybe a skew.
JOBS = [
    ("tp 2 x dp 4", {"grid": {"dp": 4, "tp": 2}}, [("tp", "allreduce", 1, 4), ("dp", "allreduce", 8, 1)]),
    ("tp 2 x dp 4, experts over all", {"grid": [{"dp": 4, "tp": 2}, {"ep": 8}]},
     [("tp", "allreduce", 1, 4), ("dp", "reducescatter", 8, 1), ("ep", "alltoall", 4, 1)]),
    ("pairs, popular experts over all", {"grid": [{"dp": 4, "tp": 2}, {"ep": 8}]},
     [("tp", "allreduce", 4, 1), ("ep", "alltoall", 8, 1, {"to": [4, 1, 1, 1, 1, 4, 1, 1]})]),
    ("tp 4 x dp 2", {"grid": {"dp": 2, "tp": 4}}, [("tp", "allreduce", 1, 4), ("dp", "allreduce", 4, 1)]),
    ("an allgather beside quads", {"grid": [{"quad": 2, "tp": 4}, {"all": 8}]},
     [("tp", "allreduce", 4, 1), ("all", "allgather", 8, 1)]),
    ("a broadcast beside pairs", {"grid": [{"dp": 4, "tp": 2}, {"all": 8}]},
     [("tp", "allreduce", 4, 1), ("all", "broadcast", 8, 1)]),
]


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[:4])}: {done.stderr.strip()}")
    return done.stdout


def write_job(path, groups, calls, mib):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"format": "blink-job", "version": 1, **groups, "phases": [{"name": "step", "calls": [
            {"groups": kind, "collective": collective, "bytes": size * mib << 20, "times": times,
             **({"skew": skew[0]} if skew else {})} for kind, collective, size, times, *skew in calls]}]}, file)


def write_calls(path, phase, n, folder):
    """folder: of the phase's schedules."""
    with open(path, "w", encoding="utf-8") as file:
        for call in phase["calls"]:
            if call.get("by_matrix"):
                one, = call["schedules"]
                with open(f"{folder}/{one['file']}", encoding="utf-8") as schedule:
                    rows = json.load(schedule)["matrix"]["bytes"]
                print("alltoallv 0 0", call["times"], *[0] * n, file=file)
                print(*(0 if a == b else count // 4 for a, row in enumerate(rows) for b, count in enumerate(row)),
                      file=file)
                continue
            group = [-1] * n
            for number, one in enumerate(call["schedules"]):
                for rank in one["ranks"]:
                    group[rank] = number
            print(call["collective"], call["root"] or 0, call["bytes"], call["times"], *group, file=file)


def measure(lab, build, args, calls, schedules, gpus):
    """The fastest phase. gpus: of each rank its GPU."""
    return links.execute(lab, gpus, lambda rank, folder: (
        "env", f"BLINK_GPU={gpus[rank]}", f"{build}/tests/job/phase", rank, len(gpus), folder, calls, args.times),
        schedules)


def plan(build, args, folder, name, schedules="together"):
    """The phase of folder/job.json, whose schedules are in folder/NAME."""
    shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
    run(f"{build}/blinkc", "job", "-q", f"{folder}/job.json", "--topology", args.topology, "-l", "nvlink",
        "--schedules", schedules, "-o", f"{folder}/{name}")
    with open(f"{folder}/{name}/phases.json", encoding="utf-8") as file:
        return json.load(file)["phases"][0]


def place(build, args, folder):
    """The GPU of each rank; folder/job.json has it from now on."""
    gpus = json.loads(run(f"{build}/blinkc", "advise", "--job", f"{folder}/job.json", "--format", "json", "-l",
                          "nvlink", args.topology))["gpus"]
    with open(f"{folder}/job.json", encoding="utf-8") as file:
        job = json.load(file)
    with open(f"{folder}/job.json", "w", encoding="utf-8") as file:
        json.dump({**job, "gpus": ",".join(map(str, gpus))}, file)
    return gpus


def compare(lab, args, build, folder):
    slower = links.NOMINAL * 1e9 / (args.mbit * 1e6 / 8) / links.GOODPUT
    heads = " | ".join(f"{way:>8} | measured ratio CPUs" for way in ("together", "alone", "rings", "placed"))
    print(f"# {args.mbit} Mbit/s for a link of {links.NOMINAL} GB/s, the best of {args.times}; s")
    print(f"# {'job':32} | {heads}")
    for what, groups, calls in JOBS:
        if args.job and args.job not in what:
            continue
        write_job(f"{folder}/job.json", groups, calls, args.mib)
        gpus = range(len(lab.gpus))
        phase = plan(build, args, folder, "together")
        write_calls(f"{folder}/calls", phase, len(lab.gpus), f"{folder}/together")
        cells = []
        for way in "together", "alone", "rings", "placed":
            if way == "placed":
                gpus = place(build, args, folder)
                phase = plan(build, args, folder, way)
            planned = phase["levels"][-1]["time"] if way in ("together", "placed") else phase[way]
            if planned is None:
                cells.append(f"{'none':>8} | {'':19}")
                continue
            if way in ("alone", "rings"):
                plan(build, args, folder, way, way)
            seconds, busy = measure(lab, build, args, f"{folder}/calls", f"{folder}/{way}", gpus)
            planned *= 1e-6 * slower
            cells.append(f"{planned:8.3f} | {seconds:8.3f} {seconds / planned:5.3f} {busy:4.1f}")
        print(f"  {what:32} | " + " | ".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="topologies/dgx1v.xml", help="of one server, at most 16 GPUs")
    parser.add_argument("--mbit", type=float, default=40, help="of a link of 25 GB/s; 40")
    parser.add_argument("--mib", type=int, default=4, help="how large messages are; 4: the smallest are of 4 MiB")
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--job", help="those whose name has this in it")
    args = parser.parse_args()
    return links.in_lab(args, lambda lab, build, folder: compare(lab, args, build, folder))


if __name__ == "__main__":
    sys.exit(main())
