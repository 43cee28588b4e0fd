"""Open MPI itself, held against the rules that blinkc writes for it: traffic.py BLINKC CALLS [N...], in a work folder.

Open MPI counts what each rank sends to each (component monitoring of its pml). Of every algorithm by its number, over N
ranks, that has to be what the trees of our schedule send, with the ranks in its order; CALLS has checked the results.
Then of every rule of a file that blinkc wrote. Prints TAP."""
import collections
import fractions
import glob
import json
import os
import subprocess
import sys

RANKS, BACKWARDS, BITS = range(3)
# EXACT: the same bytes over the same pairs. POWER: for powers of two. PAIRS: the pairs, and more bytes of ours, since
# each rank has trees of its own. LESS: no pair has more of ours, and the busiest one as many, since ours does not send
# what a rank has.
EXACT, POWER, PAIRS, LESS = range(4)
# Open MPI's collectives and algorithms, by number, and ours. Its linear alltoall is not here: what goes by persistent
# requests is not counted.
ALGORITHMS = {
    ("allreduce", 2): {3: ("recursive-doubling", RANKS, PAIRS), 4: ("ring", RANKS, EXACT),
                       6: ("halving-doubling", RANKS, POWER)},
    ("broadcast", 7): {1: ("direct", RANKS, EXACT), 3: ("chain", RANKS, EXACT), 6: ("knomial", BITS, POWER),
                       7: ("knomial --radix 4", RANKS, EXACT), 9: ("scatter-allgather", RANKS, LESS)},
    ("reduce", 11): {1: ("direct", RANKS, EXACT), 3: ("chain", RANKS, EXACT), 5: ("knomial", RANKS, EXACT)},
    ("allgather", 0): {2: ("bruck", BACKWARDS, EXACT), 3: ("halving-doubling", BITS, POWER), 4: ("ring", RANKS, EXACT)},
    ("reducescatter", 12): {2: ("halving-doubling", BITS, POWER), 3: ("ring", RANKS, EXACT)},
    ("gather", 9): {1: ("direct", RANKS, EXACT), 2: ("knomial", RANKS, EXACT)},
    ("scatter", 15): {1: ("direct", RANKS, EXACT), 2: ("knomial", RANKS, EXACT)},
    ("alltoall", 3): {2: ("direct", RANKS, EXACT), 3: ("bruck", RANKS, EXACT)},
}


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)


def network(n):
    return "server:%d gpu:1 net:12.5" % n


def place(order, rank, n):
    """The rank at the position that our schedule has `rank` at."""
    if order == BACKWARDS:
        return (n - rank) % n
    if order == BITS:
        return int(format(rank, "b").zfill(n.bit_length() - 1)[::-1], 2)
    return rank


class Tests:
    def __init__(self, blinkc, calls):
        self.blinkc, self.calls, self.number, self.failed = blinkc, os.path.abspath(calls), 0, 0
        self.kept = {}

    def ok(self, good, what, why=""):
        self.number += 1
        self.failed += not good
        why = "" if good else ": %s" % why
        print("%s %d - %s%s" % ("ok" if good else "not ok", self.number, what, why), flush=True)

    def measured(self, n, coll, rules, size):
        """Bytes from rank to rank of a call by these rules, None: by none; or None, and why it failed."""
        for old in glob.glob("profile.*"):
            os.remove(old)
        settings = {"btl": "self,vader", "pml_monitoring_enable": "2", "pml_monitoring_enable_output": "3",
                    "pml_monitoring_filename": os.path.abspath("profile")}
        if rules:
            settings.update({"coll_tuned_use_dynamic_rules": "1",
                             "coll_tuned_dynamic_rules_filename": os.path.abspath(rules)})
        mca = [word for pair in settings.items() for word in ("--mca", *pair)]
        done = run("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(n), *mca, self.calls, coll,
                   str(size), timeout=120)
        if done.returncode:
            return None, (done.stderr + done.stdout).strip()[-300:]
        bytes_of = collections.Counter()
        for name in glob.glob("profile.*.prof"):
            with open(name, encoding="utf-8") as f:
                for line in f:
                    words = line.split()
                    if words and words[0] == "I":
                        bytes_of[int(words[1]), int(words[2])] += int(words[3])
        return bytes_of, ""

    def planned(self, n, coll, algorithm, order, size):
        """The same of our schedule: on this network no order is faster than that of the ranks."""
        key = n, coll, algorithm
        if key not in self.kept:
            done = run(self.blinkc, "-q", "--synthetic", network(n), "-c", coll, "-a", *algorithm.split(), "-o", "-")
            assert done.returncode == 0, done.stderr
            self.kept[key] = json.loads(done.stdout)
        bytes_of = collections.Counter()
        for tree in self.kept[key]["trees"]:
            part = fractions.Fraction(tree["segment"][1]) * size
            for edge in tree.get("down", []) + tree.get("up", []):
                bytes_of[place(order, edge[0], n), place(order, edge[1], n)] += part
        # All that is sent is one buffer there.
        return {pair: count * n if coll == "alltoall" else count for pair, count in bytes_of.items()}

    def compare(self, n, coll, algorithm, size, rules, what):
        ours, order, kind = algorithm
        theirs, why = self.measured(n, coll, rules, size)
        power = n & (n - 1) == 0
        if theirs is None or not power and kind not in (EXACT, LESS):
            self.ok(theirs is not None, what + ": right results", why)
            return
        want = self.planned(n, coll, ours, order, size)
        theirs = {pair: count for pair, count in theirs.items() if count}
        if kind == PAIRS:
            good = set(want) == set(theirs)
        elif kind == LESS:
            good = all(count <= theirs.get(pair, 0) for pair, count in want.items()) and max(want.values()) == max(
                theirs.values(), default=0)
        else:
            good = want == theirs
        self.ok(good, what, "%s, want %s" % (theirs, {k: float(v) for k, v in want.items()}))


