"""Blink: Fast and Generic Collectives for Distributed ML. Wang et al., MLSys 2020; arXiv 1910.04940."""
import json
import math
import os

import nccl as source
from figure import Figure, Paper, Table

MB = 10**6
MESSAGE = 1000 * MB             # of the microbenchmarks, and of the figures whose sizes the text does not name
HYBRID = 500 * MB               # for which the time to switch peer access was estimated (topologies/dgx1v.xml)
CHUNKS = 49                     # of a chain (docs/simulator.md)
SIZES = [1 << n for n in range(10, 31)]
NETWORK = [40, 100, 200, 300, 400, 500, 600, 800]      # Gb/s of a server, over its four NICs
# GB/s of an NVLink of a V100, and what Blink's runtime has of each where two trees pass a GPU: its microbenchmarks.
LINK, SHARED_LINK = 25, 18
# us besides hops of NCCL's rings, by Simple, and of double binary trees: src/graph/tuning.cc of NCCL 2.30.7
NCCL_CALL, TREE_CALL = 8.4, 6.8
LL_MOST = 256 << 10


def nccl(lab, schedule, size):
    """us of NCCL's rings."""
    return lab.us(schedule, size, "--parameters", lab.parameters(kernel={"call": NCCL_CALL}))


def runtime(lab, machine, plan):
    """Options for what Blink's runtime reaches of a plan. Its trees have a link each: more than a link's rate is two
    trees. Of P100 nothing is published."""
    with open(plan, encoding="utf-8") as file:
        rate = json.load(file)["rate"]["achieved"]
    shared = machine == "dgx1v" and rate > LINK
    return ("--parameters", lab.parameters(kernel={"efficiency": {"nvlink": SHARED_LINK / LINK}})) if shared else ()


# ---- chains ----

def line(n):
    """A machine whose n GPUs are in a line."""
    links = [{"from": f"gpu{i}", "to": f"gpu{i + 1}", "class": "nvlink", "capacity": 25} for i in range(n - 1)]
    return json.dumps({"format": "blink-topology", "version": 1, "name": f"line{n}",
                       "classes": [{"name": "nvlink", "latency": 3.4}],
                       "nodes": [{"id": "line", "gpus": [{"id": f"gpu{i}"} for i in range(n)]}], "links": links})


CHAINS = {"forward": ("broadcast", "-r", "0"), "reduce and forward": ("reduce", "-r", "0"),
          "reduce and broadcast": ("allreduce",)}


