"""The calls of tests/bench/peers.c by gloo: prints the collective, bytes, and us of a call until all have it.

usage: peers_gloo.py RANKS SMALLEST LARGEST [COLLECTIVE [ROUNDS RANK STORE]]

With RANK only this one, which meets the others by the file STORE.
"""
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZES = [8, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20]
ROUNDS = 5


def repeats(size):
    return max(1, min(500, (16 << 20) // (size + (32 << 10))))


def measure(call, size, n_rounds):
    rounds = []
    for _ in range(n_rounds + 1):
        dist.barrier()
        began = time.monotonic()
        for _ in range(repeats(size)):
            call()
        # One clock: all are on one machine.
        last = torch.tensor([time.monotonic(), -began], dtype=torch.float64)
        dist.all_reduce(last, op=dist.ReduceOp.MAX)
        rounds.append(last.sum().item() * 1e6 / repeats(size))
    return statistics.median(rounds[1:])


def calls_of(rank, n, data, size):
    whole, part = data[:size // 4], data.view(torch.int8)[:max(1, size // n)]
    blocks = [torch.empty_like(part) for _ in range(n)]

    def pingpong():
        for i in range(2):
            if rank < 2:
                (dist.send if i == rank else dist.recv)(data.view(torch.int8)[:size], 1 - rank)

    return {"allreduce": lambda: dist.all_reduce(whole), "allgather": lambda: dist.all_gather(blocks, part),
            "broadcast": lambda: dist.broadcast(whole, 0), "reduce": lambda: dist.reduce(whole, 0),
            "gather": lambda: dist.gather(part, blocks if rank == 0 else None, 0),
            "scatter": lambda: dist.scatter(part, blocks if rank == 0 else None, 0), "pingpong": pingpong}


def run_rank(rank, n, smallest, largest, only, n_rounds, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=n)
    data = torch.ones(largest // 4, dtype=torch.float32)
    for size in (s for s in SIZES if smallest <= s <= largest):
        for name, call in calls_of(rank, n, data, size).items():
            if only in ("", name):
                us = measure(call, size, n_rounds)
                if rank == 0:
                    print(name, size, f"{us:.3f}", flush=True)
                data.fill_(1)
    dist.barrier()
    dist.destroy_process_group()


def main():
    n, smallest, largest = (int(word) for word in sys.argv[1:4])
    only = sys.argv[4] if len(sys.argv) > 4 else ""
    if len(sys.argv) > 7:
        run_rank(int(sys.argv[6]), n, smallest, largest, only, int(sys.argv[5]), sys.argv[7])
        return
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run_rank, (n, smallest, largest, only, ROUNDS, os.path.join(folder, "store")), nprocs=n)


if __name__ == "__main__":
    main()
