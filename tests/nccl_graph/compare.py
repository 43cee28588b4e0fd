"""NCCL's own code beside blinkc: compare.py BLINKC WORK VERSION=DRIVER...

Of every class of GPUs of some machines, and of some jobs on several servers. First: NCCL takes our graph file, and has
our rings, in their order. Second: the rings that NCCL finds itself, beside the lines nccl-2.4 and nccl-2.8 of our
summaries. Exit status 1: NCCL has not the rings of a file, or its own are faster than a baseline, which is to be the
most that they can be."""
import collections
import itertools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import topology

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MACHINES = "dgx1v dgx1p abci dgx2 dgx-a100 p4d dgx-h100 hgx-b200 pcie-8gpu kesch"
# Where GPUs differ by their PCIe alone: sets of the first so many.
SWITCHED = ("dgx2", "dgx-a100", "p4d", "dgx-h100", "hgx-b200", "kesch")
# Jobs on servers: the topology, that of a server, the number of servers, the GPUs in each.
JOBS = (("two-dgx1v", "dgx1v", 2, 8), ("superpod-a100", "dgx-a100", 2, 8), ("superpod-h100", "dgx-h100", 2, 8))


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def numbers(text):
    return [int(word, 0) for word in text.split()]


def classes(blinkc, work, machine):
    n = sum(kind == "gpu" for kind in topology.Machine(path_of(machine)).kind.values())
    if machine in SWITCHED:
        return [list(range(k)) for k in range(2, n + 1)]
    out = os.path.join(work, machine + ".classes")
    done = run(blinkc, "batch", "-q", machine, "--distinct", "-o", out)
    if done.returncode:
        sys.exit(done.stderr)
    sets = []
    for name in os.listdir(os.path.join(out, "allreduce")):
        parts = [part.split("-") for part in name[:-len(".json")].split(",")]
        sets.append([g for part in parts for g in range(int(part[0]), int(part[-1]) + 1)])
    return sorted(sets, key=lambda s: (len(s), s))


def path_of(machine):
    return os.path.join(TOP, "topologies", machine + ".xml")


class Answer:
    """What the driver printed: of rings and trees channels, speed, path and orders; those of the job by rank."""

    def __init__(self, driver, servers, gpus):
        """servers: of each its topology, GPUs and graph file. gpus: names of the job's ranks."""
        done = run(driver, *itertools.chain(*servers))
        lines = done.stdout.splitlines()
        self.error = done.stderr.strip().splitlines()[-1:] if done.returncode else None
        self.orders = collections.defaultdict(list)
        self.speed, self.path = {}, {}
        for line in lines:
            words = line.split()
            if "pattern" in words:
                self.speed[words[2]] = float(words[words.index("speed") + 1])
                self.path[words[2]] = words[words.index("path") + 1]
            elif "gpus" in words:
                self.orders[words[2]].append(numbers(line.split("gpus")[1].split("nets")[0]))
            elif "nvlink" in words:
                self.nvlink = float(words[-1])	# GB/s, as this version counts it
            elif "ranks" in words:
                self.orders["job"].append([gpus[r] for r in numbers(line.split("ranks")[1])])


def graph_orders(path, which):
    for graph in ET.parse(path).getroot():
        if graph.get("id") == which:
            return [[int(g.get("dev"), 0) for g in channel.iter("gpu")] for channel in graph], float(
                graph.get("speedintra"))
    return None, None


def turned(order):
    at = order.index(min(order))
    return order[at:] + order[:at]


def verdict(answer, path):
    """Does NCCL have the rings of a file? The reason, or None."""
    rings, speed = graph_orders(path, "0")
    trees, _ = graph_orders(path, "1")
    if answer.error is not None:
        return "refused: " + " ".join(answer.error)
    if answer.orders["ring"] != rings:
        return "other rings: %s" % answer.orders["ring"]
    if answer.speed["ring"] != speed:
        return "speed %g, not %g" % (answer.speed["ring"], speed)
    if trees is not None and answer.orders["tree"] != trees:
        return "other trees: %s" % answer.orders["tree"]
    # NCCL doubles channels, and then has at least so many as its settings ask for.
    if answer.orders["job"] != [turned(r) for r in rings] * 2:
        return "the job has %d channels of %d" % (len(answer.orders["job"]), 2 * len(rings))
    return None


def bandwidth(answer, machine, n):
    """GB/s of an allreduce by NCCL's own rings, with NVLinks at our rate."""
    rate = len(answer.orders["ring"]) * answer.speed["ring"]
    if answer.path["ring"] in ("NVL", "NVB"):
        rate *= machine.rate["nvlink"] / answer.nvlink
    return rate * n / (2 * (n - 1))


def baselines(text):
    return {name: float(rate) for name, rate in re.findall(r"^(nccl-\S+) +([0-9.]+) GB/s", text, re.M)}


def names(gpus):
    ranges = []
    for _, run_of in itertools.groupby(enumerate(gpus), lambda p: p[1] - p[0]):
        part = [g for _, g in run_of]
        ranges.append("%d" % part[0] if len(part) == 1 else "%d-%d" % (part[0], part[-1]))
    return ",".join(ranges)


