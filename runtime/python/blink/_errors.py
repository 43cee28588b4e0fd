"""What calls of libblink raise: a class for each blinkResult_t."""

from __future__ import annotations

from typing import ClassVar


class BlinkError(RuntimeError):
    """A call of libblink failed. str() is one line: where: what was found: what is wanted."""

    code: ClassVar[int] = 0


class InternalError(BlinkError):
    """A defect of the library."""

    code = 1


class InvalidArgument(BlinkError, ValueError):
    """An argument that the function does not accept."""

    code = 2


class BadInput(BlinkError):
    """A schedule that is not well formed, or is of another version."""

    code = 3


class Limit(BlinkError):
    """An input larger than the library accepts."""

    code = 4


class Infeasible(BlinkError):
    """Ranks of a schedule are not connected, or an index has no such schedule."""

    code = 5


class Unverified(BlinkError):
    """A schedule that does not do what its collective asks."""

    code = 6


class OutOfMemory(BlinkError, MemoryError):
    """Memory cannot be had."""

    code = 7


class SystemFailure(BlinkError):
    """A file, a thread, a device, a network or its driver failed."""

    code = 8


class RemoteError(BlinkError):
    """Another rank failed, ended or left: the text names it."""

    code = 11


class Timeout(BlinkError):
    """Another rank is late or stopped, or does not answer: the text names it."""

    code = 12


class Mismatch(BlinkError):
    """Ranks called different collectives, counts, types or operations, or have different schedules."""

    code = 13


class Aborted(BlinkError):
    """Communicator.abort was called, here or on the rank that the text names."""

    code = 14


IN_PROGRESS = 15

_BY_CODE: dict[int, type[BlinkError]] = {kind.code: kind for kind in BlinkError.__subclasses__()}


def error_of(code: int, text: str) -> BlinkError:
    """The exception for a blinkResult_t that is not blinkSuccess."""
    return _BY_CODE.get(code, InternalError)(text)
