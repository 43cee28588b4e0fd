"""SCCL: Synthesizing Optimal Collective Algorithms. Cai et al., PPoPP 2021; arXiv 2008.08708."""
from figure import Figure, Paper, Point

LINK, RANKS = 25, 8             # GB/s of an NVLink; ranks of a DGX-1V
SIZES = [1 << n for n in range(10, 31, 2)]
# Its Pareto-optimal algorithms: steps, rounds, chunks; of an allgather, chunks of one rank's data.
FRONTIER = {"allgather": [(2, 2, 1), (2, 3, 2), (3, 7, 6)], "allreduce": [(4, 4, 8), (4, 6, 16), (6, 14, 48)]}

# Its cost is steps alpha + rounds / chunks L beta (section 2.3). Both constants are those of our simulator's kernels,
# so that the algorithms differ and not the machine: packets up to 256 KB, at half the rate of the links; else chunks.
CALL, HOP, STEP, EFFICIENCY, PACKET_HOP, PACKET_MOST = 3.3, 3.4, 0.33, 0.84, 0.176, 256 << 10


def cost(collective, size, steps, rounds, chunks):
    """us"""
    packets = size <= PACKET_MOST
    alpha = PACKET_HOP * HOP if packets else HOP + STEP
    rate = EFFICIENCY * LINK / (2 if packets else 1)
    data = size / RANKS if collective == "allgather" else size
    return CALL + steps * alpha + rounds / chunks * data / rate / 1000


def its_best(collective, size):
    return min((cost(collective, size, *algorithm), algorithm) for algorithm in FRONTIER[collective])


def choice(lab, collective, size):
    return lab.chosen("dgx1v", size, "-c", collective)


def frontier(lab, point):
    collective, what = point.series.split(", ")
    if what == "least steps":
        return min(depth for depth in range(1, 9) if reaches(lab, collective, depth))
    plan = lab.summary("dgx1v", "-c", collective, "--max-depth", what.split()[0])
    data = RANKS if collective == "allgather" else 1
    return data * LINK / plan["rate_gb_per_s"]


def reaches(lab, collective, depth):
    try:
        return lab.summary("dgx1v", "-c", collective, "--max-depth", str(depth))["depth"] <= depth
    except RuntimeError:        # no tree is that shallow
        return False


def times(collective):
    def points(lab):
        rows = []
        for size in SIZES:
            us, (steps, rounds, chunks) = its_best(collective, size)
            rows.append(Point(f"{collective}-by-size", "the best of its frontier", float(size), "bytes", us, "us",
                              f"formula of section 2.3: {steps} steps, {rounds} rounds, {chunks} chunks"))
        return rows
    return points


def time_curves(collective):
    def curves(lab):
        return {("least time of any algorithm",
                 "us"): [(size, choice(lab, collective, size)["least_us"]) for size in SIZES]}
    return curves


def time_figure(collective):
    return Figure(f"{collective}-by-size", f"{collective} over a DGX-1V, by size",
                  lambda lab, point: choice(lab, collective, int(point.x))["time_us"],
                  "SCCL's formula with the constants of our simulator, against the algorithm that blinkc chooses for "
                  "the size "
                  "([choice.md](choice.md)), in the simulator, where adding takes time, for which the formula has "
                  "no term.",
                  time_curves(collective), points=times(collective), formula=True, less=True)


FRONTIER_NOTE = """\
Rounds a chunk are the time for a message in units of a link; ours follow from the rate of the best plan no deeper than
the steps."""

PAPER = Paper("sccl", "SCCL", "Cai et al., Synthesizing Optimal Collective Algorithms, PPoPP 2021, arXiv 2008.08708.",
              2021, "sccl.csv", [
    Figure("frontier", "steps and rounds of a DGX-1V", frontier, FRONTIER_NOTE, pairs=False, formula=True, less=True),
    time_figure("allgather"),
    time_figure("allreduce"),
])
