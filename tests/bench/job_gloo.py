"""The collectives of tests/bench/job.c by gloo: prints the collective, bytes, and us of a call until all have it.

usage: job_gloo.py RANKS LARGEST
"""
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZES = [8, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20, 128 << 20, 256 << 20]
ROUNDS = 5


def repeats(size):
    return max(1, min(200, (16 << 20) // (size + (64 << 10))))


def measure(call, size):
    rounds = []
    for _ in range(ROUNDS + 1):
        dist.barrier()
        began = time.monotonic()
        for _ in range(repeats(size)):
            call()
        # One clock: all are on one machine.
        last = torch.tensor([time.monotonic(), -began], dtype=torch.float64)
        dist.all_reduce(last, op=dist.ReduceOp.MAX)
        rounds.append(last.sum().item() * 1e6 / repeats(size))
    return statistics.median(rounds[1:])


def run_rank(rank, n, largest, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=n)
    data = torch.ones(largest // 4, dtype=torch.float32)
    for name in "allreduce", "allgather", "broadcast":
        for size in (s for s in SIZES if s <= largest):
            part = data.view(torch.int8)[:max(1, size // n)]
            out = [torch.empty_like(part) for _ in range(n)] if name == "allgather" else None
            calls = {"allreduce": lambda: dist.all_reduce(data[:size // 4]),
                     "allgather": lambda: dist.all_gather(out, part),
                     "broadcast": lambda: dist.broadcast(data[:size // 4], 0)}
            us = measure(calls[name], size)
            if rank == 0:
                print(name, size, f"{us:.3f}", flush=True)
            data.fill_(1)


def main():
    n, largest = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run_rank, (n, largest, os.path.join(folder, "store")), nprocs=n)


if __name__ == "__main__":
    main()
