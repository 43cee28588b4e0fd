"""NCCL by its own source: the algorithm and protocol that it takes for a message, and how these are simulated.

Its choice is that of src/graph/tuning.cc: the least of latency + bytes / bandwidth, by constants of each version. The
protocols differ in flags: LL has them in half of all bytes, LL128 in 8 of 128, Simple one for a chunk. Facts of NCCL
that a simulation takes over:

- latencies of hops and rates are those of the algorithm and protocol; what LL128 and trees lose is part of the rate;
- NCCL counts the 2 (n - 1) hops of a ring's allreduce in full, so a rank's part goes whole, as far as 4 of the 8 steps
  of a connection's buffer take it, though Simple has two slices for each;
- what a channel sends at once otherwise is a step of the buffer, less where a tree would not be filled;
- over servers the links of a GPU are idle for most of a ring's hop, and each channel is one block: it moves its part at
  its own rate;
- of a tree by Simple a block is counted to move a chunk up and a chunk down in turn, though it has threads for each;
  where that takes longer than the links, and by LL128, neither way has what the other leaves idle. This was chosen
  among four such rules with the logs of several servers in view;
- trees by LL128 have the part of their bandwidth that NCCL's authors measured for a size;
- trees are chains in a server, and a double binary tree over servers.

Not here: NVLS, CollNet and PAT. The choice of 2.8.4, 2.19.4 and 2.30.7 is that of src/choice/nccl_model.c, too;
tests/oracle/nccl_model.py holds them to each other.
"""
import collections
import json
import math

PROTOCOLS = LL, LL128, SIMPLE = "LL", "LL128", "Simple"
RING, TREE = "ring", "tree"
COLLECTIVES = "broadcast", "reduce", "allreduce", "allgather", "reducescatter"
GPUS = P100, V100, A100, H100, B200 = "P100", "V100", "A100", "H100", "B200"
INTEL, AMD = "Intel", "AMD"
LOOPS = 20                              # calls of nccl-tests, one after the other, that are timed together
RING_STEPS = 4                          # of 8, that a ring's allreduce sends at once: ALLREDUCE_CHUNKSTEPS
STEPS = {LL: 32 << 10, LL128: 614400, SIMPLE: 512 << 10}        # bytes of a step of a connection
PAYLOAD = {LL: 1 / 2, LL128: 120 / 128, SIMPLE: 1}
TREE_HOP, TREE_CHUNK = 6.2, 12          # us of a tree's hop by Simple, GB/s of its chunk: 28 us are for 256 KiB
NVLINK_HOP, NET_HOP = 3.4, 14.0         # us of a hop by ring and Simple, which the topologies have
AMPERE_MOST = 235                       # GB/s of 300 that eight A100 reach: tuning.cc from 2.7 to 2.18
NETWORK = .92                           # efficiency of a network card, the simulator's
THREADS = {LL: 512, LL128: 640, SIMPLE: 512}
BYTES = {LL: 8, LL128: 8, SIMPLE: 64}   # that each thread of a channel has at least, of a ring's LL for each rank
PCIE = 12                               # GB/s: up to here rings by Simple have half of the threads

# us, [algorithm][protocol]: base of a call, hops over NVLink, PCIe and the network. GB/s of a channel by the GPU for
# one server, two and more: ring_ll128, tree_ll128, tree; of 2.8.4 and before LL128 is by collective. ll_most: GB/s of
# LL in one server. correction of the bandwidth of trees, [protocol], for powers of two from 64 bytes on. rules: see
# RULES.
Version = collections.namedtuple(
    "Version", "base nvlink pci net ring_ll128 tree_ll128 tree ll_most correction rules")

