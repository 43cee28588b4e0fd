"""The directions between the folders of src/ and runtime/ (their LAYERS), held against every #include, and circles among files.

usage: layers.py TOP [BUILD]    prints a line `ok NAME` or `not ok NAME: why` for each folder, and for circles.
A room, a folder three levels deep, is entered by the header that has its name, where it has one.
A file and its header are one unit; the header of a folder is one by itself. With BUILD, calls between object files are held against LAYERS too, and must form no circle.
"""
import os
import re
import subprocess
import sys

# Of runtime/LAYERS: what follows is not linked into libblink, and reaches it by what it exports.
LAST_OF_LIBBLINK = "runtime/api"


def read_layers(top):
    """By path, as src/base or runtime/comm: the paths of those that it may refer to."""
    layers = {}
    for tree in ("src", "runtime"):
        def paths(name):
            path = name if name.startswith("src/") else tree + "/" + name
            return [path] if path in layers else [layer for layer in layers if layer.startswith(path + "/")]

        for line in open(os.path.join(top, tree, "LAYERS")):
            name, colon, others = line.partition(":")
            if not colon or line.startswith("#"):
                continue
            wrong = [o for o in others.split() if not paths(o)]
            if wrong or tree + "/" + name in layers:
                sys.exit("%s/LAYERS: %s: %s stands below it, or nowhere, or it is there twice" % (tree, name, " ".join(wrong)))
            layers[tree + "/" + name] = [layer for o in others.split() for layer in paths(o)]
    return layers


def layer_of(path, layers):
    """Of a file: the longest name that it begins with; None: no layer has it."""
    names = [n for n in layers if path == n or path.startswith(n + "/") or path[:-2] + ".c" == n]
    return max(names, key=len, default=None)


def sources(top):
    for folder in ("src", "runtime"):
        for where, _, names in os.walk(os.path.join(top, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(where, name), top)


def private(path, layers, have):
    """Whether a header is for the files of its room alone: it is not the one with the room's name, where there is one."""
    room = layer_of(path, layers)
    front = "%s/%s.h" % (room, os.path.basename(room))
    return room.count("/") == 3 and front in have and path != front


def includes(top):
    """(file, included file) for all of the project's own files; folders as the Makefile has them."""
    have = set(sources(top))
    for path in sorted(have):
        folders = [os.path.dirname(path), "src"]
        if path.startswith("runtime/"):
            folders += ["runtime/include", "runtime", "runtime/cuda"]
        for name in re.findall(r'^#include "([^"]+)"', open(os.path.join(top, path)).read(), re.M):
            found = [p for p in (os.path.join(folder, name) for folder in folders) if p in have]
            if found:
                yield path, found[0]


def objects(build):
    """Object files of sources that there are."""
    for folder in ("src", "runtime"):
        for where, _, names in os.walk(os.path.join(build, folder)):
            for name in names:
                path = os.path.relpath(os.path.join(where, name), build)[:-2] + ".c"
                if name.endswith(".o") and (os.path.exists(os.path.join(build, "..", path)) or os.path.exists(path)):
                    yield os.path.join(where, name)


def exported(top):
    return set(re.findall(r"\bblink[A-Z]\w*(?=;)", open(os.path.join(top, "runtime/libblink.map")).read()))


def definer(path, symbol, defines, outside, public):
    """Of a symbol that a file refers to; programs beside libblink may have functions of the same name. None: nobody's, or a public one."""
    found = [p for p in defines.get(symbol, ()) if os.path.dirname(p) == os.path.dirname(path)]
    if not found and outside(path) and symbol in public:
        return None
    return next(iter(found or [p for p in defines.get(symbol, ()) if not outside(p)]), None)


def calls(top, build, layers):
    """(file, file whose function or data it refers to, symbol), from object files."""
    names, public = list(layers), exported(top)
    beside = set(names[names.index(LAST_OF_LIBBLINK) + 1:])
    defines, refers = {}, {}
    # One process for all of them: to start it takes most of its time.
    for line in subprocess.run(["nm", "-A", *objects(build)], capture_output=True, text=True, check=True).stdout.splitlines():
        file, _, symbol = line.partition(":")
        path, words = os.path.relpath(file, build)[:-2] + ".c", symbol.split()
        if len(words) == 3 and words[1] in "TDBRC":
            defines.setdefault(words[2], []).append(path)
        elif words[0] == "U":
            refers.setdefault(path, set()).add(words[1])
    for path, symbols in sorted(refers.items()):
        for symbol in sorted(symbols):
            found = definer(path, symbol, defines, lambda p: layer_of(p, layers) in beside, public)
            if found and found != path:
                yield path, found, symbol


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
        edges += calls(top, build, layers)
    for a, b, why in edges:
        here, there = layer_of(a, layers), layer_of(b, layers)
        if here and there and here != there and there not in layers[here]:
            faults[here].append("%s: %s of %s" % (a, why, there))
        elif here and there and here != there and why.startswith("#") and private(b, layers, have):
            faults[here].append("%s: %s is for %s alone" % (a, why, there))
    for name in layers:
        good = say("%s refers to what LAYERS allows" % name, faults[name]) and good
    pairs = {(unit_of(a), unit_of(b)) for a, b, _ in edges if unit_of(a) != unit_of(b)}
    return 0 if say("no circle of files", [" <-> ".join(c) for c in circles(pairs)]) and good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
