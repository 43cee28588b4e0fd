#!/usr/bin/env python3
"""Schedules executed by libblink over TCP, on links of known rates: is what was predicted what is measured?

usage: make bench-links [BENCH_LINKS="..."], as root

Each GPU of a server becomes a network namespace with one rank. Links between GPUs become virtual links, and switches
bridges; each direction of a link has the rate of the topology file times a scale, by the kernel's token bucket
(tc-tbf). Links of other classes, as PCIe, are left out. A rank reaches a peer over the link between them, or the switch
that both are on, or switches that are joined without a circle; what has none is not used by a schedule. Ranks meet over
a network of their own.

A line for each set of GPUs and collective: MB/s of algorithm bandwidth of the plan and of a ring, predicted and
measured. A ring that these links do not have goes over those of --ring-links, in a network of their own, as NCCL 2.4
has it. Predictions are rates of the schedules, less what headers of TCP, IP and Ethernet take of full packets. Rates
are low, so that two cores are no limit: a line says how busy they were. With --peers also what Open MPI and gloo reach
over the same links, where they are installed.
"""
import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import links_peers

MTU, HEADERS, ETHERNET = 1500, 52, 14
GOODPUT = (MTU - HEADERS) / (MTU + ETHERNET)
PRIORITY = -15  # niceness: who waits for a processor fills no link
NOMINAL = 25  # GB/s: a link of this rate gets --mbit