def chain(lab, point):
    collective, *root = CHAINS[point.series]
    schedule = lab.plan(lab.file(line(int(point.x)), ".json"), "-a", "chain", "-c", collective, *root)
    return lab.gb_per_s(schedule, MESSAGE, "--chunk", str(MESSAGE // CHUNKS))


def trees(lab, point):
    return lab.summary("dgx1v", "-c", "broadcast", "-p", "mwu")["trees"]


# ---- chunks ----

def chunk_curves(lab):
    schedule = lab.plan("dgx1v", "-g", "0-3", "-c", "broadcast")
    found = [(1 << n, lab.gb_per_s(schedule, MESSAGE, "--chunk", str(1 << n))) for n in range(14, 29)]
    return {("broadcast over 4 GPUs, 1000 MB", "GB/s"): found}


# ---- sets of GPUs ----

def classes(lab, machine):
    """One set of GPUs of each isomorphism class, as for -g."""
    folder = os.path.join(lab.folder, machine)
    lab.run("batch", "-q", "-j", 1, machine, "-l", "nvlink", "-n", "3-8", "--distinct", "-o", folder)
    with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
        return [",".join(map(str, entry["gpus"])) for entry in json.load(file)["schedules"]]


def rings_2_4(lab, machine, gpus, *options):
    """NCCL 2.4's rings: those of NVLink, and where there is none, over PCIe."""
    base = next(b for b in lab.summary(machine, "-g", gpus, *options)["baselines"] if b["name"] == "nccl-2.4")
    return lab.plan(machine, "-g", gpus, *options, "-a", "ring", "-l", ",".join(base["links"]))


def rates(lab, machine, collective):
    """For each class GB/s of ours and of NCCL 2.4's rings."""
    def both(gpus):
        options = ("-c", collective)
        plan = lab.plan(machine, "-g", gpus, *options)
        return (lab.gb_per_s(plan, MESSAGE, *runtime(lab, machine, plan)),
                MESSAGE / nccl(lab, rings_2_4(lab, machine, gpus, *options), MESSAGE) / 1000)
    return [both(gpus) for gpus in classes(lab, machine)]


def geometric_mean(values):
    return math.prod(values) ** (1 / len(values))


def of_classes(machine, collective):
    def ours(lab, point):
        if point.series == "classes":
            return len(classes(lab, machine))
        ratios = [ours / rings for ours, rings in rates(lab, machine, collective)]
        return max(ratios) if point.series.startswith("most") else geometric_mean(ratios)
    return ours


def class_curves(machine, collective):
    def curves(lab):
        both = sorted(rates(lab, machine, collective), key=lambda pair: pair[0] / pair[1])
        return {("trees", "GB/s"): [(at, ours) for at, (ours, _) in enumerate(both, 1)],
                ("NCCL 2.4's rings", "GB/s"): [(at, rings) for at, (_, rings) in enumerate(both, 1)]}
    return curves


def by_capacity(lab):
    """Figure 14: rates that follow from capacities alone."""
    curves = {}
    for machine in ("dgx1p", "dgx1v"):
        for collective in ("broadcast", "allreduce"):
            ratios = []
            for gpus in classes(lab, machine):
                plan = lab.summary(machine, "-g", gpus, "-c", collective)
                rings = next(b["rate_gb_per_s"] for b in plan["baselines"] if b["name"] == "nccl-2.4")
                ratios.append(plan["rate_gb_per_s"] / rings)
            curves[f"{machine}, {collective}", "x"] = list(enumerate(sorted(ratios), 1))
    return curves


# ---- sets of GPUs, by size ----

BY_SIZE = [("64 KB", 64 << 10), ("1 MB", 1 << 20), ("100 MB", 100 * MB), ("1 GB", 1 << 30)]
# Of docs/simulator.md: us of a call, a step and a hop; what is left of a hop in packets; the part of NVLink's rate.
CALL, STEP, HOP, PACKET_HOP, EFFICIENCY = 3.3, 0.33, 3.4, 0.176, 0.84


def rings_2_8(plan, collective, size):
    """us of NCCL 2.8's rings by formula: a hop through a GPU counts as one. A broadcast fills its chains with the best
    chunk."""
    base = next(b for b in plan["baselines"] if b["name"] == "nccl-2.8")
    packets, allreduce = size <= LL_MOST, collective == "allreduce"
    hops = (plan["topology"]["ranks"] - 1) * (2 if allreduce else 1)
    part = (EFFICIENCY if base["links"] == ["nvlink"] else 1) / (2 if packets else 1)
    moving = size / base["rate_gb_per_s"] / part / 1000
    if packets:
        return CALL + hops * PACKET_HOP * HOP + moving
    filling = 0 if allreduce else 2 * math.sqrt((hops - 1) * STEP * moving)
    return CALL + hops * (STEP + HOP) + moving + filling


def class_ratios(lab, machine, collective, size):
    """For each class, times of NCCL's rings, 2.4's and 2.8's, over that of the algorithm chosen for the size."""
    def ratios(gpus):
        options = ("-g", gpus, "-c", collective)
        plan = lab.summary(machine, *options, "--size", str(size))
        return [us / plan["chosen"]["time_us"] for us in (lab.us(rings_2_4(lab, machine, gpus, "-c", collective), size),
                                                          rings_2_8(plan, collective, size))]
    return list(zip(*lab.map(ratios, classes(lab, machine))))


def by_size_table(lab):
    rows = []
    for machine in ("dgx1v", "dgx1p"):
        for collective in ("broadcast", "allreduce"):
            for name, size in BY_SIZE:
                numbers = [f"{value:.2f}" for found in class_ratios(lab, machine, collective, size)
                           for value in (geometric_mean(found), max(found), min(found))]
                rows.append((machine, collective, name, *numbers))
    return Table(("machine", "collective", "bytes", *(f"{version}: {what}" for version in ("NCCL 2.4", "NCCL 2.8")
                                                      for what in ("mean", "most", "least"))), rows)


# ---- DGX-2 ----

# NCCL 2.4: in one server rings alone (ncclTreeThreshold of src/init.cc), and LL up to 64 bytes for each of 256 threads
# of 12 channels and each rank (src/enqueue.cc). Its constants are those of 2.5.6, the first that has any.
NCCL_2_4 = source.Job("2.5.6", 1, 16, 6, .84 * 150, 0, 150)
NCCL_2_4_LL = 12 * 256 * 16 * 64


def one_hop(lab, size):
    return lab.us(lab.plan("dgx2", "-a", "onehop"), size)


def of_nccl(lab, size):
    protocol = source.LL if size <= NCCL_2_4_LL else source.SIMPLE
    return source.us_of(lab, NCCL_2_4, lab.plan("dgx2", "-a", "ring"), "allreduce", source.RING, protocol, size)


def most_over_nccl(lab, point):
    sizes = SIZES if point.figure == "19" else [size for size in SIZES if size <= LL_MOST]
    return max(of_nccl(lab, size) / one_hop(lab, size) for size in sizes)


def dgx2_curves(unit, sizes):
    def value(us, size):
        return us if unit == "us" else size / us / 1000

    def curves(lab):
        drawn = {("one-hop trees", unit): [(size, value(one_hop(lab, size), size)) for size in sizes]}
        tree, call = lab.plan("dgx2", "-a", "double-binary-tree"), lab.parameters(kernel={"call": TREE_CALL})
        trees_us = [lab.us(tree, size, "--parameters", call) for size in sizes]
        drawn["double binary trees", unit] = [(size, value(us, size)) for size, us in zip(sizes, trees_us)]
        drawn["NCCL 2.4's rings", unit] = [(size, value(of_nccl(lab, size), size)) for size in sizes]
        return drawn
    return curves


# ---- PCIe beside NVLink ----

def hybrid_gain(lab, n):
    options = ("-g", f"0-{n - 1}", "-c", "broadcast")
    plan = lab.plan("dgx1v", *options)
    alone, both = (lab.gb_per_s(one, HYBRID, *runtime(lab, "dgx1v", plan))
                   for one in (plan, lab.plan("dgx1v", *options, "--hybrid")))
    return both - alone


def hybrid_curves(lab):
    return {("gain of PCIe", "GB/s"): [(n, hybrid_gain(lab, n)) for n in range(3, 9)]}


# ---- servers ----

def over_servers(lab, algorithm, network):
    """GB/s that follow from capacities, as the paper projects them."""
    two = lab.topology("--servers", "2", "dgx1v", "--nic-rate", str(network / 8 / 4))
    return lab.summary(two, "-g", "s0:0-2,s1:3-7", "-a", algorithm)["rate_gb_per_s"]


def last_followed(lab, point):
    """The first network with which the rate is within 5 % of what it is with the fastest."""
    found = [over_servers(lab, "threephase", network) for network in NETWORK]
    return next(network for network, rate in zip(NETWORK, found) if rate >= 0.95 * found[-1])


def server_curves(lab):
    return {(name, "GB/s"): [(network, over_servers(lab, algorithm, network)) for network in NETWORK]
            for algorithm, name in (("threephase", "three-phase, as Blink"), ("trees", "trees of any kind"),
                                    ("ring", "rings"))}


# ---- the figures ----

MISSING = "The paper's values are not to be had."
BARS = """\
Messages of 1000 MB, the first GPU of a set as the root. The paper's bars of single sets are not to be had. On V100, trees
that take more than one link of a GPU have 18 of its 25 GB/s, as two trees through a GPU have in the paper's microbenchmarks."""
CHAINS_NOTE = """\
1000 MB in 49 chunks, V100. Not here: two trees through one GPU reached 18 GB/s each, where the model has no limit and
gives 21; figures 15, 17 and 21 take the 18."""
TREES_NOTE = """\
How many trees multiplicative weights give depends on how long one goes on; with `--epsilon 0.05` ours are 49. The same
6 remain."""
CHUNK_NOTE = MISSING + " Ours: the rate by the size of a chunk, which the paper's search climbs."
CAPACITY_NOTE = MISSING + """ Ours, by capacities alone, for each class of 3 to 8 GPUs, NCCL 2.4's rings as the
baseline."""
SIZES_NOTE = """\
Ours alone: how many times as fast as NCCL's rings the algorithm is that blinkc chooses for a size
([choice.md](choice.md)), over the 46 and 14 classes: geometric mean, most and least. Rings of 2.4 are simulated like
ours; those of 2.8, some of whose hops pass a GPU, are counted by a formula in their favour: their rate, one latency for
each hop, and for a broadcast what fills the chain."""
RATE_NOTE = """\
One-hop trees over NCCL 2.4's rings, 1 KB to 1 GB. In one server NCCL has rings alone: its trees are off there, and would be
chains of all GPUs, with as many hops; the chart has double binary trees of GPUs for comparison."""
TIME_NOTE = "The same for small messages, up to 256 KB, which go by LL."
SERVERS_NOTE = "By capacities, as the paper projects. Rings, as NCCL's, are bound by PCIe from 400 Gb/s on."

REDUCE = """\
Where the sets have rings over NVLink, ours gain what the bound promises, as adding is nearly free in the model; Blink's
chains of 8 that reduce and broadcast reached 16 GB/s of a link, where forwarding reached 20. And rings over PCIe are
counted at 6 GB/s."""
SHARED = """\
Two of three GPUs share a PCIe switch, and the third is on the same CPU: PCIe is counted at 12 GB/s among them; the gain
in the paper is that of 6 GB/s."""
NOMINAL = "Messages are divided by nominal rates, of which NVLink reaches 72 % here, and PCIe all."


def set_figure(name, title, machine, collective, causes):
    return Figure(name, title, of_classes(machine, collective), BARS, class_curves(machine, collective), causes,
                  curve_x="class, by ratio")


def dgx2_figure(name, title, note, unit, sizes):
    return Figure(name, title, most_over_nccl, note, dgx2_curves(unit, sizes), curve_x="bytes")


PAPER = Paper("blink", "Blink",
              "Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020, arXiv 1910.04940.",
              2020, "blink.csv", [
    Figure("chains", "chains, microbenchmarks", chain, CHAINS_NOTE,
           calibrates="rates of kernels in [simulator.md](simulator.md) are from these chains"),
    Figure("trees", "number of trees", trees, TREES_NOTE),
    Figure("12", "figure 12, the chunk's size", None, CHUNK_NOTE, chunk_curves, curve_x="bytes of a chunk"),
    Figure("14", "figure 14, trees over rings by capacity", None, CAPACITY_NOTE, by_capacity,
           curve_x="class, by ratio"),
    set_figure("15", "figure 15, broadcast over sets of GPUs of a DGX-1V", "dgx1v", "broadcast", {}),
    set_figure("16", "figure 16, broadcast over sets of GPUs of a DGX-1P", "dgx1p", "broadcast", {}),
    set_figure("17", "figure 17, allreduce over sets of GPUs of a DGX-1V", "dgx1v", "allreduce", {None: REDUCE}),
    Figure("sets", "sets of GPUs of a DGX-1, by size", None, SIZES_NOTE, tables=by_size_table),
    dgx2_figure("19", "figure 19, rate of an allreduce over a DGX-2", RATE_NOTE, "GB/s", SIZES),
    dgx2_figure("20", "figure 20, time of an allreduce over a DGX-2", TIME_NOTE, "us",
                [size for size in SIZES if size <= LL_MOST]),
    Figure("21", "figure 21, PCIe beside NVLink", lambda lab, point: hybrid_gain(lab, int(point.x)),
           "Broadcasts of 500 MB over GPUs 0 to n-1 of a DGX-1V, with the rates of figure 15.", hybrid_curves,
           {None: SHARED, ("gain of PCIe", 8.0): NOMINAL},
           calibrates="times to switch peer access in topologies/dgx1v.xml were estimated from this figure"),
    Figure("22", "figure 22, three GPUs of one server and five of another", last_followed, SERVERS_NOTE, server_curves,
           curve_x="Gb/s of a server"),
])
