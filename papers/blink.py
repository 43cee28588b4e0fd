"""Blink: Fast and Generic Collectives for Distributed ML. Wang et al., MLSys 2020; arXiv 1910.04940."""
import json
import math
import os

from figure import Figure, Paper

MB = 10**6
MESSAGE = 1000 * MB             # of the figures whose sizes the text does not name
CHUNKS = 49                     # of a chain: docs/simulator.md
SIZES = [1 << n for n in range(10, 31)]
TREES_TO = 16 << 10             # NCCL 2.4 takes double binary trees up to this size, then rings
NETWORK = [40, 100, 200, 300, 400, 500, 600, 800]      # Gb/s of a server, over its four NICs


PCIE = "The model of NCCL 2.4 falls to one ring over PCIe at 6 GB/s where a set spans sockets; what the authors' NCCL reached is not published."

LATENCY = "NCCL of that time took longer to start a kernel than the parameters here, and which algorithm it chose is not published for each size."

# ---- chains ----

def line_of(n, capacity):
    """A machine whose n GPUs are in a line."""
    links = [{"from": f"gpu{i}", "to": f"gpu{i + 1}", "class": "nvlink", "capacity": capacity} for i in range(n - 1)]
    return json.dumps({"format": "blink-topology", "version": 1, "name": f"line{n}", "classes": [{"name": "nvlink", "latency": 3.4}],
                       "nodes": [{"id": "line", "gpus": [{"id": f"gpu{i}"} for i in range(n)]}], "links": links})


COLLECTIVES = {"forward": ("broadcast", "-r", "0"), "reduce and forward": ("reduce", "-r", "0"), "reduce and broadcast": ("allreduce",)}


def chain(lab, point):
    collective, *root = COLLECTIVES[point.series]
    schedule = lab.plan(lab.file(line_of(int(point.x), 25), ".json"), "-c", collective, *root)
    return lab.gb_per_s(schedule, MESSAGE, "--chunk", str(MESSAGE // CHUNKS))


def trees(lab, point):
    return lab.summary("dgx1v", "-c", "broadcast", "-p", "mwu")["trees"]


# ---- sets of GPUs ----

def classes(lab, machine):
    """One set of GPUs of each isomorphism class, as for -g."""
    folder = os.path.join(lab.folder, machine)
    lab.run("batch", "-q", "-j", 1, machine, "-l", "nvlink", "-n", "3-8", "--distinct", "-o", folder)
    with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
        return [",".join(map(str, entry["gpus"])) for entry in json.load(file)["schedules"]]


def rings_2_4(lab, machine, gpus, *options):
    """NCCL 2.4's rings: those of NVLink, and without any over PCIe."""
    base = next(b for b in lab.summary(machine, "-g", gpus, *options)["baselines"] if b["name"] == "nccl-2.4")
    return lab.plan(machine, "-g", gpus, *options, "-a", "ring", "-l", ",".join(base["links"]))


def speedups(lab, machine, collective, size):
    """Ours over NCCL 2.4's rings, for each class."""
    def one(gpus):
        options = ("-c", collective)
        ours = lab.plan(machine, "-g", gpus, *options)
        return lab.us(rings_2_4(lab, machine, gpus, *options), size) / lab.us(ours, size)
    return [one(gpus) for gpus in classes(lab, machine)]


def of_classes(machine, collective):
    def ours(lab, point):
        if point.series == "classes":
            return len(classes(lab, machine))
        all_of = speedups(lab, machine, collective, MESSAGE)
        return max(all_of) if point.series.startswith("most") else math.prod(all_of) ** (1 / len(all_of))
    return ours


# ---- DGX-2 ----

def dgx2(lab, algorithm, size):
    """us of an allreduce over all 16 GPUs; NCCL 2.4 has two algorithms."""
    if algorithm == "nccl":
        algorithm = "double-binary-tree" if size <= TREES_TO else "ring"
    return lab.us(lab.plan("dgx2", "-a", algorithm), size)


def dgx2_most(lab, point, sizes):
    return max(dgx2(lab, "nccl", size) / dgx2(lab, "onehop", size) for size in sizes)


def dgx2_curves(value):
    def curves(lab, names=(("onehop", "one-hop trees"), ("double-binary-tree", "double binary trees"), ("ring", "rings"))):
        return {(name, value): [(size, dgx2(lab, algorithm, size) if value == "us" else size / dgx2(lab, algorithm, size) / 1000)
                                for size in SIZES[::2]] for algorithm, name in names}
    return curves


# ---- PCIe beside NVLink ----

def hybrid_gain(lab, point):
    gpus = f"0-{int(point.x) - 1}"
    options = ("-g", gpus, "-c", "broadcast")
    alone, both = (lab.gb_per_s(lab.plan("dgx1v", *options, *more), MESSAGE) for more in ((), ("--hybrid",)))
    return both - alone


# ---- servers ----

def two_servers(lab, network):
    return lab.topology("--servers", "2", "dgx1v", "--nic-rate", str(network / 8 / 4))


def servers(lab, algorithm, network):
    schedule = lab.plan(two_servers(lab, network), "-g", "s0:0-2,s1:3-7", "-a", algorithm)
    return lab.gb_per_s(schedule, 100 * MB)


def last_followed(lab, point):
    """The network beyond which the rate grows by less than 5 % in all."""
    rates = [servers(lab, "threephase", network) for network in NETWORK]
    return next(network for network, rate in zip(NETWORK, rates) if rate >= 0.95 * rates[-1])


def server_curves(lab):
    return {(name, "GB/s"): [(network, servers(lab, algorithm, network)) for network in NETWORK]
            for algorithm, name in (("threephase", "three-phase"), ("trees", "trees"), ("ring", "rings"))}


PAPER = Paper("blink", "Blink", "Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020, arXiv 1910.04940.", 2020,
              "blink.csv", [
    Figure("chains", "chains of GPUs, microbenchmarks", chain),
    Figure("trees", "number of trees", trees),
    Figure("15", "figure 15, broadcast over sets of GPUs of a DGX-1V", of_classes("dgx1v", "broadcast"), causes={None: PCIE}),
    Figure("16", "figure 16, broadcast over sets of GPUs of a DGX-1P", of_classes("dgx1p", "broadcast")),
    Figure("17", "figure 17, allreduce over sets of GPUs of a DGX-1V", of_classes("dgx1v", "allreduce"), causes={None: PCIE}),
    Figure("19", "figure 19, rate of an allreduce over a DGX-2", lambda lab, p: dgx2_most(lab, p, SIZES), curves=dgx2_curves("GB/s"), causes={None: LATENCY}),
    Figure("20", "figure 20, time of an allreduce over a DGX-2", lambda lab, p: dgx2_most(lab, p, SIZES[:7]), curves=dgx2_curves("us"), causes={None: LATENCY}),
    Figure("21", "figure 21, PCIe beside NVLink", hybrid_gain, causes={None: "PCIe is counted at its whole capacity, without what staging costs."}),
    Figure("22", "figure 22, three GPUs of one server and five of another", last_followed, curves=server_curves, causes={None: "The NICs of a DGX-1V share PCIe with the GPUs in our model."}),
])