class Lab:
    """Namespaces and links of a topology, until it is closed."""

    def __init__(self, topology, mbit, links, burst="64kb", queue="100ms"):
        self.prefix, self.namespaces, self.scale = f"b{os.getpid()}{links[0]}", [], mbit / NOMINAL
        capacity = {c["name"]: c.get("capacity") for c in topology.get("classes", [])}
        node = topology["nodes"][0]
        self.gpus = [gpu["id"] for gpu in node["gpus"]]
        self.classes, self.links, self.burst, self.queue = links, {}, burst, queue
        for link in topology["links"]:
            if link["class"] not in links.split(","):
                continue
            ends = link["from"], link["to"]
            rate = (link.get("capacity") or capacity[link["class"]]) * link.get("count", 1)
            self.links[ends] = self.links.get(ends, 0) + rate
        for (a, b), rate in list(self.links.items()):
            self.links.setdefault((b, a), rate)
        self.switches = [switch["id"] for kind in ("cpus", "switches", "nvswitches") for switch in node.get(kind, [])
                         if any(a == switch["id"] for a, _ in self.links)]

    def run(self, *words):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")

    def name(self, vertex):
        return f"{self.prefix}-{(self.gpus + self.switches).index(vertex)}"

    def inside(self, vertex, *words):
        self.run("ip", "netns", "exec", self.name(vertex), *words)

    def shape(self, vertex, device, rate):
        self.inside(vertex, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate",
                    f"{round(rate * self.scale * 1000)}kbit", "burst", self.burst, "latency", self.queue)

    def join(self, a, b):
        """A virtual link between two vertices; the names of its ends."""
        at, to = ((self.gpus + self.switches).index(vertex) for vertex in (a, b))
        ends = f"l{at}.{to}", f"l{to}.{at}"
        self.run("ip", "link", "add", ends[0], "netns", self.name(a), "type", "veth", "peer", "name", ends[1], "netns",
                 self.name(b))
        for vertex, device in zip((a, b), ends):
            self.inside(vertex, "ip", "link", "set", device, "up")
        return ends

    def open(self):
        for vertex in self.gpus + self.switches:
            self.run("ip", "netns", "add", self.name(vertex))
            self.namespaces.append(self.name(vertex))
            self.inside(vertex, "ip", "link", "set", "lo", "up")
        self.open_meeting()
        for (a, b), rate in self.links.items():
            if a in self.gpus and b in self.gpus:
                self.open_link(a, b, rate)
        self.open_fabrics()
        self.open_detours()

    def open_meeting(self):
        """Where ranks meet: no link of the machine. And an address of each GPU, to which links lead."""
        self.run("ip", "link", "add", f"{self.prefix}br", "type", "bridge")
        self.run("ip", "link", "set", f"{self.prefix}br", "up")
        for i, gpu in enumerate(self.gpus):
            self.inside(gpu, "ip", "link", "add", "rank", "type", "veth", "peer", "name", "unused")
            self.inside(gpu, "ip", "addr", "add", f"10.88.0.{i + 1}/32", "dev", "rank")
            for device in "rank", "unused":
                self.inside(gpu, "ip", "link", "set", device, "up")
            self.run("ip", "link", "add", f"{self.prefix}m{i}", "type", "veth", "peer", "name", "meet", "netns",
                     self.name(gpu))
            self.run("ip", "link", "set", f"{self.prefix}m{i}", "master", f"{self.prefix}br", "up")
            self.inside(gpu, "ip", "addr", "add", f"10.89.0.{i + 1}/24", "dev", "meet")
            self.inside(gpu, "ip", "link", "set", "meet", "up")
            for k in range(len(self.gpus)):
                if k != i:
                    self.route(i, k, f"10.89.0.{k + 1}", 100)

    def route(self, i, k, via, metric):
        self.inside(self.gpus[i], "ip", "route", "add", f"10.88.0.{k + 1}/32", "via", via, "metric", str(metric), "src",
                    f"10.88.0.{i + 1}")

    def open_link(self, a, b, rate):
        i, k = self.gpus.index(a), self.gpus.index(b)
        if i > k:
            return
        net = f"10.90.{i * 16 + k}"
        for vertex, device, last, speed in zip((a, b), self.join(a, b), (1, 2), (rate, self.links[b, a])):
            self.inside(vertex, "ip", "addr", "add", f"{net}.{last}/30", "dev", device)
            self.shape(vertex, device, speed)
        self.route(i, k, f"{net}.2", 10)
        self.route(k, i, f"{net}.1", 10)

    def open_switch(self, switch):
        self.inside(switch, "ip", "link", "add", "bridge", "type", "bridge")
        self.inside(switch, "ip", "link", "set", "bridge", "up")

    def open_port(self, number, gpu, switch):
        i = self.gpus.index(gpu)
        own, port = self.join(gpu, switch)
        self.inside(switch, "ip", "link", "set", port, "master", "bridge")
        self.inside(gpu, "ip", "addr", "add", f"10.91.{number}.{i + 1}/24", "dev", own)
        self.shape(gpu, own, self.links[gpu, switch])
        self.shape(switch, port, self.links[switch, gpu])

    def open_uplink(self, a, b):
        """A link between two switches."""
        for vertex, device, ends in zip((a, b), self.join(a, b), ((a, b), (b, a))):
            self.inside(vertex, "ip", "link", "set", device, "master", "bridge")
            self.shape(vertex, device, self.links[ends])

    def fabric(self, switch):
        """The switches that are joined with this one."""
        found = [switch]
        for at in found:
            found += [b for a, b in self.links if a == at and b in self.switches and b not in found]
        return found

    def open_fabrics(self):
        for switch in self.switches:
            self.open_switch(switch)
        for a, b in self.links:
            if a in self.switches and b in self.switches and self.switches.index(a) < self.switches.index(b):
                self.open_uplink(a, b)
        fabrics = {tuple(sorted(self.fabric(switch))) for switch in self.switches}
        for number, fabric in enumerate(sorted(fabrics)):
            on = [(gpu, switch) for gpu in self.gpus for switch in fabric if (gpu, switch) in self.links]
            for gpu, switch in on:
                self.open_port(number, gpu, switch)
            pairs = [(self.gpus.index(a), self.gpus.index(b)) for a, _ in on for b, _ in on if a != b]
            for i, k in pairs:
                self.route(i, k, f"10.91.{number}.{k + 1}", 20 + number)

    def open_detours(self):
        """For who knows nothing of links: between GPUs that have none, a route through as few other GPUs as can be."""
        for gpu in self.gpus:
            self.inside(gpu, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        beside = {a: [b for b in self.gpus if (a, b) in self.links] for a in self.gpus}
        for i, gpu in enumerate(self.gpus):
            first, level = {gpu: None}, [gpu]  # by vertex, the neighbour over which it is reached
            for at in level:
                for b in beside[at]:
                    if b not in first:
                        first[b] = first[at] or b
                        level.append(b)
            for k, other in enumerate(self.gpus):
                if first.get(other) not in (None, other):
                    via = self.gpus.index(first[other])
                    low, high = sorted((i, via))
                    self.route(i, k, f"10.90.{low * 16 + high}.{1 if via == low else 2}", 30)

    def close(self):
        """A namespace ends some time after it is deleted: its links to this one would be in the way of the next lab."""
        for i in range(len(self.gpus)):
            subprocess.run(["ip", "link", "del", f"{self.prefix}m{i}"], capture_output=True)
        for namespace in self.namespaces:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True)
        subprocess.run(["ip", "link", "del", f"{self.prefix}br"], capture_output=True)


