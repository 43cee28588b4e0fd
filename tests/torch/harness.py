"""Ranks as processes, and results as lines `ok NAME`, `not ok NAME: why`.

The parent has imported torch, so that the ranks, which are forked from it, need not. It ends them at a deadline."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

import blink.torch  # noqa: F401  # the backend

SUITE = os.environ.get("suite", "torch")
TIMEOUT = timedelta(seconds=60)
warnings.filterwarnings("ignore", category=FutureWarning)


def report(name: str, why: str | None = None) -> None:
    print(f"ok {SUITE}: {name}" if why is None else f"not ok {SUITE}: {name}: {why}", flush=True)


def init(
    rank: int,
    size: int,
    folder: str,
    backend: str = "blink",
    timeout: timedelta = TIMEOUT,
    device: torch.device | None = None,
) -> None:
    """The default group; ranks meet by a file."""
    store = FileStore(os.path.join(folder, "store"), size)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout, device_id=device)


Ranks = Callable[[int, int, str], Any]


def _child(function: Ranks, rank: int, size: int, folder: str, pipe: Any) -> None:
    torch.set_num_threads(1)
    status, result = 0, None
    try:
        result = function(rank, size, folder)
    except BaseException as reason:
        traceback.print_exc()
        status, result = 1, f"rank {rank}: {type(reason).__name__}: {reason}"
    pipe.send((status, result))
    pipe.close()
    sys.stdout.flush()
    sys.stderr.flush()
    if dist.is_initialized():
        dist.destroy_process_group()
    os._exit(status)


def launch(size: int, function: Ranks, seconds: float = 120) -> list[Any]:
    """What each of `size` ranks returned; a str beginning with "rank" for one that raised, None for one that did not
    return."""
    context = multiprocessing.get_context("fork")
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(size):
            here, there = context.Pipe(False)
            process = context.Process(target=_child, args=(function, rank, size, folder, there))
            process.start()
            there.close()
            ranks.append((process, here))
        results = []
        for process, pipe in ranks:
            try:
                ready = pipe.poll(max(0.0, deadline - time.monotonic()))
                results.append(pipe.recv()[1] if ready else None)
            except EOFError:
                results.append(None)
        for process, _ in ranks:
            process.join(max(1.0, min(10.0, deadline - time.monotonic())))
            if process.is_alive() and process.pid:
                os.kill(process.pid, signal.SIGKILL)
                process.join()
    return results


def case(name: str, size: int, function: Ranks, seconds: float = 120) -> None:
    """It returns a list of what went wrong, on every rank."""
    results = launch(size, function, seconds)
    wrong = [item for result in results if isinstance(result, list) for item in result]
    wrong += [str(result) for result in results if not isinstance(result, list)]
    report(name, f"{len(wrong)} faults: {wrong[0]}" if wrong else None)