def compare(blinkc, work, drivers, name):
    machine, xml = topology.Machine(path_of(name)), os.path.join(work, name + ".xml")
    with open(xml, "w", encoding="utf-8") as f:
        f.write(topology.convert(path_of(name)))
    sets = classes(blinkc, work, name)
    refused, taken, wrong, beside = 0, 0, [], []
    for gpus in sets:
        graph, listed = os.path.join(work, "graph.xml"), ",".join(map(str, gpus))
        made = run(blinkc, name, "-g", listed, "-a", "ring", "--format", "nccl-graph", "-o", graph)
        ours = baselines(made.stderr if made.returncode == 0 else run(
            blinkc, name, "-g", listed, "-o", os.path.join(work, "s.json")).stderr)
        refused += made.returncode != 0
        if made.returncode == 0:
            for version, driver in drivers:
                reason = verdict(Answer(driver, [(xml, listed, graph)], gpus), graph)
                taken += reason is None
                if reason:
                    wrong.append("%s %s, NCCL %s: %s" % (name, names(gpus), version, reason))
        own = [(version, Answer(driver, [(xml, listed, "-")], gpus)) for version, driver in drivers]
        beside.append((gpus, ours, [(version, bandwidth(a, machine, len(gpus)), a) for version, a in own]))
    print("%s: %d classes, %d graph files; %d of %d readings give their rings" % (
        name, len(sets), len(sets) - refused, taken, (len(sets) - refused) * len(drivers)))
    for line in wrong:
        print("  " + line)
    return not wrong and report(name, beside)


def report(name, beside):
    """Own rings beside the baselines: a line for each class whose rate is not that of nccl-2.8."""
    fine, equal = True, 0
    for gpus, ours, own in beside:
        most = ours.get("nccl-2.8", 0)
        groups = collections.OrderedDict()
        for version, rate, answer in own:
            text = "%.4g (%d x %g, %s)" % (rate, len(answer.orders["ring"]), answer.speed["ring"], answer.path["ring"])
            groups.setdefault(text, (rate, []))[1].append(version)
        rates = [rate for rate, _ in groups.values()]
        fine &= max(rates) <= most * 1.0001
        if min(rates) >= most * 0.9999 and max(rates) <= most * 1.0001:
            equal += 1
            continue
        print("  %s %-10s nccl-2.4 %g, nccl-2.8 %g; NCCL: %s" % (
            name, names(gpus), ours.get("nccl-2.4", 0), most,
            "; ".join("%s%s" % (text, "" if len(groups) == 1 else ": " + ", ".join(versions))
                      for text, (_, versions) in groups.items())))
    print("  NCCL's own rings have the rate of nccl-2.8 in %d of %d" % (equal, len(beside)))
    return fine


def channels(path):
    """Of each channel in, GPUs and out."""
    for graph in ET.parse(path).getroot():
        if graph.get("id") == "0":
            return [([int(g.get("dev"), 0) for g in channel.iter("gpu")],
                     [int(n.get("dev"), 0) for n in channel.iter("net")]) for channel in graph]
    return []


def compare_job(blinkc, work, drivers, cluster, server, n, gpus):
    """Several servers, each with a file of its own: rings are those of the files, joined in the order of servers."""
    xml, listed = os.path.join(work, server + ".xml"), ",".join(map(str, range(gpus)))
    with open(xml, "w", encoding="utf-8") as f:
        f.write(topology.convert(path_of(server)))
    files = [os.path.join(work, "graph-s%d.xml" % s) for s in range(n)]
    for s, graph in enumerate(files):
        made = run(blinkc, cluster, "-g", "0-%d" % (n * gpus - 1), "-a", "ring", "--format", "nccl-graph", "--server",
                   "s%d" % s, "-o", graph)
        if made.returncode:
            sys.exit(made.stderr)
    ours = baselines(made.stderr)
    of_server = [channels(graph) for graph in files]
    want = [turned([s * gpus + g for s in range(n) for g in of_server[s][c][0]]) for c in range(len(of_server[0]))]
    fine = True
    for version, driver in drivers:
        answer = Answer(driver, [(xml, listed, graph) for graph in files], list(range(n * gpus)))
        own = Answer(driver, [(xml, listed, "-")] * n, list(range(n * gpus)))
        got = answer.orders["job"]
        # NCCL may repeat channels once more (connect.cc), and all its trees have to be as many.
        good = answer.error is None and len(got) >= 2 * len(want) and all(
            order == want[c % len(want)] for c, order in enumerate(got))
        fine &= good
        rate = len(own.orders["ring"]) // n * own.speed["ring"]
        print("%s, %d servers of %d GPUs, NCCL %s: %s; own rings %.4g GB/s (%d x %g, %s), nccl-2.8 %g" % (
            cluster, n, gpus, version, "our rings, %d channels" % len(got) if good else answer.error or got,
            rate * n * gpus / (2 * (n * gpus - 1)), len(own.orders["ring"]) // n, own.speed["ring"],
            own.path["ring"], ours.get("nccl-2.8", 0)))
    return fine


def main():
    blinkc, work = sys.argv[1:3]
    drivers = [argument.split("=", 1) for argument in sys.argv[3:]]
    wanted = os.environ.get("MACHINES", " ".join([MACHINES] + [job[0] for job in JOBS])).split()
    results = [compare(blinkc, work, drivers, name) for name in wanted if name in MACHINES.split()]
    results += [compare_job(blinkc, work, drivers, *job) for job in JOBS if job[0] in wanted]
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
