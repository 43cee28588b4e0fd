#!/usr/bin/env python3
"""Simulated times beside measured ones: of schedules of every algorithm, over shared memory and over links.

usage: make bench-predicted [BENCH_PREDICTED="..."], as root, which links and the priority of ranks take

Ranks are processes of this machine. `memory`: they share its memory. `links`: each is in a network namespace with a
link of a known rate to one switch, in either direction (tests/bench/links.py), and they reach each other by TCP. All
ranks make each call at the same time; a call takes from the first that begins to the last that ends. Of a point, which
is a schedule and a size, the lower quartile of the calls of a process counts, and of several processes that are started
anew the least of these: what else a machine does, and the machines beside it, only take time, often for minutes. So all
points are measured once, in an order of its own each time, before any is measured again. Ranks have a real-time
priority, so that other programs do not count; over shared memory each is bound to a processor, in turn, and processors
do not sleep between calls.

blinkc fit is given some of the schedules, and blinkc simulate all of them. Printed are the share of points whose
simulated time is within 15 % of what was measured, by ranks, sizes, collectives and algorithms; in how many two
processes, and the least of either half of them, are that near to each other, which is what a prediction can reach; the
worst points; and how often the algorithm with the least simulated time is the fastest that was measured, beside how
often that of the least time measured by one half of the processes is the fastest of the other half.
"""
import argparse
import collections
import contextlib
import hashlib
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import links

NEAR = 1.15
BURST = "1600"  # what a link lets pass at once after a rest: a packet, as real links have no such bucket
CHOICE = 1.10  # a choice that is slower than the fastest by more is a bad one
COLLECTIVES = "allreduce,broadcast,allgather,reducescatter,reduce,gather,scatter,alltoall"
SIZES = {"memory": "1K,4K,16K,64K,256K,1M,4M,16M,64M", "links": "1K,4K,16K,64K,256K,1M"}
RANKS = {"memory": "2,3,4,5,6,7,8", "links": "2,3,4,5,8"}
ALGORITHMS = ("trees,onehop,threephase,ring,shared-ring,reducescatter-allgather,chain,direct,knomial,"
              "double-binary-tree,scatter-allgather,halving-doubling,recursive-doubling,bruck,hierarchical-ring,bine")
QUEUE = "4s"  # of a link: no packet is lost
FRAME = 56  # what libblink sends before the data of a message
# Where the search of blinkc fit begins. Over a network a message is on its way while the next begins: a link has one
# after the other. Adding is beside that. A message's last packet is not full: its headers come to those of full ones.
FIRST = {"memory": {"by_memory": 1, "call": 0.2, "reduce": 150},
         "links": {"call": 5, "step": 20, "at_once": 64, "reduce": 0, "by_length": 1, "burst": int(BURST),
                   "in_order": 1, "header": FRAME + links.HEADERS + links.ETHERNET,
                   "efficiency": {"nvlink": links.GOODPUT}, "latency": {"nvlink": 20}}}

Point = collections.namedtuple("Point", "ranks collective algorithm size")


def bytes_of(text):
    return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]] if text[-1] in "KMG" else int(text)


def schedules(build, args, n, folder):
    """(collective, algorithm): its file, of those that are the same the first alone."""
    found, seen = {}, set()
    for collective in args.collectives.split(","):
        for algorithm in args.algorithms.split(","):
            path = f"{folder}/{n}-{collective}-{algorithm}.json"
            words = [f"{build}/blinkc", "-q", "--synthetic", f"gpu:{n} switch:{args.rate}", "-c", collective, "-a",
                     algorithm, "-o", path]
            if subprocess.run(words, capture_output=True).returncode:
                continue  # there is no such schedule
            with open(path) as file:
                plan = json.load(file)
            trees = json.dumps([collective, plan["trees"]], sort_keys=True)
            digest = hashlib.sha256(trees.encode()).digest()
            if digest not in seen:
                found[collective, algorithm] = path
            seen.add(digest)
    return found


