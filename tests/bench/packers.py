#!/usr/bin/env python3
"""Which packer's trees are kept, over many jobs, what would be lost without it, and whether its estimate holds.

    tests/bench/packers.py [--random N] [--large N] [--first SEED] [--limit S] [--only WORD] [--part NAME]
                           [--lost N] [--packer WORD] [--estimates] [--jobs] [--old DIR]

plans the topologies that come along, each collective and set of link classes; the cases of planning.py; random machines
(500) of 33 to 160 GPUs, with seeds from 1 or SEED; and, of 161 to 4096 GPUs, --large N more. Prints for each row of the
table in src/plan/packers.c in how many jobs its trees were kept, in how many others it found trees, in how many none,
and the seconds of CPU that it took. What takes more CPU than the limit (10 s a case) has no row.

--lost N: up to N jobs that keep the trees of a packer, and up to N others in which it ran, are planned again by a
program without its row: where the rate is lower, the trees deeper, more of them, slower for a message of 64 MiB, by the
planner's own term, where planning takes twice the CPU, or the job is not planned within the limit; and where it is the
other way round; with the case that differs most, and the CPU of all with and without.
--estimates: of each packer the longest run, and which share of the estimate of src/plan/work.c runs took, at the most
and at the least, of those that took more than 10 ms. One that takes more than its estimate runs where it should not;
one that takes far less is left out where it might run. --jobs prints each job, too.
--old DIR: each job is planned by DIR/build/blinkc, too, of another built tree: each plan of this one that differs, what
became worse first, and of how many jobs. A job of which one of the two has no plan is such a line, too.

BUILD names the directory of the build (build). Nothing is asserted.
"""
import argparse
import collections
import glob
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

import irregular
import planning

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import racks  # noqa: E402
from lcg import Lcg  # noqa: E402

COLLECTIVES = ["broadcast", "reduce", "allreduce", "allgather", "reducescatter", "alltoall", "gather", "scatter"]
DRAWN = COLLECTIVES[:5] + ["broadcast", "allreduce", "allreduce", "allreduce", "alltoall", "gather"]
SMALL = 160  # GPUs of random machines, at the most
SOURCE = "src/plan/packers.c"
RAN = re.compile(r"^packer ([^:]+): (no trees|\S+ GB/s, \d+ trees, depth \d+, 64 MiB in (\S+) us), (\S+) of (\S+) s"
                 r"(?:: (.*))?$", re.M)
KEPT = re.compile(r"^packer (.*) is kept; from ", re.M)
USUAL = "linear program"  # of which nothing is said where it alone ran

# part: of the corpus. words: arguments of blinkc.
Job = collections.namedtuple("Job", "part name words")
# As -v says. found: trees. us: 64 MiB, or "". took, estimate: seconds.
Ran = collections.namedtuple("Ran", "packer found us took estimate better")
# packer: whose trees are kept. us: 64 MiB, or None. ran: of each row that ran.
Plan = collections.namedtuple("Plan", "packer ratio trees depth us seconds ran")


# ---- jobs ----

