"""PyTorch's own backend for GPUs, "nccl", by libblink-nccl in NCCL's place, on virtual GPUs: collectives, types,
messages, groups, memory of ncclMemAlloc, graphs, errors.

PyTorch's kernels are not executed there: tensors are made on the CPU, and what is tried copies them and no more."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from harness import case, init, launch, report

INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
OTHERS = [torch.bool, torch.complex64]
EIGHTS = [torch.float8_e4m3fn, torch.float8_e5m2]
Op = dist.ReduceOp
Part = Callable[["Job"], None]


def values(rank: int, n: int = 12, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small enough that every type has the sums of 4 ranks exactly."""
    return ((torch.arange(n) % 2 + rank) % 4).to(dtype)


class Job:
    def __init__(self, rank: int, size: int, folder: str, bound: bool = False) -> None:
        self.rank, self.size = rank, size
        self.device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(self.device)
        init(rank, size, folder, "nccl", device=self.device if bound else None)
        self.all = [values(r) for r in range(size)]
        self.total = sum(self.all[1:], self.all[0])
        self.wrong: list[str] = []

    def mine(self, n: int = 12, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return values(self.rank, n, dtype).cuda()

    def expect(self, name: str, got: torch.Tensor, want: torch.Tensor) -> None:
        here = got.cpu()
        if here.dtype in EIGHTS:
            here, want = here.view(torch.uint8), want.view(torch.uint8)
        if not torch.equal(here, want):
            self.wrong.append(f"rank {self.rank}: {name}: {here.tolist()[:8]} but want {want.tolist()[:8]}")


def room(n: int = 12) -> torch.Tensor:
    return torch.empty(n, device="cuda")


def reductions(job: Job) -> None:
    for dtype in [*INTEGERS, *FLOATS, *OTHERS, *EIGHTS]:
        x = job.mine(dtype=dtype)
        dist.all_reduce(x)
        job.expect(f"all_reduce of {dtype}", x, job.total.to(dtype))
    stacked = torch.stack(job.all)
    for op, want in ((Op.MIN, stacked.amin(0)), (Op.MAX, stacked.amax(0)), (Op.PRODUCT, stacked.prod(0)),
                     (Op.AVG, job.total / job.size), (Op.PREMUL_SUM, job.total * 0.5)):  # fmt: skip
        x = job.mine()
        which: Any = dist._make_nccl_premul_sum(0.5) if op == Op.PREMUL_SUM else op  # type: ignore[attr-defined]
        dist.all_reduce(x, which)
        job.expect(f"all_reduce, {op}", x, want)
    x = job.mine()
    dist.reduce(x, 1)
    if job.rank == 1:
        job.expect("reduce", x, job.total)
    n, at = 4 * job.size, 4 * job.rank
    want = sum(values(r, n) for r in range(1, job.size)) + values(0, n)
    out, listed = room(4), room(4)
    dist.reduce_scatter_tensor(out, job.mine(n))
    dist.reduce_scatter(listed, list(job.mine(n).chunk(job.size)))
    job.expect("reduce_scatter_tensor", out, want[at : at + 4])
    job.expect("reduce_scatter", listed, want[at : at + 4])
    large = job.mine(300_000)
    dist.all_reduce(large)
    job.expect("all_reduce of 1.2 MB", large, sum(values(r, 300_000) for r in range(1, job.size)) + values(0, 300_000))


def moves(job: Job) -> None:
    x = job.mine()
    dist.broadcast(x, 1)
    job.expect("broadcast", x, job.all[1])
    lists = [room() for _ in range(job.size)]
    dist.all_gather(lists, job.mine())
    uneven = [room(r + 1) for r in range(job.size)]
    dist.all_gather(uneven, job.mine(job.rank + 1))
    for r in range(job.size):
        job.expect("all_gather", lists[r], job.all[r])
        job.expect("all_gather of unequal sizes", uneven[r], values(r, r + 1))
    flat = room(12 * job.size)
    dist.all_gather_into_tensor(flat, job.mine())
    job.expect("all_gather_into_tensor", flat, torch.cat(job.all))
    gathered = [room() for _ in range(job.size)] if job.rank == 0 else None
    dist.gather(job.mine(), gathered, 0)
    for r, got in enumerate(gathered or []):
        job.expect("gather", got, job.all[r])
    x = room()
    dist.scatter(x, [t.cuda() for t in job.all] if job.rank == 1 else None, 1)
    job.expect("scatter", x, job.all[job.rank])
    alltoall(job)


def alltoall(job: Job) -> None:
    n, at = 4 * job.size, 4 * job.rank
    want = [values(r, n)[at : at + 4] for r in range(job.size)]
    out, lists = room(n), [room(4) for _ in range(job.size)]
    dist.all_to_all_single(out, job.mine(n))
    job.expect("all_to_all_single", out, torch.cat(want))
    dist.all_to_all(lists, list(job.mine(n).chunk(job.size)))
    job.expect("all_to_all", torch.cat([t.cpu() for t in lists]), torch.cat(want))
    sizes = [r + 1 for r in range(job.size)]
    begin = sum(sizes[: job.rank])
    out = room(sizes[job.rank] * job.size)
    dist.all_to_all_single(out, job.mine(sum(sizes)), [sizes[job.rank]] * job.size, sizes)
    parts = [values(r, sum(sizes))[begin : begin + sizes[job.rank]] for r in range(job.size)]
    job.expect("all_to_all_single of unequal sizes", out, torch.cat(parts))


def messages(job: Job) -> None:
    ring = [(job.rank + 1) % job.size, (job.rank - 1) % job.size]
    x, out = job.mine(), room()
    for send in (job.rank % 2 == 0, job.rank % 2 != 0):
        if send:
            dist.send(x, ring[0])
        else:
            dist.recv(out, ring[1])
    job.expect("send and recv", out, job.all[ring[1]])
    out = room()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, ring[0]), dist.P2POp(dist.irecv, out, ring[1])]):
        work.wait()
    job.expect("batch_isend_irecv", out, job.all[ring[1]])


