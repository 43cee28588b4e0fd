#!/usr/bin/env python3
"""NCCL's choices by src/choice/nccl_model.c, as tests/nccl_table.c prints them, against papers/nccl.py.

usage: nccl_table | nccl_model.py [N]       of the jobs, one in N

Channels of several servers, expected times, choices, and the channels of kernels are computed again; 2.4.8, which has
no times, is here. Prints what was held to each other.
"""
import collections
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "papers"))
import nccl                                                                                     # noqa: E402

UNTIL_90 = (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12)
FROM_90 = (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12)
FROM_100 = (96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12)
OLD = (42, 30, 24, 21, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12)


def fail(line, why):
    sys.exit(f"nccl_model: {' '.join(line)}: {why}")


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


# ---- channels over servers ----

def speeds(version, gpu):
    if version == "2.8.4":
        return OLD
    if gpu == nccl.B200 and version == "2.30.7":
        return FROM_100
    return FROM_90 if gpu in (nccl.H100, nccl.B200) else UNTIL_90


def fits(speed, channels, cards, card, gpus, total, hop):
    """Do so many channels of this speed fit the network cards, and the GPUs of a server?"""
    if channels > cards * int(card / speed + 1e-9):
        return False
    return gpus == 1 or speed <= hop + 1e-9 and channels * speed * (gpus - 1) / gpus <= total + 1e-6


def found_channels(version, gpu, cards, card, gpus, total, hop):
    if version == "2.4.8":
        found = min(16, cards * (2 if total > 6 else 1))
        return found, cards * card / found, cards * card / found
    most = 32 if version == "2.30.7" else 16
    counts = {speed: max(n for n in range(most + 1) if n == 0 or fits(speed, n, cards, card, gpus, total, hop))
              for speed in speeds(version, gpu)}
    best = (0, 0)
    for speed, count in counts.items():                 # the highest speed first
        if best[0] and (speed <= .49 * best[1] or best[0] * best[1] >= total):
            break
        if count * speed > best[0] * best[1] + 1e-9:
            best = (count, speed)
    count, speed = best
    keeps = version != "2.8.4" and gpu in (nccl.H100, nccl.B200) and speed < 50 and count > 4
    if speed >= 25 and not keeps:
        more = min(2 * count, most)
        speed, count = speed / math.ceil(more / count), more
    tree = speed
    if gpus > 1 and speed in counts:
        higher = [other for other in reversed(speeds(version, gpu)) if other > speed]
        while higher and tree < 2 * speed and fits(higher[0], count, count, 1e9, gpus, total, hop):
            tree = higher.pop(0)
    return count, speed, tree


# ---- 2.4.8 ----

def choice_2_4(job, collective, size):
    """(algorithm, protocol, channels): trees over servers for what they gain in latency; LL for few bytes a thread."""
    gain = 6 * (job.ranks - 1) - 15 * int(math.log2(job.servers)) - 4 * (job.ranks // job.servers - 1)
    tree = collective == "allreduce" and job.servers > 1 and gain > 0
    if tree and not (job.nvlink and job.servers == 2):
        ring = 5000 * (job.channels if job.nvlink else 1)
        part = 3 / 4 if job.nvlink else 2 / 3
        tree = size <= int(ring * part / (1 - part) * gain + 1e-6)
    blocks = 1 if tree or collective in ("broadcast", "reduce") else job.ranks
    threads = next((n for n in (64, 128) if math.ceil(size / (n * blocks)) <= 8), 256)
    channels = min(math.ceil(size / (threads * blocks * 8)), job.channels)
    each = (32 if job.gpu == nccl.P100 else 64) * (4 if tree else 1)
    few = size <= channels * threads * blocks * each
    return nccl.TREE if tree else nccl.RING, nccl.LL if few else nccl.SIMPLE, channels if few else job.channels


# ---- the lines ----

def read_job(fields):
    version, gpu, cpu, servers, ranks, channels, speed, tree, nvlink, through, far, same, latency = fields
    servers, channels = int(servers), int(channels)
    return nccl.Job(version, servers, int(ranks), channels, channels * float(speed),
                    channels * float(tree if servers == 2 else speed), 0, float(latency), nccl.PROTOCOLS, gpu, cpu,
                    nvlink == "1", through == "1", far == "1", same == "1")


def judge_time(job, line):
    collective, algorithm, protocol, size, us = line[1:]
    considered = nccl.served(job, protocol) and (algorithm == nccl.RING or collective == "allreduce")
    want = nccl.expected(job, collective, algorithm, protocol, int(size)) if considered else -1
    if not near(float(us), want):
        fail(line, f"want {want:.9g} us of {job}")
    return want


def judge_choice(job, line, times):
    collective, size, algorithm, protocol, channels, us = line[1:]
    if job.version == "2.4.8":
        want = choice_2_4(job, collective, int(size)) + (0,)
    else:
        chosen = nccl.choice(job, collective, int(size))
        want = (*chosen, nccl.channels(job, *chosen, int(size)), times[collective, size, *chosen])
    if (algorithm, protocol, int(channels)) != want[:3] or not near(float(us), want[3]):
        fail(line, f"want {want} of {job}")


def main():
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    counts, job, times, jobs = collections.Counter(), None, {}, 0
    for text in sys.stdin:
        jobs += text.startswith("job ")
        if jobs % every:
            continue
        line = text.split()
        counts[line[0]] += 1
        if line[0] == "cards":
            version, gpu, cards, card, gpus, total, hop, *found = line[1:]
            want = found_channels(version, gpu, int(cards), float(card), int(gpus), float(total), float(hop))
            if not all(near(float(a), b) for a, b in zip(found, want)):
                fail(line, f"want {want}")
        elif line[0] == "job":
            job, times = read_job(line[1:]), {}
        elif line[0] == "time":
            times[line[1], line[4], line[2], line[3]] = judge_time(job, line)
        else:
            judge_choice(job, line, times)
    leasts = {"cards": 300, "job": 300, "time": 100000, "choice": 30000}
    if any(counts[name] * every < least for name, least in leasts.items()):
        sys.exit(f"nccl_model: only {dict(counts)}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
