#!/usr/bin/env python3
"""Which packer's trees are kept, over many jobs, and what would be lost without it.

    tests/bench/packers.py [--random N] [--first SEED] [--limit S] [--only WORD] [--part NAME]
                           [--lost N] [--packer WORD] [--jobs]

plans the topologies that come along, each collective and set of link classes; the cases of planning.py; and random
machines (500), with seeds from 1 or SEED. Prints for each row of the table in src/plan/portfolio.c in how many jobs its
trees were kept, in how many others it found trees, in how many none, and the seconds of CPU that it took. What takes
more CPU than the limit (10 s a case) has no row.

--lost N: up to N jobs of each packer are planned again by a program without its row, and counted: where the rate is
lower, the trees deeper, more of them, slower for a message of 64 MiB, by the planner's own term, where planning takes
twice the CPU, or the job is not planned within the limit; with the case that loses most. --jobs prints each job, too.

BUILD names the directory of the build (build). Nothing is asserted.
"""
import argparse
import collections
import glob
import json
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
SOURCE = "src/plan/portfolio.c"
RAN = re.compile(r"^packer ([^:]+): (no trees|\S+ GB/s, \d+ trees, depth \d+, 64 MiB in (\S+) us), (\S+) of \S+ s"
                 r"(?:: (.*))?$", re.M)
KEPT = re.compile(r"^packer (.*) is kept; from ", re.M)
USUAL = "linear program"  # of which nothing is said where it alone ran

