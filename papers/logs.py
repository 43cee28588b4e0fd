"""Hardware logs of others: nccl-tests on machines that are shipped, and ForestColl's author."""
import functools

from figure import Figure, Paper, read_points

MIDDLE = ("NCCL's protocol, channels and chunks at this size are not published for each version; what a start takes may overlap with the message.")
NETWORK = "Blink's code there is ForestColl's author's; ours has the plan alone, without what a runtime takes."
TREES = "Ours are rings; NCCL takes trees for messages of this size, which have fewer steps."
CHOICE = "The log leaps from 83 GB/s for 512 MB to 117 GB/s for 1 GB, where NCCL changes its algorithm; ours is the faster of rings and trees at each size."
EFA = "A message of any size takes 160 us over this network, EFA, and its plugin."
MULTICAST = "The model has no limit of what a switch adds, and counts nothing for the kernels that feed it."
RUNTIME = "What ForestColl's runtime, MSCCL, reaches of a plan is not modelled, nor the other kernels on a die."
WHOLE = "Our rings, and those that share links, come to the same: they pass between the servers by fewer dies at once than RCCL's may."

MACHINES = {"2 x 8 A100": (2, "dgx-a100"), "4 x DGX A100": (4, "dgx-a100"), "2 x p4de": (2, "p4d")}
KINDS = {"ForestColl": "trees", "Blink": "threephase", "NCCL": "ring"}


SIMPLE = 8 << 20        # bytes: from here on NCCL's ring has no packets, and waits for whole slices
SLICES = 2              # of what a rank passes on at once (NCCL's NCCL_STEPS and slices of its protocol Simple)
SLICE_MOST = 24 << 20   # bytes: a slice of 1 MiB in each of 24 channels


@functools.cache
def smallest():
    """The smallest message of each log: {(figure, series): point}."""
    points = [point for point in read_points("logs.csv") if point.figure.startswith("start-")]
    return {(point.figure.removeprefix("start-"), point.series): point for point in points}


def chunk_of(point, gpus):
    """NCCL's ring allreduce sends a rank's part in slices, which is coarser than our best chunk."""
    slice_ = int(point.x) // gpus // SLICES
    return ("--chunk", str(min(slice_, SLICE_MOST))) if point.series.startswith("allreduce") and point.x >= SIMPLE else ()


def in_its_unit(lab, schedule, point, *options):
    """With what the log's smallest message takes besides its simulation, which is that of the start."""
    us, start = lab.us(schedule, point.x, *options), smallest().get((point.figure.removeprefix("start-"), point.series))
    if start:
        us += max(start.value - lab.us(schedule, start.x), 0)
    return us if point.unit == "us" else point.x / us / 1e3


def rings_of(machine, n, *gpus):
    """NCCL's rings; a series begins with its collective, and may end with a number of GPUs."""
    def ours(lab, point):
        collective, of, number = point.series.partition(" of ")
        chosen = ("-g", f"0-{int(number.split()[0]) - 1}") if of else gpus
        schedule = lab.plan(machine, *chosen, "-c", collective, "-a", "ring")
        return in_its_unit(lab, schedule, point, *chunk_of(point, int(number.split()[0]) if of else n))
    return ours


def bus_bandwidth(lab, point):
    schedule = lab.plan("dgx-h100", "-a", "ring") if point.series == "rings" else lab.plan("dgx-h100-nvls")
    return lab.gb_per_s(schedule, point.x) * 2 * (8 - 1) / 8


def servers(lab, point):
    """NCCL takes rings or trees. Trees of two servers: reduced in each, exchanged over one hop, broadcast in each."""
    n, machine = MACHINES[point.series]
    algorithms = ("ring", "threephase") if n == 2 else ("ring",)
    schedules = [lab.plan(lab.topology("--servers", str(n), machine), "-a", algorithm) for algorithm in algorithms]
    return in_its_unit(lab, min(schedules, key=lambda schedule: lab.us(schedule, point.x)), point)


def forestcoll(machine, *gpus):
    def ours(lab, point):
        schedule = lab.plan(lab.topology("--servers", "2", machine), *gpus, "-a", KINDS[point.series])
        return lab.gb_per_s(schedule, point.x)
    return ours


STARTS = "what a call takes besides its simulation, for the larger messages of the same log; so these points are met by definition."
SEVILLE = "-g", "1,2,6-15"
ROOTED = ("allreduce", "broadcast", "reduce")


def of_one_server():
    return {(name, size): MIDDLE for name in ROOTED for size in (1048576, 16777216)}


def of_servers():
    found = {(series, size): MIDDLE for series in MACHINES for size in (1048576, 16777216)}
    found.update({("2 x p4de", size): EFA for size in (65536, 1048576, 16777216)})
    return {**found, "2 x 8 A100": CHOICE, ("4 x DGX A100", 1048576): TREES}


PAPER = Paper("logs", "Hardware logs", "Logs of nccl-tests that others published, beside our simulation of NCCL's rings, and what ForestColl's "
              "author measured of three kinds of trees.", 2024, "logs.csv", [
    Figure("start-a100", "the start of a call, eight A100 of one server", rings_of("dgx-a100", 8), pairs=False, calibrates=STARTS),
    Figure("a100", "NCCL on eight A100 of one server", rings_of("dgx-a100", 8), causes=of_one_server(), pairs=False),
    Figure("start-dgx2", "the start of a call, twelve GPUs of a DGX-2", rings_of("dgx2", 12, *SEVILLE), pairs=False, calibrates=STARTS),
    Figure("dgx2", "NCCL on twelve GPUs of a DGX-2", rings_of("dgx2", 12, *SEVILLE), causes=of_one_server(), pairs=False),
    Figure("dgx1v", "NCCL on eight V100 of one server", rings_of("dgx1v", 8), pairs=False),
    Figure("h100", "NCCL on eight H100 of one server, bus bandwidth", bus_bandwidth, causes={"in the switch": MULTICAST}),
    Figure("start-servers", "the start of a call, several servers", servers, pairs=False, calibrates=STARTS),
    Figure("servers", "NCCL on several servers, allreduce", servers, "Ours: rings; with two servers the faster of rings and of three phases, which is what "
           "NCCL's trees are there.", pairs=False, causes=of_servers()),
    Figure("forestcoll-a100", "ForestColl's author, allreduce over two servers of eight A100", forestcoll("dgx-a100"),
           causes={None: NETWORK}),
    Figure("forestcoll-mi250", "ForestColl's author, allreduce over eight dies of each of two servers of MI250",
           forestcoll("mi250", "-g", "s0:0-7,s1:0-7"), causes={None: RUNTIME, "NCCL": WHOLE}),
])