def read_rules(path):
    """By the number of a collective, then of ranks: pairs of bytes and algorithm."""
    with open(path, encoding="utf-8") as f:
        words = iter([int(word) for line in f for word in line.split("#")[0].split()])
    out = {}
    for _ in range(next(words)):
        number, entries = next(words), next(words)
        out[number] = {}
        for _ in range(entries):
            ranks, n = next(words), next(words)
            rules = []
            for _ in range(n):
                size, algorithm, fan, segment = (next(words) for _ in range(4))
                assert fan == 0 and segment >= 0
                rules.append((size, algorithm))
            out[number][ranks] = rules
    assert next(words, None) is None
    return out


def check_algorithms(t, n):
    for (coll, number), algorithms in ALGORITHMS.items():
        for algorithm, ours in algorithms.items():
            with open("forced", "w", encoding="utf-8") as f:
                f.write("1\n%d\n1\n%d\n1\n0 %d 0 0\n" % (number, n, algorithm))
            t.compare(n, coll, ours, 16 * n * 1024, "forced", "%d ranks, %s %d is %s" % (n, coll, algorithm, ours[0]))


def check_rules(t, n):
    """A file for n ranks: of each rule the first size, and the last one before the next."""
    done = run(t.blinkc, "tune", "-q", "--synthetic", network(n), "--size", "1K-1M", "--format", "ompi-rules", "-o",
               "rules")
    t.ok(done.returncode == 0, "a file for %d ranks" % n, done.stderr)
    rules = read_rules("rules")
    t.ok(list(rules) == [number for (coll, number) in sorted(ALGORITHMS, key=lambda c: list(rules).index(c[1]))]
         and len(rules) == len(ALGORITHMS), "rules for all collectives", list(rules))
    for (coll, number), algorithms in ALGORITHMS.items():
        by_ranks = rules[number]
        t.ok(list(by_ranks) == [0, n, n + 1] and by_ranks[0] == by_ranks[n + 1] == [(0, 0)],
             "%s: other numbers of ranks are Open MPI's" % coll, by_ranks)
        mine = by_ranks[n]
        sizes = [size for size, _ in mine]
        t.ok(mine[0] == (0, 0) and sizes == sorted(set(sizes)), "%s: ascending from 0" % coll, mine)
        for i in range(1, len(mine)):
            size, algorithm = mine[i]
            if algorithm == 0:
                t.ok(coll == "alltoall", "%s from %d bytes on is Open MPI's" % (coll, size))
                continue
            before = mine[i + 1][0] - 4 * n if i + 1 < len(mine) else None
            for at in {max(size, 1024), before} - {None}:
                t.compare(n, coll, algorithms[algorithm], at // (4 * n) * 4 * n, "rules", "%s of %d bytes is %s" % (
                    coll, at, algorithms[algorithm][0]))
    theirs, ours = (t.measured(n // 2, "allreduce", file, 65536)[0] for file in (None, "rules"))
    t.ok(theirs and theirs == ours, "half of the ranks: as without rules", ours)


def main():
    t = Tests(*sys.argv[1:3])
    for n in map(int, sys.argv[3:]):
        check_algorithms(t, n)
    check_rules(t, 8)
    print("1..%d" % t.number)
    return t.failed > 0


if __name__ == "__main__":
    sys.exit(main())
