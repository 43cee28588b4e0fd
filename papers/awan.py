"""Optimized Broadcast for Deep Learning Workloads on Dense-GPU InfiniBand Clusters: MPI or NCCL? Awan, Chu, Subramoni,
Panda, 2017; arXiv 1707.09414."""
from figure import Figure, Paper, Point, Table

KB, MB = 1 << 10, 1 << 20

# ---- formulas, for which every two GPUs have a link ----

START, RATE, CHUNK = 10, 10, 128 * KB           # us of a message, GB/s of a link; bytes of a chunk
COUNTS, SIZES = (8, 16), (64 * KB, 1 * MB, 64 * MB)


def log(k, n):
    rounds = 0
    while k**rounds < n:
        rounds += 1
    return rounds


def us_of(size):
    return size / RATE / 1000


# us for n GPUs and m bytes.
FORMULAS = {
    "direct": lambda n, m: n * (START + us_of(m)),
    "chain": lambda n, m: (n - 1) * (START + us_of(m)),
    "2-nomial": lambda n, m: log(2, n) * (START + us_of(m)),
    "4-nomial": lambda n, m: log(4, n) * (START + us_of(m)),
    "scatter-allgather": lambda n, m: (log(2, n) + n - 1) * START + 2 * (n - 1) / n * us_of(m),
    "pipelined chain": lambda n, m: (max(m / CHUNK, 1) + n - 2) * (START + us_of(min(m, CHUNK))),
}
# The options, messages at once, chunks, machine.
OURS = {
    "direct": (("direct",), 1, "1G", "mesh"), "chain": (("chain",), 1, "1G", "mesh"),
    "2-nomial": (("knomial",), 1, "1G", "mesh"),
    "4-nomial": (("knomial", "--radix", "4"), 3, "1G", "mesh"),
    "scatter-allgather": (("scatter-allgather",), 0, "auto", "switch"),
    "pipelined chain": (("chain",), 1, str(CHUNK), "mesh"),
}


def text_of(size):
    return f"{size // MB} MB" if size >= MB else f"{size // KB} KB"


def formulas(_):
    return [Point("formulas", series, f"{n} GPUs, {text_of(m)}", "", formula(n, m), "us", "section 4: formula")
            for n in COUNTS for m in SIZES for series, formula in FORMULAS.items()]


def simulated(lab, point):
    n, size = ((int(word), unit) for word, unit in (part.split() for part in point.x.split(", ")))
    size = size[0] * {"KB": KB, "MB": MB}[size[1]]
    options, at_once, chunk, net = OURS[point.series]
    kernel = {"call": 0, "step": START, "at_once": at_once, "reduce": 0, "packet_most": 0, "line_most": 0,
              "by_length": 0, "efficiency": {"nvlink": 1}, "latency": {"nvlink": 0}}
    ranks = n[0] + (point.series == "direct")       # whose formula has a message for the root, too
    schedule = lab.plan(lab.topology("--synthetic", f"server:1 gpu:{ranks} {net}:{RATE}"), "-c", "broadcast",
                        "-a", *options)
    return lab.us(schedule, size, "--chunk", chunk, "--parameters", lab.parameters(kernel=kernel))


# ---- which is fastest, and NCCL's chain ----

ALGORITHMS = {
    "direct": ("direct",), "2-nomial": ("knomial",), "4-nomial": ("knomial", "--radix", "4"),
    "8-nomial": ("knomial", "--radix", "8"),
    "scatter-allgather": ("scatter-allgather",), "pipelined chain": ("chain",),
    "host-staged 2-nomial": ("host-staged-knomial",),
    "host-staged 4-nomial": ("host-staged-knomial", "--radix", "4"),
}
TABLE_SIZES = [KB << n for n in range(0, 19, 2)]
KESCH = {2: ("kesch", "0-1"), 4: ("kesch", "0-3"), 8: ("kesch", "0-7"), 16: ("kesch", "0-15"), 32: ("kesch-12", "0-31"),
         64: ("kesch-12", "0-63"), 128: ("kesch-12", "0-127")}


