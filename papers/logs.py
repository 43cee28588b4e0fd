"""Hardware logs of others: nccl-tests on machines that are shipped, and ForestColl's author."""
from figure import Figure, Paper

LAUNCH = "What it takes to start a call on all GPUs, tens of us and most where one process drives several, is not modelled."
MIDDLE = ("NCCL has fewer channels for messages of this size, and cuts them into chunks of a fixed size, where ours have the "
          "chunk of least time.")
ADDING = ("The model adds at 462 GB/s in each step, from Blink's chains of single links; here several blocks of a kernel add while "
          "others move data, and a reduce is as fast as a broadcast.")
NETWORK = ("The efficiency of the network is that of ABCI, 74 %, measured through hosts; with GPUDirect these logs reach 92 % and more of "
           "nominal rates.")
TREES = "Ours are rings; NCCL takes trees for messages of this size, which have fewer steps."
CHOICE = "The log leaps from 83 GB/s for 512 MB to 117 GB/s for 1 GB, where NCCL changes its algorithm; until then it has the rate of our rings, 79 GB/s."
EFA = "A message of any size takes 160 us over this network, EFA, and its plugin."
MULTICAST = "The model has no limit of what a switch adds, and counts nothing for the kernels that feed it."
RUNTIME = "What ForestColl's runtime, MSCCL, reaches of a plan is not modelled, nor the other kernels on a die."
WHOLE = "Our rings are of whole links, and so there is one; RCCL's rings share links."

MACHINES = {"2 x 8 A100": (2, "dgx-a100"), "4 x DGX A100": (4, "dgx-a100"), "2 x p4de": (2, "p4d")}
KINDS = {"ForestColl": "trees", "Blink": "threephase", "NCCL": "ring"}


def in_its_unit(lab, schedule, point):
    value = lab.us if point.unit == "us" else lab.gb_per_s
    return value(schedule, point.x)


def rings_of(machine, *gpus):
    """NCCL's rings; a series begins with its collective, and may end with a number of GPUs."""
    def ours(lab, point):
        collective, of, number = point.series.partition(" of ")
        chosen = ("-g", f"0-{int(number.split()[0]) - 1}") if of else gpus
        return in_its_unit(lab, lab.plan(machine, *chosen, "-c", collective, "-a", "ring"), point)
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


ROOTED = ("allreduce", "broadcast", "reduce")


def of_one_server():
    found = {(name, size): LAUNCH for name in ROOTED for size in (65536, 1048576)}
    return {**found, **{(name, 16777216): MIDDLE for name in ROOTED}, "reduce": ADDING}


def of_servers():
    found = {(series, size): LAUNCH for series in MACHINES for size in (65536, 1048576)}
    found.update({(series, 16777216): MIDDLE for series in MACHINES})
    found.update({("2 x p4de", size): EFA for size in (65536, 1048576, 16777216)})
    found["2 x 8 A100", 1 << 28] = CHOICE
    return {**found, ("4 x DGX A100", 1048576): TREES, None: NETWORK}


PAPER = Paper("logs", "Hardware logs", "Logs of nccl-tests that others published, beside our simulation of NCCL's rings, and what ForestColl's "
              "author measured of three kinds of trees.", 2024, "logs.csv", [
    Figure("a100", "NCCL on eight A100 of one server", rings_of("dgx-a100"), causes=of_one_server(), pairs=False),
    Figure("dgx2", "NCCL on twelve GPUs of a DGX-2", rings_of("dgx2", "-g", "1,2,6-15"), causes=of_one_server(), pairs=False),
    Figure("dgx1v", "NCCL on eight V100 of one server", rings_of("dgx1v"), pairs=False),
    Figure("h100", "NCCL on eight H100 of one server, bus bandwidth", bus_bandwidth, causes={"in the switch": MULTICAST}),
    Figure("servers", "NCCL on several servers, allreduce", servers, "Ours: rings; with two servers the faster of rings and of three phases, which is what "
           "NCCL's trees are there.", pairs=False, causes=of_servers()),
    Figure("forestcoll-a100", "ForestColl's author, allreduce over two servers of eight A100", forestcoll("dgx-a100"),
           causes={None: NETWORK}),
    Figure("forestcoll-mi250", "ForestColl's author, allreduce over eight dies of each of two servers of MI250",
           forestcoll("mi250", "-g", "s0:0-7,s1:0-7"), causes={None: RUNTIME, "NCCL": WHOLE}),
])
