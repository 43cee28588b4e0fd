"""Collectives between the ranks of a job, by libblink.

    import blink
    id = blink.unique_id() if rank == 0 else None       # then give it to the others
    with blink.Communicator(id, rank, size) as comm:
        comm.all_reduce(data).wait()                    # data: numpy, array.array, bytearray, ...

Each call returns at once, with a Call to wait for. Buffers are whatever has the buffer protocol, or a Pointer; the
communicator keeps them alive until the call is done, and they must not be changed or read before. All ranks make the
same calls in the same order. What fails raises BlinkError, on every rank. A Communicator may be used by any threads;
their calls need an order that is the same on all ranks.

blink.torch is a backend of torch.distributed.
"""

from __future__ import annotations

from ._communicator import (
    Buffer,
    Call,
    Communicator,
    Config,
    DataType,
    Op,
    Pointer,
    PreMulSum,
    group,
    unique_id,
    version,
)
from ._errors import (
    Aborted,
    BadInput,
    BlinkError,
    Infeasible,
    InternalError,
    InvalidArgument,
    Limit,
    Mismatch,
    OutOfMemory,
    RemoteError,
    SystemFailure,
    Timeout,
    Unverified,
)

__all__ = [
    "Aborted",
    "BadInput",
    "BlinkError",
    "Buffer",
    "Call",
    "Communicator",
    "Config",
    "DataType",
    "Infeasible",
    "InternalError",
    "InvalidArgument",
    "Limit",
    "Mismatch",
    "Op",
    "OutOfMemory",
    "Pointer",
    "PreMulSum",
    "RemoteError",
    "SystemFailure",
    "Timeout",
    "Unverified",
    "group",
    "unique_id",
    "version",
]
