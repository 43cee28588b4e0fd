#!/usr/bin/env python3
"""Run a few lines of Python that are part of a suite.

usage: snippet.py -c SOURCE ARGUMENT...    as python3 -c SOURCE ARGUMENT...
       snippet.py - ARGUMENT...            source from standard input
       snippet.py --field FILE EXPRESSION  the value of an expression of the JSON document d
       snippet.py --edit FILE STATEMENTS   write the JSON document anew, after statements that change d

Modules of tests/oracle can be imported. What is imported here is there already where tests/warm.py runs this.
"""
import decimal  # noqa: F401
import glob  # noqa: F401
import itertools  # noqa: F401
import json
import math  # noqa: F401
import os  # noqa: F401
import pathlib  # noqa: F401
import random  # noqa: F401
import re  # noqa: F401
import sys
import xml.etree.ElementTree  # noqa: F401


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def run(source, name, args):
    sys.argv = [name, *args]
    exec(compile(source, name, "exec"), {"__name__": "__main__"})


def field(path, expression):
    print(eval(expression, {"d": load(path)}))


def edit(path, statements):
    names = {"d": load(path)}
    exec(statements, names)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(names["d"], file)


def main(args):
    if args[:1] == ["-"]:
        run(sys.stdin.read(), "-", args[1:])
    elif args[:1] == ["-c"] and len(args) > 1:
        run(args[1], "-c", args[2:])
    elif args[:1] == ["--field"] and len(args) == 3:
        field(*args[1:])
    elif args[:1] == ["--edit"] and len(args) == 3:
        edit(*args[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
