#!/usr/bin/env python3
"""All groups of a job at once, beside each group planned alone and beside rings: the table of docs/results.md.

Beside them the least step of the placements that blinkc advise --job looks at; "least": no other is faster.

usage: groups.py BLINKC [--markdown]
"""
import json
import os
import subprocess
import sys
import tempfile

MIB = 1 << 20
TP = {"groups": "tp", "collective": "allreduce", "bytes": 64 * MIB, "times": 8}
DP = {"groups": "dp", "collective": "allreduce", "bytes": 1024 * MIB}
SHARD = {"groups": "dp", "collective": "reducescatter", "bytes": 1024 * MIB}
EXPERTS = {"groups": "ep", "collective": "alltoall", "bytes": 256 * MIB}


def popular(n):
    """One of eight experts is asked for four times as often as the others."""
    return {**EXPERTS, "skew": {"to": [1 if rank % 8 else 4 for rank in range(n)]}}


# what, machine or a line of --synthetic, job, options
JOBS = [
    ("DGX-1V, tp 2 x dp 4", "dgx1v", {"grid": {"dp": 4, "tp": 2}}, [TP, DP]),
    ("DGX-1V, tp 4 x dp 2", "dgx1v", {"grid": {"dp": 2, "tp": 4}}, [TP, DP]),
    ("DGX-1V, tp 4 x dp 2, tp by ranks 0 2 4 6", "dgx1v", {"grid": {"tp": 4, "dp": 2}}, [TP, DP]),
    ("DGX-1V, 6 GPUs 0,1,2,5,6,7, tp 2 x dp 3", "dgx1v", {"gpus": "0-2,5-7", "grid": {"dp": 3, "tp": 2}}, [TP, DP]),
    ("DGX-1V, tp 3 and 5, dp of pairs", "dgx1v",
     {"groups": {"tp": [[0, 1, 2], [3, 4, 5, 6, 7]], "dp": [[0, 3], [1, 4], [2, 5]]}}, [TP, DP]),
    ("DGX-1V, tp 2 x dp 4, experts over all", "dgx1v", {"grid": [{"dp": 4, "tp": 2}, {"ep": 8}]},
     [TP, SHARD, EXPERTS]),
    ("the same, one expert popular", "dgx1v", {"grid": [{"dp": 4, "tp": 2}, {"ep": 8}]}, [TP, SHARD, popular(8)]),
    ("DGX-2, tp 4 x dp 4, experts over all", "dgx2", {"grid": [{"dp": 4, "tp": 4}, {"ep": 16}]}, [TP, DP, EXPERTS]),
    ("MI250, tp 4 x dp 4", "mi250", {"grid": {"dp": 4, "tp": 4}}, [TP, DP]),
    ("MI250, tp 2 x dp 8, experts over 8", "mi250", {"grid": [{"dp": 8, "tp": 2}, {"edp": 2, "ep": 8}]},
     [TP, SHARD, EXPERTS]),
    ("MI300X, tp 2 x dp 4, experts over all", "mi300x", {"grid": [{"dp": 4, "tp": 2}, {"ep": 8}]},
     [TP, SHARD, EXPERTS]),
    ("16 x DGX H100, tp 8 x dp 16", "dgx-h100*16", {"grid": {"dp": 16, "tp": 8}}, [TP, DP]),
    ("the same, a NIC lost", "dgx-h100*16 without nic:s3/mlx5_4", {"grid": {"dp": 16, "tp": 8}}, [TP, DP]),
    ("the same, tp 4 x pp 2 x dp 16, experts over 32", "dgx-h100*16",
     {"grid": [{"dp": 16, "pp": 2, "tp": 4}, {"edp": 4, "ep": 32}]},
     [TP, SHARD, EXPERTS, {"groups": "pp", "collective": "broadcast", "bytes": 64 * MIB}]),
    ("the same, one of eight experts popular", "dgx-h100*16",
     {"grid": [{"dp": 16, "pp": 2, "tp": 4}, {"edp": 4, "ep": 32}]},
     [TP, SHARD, popular(32), {"groups": "pp", "collective": "broadcast", "bytes": 64 * MIB}]),
    ("NVL72, a GPU lost, tp 7 x dp 10", "gb200-nvl72 without gpu:5", {"grid": {"dp": 10, "tp": 7}}, [TP, DP]),
    ("torus 4 x 4 x 4, tp 4 x dp 16", "torus", {"grid": {"dp": 16, "tp": 4}}, [TP, DP]),
    ("torus 4 x 4 x 4, tp 4 x dp 16, experts over 16", "torus", {"grid": [{"dp": 16, "tp": 4}, {"edp": 4, "ep": 16}]},
     [TP, SHARD, EXPERTS]),
    ("ABCI rack, 32 GPUs, tp 4 x dp 8", "abci-rack", {"gpus": "0-31", "grid": {"dp": 8, "tp": 4}}, [TP, DP]),
]


def torus(directory):
    side, gpus = 4, range(64)
    at = lambda g, axis, step: g + ((g // side ** axis + step) % side - g // side ** axis % side) * side ** axis
    links = [{"from": f"gpu{g}", "to": f"gpu{at(g, axis, 1)}", "class": "nvlink", "capacity": 50}
             for g in gpus for axis in range(3)]
    path = os.path.join(directory, "torus.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"format": "blink-topology", "version": 1, "name": "torus-4x4x4", "links": links,
                   "nodes": [{"id": "s", "gpus": [{"id": f"gpu{g}"} for g in gpus]}]}, file)
    return path


def machine(blinkc, directory, text):
    name, _, without = text.partition(" without ")
    if name == "torus":
        name = torus(directory)
    elif "*" in name:
        kind, servers = name.split("*")
        name = os.path.join(directory, "cluster.xml")
        subprocess.run([blinkc, "topology", "-q", kind, "--servers", servers, "--rails", "-o", name], check=True)
    return ["--topology", name] + (["--without", without] if without else [])


def run(*args):
    """Standard output, or "" where it fails, which is told; and seconds of CPU."""
    before = os.times()
    done = subprocess.run(args, capture_output=True, check=False)
    after = os.times()
    if done.returncode:
        print(f"{' '.join(args[:2])}: {done.stderr.decode().strip()}")
    return (done.stdout if done.returncode == 0 else "",
            after.children_user + after.children_system - before.children_user - before.children_system)


def main():
    blinkc = sys.argv[1]
    print("| job | time, ms | bound, ms | each alone | rings | CPU, s | placed best, ms | looked at | CPU, s |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "job.json")
        for what, where, groups, calls in JOBS:
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"format": "blink-job", "version": 1, **groups,
                           "phases": [{"name": "step", "calls": calls}]}, file)
            on = machine(blinkc, directory, where)
            text, cpu = run(blinkc, "job", path, "--summary", "json", *on)
            if not text:
                continue
            phase = json.loads(text)["phases"][0]
            level = phase["levels"][-1]
            rings = "none" if phase["rings"] is None else f"x {phase['rings'] / level['time']:.2f}"
            print(f"| {what} | {level['time'] / 1e3:.4g} | {level['bound'] / 1e3:.4g} | "
                  f"x {phase['alone'] / level['time']:.2f} | {rings} | {cpu:.2f} |", end="", flush=True)
            text, cpu = run(blinkc, "advise", "--job", path, "--format", "json", *on[2:], on[1])
            if text:
                best = json.loads(text)
                print(f" {best['time'] / 1e3:.4g}{' (least)' if best['proven'] else ''} | {best['placements']} | "
                      f"{cpu:.2f} |", flush=True)


main()
