"""Linear Pipeline: Efficient Communications in Training Large Scale Neural Networks. Wang, Wu, Bosilca, Vuduc, Xu,
2016; arXiv 1611.04255."""
import json
import math

from figure import Figure, Paper, Point

MB = 1 << 20

# ---- table 1: formulas, for which there is a switch with a port of each GPU ----

ALPHA, RATE, ADDING, BLOCK = 5, 10, 250, 64 << 10      # us of a message, GB/s of a link, of adding; bytes of a block
COLLECTIVES = ("broadcast", "reduce", "allreduce")
SIZES, COUNTS = (1 * MB, 16 * MB, 64 * MB), (4, 8)


def parameters(lab, at_once):
    kernel = {"call": 0, "step": ALPHA, "at_once": at_once, "reduce": ADDING, "packet_most": 0, "line_most": 0,
              "by_length": 0, "efficiency": {"nvlink": 1}, "latency": {"nvlink": 0}}
    return "--parameters", lab.parameters(kernel=kernel)


def table_1(series, collective, p, n):
    """us of n bytes to or from p GPUs. Beta and gamma are us a byte."""
    beta, gamma, log = 1 / (RATE * 1000), 1 / (ADDING * 1000), math.log2(p)
    if series == "bidirectional exchange":
        first = log + p - 1 if collective == "broadcast" else 2 * log
        adds = 0 if collective == "broadcast" else gamma
        return first * ALPHA + 2 * (p - 1) / p * n * beta + (p - 1) / p * n * adds
    one = {"broadcast": (1, beta), "reduce": (1, beta + gamma), "allreduce": (2, 2 * beta + gamma)}[collective]
    if series == "minimum spanning tree":
        return log * (one[0] * ALPHA + n * one[1])
    return one[0] * (p - 1 + n / BLOCK) * ALPHA + (BLOCK * (p - 1) + n) * one[1]


SERIES = ("bidirectional exchange", "minimum spanning tree", "linear pipeline")
# The algorithm, messages at once, chunks.
OURS = {"bidirectional exchange": ("bidirectional-exchange", 0, "auto"),
        "minimum spanning tree": ("minimum-spanning-tree", 1, "1G"),
        "linear pipeline": ("linear-pipeline", 1, str(BLOCK))}


def formulas(_):
    """Of an allreduce the formula of the linear pipeline is that of a reduce and then a broadcast."""
    return [Point("table-1", series, f"{collective}, {p} GPUs, {n >> 20} MB", "", table_1(series, collective, p, n),
                  "us", "table 1: formula")
            for collective in COLLECTIVES for p in COUNTS for n in SIZES for series in SERIES]


def simulated(lab, point):
    collective, gpus, size = point.x.split(", ")
    algorithm, at_once, chunk = OURS[point.series]
    machine = lab.topology("--synthetic", f"server:1 gpu:{gpus.split()[0]} switch:{RATE}")
    both = ("reduce", "broadcast") if (point.series, collective) == ("linear pipeline", "allreduce") else (collective,)
    return sum(lab.us(lab.plan(machine, "-c", one, "-a", algorithm), int(size.split()[0]) * MB, "--chunk", chunk,
                      *parameters(lab, at_once))
               for one in both)


# ---- figures 3 and 4: K40m on PCIe ----

LARGE = 256 * MB        # of figure 4: about that of the parameters of a network
NAMES = {"linear pipeline": "linear-pipeline", "bidirectional exchange": "bidirectional-exchange",
         "minimum spanning tree": "minimum-spanning-tree"}


def k40m(lab, gpus):
    """Four GPUs on the PCIe switch of a socket, the fifth on another; rates of PCIe as those of a DGX-1P."""
    links = [(f"gpu{i}", "plx0" if i < 4 else "plx1", "pcie", 12) for i in range(gpus)] + [("plx0", "cpu0", "pcie", 12)]
    if gpus > 4:
        links += [("plx1", "cpu1", "pcie", 12), ("cpu0", "cpu1", "qpi", 6)]
    node = {"id": "host", "gpus": [{"id": f"gpu{i}"} for i in range(gpus)], "cpus": [{"id": "cpu0"}, {"id": "cpu1"}],
            "switches": [{"id": "plx0"}, {"id": "plx1"}]}
    return lab.file(json.dumps({"format": "blink-topology", "version": 1, "name": f"k40m-{gpus}",
                                "nodes": [node], "links": [
        {"from": a, "to": b, "class": name, "capacity": rate} for a, b, name, rate in links]}), ".json")


def us(lab, gpus, collective, series, size):
    schedule = lab.plan(k40m(lab, gpus), "-c", collective, "-a", NAMES[series])
    chunk = "1G" if series == "minimum spanning tree" else "auto"
    return lab.us(schedule, size, "--executor", "copy", "--chunk", chunk)


def most_over_exchange(lab, point):
    return max(us(lab, 4, collective, "bidirectional exchange", size) / us(lab, 4, collective, "linear pipeline", size)
               for collective in COLLECTIVES for size in (MB, 16 * MB, LARGE))


def growth(lab, point):
    return us(lab, 4, point.x, "linear pipeline", LARGE) / us(lab, 2, point.x, "linear pipeline", LARGE)


def by_size(lab):
    return {(f"{series}, {collective}", "GB/s"): [(size, size / us(lab, 4, collective, series, size) / 1000)
                                                  for size in [MB << n for n in range(0, 10, 3)]]
            for series in SERIES for collective in ("broadcast", "allreduce")}


def by_count(lab):
    return {(f"{series}, {collective}", "GB/s"): [(p, LARGE / us(lab, p, collective, series, LARGE) / 1000)
                                                  for p in (2, 3, 4, 5)]
            for series in SERIES for collective in ("broadcast", "allreduce")}


PAPER = Paper("linear", "Linear Pipeline", "Wang, Wu, Bosilca, Vuduc and Xu, Efficient Communications in Training "
                                           "Large Scale Neural Networks, 2016, "
              "arXiv 1611.04255.", 2016, "linear.csv", [
    Figure("table-1", "table 1, formulas", simulated, "At 5 us a message, 10 GB/s of a link, 250 GB/s of adding and "
                                                      "blocks of 64 KB, on GPUs below one switch; "
           "the simulator has the same numbers, and no latency. Its allreduce of a linear pipeline goes both ways at "
           "once, and takes half of the formula, "
           "which is that of a reduce and then a broadcast: so is ours here.", points=formulas, formula=True,
           causes={None: "Steps of the exchange overlap here, and wait for each other where several GPUs send to one."}),
    Figure("3", "figure 3, four K40m on PCIe", most_over_exchange, "Which switches the GPUs were on is an estimate; by "
                                                                   "copy engines.", by_size, curve_x="B",
           causes={None: "Up to is of all sizes and collectives of the paper, of which the curves are not at hand."}),
    Figure("4", "figure 4, from two to five K40m", growth, "256 MB. The paper's claim is of GPUs that are equally "
           "connected; the fifth GPU, in the curves of ours, is on the other socket, and the hop to it has half of the "
           "rate of the others.", by_count, curve_x="GPUs", formula=True),
])
