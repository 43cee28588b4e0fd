#!/usr/bin/env python3
"""Time of planning where it was slow: machines without symmetry, machines that lost a GPU, the largest machines.

    tests/bench/planning.py [--old DIR] [--limit S] [--only WORD]

prints a table with a row for each case: CPU and peak memory of one process, with what it planned. Memory is left out
below
32 MiB, as Linux counts what this program had when it started the other. With --old, a
directory of another built tree, that program runs beside this one, case after case, and has a column of its own. A case
that takes more than the limit of CPU is stopped: "none in 60 s". The last column has published times of others: their
own, from other machines. Exit status 0: nothing is asserted.
"""
import argparse
import collections
import json
import os
import random
import resource
import subprocess
import tempfile

import irregular

PEERS = {
    "dgx1v allgather": "ForestColl 0.055 s (rate and trees); SCCL 24 s; TACOS 0.015 s, no schedule",
    "dgx1v allreduce": "SCCL none in 120 s",
    "dgx2 allgather": "ForestColl 0.77 s, trees of 15 hops; SCCL none in 120 s",
    "16 A100 allgather": "ForestColl 2.3 s",
    "32 A100 allgather": "ForestColl 15 s",
    "64 A100 allgather": "ForestColl 169 s, trees of 31 hops",
    "128 A100 allgather": "ForestColl none in 900 s",
    "1024 A100 allgather": "ForestColl, the rate alone: 400 s",
    "16x16 mesh allgather": "TACOS 8.4 s at 0.984 of the bound",
    "16x16 torus broadcast": "TACOS 6.8 s at 0.966 of the bound",
}

# args: of blinkc, with {NAME} for the file of a machine that `machines` makes.
Case = collections.namedtuple("Case", "name args")


def direct(n, pairs, rate=25):
    """A machine of GPUs with full-duplex links between them, and no switch."""
    return {"format": "blink-topology", "version": 1, "name": "direct",
            "classes": [{"name": "nvlink", "capacity": rate}],
            "nodes": [{"id": "n0", "gpus": [{"id": f"g{i}"} for i in range(n)]}],
            "links": [{"from": f"g{a}", "to": f"g{b}", "class": "nvlink"} for a, b in sorted(pairs)]}


def grid(sides, around):
    """Neighbours in each direction differ by one; around: the last is next to the first, too."""
    def number(at):
        at_number = 0
        for x, side in zip(at, sides):
            at_number = at_number * side + x
        return at_number
    cells = [()]
    for side in sides:
        cells = [cell + (x,) for cell in cells for x in range(side)]
    pairs = set()
    for cell in cells:
        for axis, side in enumerate(sides):
            if cell[axis] + 1 < side or (around and side > 2):
                other = cell[:axis] + ((cell[axis] + 1) % side,) + cell[axis + 1:]
                pairs.add(tuple(sorted((number(cell), number(other)))))
    return direct(len(cells), pairs)


def regular(n, degree, seed):
    """A random graph, each vertex of which has this degree: ends of links are paired until none is twice or a loop."""
    draw = random.Random(seed)
    while True:
        ends = [v for v in range(n) for _ in range(degree)]
        draw.shuffle(ends)
        pairs = {tuple(sorted(ends[i:i + 2])) for i in range(0, len(ends), 2)}
        if len(pairs) == n * degree // 2 and all(a != b for a, b in pairs):
            return direct(n, pairs)


def some_of_each(servers, seed):
    """Of each server 4 to 8 GPUs."""
    draw = random.Random(seed)
    return ",".join(f"s{s}/gpu{g}" for s in range(servers) for g in sorted(draw.sample(range(8), draw.randint(4, 8))))


