#!/usr/bin/env python3
"""Connected sets of 3 to 8 GPUs of a DGX-1, up to isomorphism: what a scheduler can hand to a job.

usage: subsets.py dgx1v|dgx1p [--all]     one list of GPUs per line: the first of each class, or with --all every set
       subsets.py                         count the classes; exit status 1 unless they are 46 and 14

Two sets are the same if the links between their GPUs are, link counts included (Wang et al. 2020, Blink).
"""
import sys
from itertools import combinations, groupby, permutations, product

# Links between pairs of GPUs.
MACHINES = {
    "dgx1v": {(0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
              (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2},
    "dgx1p": {**{pair: 1 for half in ((0, 1, 2, 3), (4, 5, 6, 7)) for pair in combinations(half, 2)},
              **{(i, i + 4): 1 for i in range(4)}},
}
CLASSES = {"dgx1v": 46, "dgx1p": 14}


def count(links, a, b):
    return links.get((min(a, b), max(a, b)), 0)


def connected(links, gpus):
    reached, grow = {gpus[0]}, [gpus[0]]
    while grow:
        a = grow.pop()
        new = [b for b in gpus if b not in reached and count(links, a, b)]
        reached.update(new)
        grow += new
    return len(reached) == len(gpus)


def subsets(machine):
    """Every connected set, as a tuple of GPUs, small ones first."""
    links = MACHINES[machine]
    return [gpus for size in range(3, 9) for gpus in combinations(range(8), size) if connected(links, gpus)]


def seen(links, gpus, a):
    """What a GPU sees, whatever the others are called: its link counts, and those of each neighbour."""
    counts = {b: sorted(count(links, b, c) for c in gpus if c != b) for b in gpus}
    return counts[a], sorted((count(links, a, b), counts[b]) for b in gpus if b != a)


def canonical(links, gpus):
    """The greatest list of link counts that an order of the GPUs gives, those first that see least: equal for
    isomorphic sets
    only. So only GPUs that see the same are tried in all orders."""
    what = {a: seen(links, gpus, a) for a in gpus}
    alike = [list(cell) for _, cell in groupby(sorted(gpus, key=what.get), what.get)]
    orders = (sum(parts, ()) for parts in product(*map(permutations, alike)))
    return max(tuple(count(links, a, b) for a, b in combinations(order, 2)) for order in orders)


def invariant(links, gpus):
    """Equal for isomorphic sets, and cheap."""
    return sorted(seen(links, gpus, a) for a in gpus)


def classes(machine):
    """The first set of each class. Only sets of one invariant are compared by all orders."""
    links, groups, found = MACHINES[machine], {}, []
    for gpus in subsets(machine):
        groups.setdefault(str(invariant(links, gpus)), []).append(gpus)
    for group in groups.values():
        first = {}
        for gpus in group:
            first.setdefault(canonical(links, gpus) if len(group) > 1 else None, gpus)
        found += first.values()
    return sorted(found, key=lambda gpus: (len(gpus), gpus))


def main(args):
    every = "--all" in args
    names = [arg for arg in args if arg != "--all"]
    if names and (len(names) > 1 or names[0] not in MACHINES) or every and not names:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    for name in names:
        for gpus in subsets(name) if every else classes(name):
            print(",".join(map(str, gpus)))
    if names:
        return 0
    found = {name: len(classes(name)) for name in MACHINES}
    for name, number in found.items():
        print(f"{name}: {number} classes of {len(subsets(name))} connected sets")
    return 0 if found == CLASSES else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