def plan(build, topology, gpus, collective, ring, path, links):
    """The rate in GB/s of a schedule in the file; None: there is none."""
    words = [f"{build}/blinkc", topology, "-g", ",".join(map(str, gpus)), "-c", collective, "-l", links, "-o", path,
             "--summary", "json"]
    done = subprocess.run(words + (["-a", "ring"] if ring else []), capture_output=True, text=True)
    return json.loads(done.stderr)["rate_gb_per_s"] if done.returncode == 0 else None


def in_lab(args, compare):
    """compare(lab, build, folder) over the links of args.topology, of args.mbit for NVLinks of 25 GB/s; exit code."""
    build = os.environ.get("BUILD", "build")
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("ip", "tc")):
        print("skipped: want root and iproute2, to make networks")
        return 0
    topology = json.loads(subprocess.run([f"{build}/blinkc", "convert", args.topology, "--format", "json"], check=True,
                                         capture_output=True, text=True).stdout)
    lab = Lab(topology, args.mbit, "nvlink")
    os.nice(PRIORITY)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the networks end, too
    with tempfile.TemporaryDirectory() as folder:
        try:
            lab.open()
            compare(lab, build, folder)
        except RuntimeError as error:
            print(f"failed: {error}")
            return 1
        finally:
            lab.close()
    return 0