# part: of the corpus. words: arguments of blinkc.
Job = collections.namedtuple("Job", "part name words")
# packer: whose trees are kept. us: 64 MiB, or None. ran: (packer, found trees, seconds).
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
    """Servers with a switch each, that lost parts."""
    gpus = rng.choice([4, 4, 6, 8, 8, 8, 16, 18])
    servers = max(2, rng.between(33, most) // gpus)
    nics = rng.choice([0, 0, gpus, gpus // 2])
    rails = rng.below(2)
    line = f"server:{servers} gpu:{gpus} switch:{rng.choice([150, 300, 450])} "
    line += f"nic:{nics}@{rng.choice([12.5, 25, 50])} pcie:{rng.choice([24, 48])}" if nics \
        else f"net:{rng.choice([12.5, 25, 50])}"
    without = losses(rng, servers, gpus, rails, nics) if rng.below(6) else []
    return ["--synthetic", line + " rails" * rails] + (["--without", ",".join(without)] if without else [])


def draw_subset(rng, _path, most):
    """Some GPUs of each server of a larger cluster."""
    gpus, servers = 8, rng.between(6, most // 5)
    chosen = [f"s{s}/gpu{g}" for s in range(servers)
              for g in sorted(rng.shuffled(range(gpus))[:rng.between(3, gpus)])]
    return ["--synthetic", f"server:{servers} gpu:8 switch:300 net:25{' rails' * rng.below(2)}", "-g", ",".join(chosen)]


def draw_racks(rng, path, _most):
    drawn = racks.Racks(rng.below(100000))
    write(path, drawn.document)
    return [path, "-l", "all"] + (["--without", ",".join(drawn.without)] if drawn.without else [])


def draw_irregular(rng, path, most):
    kind = rng.choice(list(irregular.KINDS))
    gpus = 8 * rng.between(5, most // 8)
    write(path, irregular.machine(kind, rng.below(100000), 64 if kind == "torus256" else gpus))
    return [path, "-l", "all"]


def draw_direct(rng, path, most):
    """Tori and meshes, whole or with a few links less, and graphs whose vertices have one degree."""
    kind = rng.below(3)
    if kind == 2:
        n = 2 * rng.between(17, most // 2)
        write(path, planning.regular(n, rng.choice([3, 4, 4, 6]), rng.below(100000)))
        return [path]
    sides = rng.choice([(6, 6), (6, 8), (5, 7), (7, 9), (8, 8), (3, 3, 4), (3, 4, 5), (4, 4, 4), (2, 3, 6)])
    machine = planning.grid(sides, rng.below(2))
    if kind:
        for _ in range(rng.between(1, 3)):
            machine["links"].pop(rng.below(len(machine["links"])))
    write(path, machine)
    return [path]


def draw_fabric(rng, _path, _most):
    line = rng.choice(["dragonfly:2x4x2@25", "dragonfly:2x4x2@25 groups:6", "fattree:8x4x2@25 oversubscription:2",
                       "fattree:4x4x3@25", "hammingmesh:2x2x3x4@25", "torus:4x4x3@25",
                       "dragonfly+:2x4x4x2@25 groups:5"])
    lost = ["--without", f"s{rng.between(0, 6)}/gpu0"] if rng.below(2) else []
    return ["--synthetic", line] + lost


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
        words = family(rng, f"{work}/r{seed}.json", 64 if rng.below(8) else 160)
        coll = rng.choice(DRAWN)
        yield Job("random", f"seed {seed}: {family.__name__[5:]} {coll}", words + ["-c", coll])


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
    ran = [(name, found != "no trees", float(took)) for name, found, _, took, _ in RAN.findall(done.stderr)]
    times = {name: float(us) for name, _, us, _, better in RAN.findall(done.stderr) if us and better != "not better"}
    kept = KEPT.findall(done.stderr)
    packer = kept[-1] if kept else ran[-1][0] if ran else USUAL
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
    with open(f"{work}/portfolio.c", "w", encoding="utf-8") as file:
        file.write(text.replace(row, ""))
    compiles = next(line for line in make if f"-o {build}/{SOURCE[:-2]}.o" in line)
    links = next(line for line in make if f"-o {build}/blinkc " in line)
    for command in (compiles.replace(f"-c -o {build}/{SOURCE[:-2]}.o", f"-w -c -o {work}/portfolio.o").replace(
            f" {SOURCE}", f" {work}/portfolio.c").replace("-MMD -MP ", ""),
                    links.replace(f"{build}/{SOURCE[:-2]}.o", f"{work}/portfolio.o").replace(
                        f"-o {build}/blinkc ", f"-o {work}/blinkc ")):
        subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
    return f"{work}/blinkc"


CLOSE = 1e-6


def losses_of(job, old, new):
    """(what got worse, by what factor)."""
    if new is None:
        return [("not planned", float("inf"))]
    worse = []
    for name, factor in (("rate", old.ratio / new.ratio), ("depth", new.depth / old.depth),
                         ("trees", new.trees / old.trees), ("64 MiB", new.us / old.us if new.us and old.us else 1),
                         ("CPU", max(new.seconds, 0.1) / max(old.seconds, 0.1))):
        if factor > (2 if name == "CPU" else 1 + CLOSE):
            worse.append((name, factor))
    return worse


def print_losses(name, kept, program, seconds):
    counts, most = collections.Counter(), {}
    for job, old in kept:
        for what, factor in losses_of(job, old, plan(program, job, seconds)):
            counts[what] += 1
            if factor > most.get(what, (0, ""))[0]:
                most[what] = factor, job.name
    said = "; ".join(f"{what} worse in {counts[what]}, most {factor:.5g} times: {where}"
                     for what, (factor, where) in most.items())
    print(f"| {name} | {len(kept)} | {said or 'nothing'} |", flush=True)


# ---- the tables ----

def corpus(work, options):
    for part, jobs in (("topologies", shipped), ("planning", lambda: listed(work)),
                       ("random", lambda: drawn(work, options.first, options.random))):
        if options.part in ("", part):
            yield from (job for job in jobs() if options.only in job.name)


def print_kept(plans):
    parts = list(dict.fromkeys(job.part for job, _ in plans))
    kept = collections.Counter((p.packer, job.part) for job, p in plans if p)
    found, none, took = collections.Counter(), collections.Counter(), collections.Counter()
    for _, p in plans:
        for name, trees, seconds in p.ran if p else []:
            took[name] += seconds
            (found if trees else none)[name] += name != p.packer
    print("| packer | " + " | ".join(f"kept: {part}" for part in parts) + " | found others | none | CPU |")
    print("| --- " * (len(parts) + 4) + "|")
    for name in dict.fromkeys(name for name, _ in rows()):
        print(f"| {name} | " + " | ".join(str(kept[name, part]) for part in parts)
              + f" | {found[name]} | {none[name]} | {took[name]:.3g} s |")
    print(f"{len(plans)} jobs, {sum(p is None for _, p in plans)} refused or not in time; "
          f"{sum(p.seconds for _, p in plans if p):.4g} s of CPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=500, help="random machines (500)")
    parser.add_argument("--first", type=int, default=1, help="seed of the first of them (1)")
    parser.add_argument("--limit", type=int, default=10, help="seconds of CPU for a case (10)")
    parser.add_argument("--only", default="", help="cases whose name has this word")
    parser.add_argument("--part", default="", help="topologies, planning or random alone")
    parser.add_argument("--lost", type=int, default=0, help="jobs of each packer that are planned without it")
    parser.add_argument("--packer", default="", help="of these alone: packers whose name has this word")
    parser.add_argument("--jobs", action="store_true", help="print each job")
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
        if options.lost:
            print("\n| without | jobs | what is lost |\n| --- | --- | --- |")
        for name, row in rows() if options.lost else []:
            kept = sorted(((job, p) for job, p in plans if p and p.packer == name), key=lambda pair: pair[1].seconds)
            if kept and options.packer in name:
                kept = sorted(random.Random(name).sample(kept, min(options.lost, len(kept))))
                print_losses(name, kept, build_without(row, build, work), options.limit)


if __name__ == "__main__":
    main()
