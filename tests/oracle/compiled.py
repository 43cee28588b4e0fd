#!/usr/bin/env python3
"""Compare the files that `blinkc batch` wrote with what `blinkc compile` gives for the same GPUs and root, by bytes.

usage: compiled.py BLINKC TOPOLOGY DIRECTORY [--every N] [--others INTO] [-- OPTION...]

An entry of the index whose ranks are 0, 1, 2 ... names a file that was planned for its own GPUs, in this order. The
others name the file of an isomorphic job.

--every N        compare every Nth file only, and at least one of each collective
--others INTO    compile the jobs that have the file of another one, and write them to this directory
OPTION           what batch was given beside the sets, collectives and roots

Prints the files that differ, and how many were compared; exit status 1 if any differs.
"""
import argparse
import json
import os
import subprocess
import sys


def split(entries):
    """The first entry of each file that was planned for it, and the entries that have the file of another job."""
    own, others = {}, []
    for entry in entries:
        if entry["ranks"] == list(range(len(entry["gpus"]))):
            own.setdefault(entry["file"], entry)
        else:
            others.append(entry)
    return list(own.values()), others


def compile_job(args, entry):
    """The bytes that blinkc compile writes."""
    gpus = ",".join(map(str, entry["gpus"]))
    root = [] if entry["root"] is None else ["-r", str(entry["root"])]
    command = [args.blinkc, "-q", args.topology, "-c", entry["collective"], "-g", gpus, *root, *args.options]
    run = subprocess.run(command, capture_output=True, check=False)
    if run.returncode:
        sys.exit(f"{' '.join(command)}: exit {run.returncode}: {run.stderr.decode()}")
    return run.stdout


def some_of(entries, every):
    first = {entry["collective"]: entry for entry in reversed(entries)}
    return [entry for i, entry in enumerate(entries) if i % every == 0 or first[entry["collective"]] is entry]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    for name in ("blinkc", "topology", "directory"):
        parser.add_argument(name)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--others")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:at])
    args.options = words[at + 1:]
    with open(os.path.join(args.directory, "index.json"), encoding="utf-8") as file:
        own, others = split(json.load(file)["schedules"])
    asked, different = some_of(own, args.every), []
    for entry in asked:
        with open(os.path.join(args.directory, entry["file"]), "rb") as file:
            if file.read() != compile_job(args, entry):
                different.append(entry["file"])
    for i, entry in enumerate(others if args.others else []):
        with open(os.path.join(args.others, f"{i}.json"), "wb") as file:
            file.write(compile_job(args, entry))
    for name in different:
        print(f"not what compile gives: {name}")
    print(f"{len(asked)} of {len(own)} files compared")
    return bool(different) or not asked


if __name__ == "__main__":
    sys.exit(main())