def shipped():
    for path in sorted(glob.glob("topologies/*.xml")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        classes = sorted(set(re.findall(r'<class name="(\w+)"', text) or re.findall(r'class="(\w+)"', text)))
        for links in [[]] + [["-l", kind] for kind in classes] + ([["-l", "all"]] if len(classes) > 1 else []):
            for coll in COLLECTIVES:
                yield Job("topologies", f"{os.path.basename(path)} {' '.join(links)} {coll}",
                          [path, *links, "-c", coll])


def listed(work):
    for case in planning.cases(work):
        if not case.args.startswith("batch"):
            yield Job("planning", case.name, planning.arguments(case.args))


def losses(rng, servers, gpus, rails, nics):
    """Of a --synthetic cluster: one to four parts."""
    lost = set()
    for _ in range(rng.between(1, 4)):
        s, g = rng.below(servers), rng.below(gpus)
        lost.add(rng.choice([f"s{s}/gpu{g}", f"s{s}/gpu{g}"] + ([f"nic:s{s}/nic{g % nics}"] if nics else [
            f"s{s}/gpu{g}-net" + (f"/rail{g}" if rails else "")])))
    return sorted(lost)


def draw_cluster(rng, _path, most):
    """Servers with a switch each, that lost parts; of large ones some with leaf switches and a spine."""
    gpus = rng.choice([4, 4, 6, 8, 8, 8, 16, 18])
    servers = max(2, rng.between(33, most) // gpus)
    nics = rng.choice([0, 0, gpus, gpus // 2])
    rails = rng.below(2)
    line = f"server:{servers} gpu:{gpus} switch:{rng.choice([150, 300, 450])} "
    line += f"nic:{nics}@{rng.choice([12.5, 25, 50])} pcie:{rng.choice([24, 48])}" if nics \
        else f"net:{rng.choice([12.5, 25, 50])}"
    without = losses(rng, servers, gpus, rails, nics) if rng.below(6) else []
    leaf = most > SMALL and not rails and rng.choice([0, 0, 4, 8])
    line += " rails" * rails + (f" leaf:{leaf} oversubscription:{rng.choice([1, 2, 3])}" if leaf else "")
    if leaf and not nics:
        without = [part for part in without if not part.endswith("-net")]
    return ["--synthetic", line] + (["--without", ",".join(without)] if without else [])


def draw_subset(rng, _path, most):
    """Some GPUs of each server of a larger cluster."""
    gpus, servers = 8, rng.between(6, most // 5)
    chosen = [f"s{s}/gpu{g}" for s in range(servers)
              for g in sorted(rng.shuffled(range(gpus))[:rng.between(3, gpus)])]
    return ["--synthetic", f"server:{servers} gpu:8 switch:300 net:25{' rails' * rng.below(2)}", "-g", ",".join(chosen)]


def draw_racks(rng, path, most):
    if most > SMALL:
        return draw_large_racks(rng, most)
    drawn = racks.Racks(rng.below(100000))
    write(path, drawn.document)
    return [path, "-l", "all"] + (["--without", ",".join(drawn.without)] if drawn.without else [])


def draw_large_racks(rng, most):
    """Racks with one switch, that lost GPUs, trays of four, links, or a rail."""
    gpus, rails = rng.choice([18, 36, 72]), rng.below(2)
    servers = rng.between(max(2, SMALL // gpus), most // gpus)
    lost = set()
    for _ in range(rng.between(0, 3)):
        s, g = rng.below(servers), rng.below(gpus // 4) * 4
        lost.add(rng.choice([f"s{s}/gpu{g}", f"s{s}:{g}-{g + 3}", f"s{s}/gpu{g}-s{s}/switch:1",
                             f"s{s}/gpu{g}-net" + (f"/rail{g}" if rails else "")] + [f"net/rail{g}"] * rails))
    return ["--synthetic", f"server:{servers} gpu:{gpus} switch:18@50 net:50{' rails' * rails}"] + (
        ["--without", ",".join(sorted(lost))] if lost else [])


def draw_irregular(rng, path, most):
    kind = rng.choice(list(irregular.KINDS))
    gpus = 8 * rng.between(5, min(most, 512) // 8)
    square = 64 if most <= SMALL else 576
    write(path, irregular.machine(kind, rng.below(100000), square if kind == "torus256" else gpus))
    return [path, "-l", "all"]


def draw_direct(rng, path, most):
    """Tori and meshes, whole or with a few links less, and graphs whose vertices have one degree."""
    kind = rng.below(3)
    if kind == 2:
        n = 2 * rng.between(17, most // 2)
        write(path, planning.regular(n, rng.choice([3, 4, 4, 6]), rng.below(100000)))
        return [path]
    sides = rng.choice([(6, 6), (6, 8), (5, 7), (7, 9), (8, 8), (3, 3, 4), (3, 4, 5), (4, 4, 4), (2, 3, 6)]
                       if most <= SMALL else [(16, 16), (8, 8, 8), (20, 20), (12, 12, 6), (32, 32), (16, 16, 8)])
    machine = planning.grid(sides, rng.below(2))
    if kind:
        for _ in range(rng.between(1, 3)):
            machine["links"].pop(rng.below(len(machine["links"])))
    write(path, machine)
    return [path]


FABRICS = ["dragonfly:2x4x2@25", "dragonfly:2x4x2@25 groups:6", "fattree:8x4x2@25 oversubscription:2",
           "fattree:4x4x3@25", "hammingmesh:2x2x3x4@25", "torus:4x4x3@25", "dragonfly+:2x4x4x2@25 groups:5"]
LARGE_FABRICS = ["dragonfly:4x8x4@25", "dragonfly:8x16x8@25 groups:32", "fattree:16x8x4@25 oversubscription:2",
                 "fattree:32x16x8@25", "hammingmesh:2x2x8x16@25", "hammingmesh:2x2x32x32@25", "torus:8x8x8@25",
                 "torus:16x16x16@25", "torus:16x16x16@25 open:1", "torus:8x8x16@25 gpu:4", "dragonfly+:4x8x8x4@25"]


def draw_fabric(rng, _path, most):
    line = rng.choice(FABRICS if most <= SMALL else LARGE_FABRICS)
    lost = sorted({f"s{rng.between(0, 6)}/gpu0" for _ in range(rng.below(2 if most <= SMALL else 4))})
    return ["--synthetic", line] + (["--without", ",".join(lost)] if lost else [])


FAMILIES = [draw_cluster, draw_cluster, draw_subset, draw_racks, draw_irregular, draw_irregular, draw_direct,
            draw_direct, draw_fabric]


def write(path, machine):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(machine, file)


def drawn(work, first, count):
    """Of 33 to 64 GPUs, one in eight of up to 160."""
    for seed in range(first, first + count):
        rng = Lcg(seed)
        family = FAMILIES[rng.below(len(FAMILIES))]
        words = family(rng, f"{work}/r{seed}.json", 64 if rng.below(8) else SMALL)
        yield named("random", seed, family, words, rng.choice(DRAWN))


def drawn_large(work, first, count):
    """More GPUs, of all families the same, and only what several rows of the table serve."""
    for seed in range(first, first + count):
        rng = Lcg(seed)
        family = FAMILIES[rng.below(len(FAMILIES))]
        words = family(rng, f"{work}/l{seed}.json", rng.choice([320, 640, 1152, 2304]))
        yield named("large", seed, family, words, rng.choice(DRAWN[:9]))


def named(part, seed, family, words, coll):
    return Job(part, f"{part} {seed}: {family.__name__[5:]} {coll}", words + ["-c", coll])


# ---- plans ----

def limit(seconds):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def plan(program, job, seconds):
    """None: refused, or not in time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, *job.words, "-v", "--summary", "json", "-o", "/dev/null", "--format", "json"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                          preexec_fn=lambda: limit(seconds))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = next((json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")), None)
    if done.returncode or not told:
        return None
    ran = [Ran(packer, found != "no trees", us, float(took), float(estimate), better)
           for packer, found, us, took, estimate, better in RAN.findall(done.stderr)]
    times = {row.packer: float(row.us) for row in ran if row.us and row.better != "not better"}
    kept = KEPT.findall(done.stderr)
    packer = kept[-1] if kept else ran[-1].packer if ran else USUAL
    return Plan(packer, told["ratio"], told["trees"], told["depth"], times.get(packer),
                after.ru_utime - before.ru_utime, ran)


# ---- without a row ----

def rows():
    """(name, its text) of each row of the table."""
    with open(SOURCE, encoding="utf-8") as file:
        table = file.read().split("packers[] = {\n", 1)[1].split("\n};", 1)[0]
    return [(re.match(r'\t\{ "([^"]+)"', row).group(1), row)
            for row in re.findall(r"\t\{ .*? \},\n?", table + "\n", re.S)]


def build_without(row, build, work):
    """The path of a program whose table lacks this row, by the commands that make has for the others."""
    make = subprocess.run(["make", "-n", "V=1", f"B={build}", "-W", SOURCE, f"{build}/blinkc"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.splitlines()
    with open(SOURCE, encoding="utf-8") as file:
        text = file.read()
    with open(f"{work}/packers.c", "w", encoding="utf-8") as file:
        file.write(text.replace(row, ""))
    compiles = next(line for line in make if f"-o {build}/{SOURCE[:-2]}.o" in line)
    links = next(line for line in make if f"-o {build}/blinkc " in line)
    for command in (compiles.replace(f"-c -o {build}/{SOURCE[:-2]}.o", f"-w -c -o {work}/packers.o").replace(
            f" {SOURCE}", f" {work}/packers.c").replace("-MMD -MP ", ""),
                    links.replace(f"{build}/{SOURCE[:-2]}.o", f"{work}/packers.o").replace(
                        f"-o {build}/blinkc ", f"-o {work}/blinkc ")):
        subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
    return f"{work}/blinkc"


CLOSE = 1e-6
LEAST = 0.01  # s: below that, times are those of other things


def differences(old, new):
    """(what differs, by what factor; above 1: it is worse)."""
    if new is None:
        return [("planned or not", float("inf"))]
    factors = [("rate", old.ratio / new.ratio), ("depth", new.depth / old.depth), ("trees", new.trees / old.trees),
               ("64 MiB", new.us / old.us if new.us and old.us else 1),
               ("CPU", max(new.seconds, 0.1) / max(old.seconds, 0.1))]
    return [(what, factor) for what, factor in factors
            if abs(math.log(factor)) > math.log(2 if what == "CPU" else 1 + CLOSE)]


def print_losses(name, jobs, program, seconds):
    """jobs: (job, plan) of those to be planned without the row."""
    counts, most, took = collections.Counter(), {}, [0.0, 0.0]
    for job, old in jobs:
        new = plan(program, job, seconds)
        took[0] += old.seconds
        took[1] += new.seconds if new else seconds
        for what, factor in differences(old, new):
            key = what, factor > 1
            counts[key] += 1
            if abs(math.log(factor)) > abs(math.log(most.get(key, (1, ""))[0])):
                most[key] = factor, job.name
    said = ["; ".join(f"{what} in {counts[what, worse]}, most {most[what, worse][0]:.6g} times: {most[what, worse][1]}"
                      for what, is_worse in most if is_worse == worse) or "nothing" for worse in (True, False)]
    kept = sum(old.packer == name for _, old in jobs)
    print(f"| {name} | {kept} | {len(jobs) - kept} | {said[0]} | {said[1]} | {took[0]:.3g} s | {took[1]:.3g} s |",
          flush=True)


# ---- the tables ----

def corpus(work, options):
    for part, jobs in (("topologies", shipped), ("planning", lambda: listed(work)),
                       ("random", lambda: drawn(work, options.first, options.random)),
                       ("large", lambda: drawn_large(work, options.first, options.large))):
        if options.part in ("", part):
            yield from (job for job in jobs() if options.only in job.name)


def print_kept(plans):
    parts = list(dict.fromkeys(job.part for job, _ in plans))
    kept = collections.Counter((p.packer, job.part) for job, p in plans if p)
    found, none, took = collections.Counter(), collections.Counter(), collections.Counter()
    for _, p in plans:
        for row in p.ran if p else []:
            took[row.packer] += row.took
            (found if row.found else none)[row.packer] += row.packer != p.packer
    print("| packer | " + " | ".join(f"kept: {part}" for part in parts) + " | found others | none | CPU |")
    print("| --- " * (len(parts) + 4) + "|")
    for name in dict.fromkeys(name for name, _ in rows()):
        print(f"| {name} | " + " | ".join(str(kept[name, part]) for part in parts)
              + f" | {found[name]} | {none[name]} | {took[name]:.3g} s |")
    print(f"{len(plans)} jobs, {sum(p is None for _, p in plans)} refused or not in time; "
          f"{sum(p.seconds for _, p in plans if p):.4g} s of CPU")


def print_estimates(plans):
    runs = collections.defaultdict(list)
    for job, p in plans:
        for row in p.ran if p else []:
            if row.took >= LEAST and row.estimate:
                runs[row.packer].append((row.took / row.estimate, f"{row.took:.3g} of {row.estimate:.3g} s: {job.name}",
                                         row.took))
    print("\n| packer | ran | longest | of its estimate, most | least |\n| --- | --- | --- | --- | --- |")
    for name, shares in runs.items():
        longest = max(took for _, _, took in shares)
        print(f"| {name} | {len(shares)} | {longest:.3g} s | {max(shares)[1]} | {min(shares)[1]} |")


def print_old(plans, program, seconds):
    """What this tree plans otherwise than `program`, a line each."""
    lines, counts, took = [], collections.Counter(), [0.0, 0.0]
    for job, new in plans:
        old = plan(program, job, seconds)
        if not old or not new:
            counts["planned by neither" if old is new else "planned by the old one alone" if old
                   else "planned by the new one alone"] += 1
            if old:
                lines.append((0, f"| {job.name} | no plan | |"))
            continue
        took[0] += old.seconds
        took[1] += new.seconds
        words = {worse: ", ".join(f"{what} {factor:.6g} times" for what, factor in differences(old, new)
                                  if (factor > 1) == worse) for worse in (True, False)}
        kind = "the same" if not any(words.values()) else "better" if not words[True] else "worse" if not words[False] \
            else "some better, some worse"
        counts[kind] += 1
        if kind != "the same":
            lines.append((["worse", "some better, some worse", "better"].index(kind),
                          f"| {job.name} | {words[True]} | {words[False]} |"))
    print("\n| job | worse | better |\n| --- | --- | --- |")
    for _, line in sorted(lines):
        print(line)
    print("; ".join(f"{kind}: {count}" for kind, count in counts.most_common())
          + f"; of those that both plan {took[0]:.4g} s of CPU before, {took[1]:.4g} s now")


def sample(jobs, count, name):
    jobs = sorted(jobs, key=lambda pair: pair[1].seconds)
    return sorted(random.Random(name).sample(jobs, min(count, len(jobs))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=500, help="random machines (500)")
    parser.add_argument("--large", type=int, default=0, help="large random machines (0)")
    parser.add_argument("--first", type=int, default=1, help="seed of the first of them (1)")
    parser.add_argument("--limit", type=int, default=10, help="seconds of CPU for a case (10)")
    parser.add_argument("--only", default="", help="cases whose name has this word")
    parser.add_argument("--part", default="", help="topologies, planning, random or large alone")
    parser.add_argument("--lost", type=int, default=0, help="jobs of each packer that are planned without it")
    parser.add_argument("--packer", default="", help="of these alone: packers whose name has this word")
    parser.add_argument("--estimates", action="store_true", help="print what packers take beside their estimates")
    parser.add_argument("--jobs", action="store_true", help="print each job")
    parser.add_argument("--old", help="directory of another built tree, which plans the same jobs")
    options = parser.parse_args()
    build = os.environ.get("BUILD", "build")
    with tempfile.TemporaryDirectory() as work:
        plans = []
        for job in corpus(work, options):
            p = plan(f"{build}/blinkc", job, options.limit)
            plans.append((job, p))
            if options.jobs:
                print(f"{job.name}: " + (f"{p.packer}, {p.ratio:.6g} of the bound, {p.trees} trees, depth {p.depth}, "
                                         f"{p.seconds:.3g} s" if p else "none"), flush=True)
        print_kept(plans)
        if options.estimates:
            print_estimates(plans)
        if options.old:
            print_old(plans, f"{options.old}/build/blinkc", options.limit)
        if options.lost:
            print("\n| without | kept | ran | worse | better | with it | without |\n" + "| --- " * 7 + "|")
        for name, row in rows() if options.lost else []:
            if options.packer in name:
                kept = [(job, p) for job, p in plans if p and p.packer == name]
                others = [(job, p) for job, p in plans if p and p.packer != name and name in [r.packer for r in p.ran]]
                jobs = sample(kept, options.lost, name) + sample(others, options.lost, name)
                if jobs:
                    print_losses(name, jobs, build_without(row, build, work), options.limit)


if __name__ == "__main__":
    main()
