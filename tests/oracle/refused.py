#!/usr/bin/env python3
"""Is each file refused: with an exit code of these, one line of UTF-8 on stderr, nothing on stdout and no output file?

usage: refused.py [OPTION] CODES FOLDER FILE... -- COMMAND...
options: --said, --at-once, --kinds, --text TEXT, --seconds N

Runs COMMAND for each FILE, which stands for the word {} in it. Output would go to FOLDER, which has to stay empty.
With --said the line has to be that of FILE.err; with --at-once, too, all files are arguments of one command, which
prints the lines in their order. Prints `ok FILE` or `not ok FILE: why`. With --kinds a FILE is KIND.NAME, and a kind of
which all are refused is one line. With --text, TEXT is a part of the line. With --seconds each may take N
"""
import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter


def fault(command, codes, folder):
    """What is wrong with the way in which a command fails, or None; and its line."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, close_fds=False, check=False)
    line = done.stderr
    if str(done.returncode) not in codes:
        return f"exit {done.returncode}, want one of {' '.join(codes)}: {line[:300]}", line
    if done.stdout:
        return "something on stdout", line
    left = os.listdir(folder)
    if left:
        shutil.rmtree(folder)
        os.mkdir(folder)
        return f"left {' '.join(left)}", line
    if line.count(b"\n") != 1 or not line.endswith(b"\n"):
        return f"want one line on stderr, got {line[:300]}", line
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return "the message is not UTF-8", line
    return None, line


def other_words(path, line):
    if not os.path.exists(f"{path}.err"):
        return f"no {path}.err"
    with open(f"{path}.err", "rb") as file:
        want = file.read()
    return None if line == want else f"{line}, want {want}"


def at_once(args, command):
    """One command for all files."""
    at = command.index("{}")
    done = subprocess.run(command[:at] + args.files + command[at + 1:], stdin=subprocess.DEVNULL, capture_output=True,
                          close_fds=False, check=False)
    lines = done.stderr.splitlines(keepends=True)
    if str(done.returncode) not in args.codes.split() or len(lines) != len(args.files) or os.listdir(args.folder):
        print(f"not ok all at once: exit {done.returncode}, {len(lines)} lines for {len(args.files)} files")
    for path, line in zip(args.files, lines):
        why = other_words(path, line)
        print(f"not ok {path}: {why}" if why else f"ok {path}")


def main(args, command):
    if args.seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (args.seconds, args.seconds))
    refused = Counter()
    for path in args.files:
        why, line = fault([path if word == "{}" else word for word in command], args.codes.split(), args.folder)
        if not why and args.said:
            why = other_words(path, line)
        if not why and args.text and args.text.encode() not in line:
            why = f"{line}, want {args.text}"
        kind = re.match("[^.]*", os.path.basename(path))[0]
        refused[kind, not why] += 1
        if why:
            print(f"not ok {path}: {why}")
        elif not args.kinds:
            print(f"ok {path}")
    if args.kinds:
        print("\n".join(f"ok {kind}: {n}" for (kind, _), n in refused.items() if not refused[kind, False]))


def parse(words):
    parser = argparse.ArgumentParser(usage=__doc__)
    for option in ("--said", "--at-once", "--kinds"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--text")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("codes")
    parser.add_argument("folder")
    parser.add_argument("files", nargs="+")
    return parser.parse_args(words)


if __name__ == "__main__":
    dashes = sys.argv.index("--")
    given = parse(sys.argv[1:dashes])
    (at_once if given.at_once else main)(given, sys.argv[dashes + 1:])
