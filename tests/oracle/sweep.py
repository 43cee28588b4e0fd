#!/usr/bin/env python3
"""Random machines x all collectives: is there a schedule, is it valid, and is it at a bound that is proven?

usage: sweep.py BLINKC FIRST LAST [--every N] [--most SECONDS]

For each seed of random_machine.py and each collective, one run of blinkc. What is wrong: an exit status other than 0;
a schedule that `blinkc check` refuses; a rate below (1 - 1e-9) of the bound where the summary names no side that is not
proven, or where it may not be missed: with switches that only forward, nothing but an optimum is right; a run of more
than --most seconds of CPU time. Of every N-th machine replay.py reads the schedules, too, and brute.py holds their
bounds
against all cuts and partitions and, up to 5 ranks, against a linear program over all spanning trees. Prints a line for
each thing that is wrong, and numbers; exit status 1 if any is.
"""
import argparse
import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile

import brute
import random_machine
import replay

COLLECTIVES = list(replay.COLLECTIVES)
GAP = 1e-9


class Sweep:
    def __init__(self, blinkc, most):
        self.blinkc, self.most = blinkc, most
        self.count = dict.fromkeys(["machines", "schedules", "failed", "invalid", "below the bound",
                                    "unproven side named",
                                    "replayed", "held against brute force", "slow"], 0)
        self.slowest, self.wrong = (0, ""), 0

    def report(self, kind, what):
        self.count[kind] += 1
        self.wrong += 1
        print(f"{kind}: {what}", flush=True)

    def run(self, name, args):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([self.blinkc, *args], capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime - before.ru_utime
        self.slowest = max(self.slowest, (seconds, name))
        if seconds > self.most:
            self.report("slow", f"{name}: {seconds:.2f} s")
        return done

    def judge(self, name, path, active, summary):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        ratio = document["rate"]["achieved"] / document["rate"]["bound"]
        if ratio >= 1 - GAP:
            return document
        if "\nunproven " in summary and active:
            self.count["unproven side named"] += 1
        else:
            self.report("below the bound", f"{name}: {1 - ratio:.3g}")
        return document

    def machine(self, seed, directory, deep):
        machine, active = random_machine.random_machine(seed)
        source = os.path.join(directory, "machine.json")
        with open(source, "w", encoding="utf-8") as file:
            file.write(random_machine.text_of(machine))
        self.count["machines"] += 1
        documents = {}
        for collective in COLLECTIVES:
            name, path = f"{seed} {machine['name']} {collective}", os.path.join(directory, f"{seed}-{collective}.json")
            done = self.run(name, [source, "-l", "all", "-c", collective, "-o", path])
            if done.returncode:
                self.report("failed", f"{name}: exit {done.returncode}: {done.stderr.strip()}")
                continue
            self.count["schedules"] += 1
            documents[path] = self.judge(name, path, active, done.stderr)
        if deep:
            self.look_closer(seed, documents)

    def look_closer(self, seed, documents):
        for path in documents:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                status = replay.main([path])
            self.count["replayed"] += 1
            if status:
                self.report("invalid", f"{seed}: replay: {said.getvalue().strip()}")
            with contextlib.redirect_stdout(said):
                status = brute.main([path])
            self.count["held against brute force"] += not status
            if status not in (0, 3):
                self.report("invalid", f"{seed}: brute force: {said.getvalue().strip()}")
    def check(self, directory):
        """All files at once, by blinkc."""
        paths = [os.path.join(directory, name) for name in os.listdir(directory) if name != "machine.json"]
        done = subprocess.run([self.blinkc, "check", "-q", *paths], capture_output=True, text=True, check=False)
        if done.returncode:
            self.report("invalid", done.stderr.strip())
        for path in paths:
            os.unlink(path)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("blinkc")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--most", type=float, default=60)
    args = parser.parse_args()
    sweep = Sweep(args.blinkc, args.most)
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(args.first, args.last + 1):
            sweep.machine(seed, directory, seed % args.every == 0)
            if seed % 10 == 0 or seed == args.last:
                sweep.check(directory)
    for what, number in sweep.count.items():
        print(f"{number} {what}")
    print(f"slowest {sweep.slowest[0]:.2f} s: {sweep.slowest[1]}")
    return 1 if sweep.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
