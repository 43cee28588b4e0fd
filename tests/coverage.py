#!/usr/bin/env python3
"""Which lines of runtime/ were executed, by file.

usage: tests/coverage.py BUILD

BUILD was built by `make tests-coverage`, and its programs have run: they counted in BUILD/profiles. Prints a line for each
source file, those with the least first, and the files below LEAST percent again; exits with 1 if there are any. The text
of all files, with how often each line was executed, is in BUILD/lines.txt. Lines are those of functions, as llvm-cov counts them.
"""
import glob
import json
import os
import subprocess
import sys

LEAST = 80
# All of runtime/, as it is installed.
LIBRARIES = ("libblink.so", "libblink-nccl.so", "libnccl-tuner-blink.so", "blink/libblink-audit.so", "blink-perf")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def lines_of(build):
    """{file: (lines, of these executed)}; BUILD/lines.txt is written."""
    merged = f"{build}/profile"
    run("llvm-profdata", "merge", "-o", merged, *sorted(glob.glob(f"{build}/profiles/*.profraw")))
    first, *others = (f"{build}/{name}" for name in LIBRARIES)
    objects = [first, *(f"--object={name}" for name in others), f"--instr-profile={merged}"]
    with open(f"{build}/lines.txt", "wb") as file:
        file.write(run("llvm-cov", "show", *objects))
    top = os.getcwd() + "/"
    counted = {}
    for file in json.loads(run("llvm-cov", "export", "--summary-only", *objects))["data"][0]["files"]:
        name = file["filename"].removeprefix(top)
        lines = file["summary"]["lines"]
        if name.startswith("runtime/") and name.endswith(".c"):
            counted[name] = lines["count"], lines["covered"]
    return counted


def percent(lines, covered):
    return 100 * covered / lines if lines else 100


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    counted = lines_of(sys.argv[1])
    rows = sorted((percent(*counts), name, *counts) for name, counts in counted.items())
    print(f"{'file':36} {'lines':>6} {'covered':>8} {'percent':>8}")
    for share, name, lines, covered in rows:
        print(f"{name:36} {lines:6} {covered:8} {share:8.1f}")
    lines, covered = (sum(row[i] for row in rows) for i in (2, 3))
    print(f"{f'{len(rows)} files':36} {lines:6} {covered:8} {percent(lines, covered):8.1f}")
    others = sorted(set(glob.glob("runtime/**/*.c", recursive=True)) - set(counted))
    print(f"without a function: {', '.join(others)}")
    below = [f"{name} ({share:.1f} %)" for share, name, *_ in rows if share < LEAST]
    if below:
        sys.exit(f"below {LEAST} %: {', '.join(below)}; {sys.argv[1]}/lines.txt has the lines")


if __name__ == "__main__":
    main()