def execute(lab, gpus, command, schedules):
    """Seconds that rank 0 prints in its last line, and how many processors were busy; the error of a rank. command: of
    a rank and the folder in which they meet."""
    environment = dict(os.environ, BLINK_SCHEDULES=schedules, BLINK_SOCKET_IFNAME="=rank", BLINK_TIMEOUT="60",
                       BLINK_PIN="0")
    with tempfile.TemporaryDirectory() as folder:
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        ranks = [subprocess.Popen(["ip", "netns", "exec", lab.name(lab.gpus[gpu]), *map(str, command(rank, folder))],
                                  env=dict(environment, BLINK_HOST_ID=f"host{rank}"),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for rank, gpu in enumerate(gpus)]
        said = [rank.communicate()[0] for rank in ranks]
        took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / took
    failed = [text for rank, text in zip(ranks, said) if rank.returncode]
    if failed:
        raise RuntimeError(failed[0].strip())
    return float(said[0].splitlines()[-1].split()[0]), busy  # the last line: warnings come before


def measure(lab, build, gpus, collective, size, times, schedule):
    """The fastest call."""
    return execute(lab, gpus, lambda rank, folder: (
        f"{build}/tests/job/launched", rank, len(gpus), folder, "rate", size, times, collective), schedule)


def classes(build, topology, links, n_gpus, folder):
    """One set of each isomorphism class of 3 and more GPUs."""
    subprocess.run([f"{build}/blinkc", "batch", "-q", "--distinct", "-n", f"3-{n_gpus}", topology,
                    "-l", links, "-o", folder], check=True, capture_output=True)
    with open(f"{folder}/index.json") as file:
        return sorted({tuple(entry["gpus"]) for entry in map(json.loads, (
            line.rstrip(",\n") for line in file if line.startswith('{"gpus":')))}, key=lambda gpus: (len(gpus), gpus))


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def rates(lab, args, build, folder, gpus, collective, ring):
    """MB/s, predicted and measured, and processors that were busy; None: no such schedule."""
    path = f"{folder}/schedule.json"
    rate, size = plan(build, args.topology, gpus, collective, ring, path, lab.classes), args.size
    if rate is None:
        return None
    if lab.classes != args.links:  # slower by much
        size //= 8
    seconds, busy = measure(lab, build, gpus, collective, size, args.times, path)
    return rate * args.mbit / 8 / NOMINAL * GOODPUT, size / seconds / 1e6, busy


def beside(lab, args, build, gpus, collective):
    """MB/s of Open MPI and of gloo; None: it is not installed, or has no such call."""
    figures = [call(lab, build, gpus, collective, args.size) for call in (links_peers.openmpi, links_peers.gloo)]
    figures = [seconds and args.size / seconds / 1e6 for seconds in figures]
    print("    " + ", ".join(f"{name} {rate:.2f}" if rate else f"no {name}"
                             for name, rate in zip(("Open MPI", "gloo"), figures)), flush=True)
    return figures


def cell(figures):
    return f"{figures[0]:7.2f} {figures[1]:8.2f} {figures[1] / figures[0]:6.3f} {figures[2]:4.1f}" if figures else (
        f"{'none':>7} {'':8} {'':6} {'':4}")


def compare(labs, args, build, folder):
    sets = [tuple(map(int, gpus.split(","))) for gpus in args.sets] or classes(build, args.topology, args.links,
                                                                              len(labs[0].gpus), f"{folder}/batch")
    print(f"# {args.topology}: {args.mbit} Mbit/s for a link of {NOMINAL} GB/s, {args.size >> 20} MiB, the best of "
          f"{args.times}; MB/s; headers take {100 * (1 - GOODPUT):.1f} %")
    print(f"# {'GPUs':15} {'collective':13} | {'plan':>7} {'measured':>8} {'ratio':>6} {'CPUs':>4} | {'ring':>7} "
          f"{'measured':>8} {'ratio':>6} {'CPUs':>4} | plan / ring: predicted measured")
    rows, peers = [], []
    for gpus in sets:
        for collective in args.collectives.split(","):
            trees = rates(labs[0], args, build, folder, gpus, collective, False)
            ring, over = None, labs[0]
            for lab in labs if not args.alone else ():
                ring, over = ring or rates(lab, args, build, folder, gpus, collective, True), lab if not ring else over
            cells = [f"  {','.join(map(str, gpus)):15} {collective:13}", cell(trees), cell(ring)]
            if trees and ring:
                cells.append(f"{trees[0] / ring[0]:.3f} {trees[1] / ring[1]:.3f}"
                             + (f" over {over.classes}" if over != labs[0] else ""))
            print(" | ".join(cells), flush=True)
            rows.append((trees, ring))
            if args.peers and trees:
                peers.append((trees[1], *beside(labs[0], args, build, gpus, collective)))
    both = [(trees, ring) for trees, ring in rows if trees and ring]
    print(f"# geometric means: plan {mean([trees[1] / trees[0] for trees, _ in rows if trees]):.3f} of what is "
          f"predicted; plan / ring predicted {mean([trees[0] / ring[0] for trees, ring in both]):.3f}, "
          f"measured {mean([trees[1] / ring[1] for trees, ring in both]):.3f}, of {len(both)}")
    for name, at in ("Open MPI", 1), ("gloo", 2):
        worth = [row[0] / row[at] for row in peers if row[at]]
        if worth:
            print(f"# plan / {name}, measured: geometric mean {mean(worth):.2f}, {min(worth):.2f} to {max(worth):.2f}, "
                  f"of {len(worth)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="topologies/dgx1v.xml", help="of one server, at most 16 GPUs")
    parser.add_argument("--links", default="nvlink", help="the class of links that are made; nvlink")
    parser.add_argument("--ring-links", metavar="LIST", help="of a ring where --links have none, as pcie,qpi")
    parser.add_argument("--alone", action="store_true", help="no rings")
    parser.add_argument("--peers", action="store_true", help="Open MPI and gloo (of TORCH_PYTHON), too")
    parser.add_argument("--sets", nargs="*", default=[], metavar="LIST", help="as 0,2,3; without: of each class one")
    parser.add_argument("--collectives", default="allreduce", help="allreduce, allgather, broadcast, reducescatter, "
                        "alltoall")
    parser.add_argument("--mbit", type=float, default=40, help="of a link of 25 GB/s; 40")
    parser.add_argument("--size", type=int, default=16 << 20, help="bytes; 16 MiB")
    parser.add_argument("--times", type=int, default=2)
    args = parser.parse_args()
    build = os.environ.get("BUILD", "build")
    missing = [name for name in ("ip", "tc") if not shutil.which(name)]
    if missing or os.geteuid() != 0:
        print(f"skipped: {'want iproute2: ' + ', '.join(missing) if missing else 'want root, to make networks'}")
        return 0
    read = subprocess.run([f"{build}/blinkc", "convert", args.topology, "--format", "json"], capture_output=True,
                          text=True)
    if read.returncode:
        print(f"failed: {read.stderr.strip()}")
        return 1
    labs = [Lab(json.loads(read.stdout), args.mbit, links) for links in (args.links, args.ring_links) if links]
    for gpus in args.sets:
        if not all(gpu.isdigit() and int(gpu) < len(labs[0].gpus) for gpu in gpus.split(",")):
            print(f"failed: --sets: {gpus}: want numbers of GPUs from 0 to {len(labs[0].gpus) - 1}, as 0,2,3")
            return 1
    os.nice(PRIORITY)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the networks end, too
    with tempfile.TemporaryDirectory() as folder:
        try:
            for lab in labs:
                lab.open()
            compare(labs, args, build, folder)
        except RuntimeError as error:
            print(f"failed: {error}")
            return 1
        finally:
            for lab in labs:
                lab.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