# What versions do in their own way; these are of 2.8.4. most_channels: of a kernel; ring_ll: part of the bandwidth that
# rings have by LL, where data go one way in one server, and else; ring_part: by LL128; tree_part: of trees, tree_ll and
# tree_ll128: also by LL, and by LL128 over servers; tree_all: GB/s of all channels instead of each; alone: part of
# LL128, and of trees, with one GPU in each server; ll_hop: of a hop in a server, over servers; more_hops: of an
# allreduce between servers; plateau: what Simple's rings over servers have times the latency, and from how many bytes
# on; delays: a post to the network counts, and the latency that a plugin states; other_hop: one GPU in each server has
# hops of trees.
RULES = {
    "most_channels": 32, "ring_ll": (1 / 3, 1 / 4), "ring_part": .92, "tree_part": .92, "tree_ll": 1 / 3.8,
    "tree_ll128": .915, "tree_all": None, "alone": (.7, 1), "ll_hop": 1.8, "more_hops": 0,
    "plateau": lambda job: (1.9, 4096 * job.ranks), "a100": AMPERE_MOST, "delays": False, "other_hop": False,
    "ll128": (V100, A100)}
POST = {INTEL: 1, AMD: 2}                               # us; three times that for Simple
LL_OF_CPU = {INTEL: (39, 20.4), AMD: (22.5, 19)}        # GB/s over two servers, and more


def costs(tree, ring):
    return {TREE: dict(zip(PROTOCOLS, tree)), RING: dict(zip(PROTOCOLS, ring))}


def corrections(ll, ll128, simple):
    """Of each protocol two digits or one for each power of two: hundredths or tenths, 0 for 1."""
    return {protocol: [float(f".{digits}") or 1 for digits in text.split()] for protocol, text in
            ((LL, ll), (LL128, ll128), (SIMPLE, simple))}


def by_gpu(volta, ampere, hopper=None, blackwell=None):
    """A generation that is not known is as the one before; where only Ampere is known, others are as Volta."""
    return {P100: volta, V100: volta, A100: ampere, H100: hopper or volta, B200: blackwell or hopper or volta}


def by_collective(*values):
    return {gpu: dict(zip(COLLECTIVES, values)) for gpu in GPUS}


def later_plateau(job):
    return 1.9 if job.gpu in (P100, V100) else 1.4, 64 * all_channels(job) * job.ranks


LATER = RULES | {"tree_ll128": .9375, "alone": (.7, .85), "ll_hop": 1, "more_hops": 2, "plateau": later_plateau,
                 "a100": math.inf, "delays": True, "ll128": (V100, A100, H100)}
NEWEST = LATER | {"most_channels": 64, "ring_ll": (1 / 2, 1 / 2), "alone": (.92, .85), "more_hops": 0,
                  "other_hop": True,
                  "ll128": (V100, A100, H100, B200)}
