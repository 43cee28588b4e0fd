"""Calls that nobody waits for at once: requests, futures, several groups, messages in any order; ends of groups."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from harness import case, init
from torch._C._distributed_c10d import FileStore

import blink


class Check:
    def __init__(self) -> None:
        self.wrong: list[str] = []

    def __call__(self, name: str, right: bool) -> None:
        if not right:
            self.wrong.append(name)

    def raises(self, name: str, kind: type[BaseException], function: Any, *args: Any, **more: Any) -> None:
        try:
            function(*args, **more)
        except kind:
            return
        except BaseException as reason:
            self.wrong.append(f"{name}: {type(reason).__name__}: {reason}: want {kind.__name__}")
            return
        self.wrong.append(f"{name}: no {kind.__name__}")


def requests(rank: int, size: int, folder: str) -> list[str]:
    """Many calls in the air, waited for in another order, or not at all."""
    init(rank, size, folder)
    check = Check()
    tensors = [torch.full((1000 + i,), float(rank + i)) for i in range(50)]
    works: list[Any] = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i in reversed(range(50)):
        check("wait returns true", works[i].wait() is True)
        check(f"request {i}", bool((tensors[i] == sum(range(size)) + size * i).all()))
        check("is_completed, is_success", works[i].is_completed() and works[i].is_success())
        check("exception", works[i].exception() is None)
        check("result", works[i].result()[0].data_ptr() == tensors[i].data_ptr())
    kept = torch.empty(size * 4)
    for i in range(20):     # the sender's tensor dies while the call runs
        work: Any = dist.all_gather_into_tensor(kept, torch.full((4,), float(rank)), async_op=True)
        gc.collect()
    while not work.is_completed():
        time.sleep(0.001)
    check("tensors live as long as the call", kept.tolist() == [float(i // 4) for i in range(4 * size)])
    strided = torch.full((3, 4), float(rank)).t()
    dist.all_reduce(strided, async_op=True)     # nobody waits: a later call does
    dist.barrier()
    check("a call that nobody waited for", bool((strided == sum(range(size))).all()))
    return check.wrong


def futures(rank: int, size: int, folder: str) -> list[str]:
    init(rank, size, folder)
    check = Check()
    tensor = torch.ones(10)
    work: Any = dist.all_reduce(tensor, async_op=True)
    check("value of a future", work.get_future().wait()[0].data_ptr() == tensor.data_ptr())
    check("the same future", work.get_future() is work.get_future())
    check("a future of what is done", float(work.get_future().value()[0][0]) == size)

    def again(future: Any) -> torch.Tensor:
        """A callback that makes a call and waits for it."""
        value: torch.Tensor = future.value()[0]
        more: Any = dist.all_reduce(value, async_op=True)
        result: torch.Tensor = more.get_future().wait()[0]
        return result

    tensors = [torch.ones(100) for _ in range(4)]
    chained = []
    for tensor in tensors:
        work = dist.all_reduce(tensor, async_op=True)
        chained.append(work.get_future().then(again).then(lambda future: float(future.value()[0])))
        check("callbacks may wait", chained[-1].wait() == size * size)
    many: list[Any] = [dist.all_reduce(torch.ones(10), async_op=True) for _ in range(100)]
    for value in torch.futures.wait_all([work.get_future() for work in many]):
        check("many futures", float(value[0][0]) == size)
    time.sleep(0.1)
    check(f"threads: {threading.active_count()}", threading.active_count() <= 5)
    return check.wrong


def messages(rank: int, size: int, folder: str) -> list[str]:
    """To and from all, in orders in which each waits for the other; with tags; beside collectives."""
    init(rank, size, folder)
    check = Check()
    others = [peer for peer in range(size) if peer != rank]
    sent: list[Any] = [dist.isend(torch.full((i + 1,), 10.0 * rank + i), peer) for i in range(5) for peer in others]
    dist.barrier()
    for i in range(5):
        for peer in reversed(others):
            got = torch.empty(i + 1)
            check("source", dist.recv(got, peer) == peer)
            check(f"message {i} of {peer}", bool((got == 10.0 * peer + i).all()))
    for work in sent:
        work.wait()
    ring = [(rank + 1) % size, (rank - 1) % size]
    for tag in (7, 3):
        dist.isend(torch.full((4,), tag), ring[0], tag=tag)
    for tag in (3, 7):
        whole = torch.empty(4, dtype=torch.int64)
        dist.recv(whole, ring[1], tag=tag)
        check(f"tag {tag}", bool((whole == tag).all()))
    ops = [dist.P2POp(dist.irecv, whole, ring[1]), dist.P2POp(dist.isend, torch.full((4,), rank), ring[0])]
    for request in dist.batch_isend_irecv(ops):
        request.wait()
    check("a batch", bool((whole == ring[1]).all()))
    dist.barrier()
    return check.wrong


def from_anybody(rank: int, size: int, folder: str) -> list[str]:
    """recv without a source, as gloo has it: all messages, of each rank in order; then of one source, another size."""
    init(rank, size, folder)
    check = Check()
    gloo: Any = dist.new_group(backend="gloo")
    for name, group in (("blink", dist.group.WORLD), ("gloo", gloo)):
        for tag in (0, 5):
            if rank:
                time.sleep(0.05 * (rank % 2))
                for i in range(4):
                    dist.send(torch.tensor([float(rank), float(i), float(tag)]), 0, group, tag)
                dist.barrier()
                dist.send(torch.full((1000,), float(rank)), 0, group, tag)
                continue
            seen: dict[int, list[float]] = {r: [] for r in range(1, size)}
            tensors = [torch.empty(3, 2)[:, 0] if name == "blink" else torch.empty(3) for _ in range(4 * (size - 1))]
            works: list[Any] = [dist.irecv(tensor, None, group, tag) for tensor in tensors[:2]]
            sources = [work.wait() and work._source_rank() for work in works]
            sources += [dist.recv(tensor, None, group, tag) for tensor in tensors[2:]]
            for source, tensor in zip(sources, tensors):
                check(f"{name}: source", [int(tensor[0]), int(tensor[2])] == [source, tag])
                seen[source].append(float(tensor[1]))
            for numbers in seen.values():
                check(f"{name}: {seen}", (numbers if name == "blink" else sorted(numbers)) == [0, 1, 2, 3])
            dist.barrier()
            for source in range(1, size):
                long = torch.empty(1000)
                check("then one source", dist.recv(long, source, group, tag) == source and bool((long == source).all()))
        dist.barrier()
    short: Any = dist.new_group(timeout=timedelta(seconds=1))
    if rank == 0:
        check.raises("nobody sends", blink.Timeout, dist.recv, torch.empty(1), None, short)
        work: Any = dist.irecv(torch.empty(1), None, short)
        check.raises("a wait that is too short", blink.Timeout, work.wait, timedelta(milliseconds=50))
        check("not done", not work.is_completed())
        dist.destroy_process_group(short)
        check.raises("a group that ends", blink.Aborted, work.wait)
    check.raises("no elements", ValueError, dist.recv, torch.empty(0))
    dist.barrier()
    return check.wrong


def groups(rank: int, size: int, folder: str) -> list[str]:
    """Subgroups side by side, over other members and in another order; made and destroyed."""
    init(rank, size, folder)
    check = Check()
    halves = [dist.new_group([r for r in range(size) if r % 2 == half]) for half in (0, 1)]
    pairs: list[Any] = [dist.new_group([0, r]) for r in range(1, size)]
    mine: Any = halves[rank % 2]
    works: list[Any] = []
    for i in range(10):
        in_half, in_all = torch.full((100,), float(rank)), torch.full((100,), float(rank))
        works += [
            (dist.all_reduce(in_half, group=mine, async_op=True), in_half, sum(range(rank % 2, size, 2))),
            (dist.all_reduce(in_all, async_op=True), in_all, sum(range(size))),
        ]
    for work, tensor, want in reversed(works):
        work.wait()
        check("groups side by side", bool((tensor == want).all()))
    for r, pair in enumerate(pairs, 1):
        if rank in (0, r):
            tensor = torch.tensor([float(rank)])
            dist.broadcast(tensor, r, group=pair)
            check("root by its global rank", float(tensor) == r)
            dist.destroy_process_group(pair)
    dist.barrier()
    check("name", dist.get_backend() == "blink" == dist.get_backend(mine))
    for i in range(3):      # again, by the same store
        group: Any = dist.new_group()
        dist.all_reduce(tensor := torch.ones(1), group=group)
        check("a group made again", float(tensor) == size)
        dist.destroy_process_group(group)
    with_options: Any = dist.new_group(pg_options=blink.torch.Options(threads=1, timeout=30))
    dist.all_reduce(tensor := torch.ones(1), group=with_options)
    check("options", float(tensor) == size)
    check.raises("other options", TypeError, dist.new_group, pg_options="x")
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    dist.destroy_process_group()
    check("a call that was made before the end", work is not None and work.wait())
    check("twice", not dist.is_initialized())
    init(rank, size, folder + "/.")
    dist.all_reduce(tensor := torch.ones(1))
    check("the default group made again", float(tensor) == size)
    return check.wrong


def splits(rank: int, size: int, folder: str) -> list[str]:
    """split_group: parts in another order, of parts, without some; messages and names in them; beside calls."""
    init(rank, size, folder)
    check = Check()
    early = torch.full((1000,), float(rank))
    work: Any = dist.all_reduce(early, async_op=True)
    parts = [list(range(size))[half::2][::-1] for half in (0, 1)]
    mine, everyone = parts[rank % 2], sum(range(size))
    part: Any = dist.split_group(split_ranks=parts, group_desc="a half")
    work.wait()
    check("a call before the split", bool((early == everyone).all()))
    check("rank in the part", dist.get_rank(part) == mine.index(rank) and part.size() == len(mine))
    check("description", part.group_desc == "a half")
    tensor = torch.full((10,), float(rank))
    dist.all_reduce(tensor, group=part)
    check("sum of the part", bool((tensor == sum(mine)).all()))
    dist.broadcast(tensor := torch.full((3,), float(rank)), mine[0], group=part)
    check("root of the part", bool((tensor == mine[0]).all()))
    if len(mine) > 1 and rank in mine[:2]:
        other = mine[1 - mine.index(rank)]
        sent: Any = dist.isend(torch.tensor([rank]), other, group=part)
        got = torch.empty(1, dtype=torch.int64)
        check("a message", dist.recv(got, other, group=part) == other and int(got) == other)
        sent.wait()
    again: Any = dist.split_group(part, [list(range(len(mine)))], timeout=timedelta(seconds=20))
    dist.all_reduce(tensor := torch.ones(1), group=again)
    check("a part of a part", float(tensor) == len(mine))
    first: Any = dist.split_group(split_ranks=[[0]])
    check("no member", (first is dist.GroupMember.NON_GROUP_MEMBER) == (rank != 0))
    dist.destroy_process_group(part)
    dist.all_reduce(tensor := torch.ones(1))
    check("the whole goes on", float(tensor) == size)
    dist.all_reduce(tensor := torch.ones(1), group=again)
    check("and a part of it", float(tensor) == len(mine))
    check.raises("other options", TypeError, dist.split_group, split_ranks=parts, pg_options="x")
    return check.wrong


def barriers(rank: int, size: int, folder: str) -> list[str]:
    """monitored_barrier, beside gloo's: all pass, or all but those that do not come raise and name them."""
    init(rank, size, folder)
    check = Check()
    gloo: Any = dist.new_group(backend="gloo")
    for i in range(3):
        dist.monitored_barrier(timeout=timedelta(seconds=30), wait_all_ranks=bool(i % 2))
    short = timedelta(seconds=0.5)
    for late, all_ranks, words in [([size - 1], False, f"rank {size - 1}:"), ([1], True, "rank 1:"),
                                   (list(range(1, size)), True, "1" if size == 2 else "ranks 1, 2, 3:")]:
        for group, theirs in ((None, False), (gloo, True)):
            if rank not in late:
                begin, raised = time.monotonic(), ""
                try:
                    dist.monitored_barrier(group, short, all_ranks)
                except RuntimeError as reason:
                    raised = str(reason)
                check(f"late: {late}, gloo {theirs}: {raised}", theirs and raised != "" or words in raised)
                check("in time", time.monotonic() - begin < 15)
            else:
                time.sleep(1.5)
                if not theirs:
                    check.raises("who is late hears it", blink.Timeout, dist.monitored_barrier, None, short)
            dist.barrier()
    return check.wrong