def requests(job: Job) -> None:
    many = [job.mine() for _ in range(20)]
    works: list[Any] = [dist.all_reduce(x, async_op=True) for x in many]
    for work in works:
        work.wait()
    manager: Any = dist._coalescing_manager  # type: ignore[attr-defined]
    with manager(device=job.device, async_ops=True) as calls:
        for x in many:
            dist.all_reduce(x, Op.MAX)
    calls.wait()
    for x in many:
        job.expect("requests, and calls in a group", x, job.total)
    dist.barrier()


def groups(job: Job) -> None:
    halves = [list(range(i, job.size, 2)) for i in range(2)]
    want = sum(job.all[r] for r in halves[job.rank % 2])
    made: list[Any] = [dist.new_group(half) for half in halves]
    x = job.mine()
    dist.all_reduce(x, group=made[job.rank % 2])
    job.expect("new_group", x, torch.as_tensor(want))


def split(job: Job) -> None:
    halves = [list(range(i, job.size, 2)) for i in range(2)]
    dist.barrier()  # makes the communicator that is split
    group: Any = dist.split_group(None, halves)
    x = job.mine()
    dist.all_reduce(x, group=group)
    job.expect("split_group", x, torch.as_tensor(sum(job.all[r] for r in halves[job.rank % 2])))


def memory(job: Job) -> None:
    """What PyTorch allocates by ncclMemAlloc, and registers."""
    dist.barrier()
    backend: Any = dist.group.WORLD._get_backend(job.device)  # type: ignore[union-attr]
    if not backend.supports_tensor_alloc(job.device):  # GPUs without multicast objects
        return
    pool: Any = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x = job.mine()
    backend.register_mem_pool(pool)
    dist.all_reduce(x)
    job.expect("memory of ncclMemAlloc", x, job.total)
    backend.deregister_mem_pool(pool)


def one_process(_rank: int, _size: int, _folder: str) -> list[str]:
    """torch.cuda.nccl: all GPUs of one process."""
    nccl: Any = torch.cuda.nccl
    n = torch.cuda.device_count()
    sums, copies = ([values(r).cuda(r) for r in range(n)] for _ in range(2))
    nccl.all_reduce(sums)
    nccl.broadcast(copies, 0)
    want = torch.as_tensor(sum(values(r) for r in range(n)))
    wrong = [f"all_reduce of GPU {r}" for r in range(n) if not torch.equal(sums[r].cpu(), want)]
    return wrong + [f"broadcast to GPU {r}" for r in range(n) if not torch.equal(copies[r].cpu(), values(0))]


def lost(rank: int, size: int, folder: str) -> list[str]:
    """A rank ends: the others learn which."""
    job = Job(rank, size, folder)
    x = job.mine()
    dist.all_reduce(x)
    torch.cuda.synchronize()
    if rank == 1:
        os._exit(0)
    try:
        while True:
            dist.all_reduce(x)
            torch.cuda.synchronize()
    except RuntimeError as reason:
        text = str(reason)
    named = "rank 1 " in text and "has ended without leaving the job" in text
    return [] if named else [f"rank {rank}: {text}"]


def part(function: Part, bound: bool = False) -> Callable[[int, int, str], list[str]]:
    """bound: the default group knows its device, which split_group wants up to PyTorch 2.11, if not longer."""

    def run(rank: int, size: int, folder: str) -> list[str]:
        job = Job(rank, size, folder, bound)
        function(job)
        torch.cuda.synchronize()
        return job.wrong

    return run


def everything(job: Job) -> None:
    for function in (reductions, moves, messages, requests, groups, memory):
        function(job)


if __name__ == "__main__":
    for size in (2, 4):
        case(f"nccl's backend, {size} GPUs", size, part(everything))
    case("nccl's backend, split_group", 4, part(split, bound=True))
    case("torch.cuda.nccl, one process", 1, one_process)
    results = launch(3, lost, 60)
    report("a rank ends, and the others say which", None if results == [[], None, []] else str(results))