PCI = costs((1, 1.9, 28), (1, 2.5, 5.7))
NET = costs((5, 8.5, 28), (2.7, 4, 14))
BASE = costs((6.8, 14, 0), (6.6, 14, 8.4))
HOP = costs((.6, 1.25, 28), (.6, 1.9, 3.4))
OF_LL = "0 0 0 0 9 8 7 7 7 7 6 5 4 4 5 6 7 8 9 0 0 0 0"
OF_SIMPLE = "9 9 9 9 9 9 9 8 7 6 6 5 5 5 5 6 7 8 7 7 8 9 9"
CORRECTION = corrections(OF_LL, "0 0 0 0 0 9 8 8 8 7 6 6 6 6 6 6 8 9 9 9 9 0 0", OF_SIMPLE)
NONE = by_gpu(math.inf, math.inf)
V100_TREE, A100_TREE, H100_TREE = (26.5, 18.5, 10), (24, 23.6, 17.8), (38.7, 41.4, 36)
A100_LL128, H100_LL128 = (20, 20, 20), (36.7, 36.7, 29)
VERSIONS = {
    "2.5.6": Version(
        costs((4.4, 4.4, 0), (3.6, 3.6, 8.4)), costs((.5, 1.9, 28), (.4, 2.5, 5.7)), PCI,
        costs((5, 7.5, 50), (.9, 2.5, 6.6)),
        by_collective(113, 72, 100, 110, 91), None, None, NONE,
        corrections("0 0 0 0 9 8 7 7 7 7 6 5 5 5 6 7 8 9 9 0 0 0", "0 0 0 0 0 9 8 8 8 7 7 7 6 6 7 7 8 8 9 9 9 0",
                    "9 9 9 9 9 9 9 8 7 6 6 5 5 5 5 5 5 6 6 7 8 9"),
        RULES | {"ring_ll": (1 / 4, 1 / 4), "ring_part": .9375, "tree_part": .9, "tree_ll": 1 / 3, "tree_ll128": 7 / 9,
                 "tree_all": lambda job, protocol: 70 if job.servers > 1 else 90, "ll_hop": 1}),
    "2.7.8": Version(
        costs((4.4, 4.4, 0), (3.6, 10, 8.4)), costs((.52, 1.2, 28), (.47, 1.9, 3.4)), PCI,
        costs((5, 8.5, 50), (2.7, 4, 9.6)),
        by_collective(18.8, 12, 16.7, 18.3, 14.7), None, None, NONE,
        corrections("0 0 0 0 9 8 7 7 7 7 6 5 4 4 5 6 7 8 9 0 0 0", "0 0 0 0 0 9 8 8 8 7 6 6 6 5 6 6 7 7 8 9 9 0",
                    "9 9 9 9 9 9 9 8 7 6 6 5 5 5 5 5 5 6 6 7 8 9"),
        RULES | {"tree_part": .9, "tree_all": lambda job, protocol: (80 if job.servers > 2 else 110) + (
            (25 if job.servers > 2 else 20) if job.gpu == A100 and protocol == LL128 else 0)}),
    "2.8.4": Version(
        costs((4.4, 4.4, 0), (3.6, 10, 8.4)), costs((.52, 1.25, 28), (.47, 1.9, 3.4)), PCI,
        costs((5, 8.5, 28), (2.7, 4, 9.6)),
        by_collective(18.8, 12, 16.9, 18.3, 15.2), None, by_gpu(V100_TREE, (24, 22.5, 16)), by_gpu(39, 87.7),
        corrections(OF_LL, "0 0 0 0 0 9 8 8 8 7 6 6 6 5 6 6 7 7 8 9 9 92 92", OF_SIMPLE), RULES),
    "2.19.4": Version(
        BASE, HOP, PCI, NET, by_gpu(20, 20, 36.7), by_gpu(A100_LL128, A100_LL128, H100_LL128),
        by_gpu(V100_TREE, A100_TREE, H100_TREE), by_gpu(39, 87.7, 87.7), CORRECTION, LATER),
    "2.30.7": Version(
        costs((6.8, 14, 8.4), (6.6, 14, 8.4)), costs((.6, 1.25, 4), (.6, 1.9, 3.4)), costs((1, 1.9, 4), (1, 2.5, 5.7)),
        costs((5, 8.5, 14), (2.7, 4, 14)), by_gpu(20, 20, 36.7, 40),
        by_gpu(A100_LL128, A100_LL128, H100_LL128, (55.6, 31.67, 20)),
        by_gpu(V100_TREE, A100_TREE, H100_TREE, (70, 42.8, 24)), by_gpu(39, 87.7, 141, 282), CORRECTION, NEWEST),
}
VERSIONS["2.20.3"] = VERSIONS["2.19.4"]

# channels of NCCL's search, of which NCCL makes two each; ring, tree: GB/s that they have together; capacity: GB/s of a
# GPU's NVLinks; network: us of a hop that the plugin of the network tells NCCL, for its choice alone. nvlink: hops in a
# server are over NVLink, through: some pass a GPU of the job; far: network cards are behind a CPU; same: channels have
# one order of GPUs.
Job = collections.namedtuple(
    "Job", "version servers ranks channels ring tree capacity network protocols gpu cpu nvlink through far same",
    defaults=(0, PROTOCOLS, A100, AMD, True, False, False, True))


def scale(job):
    return min(job.servers, 3) - 1


def alone(job):
    """One GPU in each of several servers, or in one."""
    return job.servers == job.ranks


