#!/usr/bin/env python3
"""Estimates of the planner's packers beside what they take, for calibration of src/plan/work.c.

    tests/bench/estimates.py [--limit S] [--only WORD]

plans the cases of planning.py and prints, for each row of the table that ran in any of them, how many seconds of CPU it
took of those estimated: the largest, and the case of the largest and of the smallest share of the estimate, of what
took more than 10 ms. A row that takes more than its estimate runs where it should not; one that takes far less than it
is left out where it might. What takes more CPU than the limit (60 s a case) is left out. Nothing is asserted.
"""
import argparse
import collections
import os
import re
import resource
import subprocess
import tempfile

import planning

LINE = re.compile(r"^packer ([^:]+): .*?(\S+) of (\S+) s(?:: .*)?$", re.M)
LEAST = 0.01  # s: below that, times are those of other things


def rows_of(program, args, work, seconds):
    """(packer, seconds, estimate) of each that ran."""
    command = [program, *planning.arguments(args), "-v", "-o", f"{work}/out.json"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1)))
    return [(name, float(took), float(of)) for name, took, of in LINE.findall(done.stderr)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=60, help="seconds of CPU for a case (60)")
    parser.add_argument("--only", default="", help="cases whose name has this word")
    options = parser.parse_args()
    program = f"{os.environ.get('BUILD', 'build')}/blinkc"
    found = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as work:
        for case in planning.cases(work):
            if options.only in case.name and not case.args.startswith("batch"):
                for name, took, of in rows_of(program, case.args, work, options.limit):
                    found[name].append((took / of if of else 0, took, of, case.name))
    print("| packer | ran | longest | of its estimate, most | least |\n| --- | --- | --- | --- | --- |")
    for name, runs in found.items():
        seen = sorted(run for run in runs if run[1] >= LEAST)
        ends = [f"{took:.3g} of {of:.3g} s: {case}" for _, took, of, case in (seen[-1], seen[0])] if seen else ["", ""]
        print(f"| {name} | {len(runs)} | {max(run[1] for run in runs):.3g} s | {ends[0]} | {ends[1]} |")


if __name__ == "__main__":
    main()