def refused(rank: int, size: int, folder: str) -> list[str]:
    """What is wrong on this rank alone: an exception, and the group lives on."""
    init(rank, size, folder)
    check = Check()
    ones = torch.ones(4)
    check.raises("meta", ValueError, dist.all_reduce, torch.ones(4, device="meta"))
    check.raises("sparse", TypeError, dist.all_reduce, ones.to_sparse())
    if rank == 0:
        check.raises("sizes of a list", ValueError, dist.gather, ones, [torch.ones(3)] * size)
    world: Any = dist.group.WORLD
    check.raises("types", TypeError, world.all_gather_single, torch.ones(4 * size, dtype=torch.int32), ones)
    check.raises("split sizes", ValueError, dist.all_to_all_single, ones, ones, [1] * size, [4] * size)
    check.raises("counts", ValueError, dist.all_gather_into_tensor, torch.ones(4 * size + 1), ones)
    dist.all_reduce(ones)
    check("the group lives on", bool((ones == size).all()))
    late = torch.ones(1)
    if rank == 0:
        work: Any = dist.all_reduce(late, async_op=True)
        check("not done", not work.is_completed())
        check.raises("a wait that is too short", blink.Timeout, work.wait, timedelta(milliseconds=50))
        FileStore(folder + "/other", 2).set("waited", "")
        work.wait()
    else:
        FileStore(folder + "/other", 2).get("waited")
        dist.all_reduce(late)
    check("and waited for again", float(late) == size)
    return check.wrong