def hops(job, collective):
    """Of a ring: all, and those of them between servers."""
    all_ = {"allreduce": 2 * (job.ranks - 1), "allgather": job.ranks - 1, "reducescatter": job.ranks - 1}
    between = 0
    if job.servers > 1:
        between = job.servers - 1
        if collective == "allreduce":
            between = 2 * between + VERSIONS[job.version].rules["more_hops"]
    return all_.get(collective, job.ranks), between


def all_channels(job):
    """Of kernels: with fast network cards for few GPUs newer versions make four of each, and else two."""
    most, found = VERSIONS[job.version].rules["most_channels"], 2 * job.channels
    found = min(found, most)
    fast = job.servers > 1 and job.ring / job.channels > 45
    if fast and (job.version in ("2.19.4", "2.20.3") and job.gpu == H100 and 2 * found <= most
                 or job.version == "2.30.7" and job.gpu in (H100, B200) and found < 16):
        return 2 * found
    return found


def ll_most(job):
    version = VERSIONS[job.version]
    if job.servers == 1 or version.ll_most[job.gpu] == math.inf:
        return version.ll_most[job.gpu]
    return LL_OF_CPU[job.cpu][scale(job) - 1]


def ring_rate(job, collective, protocol):
    version = VERSIONS[job.version]
    rules = version.rules
    if protocol == LL:
        one_way = job.servers == 1 and collective not in ("allreduce", "reduce")
        return min(job.ring * rules["ring_ll"][not one_way], ll_most(job))
    if protocol == LL128:
        part = rules["alone"][0] if alone(job) else rules["ring_part"]
        return min(job.ring * part, ll128_rate(job, collective))
    return job.ring


def ll128_rate(job, collective):
    """GB/s of all channels of rings, by LL128."""
    most = VERSIONS[job.version].ring_ll128[job.gpu]
    return (most[collective] if isinstance(most, dict) else most) * (1 if job.version == "2.5.6" else job.channels)


def tree_rate(job, collective, protocol):
    version = VERSIONS[job.version]
    rules = version.rules
    most = rules["tree_all"](job, protocol) if rules["tree_all"] else version.tree[job.gpu][scale(job)] * job.channels
    found = min(job.tree * rules["tree_part"], most)
    if protocol == LL:
        found = min(found * rules["tree_ll"], ll_most(job))
    if protocol == LL128:
        most = version.tree_ll128[job.gpu][scale(job)] * job.channels if version.tree_ll128 else ll128_rate(job,
                                                                                                            collective)
        most *= {"2.5.6": math.inf, "2.7.8": 7 / 9}.get(job.version, 1)
        found = min(found * (7 / 9 if job.servers == 1 else rules["tree_ll128"]), most)
    return found * (rules["alone"][1] if alone(job) else 1)


def rate(job, collective, algorithm, protocol):
    """GB/s of bus bandwidth that NCCL expects."""
    if job.gpu == A100:
        most = VERSIONS[job.version].rules["a100"]
        job = job._replace(ring=min(job.ring, most), tree=min(job.tree, most))
    return (ring_rate if algorithm == RING else tree_rate)(job, collective, protocol)


def hop(job, algorithm, protocol):
    """us: in a server, and over the network."""
    version = VERSIONS[job.version]
    slow = not job.nvlink or job.through or job.servers > 1 and alone(job)
    inner = (version.pci if slow else version.nvlink)[algorithm][protocol]
    if job.servers > 1 and protocol == LL:
        inner *= version.rules["ll_hop"]
    net = version.net[TREE if version.rules["other_hop"] and alone(job) else algorithm][protocol]
    return inner, net + job.network * (2 if protocol == SIMPLE else 1) * version.rules["delays"]


def ring_latency(job, collective, protocol):
    version = VERSIONS[job.version]
    (all_, between), (inner, net) = hops(job, collective), hop(job, RING, protocol)
    if collective in ("broadcast", "reduce"):
        table = version.net if job.servers > 1 else version.nvlink if job.nvlink and not job.through else version.pci
        return table[RING][protocol] if job.same else all_ * table[TREE if protocol == SIMPLE else RING][protocol]
    if job.servers > 1 and version.rules["delays"]:
        inner = max(inner, POST[job.cpu] * (3 if protocol == SIMPLE else 1))
    return (all_ - between) * inner + between * net


