"""A program that opens libnccl.so.2 by its path and looks functions up by name, as vLLM does with VLLM_NCCL_SO_PATH: a
process for each GPU of the CUDA driver.

    by_name.py LIBRARY NEEDED RANKS

NEEDED lists the names. Prints lines `ok NAME`, `not ok NAME: why`."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from array import array
from collections.abc import Callable
from typing import Any

SECONDS = 60
COUNT = 1000
FLOAT32, SUM = 7, 0
SUCCESS = 0


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


POINTER, SIZE, INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
MOVES = [POINTER, POINTER, SIZE, INT]           # from, to, how many, of which type
ENDS = [POINTER, POINTER]                       # communicator, stream
PARAMETERS: dict[str, list[Any]] = {
    "ncclAllGather": MOVES + ENDS,
    "ncclAllReduce": [*MOVES, INT, *ENDS],
    "ncclBroadcast": [*MOVES, INT, *ENDS],
    "ncclCommDestroy": [POINTER],
    "ncclCommInitRank": [POINTER, INT, UniqueId, INT],
    "ncclCommWindowDeregister": [POINTER, POINTER],
    "ncclCommWindowRegister": [POINTER, POINTER, SIZE, POINTER, INT],
    "ncclGetErrorString": [INT],
    "ncclGetUniqueId": [POINTER],
    "ncclGetVersion": [POINTER],
    "ncclGroupEnd": [],
    "ncclGroupStart": [],
    "ncclRecv": [POINTER, SIZE, INT, INT, *ENDS],
    "ncclReduce": [*MOVES, INT, INT, *ENDS],
    "ncclReduceScatter": [*MOVES, INT, *ENDS],
    "ncclSend": [POINTER, SIZE, INT, INT, *ENDS],
}


class Nccl:
    """Its functions; those that do not succeed raise."""

    def __init__(self, path: str, names: list[str]) -> None:
        library = ctypes.CDLL(path)
        self.raw = {name: getattr(library, name) for name in names}
        for name, function in self.raw.items():
            function.argtypes = PARAMETERS[name]
        self.raw["ncclGetErrorString"].restype = ctypes.c_char_p

    def __call__(self, name: str, *arguments: Any) -> None:
        result = self.raw[name](*arguments)
        if result != SUCCESS:
            raise RuntimeError(f"{name}: {self.raw['ncclGetErrorString'](result).decode()}")


class Gpu:
    """A device, by the driver: memory with numbers in it, and a stream."""

    def __init__(self, number: int) -> None:
        self.driver = ctypes.CDLL("libcuda.so.1")
        context = POINTER()
        self.stream = POINTER()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self("cuCtxSetCurrent", context)
        self("cuStreamCreate", ctypes.byref(self.stream), 1)

    def __call__(self, name: str, *arguments: Any) -> None:
        result = getattr(self.driver, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def memory(self, values: list[float]) -> Any:
        data, at = array("f", values), POINTER()
        self("cuMemAlloc_v2", ctypes.byref(at), SIZE(4 * len(values)))
        self("cuMemcpyHtoD_v2", at, POINTER(data.buffer_info()[0]), SIZE(4 * len(values)))
        return at

    def read(self, at: Any, n: int) -> list[float]:
        data = array("f", bytes(4 * n))
        self("cuStreamSynchronize", self.stream)
        self("cuMemcpyDtoH_v2", POINTER(data.buffer_info()[0]), at, SIZE(4 * n))
        return data.tolist()


def values(rank: int, n: int = COUNT) -> list[float]:
    return [float(i % 50 + rank) for i in range(n)]


Call = Callable[[Any, Any], None]


class Rank:
    def __init__(self, nccl: Nccl, gpu: Gpu, rank: int, size: int, id: UniqueId) -> None:
        self.nccl, self.gpu, self.rank, self.size = nccl, gpu, rank, size
        self.comm = POINTER()
        self.wrong: list[str] = []
        nccl("ncclCommInitRank", ctypes.byref(self.comm), size, id, rank)
        self.ends = (self.comm, gpu.stream)

    def call(self, name: str, n: int, want: list[float] | None, call: Call) -> None:
        """`call` with n numbers of its own, and room for what is wanted; None: where it is nothing of this rank."""
        room = len(want) if want is not None else n
        to = self.gpu.memory([-1.0] * room)
        call(self.gpu.memory(values(self.rank, n)), to)
        got = self.gpu.read(to, room)
        if want is not None and got != want:
            self.wrong.append(f"rank {self.rank}: {name}: {got[:4]}: want {want[:4]}")

    def collectives(self) -> None:
        ranks, all = range(self.size), [values(rank) for rank in range(self.size)]
        total = [sum(column) for column in zip(*all)]
        blocks = [sum(column) for column in zip(*(values(rank, COUNT * self.size) for rank in ranks))]
        mine = blocks[COUNT * self.rank : COUNT * (self.rank + 1)]
        root = self.size - 1
        self.call("all_reduce", COUNT, total,
                  lambda a, b: self.nccl("ncclAllReduce", a, b, COUNT, FLOAT32, SUM, *self.ends))  # fmt: skip
        self.call("reduce", COUNT, total if self.rank == root else None,
                  lambda a, b: self.nccl("ncclReduce", a, b, COUNT, FLOAT32, SUM, root, *self.ends))  # fmt: skip
        self.call("broadcast", COUNT, all[root],
                  lambda a, b: self.nccl("ncclBroadcast", a, b, COUNT, FLOAT32, root, *self.ends))  # fmt: skip
        self.call("all_gather", COUNT, sum(all, []),
                  lambda a, b: self.nccl("ncclAllGather", a, b, COUNT, FLOAT32, *self.ends))  # fmt: skip
        self.call("reduce_scatter", COUNT * self.size, mine,
                  lambda a, b: self.nccl("ncclReduceScatter", a, b, COUNT, FLOAT32, SUM, *self.ends))  # fmt: skip

    def ring(self) -> None:
        def exchange(a: Any, b: Any) -> None:
            self.nccl("ncclGroupStart")
            self.nccl("ncclSend", a, COUNT, FLOAT32, (self.rank + 1) % self.size, *self.ends)
            self.nccl("ncclRecv", b, COUNT, FLOAT32, (self.rank - 1) % self.size, *self.ends)
            self.nccl("ncclGroupEnd")

        self.call("send and recv", COUNT, values((self.rank - 1) % self.size), exchange)

    def windows(self) -> None:
        """Memory for symmetric kernels, as vLLM registers it."""
        window = POINTER()
        at = self.gpu.memory(values(0))
        self.nccl("ncclCommWindowRegister", self.comm, at, 4 * COUNT, ctypes.byref(window), 1)
        if not window:
            self.wrong.append(f"rank {self.rank}: ncclCommWindowRegister: no window")
        self.nccl("ncclCommWindowDeregister", self.comm, window)


def child(path: str, names: list[str], rank: int, size: int, ids: Any, answers: Any) -> None:
    signal.alarm(SECONDS)
    try:
        nccl, gpu, id = Nccl(path, names), Gpu(rank), UniqueId()
        if rank == 0:
            nccl("ncclGetUniqueId", ctypes.byref(id))
            for _ in range(size - 1):
                ids.put(bytes(id))
        else:
            id = UniqueId.from_buffer_copy(ids.get())
        one = Rank(nccl, gpu, rank, size, id)
        one.collectives()
        one.ring()
        one.windows()
        nccl("ncclCommDestroy", one.comm)
        answers.put(one.wrong)
    except Exception as reason:
        answers.put([f"rank {rank}: {reason}"])


def main() -> None:
    path, needed, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    signal.alarm(SECONDS + 20)
    with open(needed) as file:
        names = [line.strip() for line in file if not line.startswith("#")]
    context = multiprocessing.get_context("fork")
    ids, answers = context.SimpleQueue(), context.Queue()
    ranks = [context.Process(target=child, args=(path, names, rank, size, ids, answers)) for rank in range(size)]
    for process in ranks:
        process.start()
    wrong = [text for _ in ranks for text in answers.get(timeout=SECONDS)]
    for process in ranks:
        process.join()
    name = f"{os.environ.get('suite', 'nccl')}: functions by name, {size} GPUs"
    print(f"not ok {name}: {wrong[0]}" if wrong else f"ok {name}")


if __name__ == "__main__":
    main()
