"""Hardware logs of others: nccl-tests on machines that are shipped, and ForestColl's author."""
import functools

import nccl
from nccl import Job
from figure import Figure, Paper, read_points

RUNTIME = ("What ForestColl's runtime, MSCCL, reaches of a plan is not modelled, nor the other kernels on a die.")

A100 = nccl.AMPERE_MOST
# In the switch: nvlsEfficiency in tuning.cc of NCCL 2.28.3; a GPU's own part passes the switch, too, 9/8 of a message.
IN_SWITCH = round(.84 * .85 / (1 + 1 / 8), 4)
# What NCCL makes of each machine, by src/graph/search.cc; then the machine's topology, its GPUs, and of several servers
# the network cards of each. Versions: 2.5.6 and 2.8.4 change their protocols at the sizes where the logs leap, the
# manifest of 2 x 8 A100 has 2.19.3, with the constants of 2.20.3, TensorFlow 20.06 has 2.7.5, with those of 2.7.8. On
# p4de aws-ofi-nccl sets NCCL_PROTO, and states a latency of 75 us.
JOBS = {
    "a100": (Job("2.8.4", 1, 8, 12, A100, A100, 300), "dgx-a100"),
    "dgx2": (Job("2.5.6", 1, 12, 6, 126, 126, 150, gpu=nccl.V100), "dgx2", "-g", "1,2,6-15"),
    "dgx1v": (Job("2.20.3", 1, 8, 6, 126, 126, 150, gpu=nccl.V100, same=False), "dgx1v"),
    "2 x 8 A100": (Job("2.20.3", 2, 16, 16, 192, A100, 300), "dgx-a100", 8),
    "4 x DGX A100": (Job("2.7.8", 4, 32, 8, 192, 192, 300), "dgx-a100", 8),
    "2 x p4de": (Job("2.20.3", 2, 16, 4, 48, 96, 300, 75, (nccl.SIMPLE,), cpu=nccl.INTEL), "p4d", 4),
}
# A log that begins at 1 MiB, and one of servers with the same GPUs and CPUs.
START_OF = {"4 x DGX A100": "2 x 8 A100"}
# ForestColl's allreduce is the trees of its allgather, backwards and forwards: to_xml.py of its repository.
# Blink's are those of multiplicative weights from one root, backwards and forwards.
KINDS = {"ForestColl": ("-a", "reducescatter-allgather"), "Blink": ("-p", "mwu"), "NCCL": ("-a", "shared-ring")}
# MI250: 36 of 50 GB/s by Pearson, arXiv 2302.14827, and MI200_XGMI_WIDTH in src/graph/topo.h of RCCL.
EFFICIENCY = {"dgx-a100": {"nvlink": A100 / 300}, "mi250": {"xgmi": 36 / 50}}


@functools.cache
def starts():
    """What a log has of its small messages: {(figure, series): points, the smallest first}."""
    points = [point for point in read_points("logs.csv") if point.figure.startswith("start-")]
    return {(point.figure.removeprefix("start-"), point.series): [other for other in points if other[:2] == point[:2]]
            for point in points}


def started(point, call, channels, other=None):
    """us: with what the smallest message of the log takes besides its simulation. One process starts all GPUs, a
    channel
    of each after the other: no call takes less than that, which two sizes of the log's allreduce tell. call: us of a
    size, channels: of a collective and size. other: the series of another log, where this one has no small messages,
    and its call."""
    us, figure = call(point.x), point.figure.removeprefix("start-")
    series, small = other or (point.series, call)
    start, *_ = starts().get((figure, series), [None])
    if start:
        us += max(start.value - small(start.x), 0)
    first, *second = starts().get((figure, "allreduce"), [None])
    if start and second:
        each = (second[0].value - first.value) / (channels("allreduce", second[0].x) - channels("allreduce", first.x))
        us = max(us, start.value + each * (channels(point.series, point.x) - channels(point.series, start.x)))
    return us


def in_its_unit(us, point):
    return us if point.unit == "us" else point.x / us / 1e3


