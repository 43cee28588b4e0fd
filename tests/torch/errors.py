"""A rank that is killed, stops, is late, calls something else, or aborts: an exception on every other, in time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch._dynamo  # DDP would import it in each rank
import torch.distributed as dist
from harness import init, launch, report

import blink

TIMEOUT = 3.0
SIZE = 4
VICTIM = 2


def joined(rank: int, size: int, folder: str) -> None:
    init(rank, size, folder, timeout=timedelta(seconds=TIMEOUT))
    dist.all_reduce(torch.ones(1))


def failure(call: Callable[[], Any]) -> tuple[str, float]:
    """The exception of a call, and when it came."""
    begin = time.monotonic()
    try:
        call()
    except Exception as reason:
        return f"{type(reason).__name__}: {reason}", time.monotonic() - begin
    return "nothing", time.monotonic() - begin


def waits(rank: int, size: int, folder: str) -> Any:
    return failure(lambda: dist.all_reduce(torch.ones(100_000)))


def killed(rank: int, size: int, folder: str) -> Any:
    joined(rank, size, folder)
    if rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    return waits(rank, size, folder)


def stopped(rank: int, size: int, folder: str) -> Any:
    joined(rank, size, folder)
    if rank == VICTIM:
        os.kill(os.getpid(), signal.SIGSTOP)
    return waits(rank, size, folder)


def late(rank: int, size: int, folder: str) -> Any:
    joined(rank, size, folder)
    if rank == VICTIM:
        time.sleep(2 * TIMEOUT)
    return waits(rank, size, folder)


def ended(rank: int, size: int, folder: str) -> Any:
    """It destroys its group while the others go on."""
    joined(rank, size, folder)
    if rank == VICTIM:
        dist.destroy_process_group()
        return None
    return waits(rank, size, folder)


def other_count(rank: int, size: int, folder: str) -> Any:
    joined(rank, size, folder)
    return failure(lambda: dist.all_reduce(torch.ones(1000 + (rank == VICTIM))))


def other_call(rank: int, size: int, folder: str) -> Any:
    joined(rank, size, folder)
    if rank == VICTIM:
        return failure(lambda: dist.broadcast(torch.ones(1000), 0))
    return failure(lambda: dist.all_reduce(torch.ones(1000)))


def aborted(rank: int, size: int, folder: str) -> Any:
    joined(rank, size, folder)
    if rank == VICTIM:
        time.sleep(0.2)
        dist.group.WORLD.abort()    # type: ignore[union-attr]
    return waits(rank, size, folder)


def in_a_future(rank: int, size: int, folder: str) -> Any:
    joined(rank, size, folder)
    if rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    work: Any = dist.all_reduce(torch.ones(100_000), async_op=True)
    return failure(lambda: work.get_future().wait())


def in_training(rank: int, size: int, folder: str) -> Any:
    """C++ waits for the future."""
    joined(rank, size, folder)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(300, 300))

    def step() -> None:
        model(torch.ones(2, 300)).sum().backward()

    step()
    if rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    return failure(step)


def no_sender(rank: int, size: int, folder: str) -> Any:
    """A message that never comes: from a rank that lives, and from one that died."""
    joined(rank, size, folder)
    if rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    return failure(lambda: dist.recv(torch.ones(1), VICTIM))


def absent(rank: int, size: int, folder: str) -> Any:
    if rank == VICTIM:
        return None
    return failure(lambda: joined(rank, size, folder))


def cases() -> list[tuple[Callable[[int, int, str], Any], str, list[str], float]]:
    """What happens, on every rank but the victim: which exceptions, words of their text, and after how long at most."""
    names = f"rank {VICTIM}"
    return [
        (killed, "RemoteError", [names], TIMEOUT),
        (stopped, "Timeout", [names], TIMEOUT + 3),
        (late, "Timeout", [names], TIMEOUT + 3),
        (ended, "RemoteError", [names], TIMEOUT),
        (other_count, "Mismatch", ["allreduce", "1000", "1001"], TIMEOUT + 3),
        (other_call, "Mismatch", ["allreduce", "broadcast"], TIMEOUT + 3),
        (aborted, "Aborted", [], TIMEOUT),
        (in_a_future, "RuntimeError", ["RemoteError", names], TIMEOUT),
        (in_training, "", [names], TIMEOUT),
        (no_sender, "Timeout", [], TIMEOUT + 3),
        (absent, "Timeout", [], TIMEOUT + 3),
    ]


def main() -> None:
    for function, kind, words, seconds in cases():
        results = launch(SIZE, function, 3 * TIMEOUT + 5)
        wrong = []
        for rank, result in enumerate(results):
            if rank == VICTIM:
                continue
            if not isinstance(result, tuple):
                wrong.append(f"rank {rank}: did not return: {result}")
                continue
            text, after = result
            if not text.startswith(kind) or text == "nothing" or not all(word in text for word in words):
                wrong.append(f"rank {rank}: {text}: want {kind} with {words}")
            if after > seconds:
                wrong.append(f"rank {rank}: after {after:.1f} s: want {seconds} at most")
        name = function.__name__.replace("_", " ")
        report(name, "; ".join(wrong) if wrong else None)


def check_names() -> None:
    """The classes that are looked for are those of the package."""
    for _, kind, _, _ in cases():
        assert kind in ("", "RuntimeError") or issubclass(getattr(blink, kind), blink.BlinkError)


check_names()
main()
