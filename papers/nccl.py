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
- trees are chains in a server, and a double binary tree over servers.

Not here: NVLS, CollNet, and what a post to the network takes.
"""
import collections
import json
import math

PROTOCOLS = LL, LL128, SIMPLE = "LL", "LL128", "Simple"
RING, TREE = "ring", "tree"
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

# us, [algorithm][protocol]: base of a call, hops over NVLink and over the network. GB/s: ll128 of a channel (2.5: of all),
# by collective; ll of all rings, and tree of a channel (up to 2.7: of all), both for 1, 2 and more servers. ll128_part,
# tree_part and tree_ll: what LL128, trees and trees by LL have of the bandwidth. plateau: times the latency of Simple's
# rings over servers. correction of the bandwidth of trees, [protocol], for powers of two from 64 bytes on.
Version = collections.namedtuple(
    "Version", "base nvlink net ll128_part ll128 ll tree_part tree tree_ll plateau correction")


def costs(tree, ring):
    return {TREE: dict(zip(PROTOCOLS, tree)), RING: dict(zip(PROTOCOLS, ring))}


def corrections(*tenths):
    """Of each protocol a digit for each power of two: tenths, 0 for 1."""
    return {protocol: [int(digit) / 10 or 1 for digit in digits] for protocol, digits in zip(PROTOCOLS, tenths)}


def by_collective(*values):
    return dict(zip(("broadcast", "reduce", "allreduce"), values))


BASE = costs((4.4, 4.4, 0), (3.6, 10, 8.4))
NVLINK = costs((.52, 1.25, 28), (.47, 1.9, 3.4))
NET = costs((5, 8.5, 28), (2.7, 4, 9.6))
LATER = corrections("00009877776544567890000", "00000988876666668999900", "99999998766555567877899")
NONE, LL_MOST = (math.inf,) * 3, (87.7, 22.5, 19)
VERSIONS = {
    "2.5.6": Version(
        costs((4.4, 4.4, 0), (3.6, 3.6, 8.4)), costs((.5, 1.9, 28), (.4, 2.5, 5.7)), costs((5, 7.5, 50), (.9, 2.5, 6.6)),
        .9375, by_collective(113, 72, 100), NONE, .9, (90, 70, 70), 1 / 3, 1,
        corrections("0000987777655567899000", "0000098888777667788990", "9999999876655555566789")),
    "2.7.8": Version(
        BASE, NVLINK, costs((5, 8.5, 50), (2.7, 4, 9.6)), .92, by_collective(18.8, 12, 16.7), NONE, .9, (110, 110, 80),
        1 / 3.8, 1.9, corrections("0000987777654456789000", "0000098887666566778990", "9999999876655555566789")),
    "2.8.4": Version(
        BASE, NVLINK, NET, .92, by_collective(18.8, 12, 16.9), LL_MOST, .92, (24, 22.5, 16), 1 / 3.8, 1.9, LATER),
    "2.20.3": Version(
        costs((6.8, 14, 0), (6.6, 14, 8.4)), costs((.6, 1.25, 28), (.6, 1.9, 3.4)), costs((5, 8.5, 28), (2.7, 4, 14)),
        .92, by_collective(20, 20, 20), LL_MOST, .92, (24, 23.6, 17.8), 1 / 3.8, 1.4, LATER),
}

# channels of NCCL's search, of which NCCL makes two each; ring, tree: GB/s that they have together; capacity: GB/s of a
# GPU's NVLinks; network: us of a hop that the plugin of the network tells NCCL, for its choice alone.
Job = collections.namedtuple(
    "Job", "version servers ranks channels ring tree capacity network protocols", defaults=(0, PROTOCOLS))


def hops(job, collective):
    """Of a ring: all, and those of them between servers."""
    if collective == "allreduce":
        return 2 * (job.ranks - 1), 2 * (job.servers - (job.servers == 1 or job.version != "2.20.3"))
    return job.ranks, job.servers


def rate(job, collective, algorithm, protocol):
    """GB/s of bus bandwidth that NCCL expects."""
    version = VERSIONS[job.version]
    at, of_all = min(job.servers, 3) - 1, job.version == "2.5.6"
    ll128 = version.ll128[collective] * (1 if of_all else job.channels)
    if algorithm == RING:
        part = 1 / 3 if collective == "broadcast" and job.servers == 1 and not of_all else 1 / 4
        return {LL: min(job.ring * part, version.ll[at]), LL128: min(job.ring * version.ll128_part, ll128),
                SIMPLE: job.ring}[protocol]
    tree = min(job.tree * version.tree_part, version.tree[at] * (1 if version.tree[at] > 30 else job.channels))
    if protocol == LL128:
        return min(tree * (7 / 9 if job.servers == 1 else .9375), ll128)
    return min(tree * version.tree_ll, version.ll[at]) if protocol == LL else tree


def expected(job, collective, algorithm, protocol, size):
    """us"""
    version = VERSIONS[job.version]
    nvlink = version.nvlink[algorithm][protocol]
    net = version.net[algorithm][protocol] + job.network * (2 if protocol == SIMPLE else 1)
    bandwidth = rate(job, collective, algorithm, protocol)
    if job.servers > 1 and protocol == LL:
        nvlink *= 1.8
    if algorithm == TREE:
        latency = 2 * ((job.ranks // job.servers - 1) * nvlink + int(math.log2(job.servers)) * net)
        step = (size >> 6).bit_length() - 1
        correction = version.correction[protocol]
        bandwidth *= .5 * (correction[step] if step < len(correction) else 1)
    else:
        all_, between = hops(job, collective)
        latency = (all_ - between) * nvlink + between * net if collective == "allreduce" else nvlink
        if job.servers > 1 and protocol == SIMPLE and size >= job.ranks / 16 * 65536:
            latency *= version.plateau
        bandwidth *= job.ranks / all_
    return version.base[algorithm][protocol] + latency + size / 1000 / bandwidth


def choice(job, collective, size):
    """(algorithm, protocol) of the least expected time."""
    algorithms = (TREE, RING) if collective == "allreduce" else (RING,)
    return min(((algorithm, protocol) for algorithm in algorithms for protocol in job.protocols),
               key=lambda chosen: expected(job, collective, *chosen, size))


def channels(job, algorithm, protocol, size):
    """That are started: fewer where threads would have too few bytes."""
    each = THREADS[protocol] * BYTES[protocol] * (job.ranks if (algorithm, protocol) == (RING, LL) else 1)
    return max(1, min(2 * job.channels, size // each))


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


def us_of(lab, job, schedule, collective, algorithm, protocol, size):
    """us of one of many calls in a row: of a broadcast or reduce the next begins at the root while this one goes on."""
    version = VERSIONS[job.version]
    with open(schedule, encoding="utf-8") as file:
        segments = len(json.load(file)["trees"])
    nvlink, net = version.nvlink[algorithm][protocol], version.net[algorithm][protocol]
    bytes_ = chunk(job, collective, algorithm, protocol, size, segments)
    bandwidth = rate(job, collective, algorithm, protocol)
    kernel = {"call": 0, "packet_most": 0}
    if protocol == LL:
        kernel.update(packet_most=1 << 50, packet_hop=1000000)
        bandwidth = job.ring if algorithm == RING else job.tree
    if protocol == LL128:
        kernel.update(step=0)
    if (algorithm, protocol) == (TREE, SIMPLE):
        nvlink = net = TREE_HOP + channel_chunk(job, algorithm, protocol, size) / TREE_CHUNK / 1000
    elif algorithm == TREE:     # the network takes whole chunks
        net += channel_chunk(job, algorithm, protocol, size) * 2 * job.channels / job.ring / 1000
    elif job.servers > 1:       # each of 2 channels moves its part at the rate of one
        nvlink += bytes_ * segments / job.ranks / bandwidth / 1000 / 2
    if algorithm == TREE:       # NCCL counts that each GPU sends a message up and one down; the ends of chains send one
        bandwidth *= 1 - job.servers / job.ranks
    kernel["efficiency"] = {"nvlink": round(bandwidth / job.capacity, 4),
                            "net": NETWORK * (version.ll128_part if protocol == LL128 else 1)}
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


def trees(lab, machine, servers, heads):
    """A schedule of NCCL's trees: chains of the GPUs of each server, their heads on the network; both trees for each of
    `heads` network cards."""
    with open(lab.plan(machine, "-a", "ring"), encoding="utf-8") as file:
        plan = json.load(file)
    routes, each, found = Routes(plan), len(plan["topology"]["ranks"]) // servers, []
    for tree in parents(servers):
        below = sorted((server for server in range(servers) if tree[server] is not None), key=lambda s: -depth(tree, s))
        for head in range(heads):
            chain = [(head * each // heads + i) % each for i in range(each)]
            edges = [(server * each + chain[i], server * each + chain[i - 1])
                     for i in range(each - 1, 0, -1) for server in range(servers)]
            edges += [(server * each + chain[0], tree[server] * each + chain[0]) for server in below]
            found.append({"segment": [fraction(len(found), 2 * heads), fraction(1, 2 * heads)],
                          "root": tree.index(None) * each + chain[0],
                          "down": [[b, a, routes.path(b, a)] for a, b in reversed(edges)],
                          "up": [[a, b, routes.path(a, b)] for a, b in edges]})
    plan["trees"], plan["rate"]["achieved"] = found, achieved(found, plan["topology"]["links"])
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