def cases(work):
    made = {"torus64": grid((4, 4, 4), True), "16x16": grid((16, 16), True), "mesh256": grid((16, 16), False)}
    tori = ((8, 8, 8), (20, 20), (16, 16, 4), (32, 32), (16, 16, 16))
    made.update({"x".join(map(str, sides)): grid(sides, True) for sides in tori})
    for n in (16, 64, 128, 256):
        made[f"random{n}"] = regular(n, 4, n)
    made.update({kind: irregular.machine(kind, 1) for kind in irregular.KINDS})
    for name, machine in made.items():
        with open(f"{work}/{name}.json", "w") as f:
            json.dump(machine, f)
    a100 = "server:{} gpu:8 switch:300 net:25"
    lost = "--without s5/gpu3"
    yield Case("dgx1v allreduce", "topologies/dgx1v.xml -c allreduce")
    yield Case("dgx1v allgather", "topologies/dgx1v.xml -c allgather")
    yield Case("dgx1v broadcast", "topologies/dgx1v.xml -c broadcast")
    yield Case("dgx1v alltoall", "topologies/dgx1v.xml -c alltoall")
    yield Case("dgx1v reducescatter", "topologies/dgx1v.xml -c reducescatter")
    yield Case("dgx1p allreduce", "topologies/dgx1p.xml -c allreduce")
    yield Case("dgx1p reducescatter", "topologies/dgx1p.xml -c reducescatter")
    yield Case("dgx1v, all sets, 2 collectives, all roots",
               "batch topologies/dgx1v.xml --collectives allreduce,broadcast -j 1")
    yield Case("dgx2 allgather", "topologies/dgx2.xml -c allgather")
    yield Case("mi250, sets of 8, allreduce", "batch topologies/mi250.xml --distinct --sizes 8 -j 1")
    yield Case("random 4-regular graph of 16 allreduce", f"{work}/random16.json -c allreduce")
    for n in (64, 128, 256):
        for coll in ("broadcast", "allgather", "allreduce", "alltoall"):
            yield Case(f"random 4-regular graph of {n} {coll}", f"{work}/random{n}.json -c {coll}")
    for kind in irregular.KINDS:
        for coll in ("broadcast", "gather", "allgather", "allreduce", "alltoall"):
            yield Case(f"{kind} {coll}", f"{work}/{kind}.json -c {coll}")
    yield Case("4x4x4 torus broadcast", f"{work}/torus64.json -c broadcast")
    yield Case("16x16 mesh allgather", f"{work}/mesh256.json -c allgather")
    yield Case("16x16 mesh alltoall", f"{work}/mesh256.json -c alltoall")
    yield Case("16x16 torus broadcast", f"{work}/16x16.json -c broadcast")
    for sides in tori:
        name = "x".join(map(str, sides))
        for coll in ("allgather", "alltoall"):
            yield Case(f"{name} torus {coll}", f"{work}/{name}.json -c {coll}")
    for servers in (2, 4, 8, 16):
        yield Case(f"{servers * 8} A100 allgather", f"--synthetic|{a100.format(servers)}|-c allgather")
    yield Case("32 A100 broadcast", f"--synthetic|{a100.format(4)}|-c broadcast")
    for servers in (64, 128):
        for coll in ("allgather", "allreduce"):
            yield Case(f"{servers * 8 - 1} of {servers * 8} A100 {coll}",
                       f"--synthetic|{a100.format(servers)}|{lost} -c {coll}")
    for name, line in (("on rails", a100.format(128) + " rails"), ("with NICs", "server:128 gpu:8 switch:300 nic:8@25 "
                                                                                "pcie:24")):
        for coll in ("allgather", "allreduce"):
            yield Case(f"1023 of 1024 A100 {name} {coll}", f"--synthetic|{line}|{lost} -c {coll}")
    for name, line, without in (("", a100.format(128), lost), (" on rails", a100.format(128) + " rails", lost),
                                (" with NICs", "server:128 gpu:8 switch:300 nic:8@25 pcie:24", lost)):
        yield Case(f"1023 of 1024 A100{name} allreduce, 64 trees", f"--synthetic|{line}|{without} -c allreduce "
                                                                   f"--max-trees 64")
    yield Case("1024 A100 with NICs on rails, one lost, allreduce",
               "--synthetic|server:128 gpu:8 switch:300 nic:8@25 pcie:24 rails|--without nic:s5/nic3 -c allreduce")
    for servers, gpus in ((8, 18), (8, 72), (16, 36), (28, 72)):
        for coll in ("allgather", "allreduce"):
            yield Case(f"{servers * gpus - 1} of {servers * gpus} GPUs in racks of {gpus} {coll}",
                       f"--synthetic|server:{servers} gpu:{gpus} switch:900 net:50|{lost} -c {coll}")
    for line, without in (("server:16 gpu:72 switch:900 net:50", "s5/gpu3-net"), ("server:16 gpu:36 switch:900 net:50 "
                          "rails", "s5/gpu3-net/rail3"), ("server:4 gpu:36 switch:900 net:50 rails", "net/rail3"),
                          ("server:4 gpu:72 switch:18@50 net:50", "s1/gpu3-s1/switch:1"),
                          ("server:16 gpu:72 switch:900 net:50", "s5:4-7"),
                          ("server:32 gpu:72 switch:900 net:50", "s5/gpu3")):
        for coll in ("broadcast", "allreduce"):
            yield Case(f"{line} without {without} {coll}", f"--synthetic|{line}|--without {without} -c {coll}")
    for line, without in (("server:32 gpu:36 switch:900 net:50 rails", "s5/gpu3-net/rail3"),
                          ("server:32 gpu:72 switch:900 net:50", "s5/gpu3,s9/gpu1-net")):
        yield Case(f"{line} without {without} alltoall", f"--synthetic|{line}|--without {without} -c alltoall")
    for servers in (32, 64):
        yield Case(f"{servers} servers of 4 to 8 A100 allreduce",
                   f"--synthetic|{a100.format(servers)}|-g {some_of_each(servers, servers)} -c allreduce")
    for servers in (128, 256, 2048):
        for coll in ("allgather", "allreduce"):
            yield Case(f"{servers * 8} A100 {coll}", f"--synthetic|{a100.format(servers)}|-c {coll}")
    for name, machine in (("4 units of a SuperPOD", "superpod-h100-4su"), ("2048 GPUs of ABCI", "abci-2048")):
        for coll in ("broadcast", "gather"):
            yield Case(f"{name} {coll}", f"topologies/{machine}.xml -c {coll}")
    for line, without in (("server:111 gpu:4 switch:450 net:12.5 leaf:4 oversubscription:3", ""),
                          ("server:62 gpu:8 switch:300 net:25 leaf:8 rails oversubscription:2", "--without s3/gpu2")):
        for coll in ("allgather", "allreduce"):
            yield Case(f"{line} {without} {coll}", f"--synthetic|{line}|{without} -c {coll}".replace("| ", "|"))
    yield Case("64 servers of 16 GPUs and 8 NICs broadcast",
               "--synthetic|server:64 gpu:16 switch:150 nic:8@12 pcie:12|-c broadcast")
    for line, coll, without in (("torus:16x16x16@25 open:1", "allreduce", ""),
                                ("dragonfly:8x16x8@25 groups:32", "allgather", ""),
                                ("dragonfly:8x16x8@25 groups:32", "allreduce", ""),
                                ("dragonfly:4x8x4@25", "alltoall", ""),
                                ("hammingmesh:2x2x32x32@25", "allreduce", ""),
                                ("hammingmesh:2x2x8x16@25", "allreduce", lost.replace("gpu3", "gpu0")),
                                ("hammingmesh:2x2x8x16@25", "allgather", lost.replace("gpu3", "gpu0")),
                                ("dragonfly:8x16x8@25 groups:32", "allreduce", lost.replace("gpu3", "gpu0")),
                                ("torus:16x16x16@25", "allgather", lost.replace("gpu3", "gpu0")),
                                ("dragonfly:8x16x8@25 groups:32", "allgather", lost.replace("gpu3", "gpu0")),
                                ("torus:16x16x16@25", "allreduce", lost.replace("gpu3", "gpu0"))):
        yield Case(f"{line} {coll} {without}".strip(), f"--synthetic|{line}|-c {coll} {without}")
    for servers in (128, 256, 512):
        yield Case(f"{servers * 8} A100 on rails alltoall", f"--synthetic|{a100.format(servers)} rails|-c alltoall")