def overhead(rank: int, size: int, folder: str) -> list[str]:
    """What Python does for a call: counted, as times depend on the machine. And what a call in one step must not skip:
    calls before it, and a group that ends meanwhile."""
    init(rank, size, folder)
    check = Check()
    tensor, counted = torch.ones(100), 0

    def count(frame: Any, event: str, _: object) -> None:
        nonlocal counted
        counted += event == "call" and "/blink/" in frame.f_code.co_filename

    calls: list[tuple[str, int, Callable[[], Any]]] = [
        ("all_reduce", 9, lambda: dist.all_reduce(tensor)),
        ("broadcast", 30, lambda: dist.broadcast(tensor, 0)),
        ("all_reduce, async", 45, lambda: dist.all_reduce(tensor, async_op=True).wait()),
    ]
    for name, most, call in calls:
        call()
        counted = 0
        sys.setprofile(count)
        call()
        sys.setprofile(None)
        check(f"{name}: {counted} calls of Python: want at most {most}", counted <= most)
    strided = torch.full((3, 4), float(rank)).t()
    dist.all_reduce(strided, async_op=True)
    dist.all_reduce(tensor := torch.ones(4))
    check("all before it are done", bool((strided == sum(range(size))).all()) and float(tensor[0]) == size)
    late: Any = dist.new_group(timeout=timedelta(seconds=20))
    raised: list[str] = []

    def waits() -> None:
        try:
            dist.all_reduce(torch.ones(4), group=late)
        except blink.BlinkError as reason:
            raised.append(type(reason).__name__)

    if rank == 0:
        thread = threading.Thread(target=waits)
        thread.start()
        time.sleep(0.1)
        late.abort()
        thread.join(10)
        check(f"an abort ends a call in one step: {raised}", raised == ["Aborted"])
    dist.barrier()
    return check.wrong


for size in (2, 4):
    for function in (requests, futures, messages, from_anybody, groups, splits, barriers, refused, overhead):
        case(f"{function.__name__}, {size} ranks", size, function, 60)
