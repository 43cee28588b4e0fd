#!/usr/bin/env python3
"""The placement that blinkc advise --job proves to be the best, against all placements of a random job.

usage: random_placement.py BLINKC FIRST LAST

For each seed a machine of 3 to 5 GPUs and a job (random_job.py), sometimes over fewer ranks than GPUs. Every way to
give each rank a GPU is planned by blinkc job: the least step, by the bounds of its phases, is what advise must find.
What it says of ranks in order must be what blinkc job says of them, and a job file with its "gpus" must take the stated
time. Prints a line for each job that differs; exit status 1 if any does.
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile

import random_job

NEAR = 1e-6


def step(blinkc, path):
    """us of a step, by bounds; infinite where links do not connect a group."""
    done = subprocess.run([blinkc, "job", "--summary", "json", path], capture_output=True, check=False)
    if done.returncode == 5:
        return float("inf")
    if done.returncode:
        raise SystemExit(f"{path}: exit {done.returncode}: {done.stderr.decode()}")
    return sum(phase["levels"][-1]["bound"] * phase["times"] for phase in json.loads(done.stdout)["phases"])


def judge(blinkc, seed, directory):
    """What is wrong; None: nothing to judge."""
    topology, job = random_job.random_job(seed, 5)
    if isinstance(topology, str):
        return None
    n = len(topology["nodes"][0]["gpus"])
    if n > 5:
        return None
    ranks = n - 1 if n > 3 and seed % 3 == 0 else n
    if ranks < n:
        job["grid"] = random_job.grid_of(random_job.random.Random(seed), ranks)
        kinds = list(job["grid"])
        job.pop("groups")
        for phase in job["phases"]:
            for i, call in enumerate(phase["calls"]):
                call["groups"] = kinds[i % len(kinds)]
                if call.pop("skew", None) or call.pop("matrix", None):
                    call.pop("bytes", None)
                    call["matrix"] = [[1 << (a * seed + b) % 20 for b in range(ranks)] for a in range(ranks)]
    with open(os.path.join(directory, "machine.json"), "w", encoding="utf-8") as file:
        json.dump(topology, file)
    path = os.path.join(directory, "job.json")

    def seconds(order):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"topology": "machine.json", "gpus": ",".join(map(str, order)), **job}, file)
        return step(blinkc, path)

    all_steps = {order: seconds(order) for order in itertools.permutations(range(n), ranks)}
    least = min(all_steps.values())
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"topology": "machine.json", **job}, file)
    done = subprocess.run([blinkc, "advise", "--format", "json", "--job", path], capture_output=True, check=False)
    if least == float("inf"):
        return [] if done.returncode == 5 else [f"exit {done.returncode}, want 5"]
    if done.returncode:
        return [f"exit {done.returncode}: {done.stderr.decode()}"]
    got = json.loads(done.stdout)
    wrong = []
    for what, value, want in (
            ("time", got["time"], least), ("in_order", got["in_order"], all_steps[tuple(range(ranks))]),
            ("the job placed so", got["time"], all_steps[tuple(got["gpus"])])):
        value = float("inf") if value is None else value
        if value != want and abs(value - want) > NEAR * want:
            wrong.append(f"{what}: {value} us, want {want}")
    if not got["proven"]:
        wrong.append("not proven")
    return wrong


def main():
    blinkc, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    judged = bad = 0
    for seed in range(first, last + 1):
        with tempfile.TemporaryDirectory() as directory:
            wrong = judge(blinkc, seed, directory)
        judged += wrong is not None
        bad += bool(wrong)
        for line in wrong or ():
            print(f"job {seed}: {line}")
    print(f"{judged} jobs placed, {bad} differ")
    return bad > 0 or judged == 0


if __name__ == "__main__":
    sys.exit(main())