def run(args, build, n, collective, path, sizes, lab):
    """us of every call, by size."""
    environment = dict(os.environ, BLINK_SCHEDULES=path, BLINK_SMALL="0", BLINK_TIMEOUT="60", BLINK_DEBUG="NONE")
    if lab:
        environment.update(BLINK_SOCKET_IFNAME="=rank", BLINK_PIN="0")
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(n):
            inside = ["ip", "netns", "exec", lab.name(lab.gpus[rank])] if lab else []
            own = dict(environment, BLINK_HOST_ID=f"host{rank}") if lab else environment
            ranks.append(subprocess.Popen(inside + args.priority + [
                f"{build}/tests/job/launched", str(rank), str(n), folder, "calls", ",".join(map(str, sizes)),
                str(args.times), collective], env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        said = [rank.communicate()[0] for rank in ranks]
    failed = [text for rank, text in zip(ranks, said) if rank.returncode]
    if failed:
        raise RuntimeError(f"{path}: {failed[0].strip()[-300:]}")
    took = collections.defaultdict(list)
    for calls in zip(*(text.splitlines() for text in said)):
        of = [tuple(map(int, call.split())) for call in calls]
        took[of[0][0]].append((max(end for _, _, end in of) - min(begin for _, begin, _ in of)) / 1e3)
    return took


def keep(path, points):
    with open(path, "w") as file:
        for point, took in points.items():
            file.write(",".join(map(str, point)) + "," + ",".join(f"{t:.3f}" for t in took) + "\n")


@contextlib.contextmanager
def awake(args):
    """Processors do not sleep between calls, nor work for others: they wait, with a lower priority than ranks."""
    wait = ["nice", "-n", "-20", sys.executable, "-c", "while True: pass"]
    waiting = [subprocess.Popen(["taskset", "-c", str(cpu)] + wait) for cpu in range(os.cpu_count())
               if args.transport == "memory"]  # packets need threads of the kernel
    try:
        yield
    finally:
        for process in waiting:
            process.kill()
            process.wait()


def spent():
    """Seconds that processors have worked, and that they have been there."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return [seconds / os.sysconf("SC_CLK_TCK") for seconds in (sum(ticks) - ticks[3] - ticks[4], sum(ticks))]


def quartile(took):
    return sorted(took)[(len(took) - 1) // 4]


def measure(args, build, plans, lab_of, points, turns):
    """Adds the lower quartile of a process for each turn to every point."""
    sizes = [bytes_of(size) for size in args.sizes.split(",")]
    for turn in turns:
        for n, files in plans.items():
            lab = lab_of(n)
            order = list(files.items())
            random.Random(turn).shuffle(order)
            try:
                with awake(args):
                    for (collective, algorithm), path in order:
                        for size, took in run(args, build, n, collective, path, sizes, lab).items():
                            points[Point(n, collective, algorithm, size)].append(quartile(took))
            finally:
                if lab:
                    lab.close()
            if args.keep:
                keep(args.keep, points)


def is_given(args, names, point):
    """Is it one of those that blinkc fit gets: of every N-th schedule?"""
    return names.index(point[:3]) % args.fit_every == 0


def names_of(points):
    return sorted({point[:3] for point in points})


def fit(args, build, plans, points, folder):
    """The file of parameters, by every N-th schedule."""
    given, times, fitted = f"{folder}/given.json", f"{folder}/times.csv", args.parameters or f"{folder}/fitted.json"
    first = dict(FIRST[args.transport], cores=os.cpu_count())
    with open(given, "w") as file:
        json.dump({"host": first}, file)
    names = names_of(points)
    with open(times, "w") as file:
        for point in sorted(point for point in points if is_given(args, names, point)):
            file.write(f"{plans[point.ranks][point[1:3]]},{point.size},{min(points[point]):.3f}\n")
    if not args.parameters:
        done = subprocess.run([f"{build}/blinkc", "fit", times, "--parameters", given, "-o", fitted],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        print(f"# {done.stderr.strip()}")
        with open(fitted) as file:
            print("# " + json.dumps({k: v for k, v in json.load(file)["host"].items() if k in first
                                     or args.transport == "memory" and not isinstance(v, dict)}))
    return fitted


def predict(build, plans, points, parameters):
    predicted = {}
    for name in {point[:3] for point in points}:
        sizes = sorted(point.size for point in points if point[:3] == name)
        done = subprocess.run([f"{build}/blinkc", "simulate", "-q", plans[name[0]][name[1:]], "--executor", "host",
                               "--parameters", parameters, "--size", ",".join(map(str, sizes)), "--format", "csv"],
                              capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines()[1:]:
            words = line.split(",")
            predicted[Point(*name, int(words[0]))] = float(words[4])
    return predicted


def near(a, b):
    return max(a, b) <= NEAR * min(a, b)


def within(points, predicted):
    """Percent of the points whose simulated time is near the measured one."""
    return 100 * sum(near(predicted[point], min(took)) for point, took in points.items()) / len(points)


def share(of):
    return f"{100 * sum(of) / len(of):5.1f} %" if of else "   none"


def choice(measured, predicted):
    """Of each collective, number of ranks and size: what the choice takes by what the fastest takes."""
    loss, points = {}, collections.defaultdict(list)
    for point in measured:
        points[point.ranks, point.collective, point.size].append(point)
    for key, of in points.items():
        if len(of) > 1:
            loss[key] = measured[min(of, key=predicted.get)] / min(measured[point] for point in of)
    return loss


def says(loss):
    worst = max(loss, key=loss.get)
    return (f"the very fastest {share([x <= 1 for x in loss.values()])}, at most {round(100 * CHOICE - 100)} % slower "
            f"{share([x <= CHOICE for x in loss.values()])}, {round(100 * NEAR - 100)} % "
            f"{share([x <= NEAR for x in loss.values()])}; the worst {loss[worst]:.2f} times, {worst[1]} of {worst[2]} "
            f"bytes over {worst[0]} ranks")


def report(args, points, predicted):
    measured = {point: min(took) for point, took in points.items()}
    names = names_of(points)
    held = [] if args.parameters else [point for point in points if not is_given(args, names, point)]
    again = [near(a, b) for took in points.values() for a, b in zip(took, took[1:])]
    half = [{point: min(took[i::2]) for point, took in points.items() if len(took) > 1} for i in range(2)]
    halves = [near(half[0][point], half[1][point]) for point in half[0]]
    print(f"# {'':34} points  within {round(100 * NEAR - 100)} %  simulated / measured")
    for what, field in ("all", None), ("ranks", 0), ("bytes", 3), ("collective", 1), ("algorithm", 2):
        for value in sorted({point[field] for point in points}) if field is not None else [""]:
            of = [point for point in points if field is None or point[field] == value]
            ratio = statistics.median(predicted[point] / measured[point] for point in of)
            print(f"  {what:10} {value!s:24} {len(of):6} {share([near(predicted[p], measured[p]) for p in of]):>11} "
                  f"{ratio:12.2f}")
    if held:
        print(f"# of the {len(held)} that blinkc fit was not given: "
              f"{share([near(predicted[p], measured[p]) for p in held])}")
    print(f"# two processes: {share(again)} within {round(100 * NEAR - 100)} % of each other, the least of two halves "
          f"of them {share(halves)}")
    loss = choice(measured, predicted)
    if loss:
        print(f"# the choice of {len(loss)}: {says(loss)}")
        for this, other in (half, half[::-1]) if half[0] else ():
            print(f"# a choice by measurements, the least of one half of the processes: {says(choice(other, this))}")
    far = sorted(points, key=lambda point: -abs(math.log(predicted[point] / measured[point])))
    for point in far[:args.worst]:
        print(f"# {predicted[point] / measured[point]:5.2f}: {point.ranks} ranks, {point.collective} "
              f"{point.algorithm}, {point.size} bytes: simulated {predicted[point]:.1f} us, measured "
              + " ".join(f"{took:.1f}" for took in points[point]))


def kept(path):
    points = {}
    with open(path) as file:
        for words in (line.split(",") for line in file):
            points[Point(int(words[0]), words[1], words[2], int(words[3]))] = [float(took) for took in words[4:]]
    return points


def open_lab(build, args, n, folder):
    path = f"{folder}/{n}.topology.json"
    subprocess.run([f"{build}/blinkc", "topology", "-q", "--synthetic", f"gpu:{n} switch:{args.rate}", "-o", path],
                   check=True)
    with open(path) as file:
        lab = links.Lab(json.load(file), 8000 * links.NOMINAL, "nvlink", BURST, QUEUE)  # Mbit/s of GB/s
    try:
        lab.open()
    except RuntimeError:
        lab.close()
        raise
    return lab


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transport", nargs="?", choices=("memory", "links"), default="memory")
    parser.add_argument("--ranks", help=f"{RANKS['memory']}; of links {RANKS['links']}")
    parser.add_argument("--collectives", default=COLLECTIVES)
    parser.add_argument("--algorithms", default=ALGORITHMS)
    parser.add_argument("--sizes", help=f"{SIZES['memory']}; of links {SIZES['links']}")
    parser.add_argument("--rate", type=float, default=0.003125, help="GB/s of a link; 0.003125, which is 25 Mbit/s")
    parser.add_argument("--times", type=int, default=15, help="calls of a process; 15")
    parser.add_argument("--repeat", type=int, default=3, help="processes; 3")
    parser.add_argument("--fit-every", type=int, default=5, help="blinkc fit gets every N-th schedule; 5")
    parser.add_argument("--parameters", metavar="FILE", help="these, and no fit")
    parser.add_argument("--keep", metavar="FILE", help="what was measured")
    parser.add_argument("--kept", metavar="FILE", help="measure nothing: what --keep wrote")
    parser.add_argument("--worst", type=int, default=10, help="points that are printed")
    parser.add_argument("--want", type=float, default=0, help="exit status 1 if fewer %% are within 15 %%")
    parser.add_argument("--max-repeat", type=int, default=0,
                        help="while fewer %% than --want are near: more processes, up to this many, with pauses")
    args = parser.parse_args()
    args.ranks, args.sizes = args.ranks or RANKS[args.transport], args.sizes or SIZES[args.transport]
    build = os.environ.get("BUILD", "build")
    needs = ["chrt", "taskset"] + (["ip", "tc"] if args.transport == "links" else [])
    missing = [name for name in needs if not shutil.which(name)]
    if missing or os.geteuid() != 0:
        print(f"skipped: want {', '.join(missing) if missing else 'root'}")
        return 0
    args.priority = ["chrt", "-r", "10"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the networks end, too
    with tempfile.TemporaryDirectory() as folder:
        try:
            plans, before = {n: schedules(build, args, n, folder) for n in map(int, args.ranks.split(","))}, spent()
            points = kept(args.kept) if args.kept else collections.defaultdict(list)

            def lab_of(n):
                return open_lab(build, args, n, folder) if args.transport == "links" else None

            if not args.kept:
                measure(args, build, plans, lab_of, points, range(args.repeat))
            predicted = predict(build, plans, points, fit(args, build, plans, points, folder))
            while not args.kept and within(points, predicted) < args.want and args.repeat < args.max_repeat:
                time.sleep(args.repeat)
                measure(args, build, plans, lab_of, points, [args.repeat])
                args.repeat += 1
                predicted = predict(build, plans, points, fit(args, build, plans, points, folder))
            print(f"# {args.transport}: {os.cpu_count()} processors, the lower quartile of {args.times} calls or "
                  f"fewer, the least of {args.repeat} processes")
            if not args.kept and args.transport == "links":
                worked, there = (after - first for after, first in zip(spent(), before))
                print(f"# links of {8000 * args.rate:g} Mbit/s; processors were busy for {100 * worked / there:.0f} % "
                      "of the time")
            report(args, points, predicted)
            got = within(points, predicted)
        except RuntimeError as error:
            print(f"failed: {error}")
            return 1
    return got < args.want


if __name__ == "__main__":
    sys.exit(main())