def arguments(text):
    """Words; a part between bars is one word."""
    parts = text.split("|")
    return parts[0].split() if len(parts) == 1 else parts[0].split() + [parts[1]] + parts[2].split()


def limited(seconds):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    return limit


def run(program, case, work, seconds):
    """What the table says of one process, and its summary, if it ended well."""
    words = arguments(case.args)
    batch = words[0] == "batch"
    command = [program] + words
    command += ["-q", "-o", f"{work}/batch"] if batch else ["--summary", "json", "-o", f"{work}/out.json"]
    if batch:
        subprocess.run(["rm", "-rf", f"{work}/batch"], check=True)
    with open(f"{work}/said", "w+") as said:
        child = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, preexec_fn=limited(seconds))
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = status
        said.seek(0)
        text = said.read()
    if os.WIFSIGNALED(status):
        return f"none in {seconds} s", None
    took = f"{used.ru_utime + used.ru_stime:.3g} s"
    if used.ru_maxrss >= 32 << 10:
        took += f", {used.ru_maxrss / 1024:.0f} MiB"
    if os.WEXITSTATUS(status):
        return f"refused after {took}", None
    summary = next((json.loads(line) for line in text.splitlines() if line.startswith("{")), None)
    return took, summary


def planned(summary):
    if not summary:
        return ""
    return f"{summary['ratio']:.6g} of the bound, {summary['trees']} trees, depth {summary['depth']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", help="directory of another built tree")
    parser.add_argument("--limit", type=int, default=60, help="seconds of CPU for a case (60)")
    parser.add_argument("--only", default="", help="cases whose name has this word")
    options = parser.parse_args()
    programs = ([f"{options.old}/build/blinkc"] if options.old else []) + [f"{os.environ.get('BUILD', 'build')}/blinkc"]
    heads = (["before", "it planned"] if options.old else []) + ["now", "it plans", "others"]
    print("| case | " + " | ".join(heads) + " |")
    print("| --- " * (len(heads) + 1) + "|")
    with tempfile.TemporaryDirectory() as work:
        for case in cases(work):
            if options.only not in case.name:
                continue
            row = [case.name]
            for program in programs:
                took, summary = run(program, case, work, options.limit)
                row += [took, planned(summary)]
            print("| " + " | ".join(row + [PEERS.get(case.name, "")]) + " |", flush=True)


if __name__ == "__main__":
    main()