def one_server(lab, point):
    """A series begins with its collective, and may end with a number of GPUs."""
    job, machine, *gpus = JOBS[point.figure.removeprefix("start-")]
    collective, of, number = point.series.partition(" of ")
    if of:
        job, gpus = job._replace(ranks=int(number.split()[0])), ("-g", f"0-{int(number.split()[0]) - 1}")
    schedule = lab.plan(machine, *gpus, "-c", collective, "-a", "ring")

    def call(size):
        algorithm, protocol = nccl.choice(job, collective, int(size))
        assert algorithm == nccl.RING, (point, size)
        return nccl.us_of(lab, job, schedule, collective, algorithm, protocol, int(size))

    def channels(series, size):
        return nccl.channels(job, *nccl.choice(job, series, int(size)), int(size))
    return in_its_unit(started(point, call, channels), point)


def efficient(lab, of):
    return "--parameters", lab.parameters(kernel={"efficiency": of})


def bus_bandwidth(lab, point):
    if point.series == "rings":
        rate = lab.gb_per_s(lab.plan("dgx-h100", "-a", "ring"), point.x)
    else:
        rate = lab.gb_per_s(lab.plan("dgx-h100-nvls"), point.x, *efficient(lab, {"nvlink": IN_SWITCH}))
    return rate * 2 * (8 - 1) / 8


def call_of(lab, series):
    """us of a size, on several servers."""
    job, machine, heads = JOBS[series]
    cluster = lab.topology("--servers", str(job.servers), machine)

    def call(size):
        algorithm, protocol = nccl.choice(job, "allreduce", int(size))
        if algorithm == nccl.RING:
            schedule = lab.plan(cluster, "-a", "ring")
        else:
            schedule = nccl.trees(lab, cluster, job.servers, heads, nccl.divided(job, protocol, int(size)))
        return nccl.us_of(lab, job, schedule, "allreduce", algorithm, protocol, int(size))
    return call


def servers(lab, point):
    other = START_OF.get(point.series)
    return in_its_unit(started(point, call_of(lab, point.series), None, other and (other, call_of(lab, other))), point)


def forestcoll(machine, *gpus):
    def ours(lab, point):
        schedule = lab.plan(lab.topology("--servers", "2", machine), *gpus, *KINDS[point.series])
        return lab.gb_per_s(schedule, point.x, *efficient(lab, EFFICIENCY[machine]))
    return ours


STARTS = "what a call takes besides its simulation, for the larger messages of the same log; so these points are met by definition."


PAPER = Paper("logs", "Hardware logs", "Logs of nccl-tests that others published, beside our simulation of what NCCL "
                                       "does by its source, and what ForestColl's "
              "author measured of three kinds of trees.", 2024, "logs.csv", [
    Figure("start-a100", "the start of a call, eight A100 of one server", one_server, pairs=False, calibrates=STARTS),
    Figure("a100", "NCCL on eight A100 of one server", one_server, pairs=False),
    Figure("start-dgx2", "the start of a call, twelve GPUs of a DGX-2", one_server, pairs=False, calibrates=STARTS),
    Figure("dgx2", "NCCL on twelve GPUs of a DGX-2", one_server, pairs=False),
    Figure("dgx1v", "NCCL on eight V100 of one server", one_server, pairs=False),
    Figure("h100", "NCCL on eight H100 of one server, bus bandwidth", bus_bandwidth),
    Figure("start-servers", "the start of a call, several servers", servers, pairs=False, calibrates=STARTS),
    Figure("servers", "NCCL on several servers, allreduce", servers, "Ours: rings or NCCL's trees, as it chooses by "
                                                                     "its source. The start of a call is that of the "
           "same log's least message, for four DGX A100 that of the other log of A100, as theirs begins at 1 MiB.",
           pairs=False),
    Figure("forestcoll-a100", "ForestColl's author, allreduce over two servers of eight A100", forestcoll("dgx-a100")),
    Figure("forestcoll-mi250", "ForestColl's author, allreduce over eight dies of each of two servers of MI250",
           forestcoll("mi250", "-g", "s0:0-7,s1:0-7"), causes={None: RUNTIME}),
])