def broadcast(lab, machine, gpus, name, size, executor, links=()):
    """us. A hop that lacks NVLink takes PCIe, as in these libraries."""
    more = () if name.startswith("host") else links
    schedule = lab.plan(machine, "-g", gpus, *more, "-c", "broadcast", "-a", *ALGORITHMS[name])
    return lab.us(schedule, size, "--executor", executor)


def kesch(lab, count, name, size, executor="copy"):
    return broadcast(lab, *KESCH[count], name, size, executor)


def fastest(times):
    """The algorithms of the least time, of several that are equal the first."""
    name = min(times, key=times.get)
    return f"{name}, {times[name]:.4g} us" if times[name] < 1000 else f"{name}, {times[name] / 1000:.4g} ms"


def tabled(lab, columns):
    """A row for each size. columns: a heading, and a function of a name and size that gives us."""
    def row(size):
        return [text_of(size)] + [fastest({name: us(name, size) for name in ALGORITHMS}) for us in columns.values()]
    return Table(["bytes", *columns], lab.map(row, TABLE_SIZES))


def kesch_table(lab):
    return tabled(lab, {f"{n} GPUs": lambda name, size, n=n: kesch(lab, n, name, size) for n in KESCH})


def other_table(lab):
    two = lab.topology("--servers", "2", "dgx-a100")
    return tabled(lab, {
        "DGX-1V": lambda name, size: broadcast(lab, "dgx1v", "0-7", name, size, "kernel",
                                               ("-l", "all", "--routes", "pair")),
        "two DGX A100": lambda name, size: broadcast(lab, two, "0-15", name, size, "kernel")})


def over_nccl(lab, point):
    """NCCL has a ring; MPI the fastest algorithm. Both by kernels, so that algorithms are compared."""
    count = 16 if point.x == "in a server" else 32
    return max(kesch(lab, count, "pipelined chain", size, "kernel")
               / min(kesch(lab, count, name, size, "kernel") for name in ALGORITHMS)
               for size in (KB, 64 * KB, MB, 64 * MB))


def by_size(lab):
    return {(name, "us"): [(size, kesch(lab, 16, name, size)) for size in TABLE_SIZES[::2]] for name in ALGORITHMS}


PAPER = Paper("awan", "Awan et al.", "Awan, Chu, Subramoni and Panda, Optimized Broadcast for Deep Learning Workloads "
                                     "on Dense-GPU InfiniBand Clusters: "
              "MPI or NCCL?, 2017, arXiv 1707.09414; EuroMPI 2018.", 2017, "awan.csv", [
    Figure("formulas", "formulas of broadcasts", simulated, "At 10 us a message, 10 GB/s of a link, and chunks of 128 "
                                                            "KB; a link between every two GPUs, for "
           "scatter-allgather a switch. The simulator has the same numbers, and no latency. The paper's direct "
           "broadcast to n GPUs "
           "has n messages, one for the root itself: so has ours here, of n + 1 GPUs.", points=formulas, formula=True,
           causes={"scatter-allgather": "Steps overlap here, and wait for each other where several GPUs send to one."}),
    Figure("latency", "latency of a broadcast on KESCH", over_nccl, "Ours: NCCL's ring over the fastest algorithm, "
                                                                    "both by kernels: the part that algorithms have in "
                                                                    "it. The chart is by copies.", by_size, curve_x="B",
           causes={None: "What a call of NCCL 1 took of time was most of it for small messages, and is not published; "
                         "nor are "
                         "MVAPICH2-GDR's ways for small messages, GDRCopy and host buffers, modelled."}),
    Figure("kesch", "fastest broadcast on KESCH, by copies", None, "Of direct, k-nomial, scatter-allgather, pipelined "
                                                                   "chain and host-staged k-nomial, with "
           "the chunk of least time; ours alone. A chain without chunks is never faster than one with.",
           tables=kesch_table),
    Figure("others", "fastest broadcast on a DGX-1V and two DGX A100, by kernels", None,
           "The same algorithms. Where two GPUs of a DGX-1V have no NVLink, data "
           "take PCIe.", tables=other_table),
])