def correction(job, protocol, size):
    """The part of their bandwidth that trees have for this size, as NCCL's authors measured it."""
    step, of = max((size >> 6).bit_length() - 1, 0), VERSIONS[job.version].correction[protocol]
    return of[step] if step < len(of) else 1


def expected(job, collective, algorithm, protocol, size):
    """us"""
    version, bandwidth = VERSIONS[job.version], rate(job, collective, algorithm, protocol)
    if algorithm == TREE:
        inner, net = hop(job, TREE, protocol)
        latency = 2 * ((job.ranks // job.servers - 1) * inner + int(math.log2(job.servers)) * net)
        bandwidth *= .5 * correction(job, protocol, size)
    else:
        latency = ring_latency(job, collective, protocol)
        times, least = version.rules["plateau"](job)
        if job.servers > 1 and collective == "allreduce" and protocol == SIMPLE and size >= least and job.version != "2.5.6":
            latency = latency * times + (times - 1) * version.base[RING][SIMPLE]
        bandwidth *= job.ranks / hops(job, collective)[0]
    return version.base[algorithm][protocol] + latency + size / 1000 / bandwidth


def served(job, protocol):
    """LL128 is for NVLink, and network cards near their GPUs."""
    if protocol != LL128:
        return protocol in job.protocols
    rules = VERSIONS[job.version].rules
    near = job.nvlink and (rules["delays"] or not job.through) or job.servers > 1 and alone(job)
    return LL128 in job.protocols and job.gpu in rules["ll128"] and near and not (job.servers > 1 and job.far)


def choice(job, collective, size):
    """(algorithm, protocol) of the least expected time."""
    algorithms = (TREE, RING) if collective == "allreduce" else (RING,)
    return min(((algorithm, protocol) for algorithm in algorithms for protocol in PROTOCOLS if served(job, protocol)),
               key=lambda chosen: expected(job, collective, *chosen, size))


def channels(job, algorithm, protocol, size):
    """That are started: fewer where threads would have too few bytes."""
    each = THREADS[protocol] * BYTES[protocol] * (job.ranks if (algorithm, protocol) == (RING, LL) else 1)
    if (algorithm, protocol) == (RING, SIMPLE) and job.ring <= PCIE:    # half of the threads
        each //= 2
    return max(1, min(all_channels(job), size // each))


# ---- the simulation ----

def with_latencies(lab, schedule, nvlink, net):
    """The schedule, with latencies of links so that a hop over NVLink and over the network takes these, us."""
    with open(schedule, encoding="utf-8") as file:
        plan = json.load(file)
    for link in plan["topology"]["links"]:
        times = nvlink / NVLINK_HOP if link["class"] == "nvlink" else net / NET_HOP
        link["latency"] = round(link["latency"] * times, 4)
    return lab.file(json.dumps(plan), ".json")


def channel_chunk(job, algorithm, protocol, size):
    """Bytes that a channel sends at once, but for a ring's allreduce: computeColl of src/enqueue.cc."""
    each, bytes_ = size / (2 * job.channels), STEPS[protocol]
    per_server, levels = job.ranks // job.servers, int(math.log2(job.servers))
    depth, halved = per_server - 1 + levels, 1 + levels + per_server / 10
    rules = {(TREE, SIMPLE): ((8 * depth, 128 << 10), (4 * depth, 64 << 10), (depth, 32 << 10)),
             (TREE, LL128): ((halved * 64 / per_server, 128 << 10), (halved * 16 / per_server, 32 << 10))}
    for chunks, least in rules.get((algorithm, protocol), ()):
        while each // bytes_ < chunks and bytes_ > least:
            bytes_ //= 2
    return min(bytes_ * PAYLOAD[protocol], each)


def chunk(job, collective, algorithm, protocol, size, segments):
    """Bytes of a segment that go at once; auto: as few as are best, as each line of LL and LL128 has its own flag."""
    if (algorithm, collective) == (RING, "allreduce"):
        return max(min(size // segments, RING_STEPS * STEPS[SIMPLE] * 2 * job.channels * job.ranks // segments), 1)
    if protocol != SIMPLE:
        return "auto"
    return int(channel_chunk(job, algorithm, protocol, size)) * 2 * job.channels // segments


def tree_hop(job, size):
    """us of a chunk by Simple in a block."""
    return TREE_HOP + channel_chunk(job, TREE, SIMPLE, size) / TREE_CHUNK / 1000


def block_rate(job, size):
    """GB/s of bus bandwidth of the blocks of a tree by Simple: each chunk goes up and down."""
    return 2 * job.channels * channel_chunk(job, TREE, SIMPLE, size) / tree_hop(job, size) / 1000


def divided(job, protocol, size):
    """Whether the ways up and down of a tree have half of the rate each."""
    return protocol == LL128 or protocol == SIMPLE and block_rate(job, size) < rate(job, "allreduce", TREE, SIMPLE)


def tree_load(plan):
    """The part of a message that a GPU sends up over NVLink, of the one that sends most. NCCL counts all of it; the
    ends of
    chains send none."""
    loads = collections.Counter(number for tree in plan["trees"] for edge in tree["up"] for number in edge[2])
    return max(load for number, load in loads.items()
               if plan["topology"]["links"][number]["class"] == "nvlink") / len(plan["trees"])


def us_of(lab, job, schedule, collective, algorithm, protocol, size):
    """us of one of many calls in a row: of a broadcast or reduce the next begins at the root while this one goes on."""
    version = VERSIONS[job.version]
    with open(schedule, encoding="utf-8") as file:
        plan = json.load(file)
    segments = len(plan["trees"])
    nvlink, net = version.nvlink[algorithm][protocol], version.net[algorithm][protocol]
    bytes_ = chunk(job, collective, algorithm, protocol, size, segments)
    bandwidth = rate(job, collective, algorithm, protocol)
    network = NETWORK * (version.rules["ring_part"] if protocol == LL128 else 1)
    kernel = {"call": 0, "packet_most": 0, "line_most": 0}
    if protocol == LL:
        kernel.update(packet_most=1 << 50, packet_hop=1000000)
        bandwidth = job.ring if algorithm == RING else job.tree
    if protocol == LL128:
        kernel.update(step=0)
    if (algorithm, protocol) == (TREE, SIMPLE):     # halves of links take the time of a chunk, else the hop has to
        net = tree_hop(job, size)
        nvlink = TREE_HOP if divided(job, protocol, size) else net
        bandwidth = min(bandwidth, block_rate(job, size))
    elif algorithm == TREE:     # the network takes whole chunks
        net += channel_chunk(job, algorithm, protocol, size) * 2 * job.channels / job.ring / 1000
    elif job.servers > 1:       # each of 2 channels moves its part at the rate of one
        nvlink += bytes_ * segments / job.ranks / bandwidth / 1000 / 2
    if algorithm == TREE:
        bandwidth *= tree_load(plan)
    if (algorithm, protocol) == (TREE, LL128):
        bandwidth, network = (of * correction(job, protocol, size) for of in (bandwidth, network))
    kernel["efficiency"] = {"nvlink": round(bandwidth / job.capacity, 4), "net": round(network, 4)}
    loops = 1 if collective == "allreduce" else LOOPS
    us = lab.us(with_latencies(lab, schedule, nvlink, net), loops * size, "--chunk", bytes_,
                "--parameters", lab.parameters(kernel=kernel))
    return version.base[RING][protocol] + us / loops


# ---- NCCL's trees over servers ----

def parents(servers):
    """Of each of the two binary trees, the parent of each server or None. The second is the first mirrored, shifted
    for odd counts."""
    def first(rank):
        bit = 1
        while bit < servers and not rank & bit:
            bit <<= 1
        if rank == 0:
            return None
        up = (rank ^ bit) | bit << 1
        return up if up < servers else rank ^ bit

    def second(rank):
        if servers % 2:
            up = first((rank - 1) % servers)
            return None if up is None else (up + 1) % servers
        up = first(servers - 1 - rank)
        return None if up is None else servers - 1 - up
    return [[tree(rank) for rank in range(servers)] for tree in (first, second)]


class Routes:
    """Links from one rank to another: over NVLink in a server, else by the network card nearest to each, of equal ones
    in turn."""

    def __init__(self, plan):
        self.nodes = [rank["node"] for rank in plan["topology"]["ranks"]]
        self.near = [collections.defaultdict(list), collections.defaultdict(list)]      # links from a vertex, and to it
        for number, link in enumerate(plan["topology"]["links"]):
            for near, ends in zip(self.near, (("from", "to"), ("to", "from"))):
                near[link[ends[0]]].append((link[ends[1]], number, link["class"]))

    def path(self, src, dst):
        if self.nodes[src] == self.nodes[dst]:
            return self.ways(src, 0, "nvlink")[0] + self.ways(dst, 1, "nvlink")[0]
        return self.turn(src, self.ways(src, 0, "net")) + self.turn(dst, self.ways(dst, 1, "net"))[::-1]

    def turn(self, rank, ways):
        return ways[(rank - self.nodes.index(self.nodes[rank])) % len(ways)]

    def ways(self, rank, side, last):
        """The shortest paths that end with a link of this class and have no other of NVLink."""
        ways = [([], rank)]
        while ways:
            found = [(path + [number], to, kind) for path, at in ways
                     for to, number, kind in self.near[side][at] if kind in ("pcie", last)]
            ended = [path for path, _, kind in found if kind == last]
            if ended:
                return ended
            ways = [(path, to) for path, to, _ in found if not isinstance(to, int)]
        return []


def halves(links):
    """Makes two links of half the capacity of each link of NVLink; of each link its other half, of others itself."""
    other = list(range(len(links)))
    for number, link in enumerate(list(links)):
        if link["class"] == "nvlink":
            link["capacity"] /= 2
            other[number] = len(links)
            links.append(dict(link))
    return other


def trees(lab, machine, servers, heads, divide=False):
    """A schedule of NCCL's trees: chains of the GPUs of each server, their heads on the network; both trees for each of
    `heads` network cards. divide: the ways up have one half of each link of NVLink, the ways down the other."""
    with open(lab.plan(machine, "-a", "ring"), encoding="utf-8") as file:
        plan = json.load(file)
    routes, each, found = Routes(plan), len(plan["topology"]["ranks"]) // servers, []
    links = plan["topology"]["links"]
    other = halves(links) if divide else range(len(links))
    for tree in parents(servers):
        below = sorted((server for server in range(servers) if tree[server] is not None), key=lambda s: -depth(tree, s))
        for head in range(heads):
            chain = [(head * each // heads + i) % each for i in range(each)]
            edges = [(server * each + chain[i], server * each + chain[i - 1])
                     for i in range(each - 1, 0, -1) for server in range(servers)]
            edges += [(server * each + chain[0], tree[server] * each + chain[0]) for server in below]
            found.append({"segment": [fraction(len(found), 2 * heads), fraction(1, 2 * heads)],
                          "root": tree.index(None) * each + chain[0],
                          "down": [[b, a, [other[link] for link in routes.path(b, a)]] for a, b in reversed(edges)],
                          "up": [[a, b, routes.path(a, b)] for a, b in edges]})
    plan["trees"], plan["rate"]["achieved"] = found, achieved(found, links)
    return lab.file(json.dumps(plan), ".json")


def achieved(found, links):
    """GB/s: until a link is full."""
    loads = collections.Counter(number for tree in found for edge in tree["up"] + tree["down"] for number in edge[2])
    return len(found) / max(load / links[number]["capacity"] for number, load in loads.items())


def depth(tree, server):
    return 0 if tree[server] is None else 1 + depth(tree, tree[server])


def fraction(a, b):
    divisor = math.gcd(a, b)
    return f"{a // divisor}/{b // divisor}"
