"""The directions between the folders of src/ (src/LAYERS), held against every #include, and circles among files.

usage: layers.py TOP [BUILD]    prints a line `ok NAME` or `not ok NAME: why` for each folder, and for circles.
A room, a folder three levels deep, is entered by the header that has its name, where it has one.
A file and its header are one unit; the header of a folder is one by itself. With BUILD, calls between object files are held against src/LAYERS too, and must form no circle.
"""
import os
import re
import subprocess
import sys


def read_layers(top):
    layers = {}
    for line in open(os.path.join(top, "src/LAYERS")):
        name, colon, others = line.partition(":")
        if colon and not line.startswith("#"):
            layers[name] = others.split()
    for name, others in layers.items():
        layers[name] = others = [layer for o in others for layer in ([o] if o in layers else below(o, layers) or [o])]
        above = list(layers)[list(layers).index(name):]
        wrong = [o for o in others if o not in layers or o in above]
        if wrong:
            sys.exit("src/LAYERS: %s: %s stands below it, or nowhere" % (name, " ".join(wrong)))
    return layers


def below(folder, layers):
    return [name for name in layers if name.startswith(folder + "/")]


def layer_of(path, layers):
    """Of a file, by its path below src/ or as runtime/...: the longest name that it begins with; None: no layer has it."""
    if path.startswith("runtime/"):
        return "runtime"
    names = [n for n in layers if path == n or path.startswith(n + "/") or path[:-2] + ".c" == n]
    return max(names, key=len, default=None)


def sources(top):
    for folder in ("src", "runtime"):
        for where, _, names in os.walk(os.path.join(top, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.relpath(os.path.join(where, name), top)
                    yield path[4:] if folder == "src" else path


def private(path, layers, have):
    """Whether a header is for the files of its room alone: it is not the one with the room's name, where there is one."""
    room = layer_of(path, layers)
    front = "%s/%s.h" % (room, os.path.basename(room))
    return room.count("/") == 2 and front in have and path != front


def includes(top):
    """(file, included file) for all of the project's own files."""
    have = set(sources(top))
    for path in sorted(have):
        text = open(os.path.join(top, path if path.startswith("runtime/") else "src/" + path)).read()
        for name in re.findall(r'^#include "([^"]+)"', text, re.M):
            if name in have:
                yield path, name


def objects(build):
    """Object files of sources that there are."""
    for where, _, names in os.walk(os.path.join(build, "src")):
        for name in names:
            path = os.path.join("src", os.path.relpath(os.path.join(where, name), os.path.join(build, "src"))[:-2] + ".c")
            if name.endswith(".o") and (os.path.exists(os.path.join(build, "..", path)) or os.path.exists(path)):
                yield os.path.join(where, name)


def calls(build):
    """(file, file whose function or data it refers to), from object files."""
    defines, refers = {}, {}
    # One process for all of them: to start it takes most of its time.
    for line in subprocess.run(["nm", "-A", *objects(build)], capture_output=True, text=True, check=True).stdout.splitlines():
        file, _, symbol = line.partition(":")
        path, words = os.path.relpath(file, os.path.join(build, "src"))[:-2] + ".c", symbol.split()
        if len(words) == 3 and words[1] in "TDBRC":
            defines[words[2]] = path
        elif words[0] == "U":
            refers.setdefault(path, set()).add(words[1])
    for path, symbols in sorted(refers.items()):
        for symbol in sorted(symbols):
            if defines.get(symbol, path) != path:
                yield path, defines[symbol], symbol


def circles(edges):
    """Sets of units that lead to each other: strongly connected components of more than one unit (Tarjan 1972)."""
    after = {}
    for a, b in edges:
        after.setdefault(a, set()).add(b)
        after.setdefault(b, set())
    number, low, stack, found = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in sorted(after[v]):
            if w not in number:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == number[v]:
            unit = stack[stack.index(v):]
            del stack[stack.index(v):]
            if len(unit) > 1:
                found.append(sorted(unit))

    for v in sorted(after):
        if v not in number:
            visit(v)
    return found


def unit_of(path):
    """A file and its header are one; the header of a folder, which has its name, stands for itself."""
    folder, name = os.path.split(path)
    return path if name == os.path.basename(folder) + ".h" else path[:-2]


def say(name, faults):
    print("ok layers: %s" % name if not faults else "not ok layers: %s: %s" % (name, "; ".join(faults)))
    return not faults


def main(argv):
    top, build = argv[1], argv[2] if len(argv) > 2 else None
    layers = read_layers(top)
    have = set(sources(top))
    found, faults = list(includes(top)), {name: [] for name in layers}
    good = say("every file is in a layer", [p for p in sources(top) if not layer_of(p, layers)])
    edges = [(a, b, '#include "%s"' % b) for a, b in found]
    if build:
        edges += [(a, b, symbol) for a, b, symbol in calls(build)]
    for a, b, why in edges:
        here, there = layer_of(a, layers), layer_of(b, layers)
        if here and there and here != there and there not in layers[here]:
            faults[here].append("%s: %s of %s" % (a, why, there))
        elif here and there and here != there and why.startswith("#") and private(b, layers, have):
            faults[here].append("%s: %s is for %s alone" % (a, why, there))
    for name in layers:
        good = say("%s refers to what src/LAYERS allows" % name, faults[name]) and good
    pairs = {(unit_of(a), unit_of(b)) for a, b, _ in edges if unit_of(a) != unit_of(b)}
    return 0 if say("no circle of files", [" <-> ".join(c) for c in circles(pairs)]) and good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
