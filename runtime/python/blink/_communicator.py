"""Communicators and their calls.

libblink lets one thread at a time use a handle, but for waiting, testing and aborting; so each communicator has a lock,
which is held while a call is made and never while one waits. A handle must not be destroyed under a thread that waits:
`close` counts these, and destroys when the last has left.

A buffer belongs to the library until its call is done, also where nobody waits for the call: the communicator keeps the
buffers of calls, and lets go of those that are done whenever a call is made or was waited for.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import itertools
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _library
from ._errors import IN_PROGRESS, BlinkError, InvalidArgument, Timeout, error_of
from ._library import library, unchecked

if TYPE_CHECKING:
    from typing_extensions import Buffer as _Buffer


class DataType(enum.IntEnum):
    """blinkDataType_t"""

    INT8 = 0
    UINT8 = 1
    INT32 = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT8_E4M3 = 10
    FLOAT8_E5M2 = 11

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return _SIZES[self]


class Op(enum.IntEnum):
    """blinkRedOp_t. See also Communicator.pre_mul_sum."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4


_SIZES = dict(zip(DataType, (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)))
# Of elements in the buffer protocol: struct's letters. Those of C's long and int have the size of this platform.
_LETTERS = {
    "b": DataType.INT8, "B": DataType.UINT8, "c": DataType.UINT8, "?": DataType.UINT8,
    "i": DataType.INT32, "I": DataType.UINT32, "q": DataType.INT64, "Q": DataType.UINT64,
    "l": DataType.INT64 if struct.calcsize("l") == 8 else DataType.INT32,
    "L": DataType.UINT64 if struct.calcsize("L") == 8 else DataType.UINT32,
    "e": DataType.FLOAT16, "f": DataType.FLOAT32, "d": DataType.FLOAT64,
}  # fmt: skip
_NATIVE_ORDER = "<" if sys.byteorder == "little" else ">"


@dataclass(slots=True)
class Pointer:
    """`count` elements at an address. `owner`: an object that keeps the memory alive."""

    address: int
    count: int
    dtype: DataType
    owner: object = None


_NOTHING = Pointer(0, 0, DataType.UINT8)

if TYPE_CHECKING:
    Buffer = _Buffer | Pointer
else:
    Buffer = object


@dataclass(frozen=True)
class Config:
    """blinkConfig_t: what is left as it is has the library's default."""

    timeout: float = 0.0
    """Seconds that a rank may wait for others, at init and in a call; 0: BLINK_TIMEOUT, or 600."""
    schedules: str | None = None
    """Indexes and schedule files, separated by ':'; None: BLINK_SCHEDULES."""
    gpu: str | None = None
    """Id or number of this rank's GPU in the machine; None: BLINK_GPU, else the rank's number, or the GPU
    that it has in the communicator that this one is split off from."""
    chunk_bytes: int = 0
    threads: int = 0
    backend: str | None = None
    """Where buffers are: "host", "cuda"; None: BLINK_BACKEND, or "host"."""

    def _as_c(self) -> _library.Config:
        return _library.Config(
            self.chunk_bytes,
            self.threads,
            max(1, round(self.timeout * 1000)) if self.timeout > 0 else 0,
            None if self.schedules is None else self.schedules.encode(),
            None if self.gpu is None else self.gpu.encode(),
            None if self.backend is None else self.backend.encode(),
        )


def version() -> str:
    """The version of libblink."""
    text: bytes = library().blinkVersion()
    return text.decode()


def unique_id() -> bytes:
    """A meeting place for the ranks of one communicator, in this process. To be given to all ranks; holds a secret."""
    uid, error = _library.UniqueId(), _library.Error()
    code = library().blinkGetUniqueId(ctypes.byref(uid), ctypes.byref(error))
    if code:
        raise error_of(code, _text(error.text))
    return bytes(uid)


def _unique_id_of(id: bytes) -> _library.UniqueId:
    if len(id) != _library.UNIQUE_ID_BYTES:
        raise InvalidArgument(f"id: {len(id)} bytes: want the {_library.UNIQUE_ID_BYTES} of unique_id()")
    return _library.UniqueId.from_buffer_copy(id)


def _text(text: bytes) -> str:
    return text.decode(errors="replace")


def pointer(buffer: Buffer, dtype: DataType | None = None, *, writable: bool) -> Pointer:
    """Where a buffer's elements are. dtype: what they are, if the buffer does not say it."""
    if isinstance(buffer, Pointer):
        return buffer
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise InvalidArgument("buffer: is not contiguous: want one that is, in C's order")
    kind = dtype if dtype is not None else _type_of(view)
    if view.nbytes % kind.size:
        raise InvalidArgument(f"buffer: {view.nbytes} bytes: want a multiple of {kind.size}, the size of {kind.name}")
    if view.nbytes == 0:
        return Pointer(0, 0, kind)
    if view.readonly and writable:
        raise InvalidArgument("buffer: is read-only: want one that can be written")
    memory = ctypes.c_char * view.nbytes
    flat = view.cast("B") if view.ndim != 1 or view.format != "B" else view
    held = memory.from_buffer_copy(flat) if view.readonly else memory.from_buffer(flat)
    return Pointer(ctypes.addressof(held), view.nbytes // kind.size, kind, held)


def _type_of(view: memoryview) -> DataType:
    letter = view.format
    if letter[:1] in ("@", "=", _NATIVE_ORDER) and letter[1:] not in ("l", "L"):
        letter = letter[1:]
    if letter not in _LETTERS:
        raise InvalidArgument(f"buffer: elements of format {view.format}: want dtype, or one of {' '.join(_LETTERS)}")
    return _LETTERS[letter]


def _blocks(blocks: Sequence[Pointer], size: int) -> tuple[int, Any, Any]:
    """The lowest address of all, and of each block how many elements it has and how many it is above that."""
    base = min((block.address for block in blocks if block.count), default=0)
    above = [block.address - base if block.count else 0 for block in blocks]
    if any(distance % size for distance in above):
        raise InvalidArgument(f"blocks: not aligned to elements of {size} bytes")
    array = ctypes.c_size_t * len(blocks)
    return base, array(*(block.count for block in blocks)), array(*(distance // size for distance in above))


class PreMulSum:
    """An operation on one type: each rank's value is multiplied by a scalar, then all are summed."""

    def __init__(self, comm: Communicator, number: int) -> None:
        self._comm = comm
        self.number = number

    def close(self) -> None:
        """Not before the calls that use it are done. A communicator that is closed has closed its operations."""
        self._comm._forget_operation(self.number)


class Call:
    """A call that was made on a communicator."""

    __slots__ = ("_comm", "_number")

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._number = 0    # inside a group: not known yet

    def wait(self, timeout: float | None = None) -> None:
        """Until the call and all before it are done on this rank. timeout: seconds after which it raises Timeout, and
        the call goes on; the communicator has a timeout of its own, after which the call fails."""
        self._comm._wait(self._started(), timeout)

    def done(self) -> bool:
        """Whether it is done. Raises why the communicator has failed, if it has."""
        return self._comm._test(self._started())

    def _started(self) -> int:
        if not self._number:
            raise InvalidArgument("a call inside a group: has not begun: want the group to end first")
        return self._number


class _Group(threading.local):
    """The group of this thread that has begun and not ended."""

    def __init__(self) -> None:
        self.depth = 0
        self.calls: list[Call] = []


_group = _Group()


@contextmanager
def group() -> Iterator[None]:
    """The calls of this thread inside of `with group():`, on any communicators, start together at its end."""
    code = library().blinkGroupStart()
    if code:
        raise error_of(code, "blinkGroupStart: failed")
    _group.depth += 1
    ended = False
    try:
        yield
        ended = True
    finally:
        _group.depth -= 1
        if _group.depth == 0:
            calls, _group.calls = _group.calls, []
            failure = _end_group(calls)
        else:
            code = library().blinkGroupEnd()
            failure = error_of(code, "blinkGroupEnd: failed") if code else None
        # An exception of the block itself comes first.
        if failure and ended:
            raise failure


def _end_group(calls: list[Call]) -> BlinkError | None:
    comms = sorted({call._comm for call in calls}, key=lambda comm: comm._number)
    for comm in comms:
        comm._lock.acquire()
    try:
        code = library().blinkGroupEnd()
        if code:
            texts = [text for comm in comms if (text := comm._last_error())]
            return error_of(code, texts[0] if texts else _text(library().blinkGetErrorString(code)))
        for comm in comms:
            comm._number_calls([call for call in calls if call._comm is comm])
        return None
    finally:
        for comm in comms:
            comm._lock.release()


class Communicator:
    """This rank's communicator, once all `size` ranks have made theirs from the same id, each with its own rank."""

    _numbers = itertools.count()

    def __init__(self, id: bytes, rank: int, size: int, config: Config | None = None) -> None:
        uid, handle, error = _unique_id_of(id), ctypes.c_void_p(), _library.Error()
        c_config = (config or Config())._as_c()
        self._prepare()
        code = library().blinkCommInitRank(
            ctypes.byref(handle), size, ctypes.byref(uid), rank, ctypes.byref(c_config), ctypes.byref(error)
        )
        if code:
            raise error_of(code, _text(error.text))
        self._set_handle(handle.value)

    def _prepare(self) -> None:
        self._number = next(Communicator._numbers)
        self._handle: int | None = None
        self._lock = threading.RLock()
        self._nobody_waits = threading.Condition(self._lock)
        self._waiting = 0
        self._kept: deque[tuple[Call, Any]] = deque()
        self._last = ctypes.c_uint64()      # under the lock
        self._last_at = ctypes.byref(self._last)

    def _set_handle(self, handle: int | None) -> None:
        self._handle = handle
        self._pointer = ctypes.c_void_p(handle)     # the same, for functions that are not declared

    # ---- the communicator ----

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return self._integers[0]

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._integers[1]

    @functools.cached_property
    def _integers(self) -> tuple[int, int]:
        rank, size = ctypes.c_int(), ctypes.c_int()
        with self._lock:
            self._check(library().blinkCommUserRank(self._open(), ctypes.byref(rank)))
            self._check(library().blinkCommCount(self._open(), ctypes.byref(size)))
        return rank.value, size.value

    def split(self, color: int, key: int = 0, config: Config | None = None) -> Communicator | None:
        """A communicator of the ranks that give the same color, ordered by key and then by rank. All ranks call it.
        None for those that give a color below 0."""
        return self._child("blinkCommSplit", config, lambda handle: (handle, color, key))

    def shrink(
        self, excluded: Iterable[int], *, abort: bool = False, config: Config | None = None
    ) -> Communicator:  # fmt: skip
        """A communicator of all ranks but those in `excluded`, which may have died, in their order. Those that are left
        call it, all with the same ranks. abort: calls that are under way end first, as by abort(): want it where the
        communicator has failed."""
        ranks = list(excluded)
        array = (ctypes.c_int * len(ranks))(*ranks)
        part = self._child("blinkCommShrink", config, lambda handle: (handle, array, len(ranks), int(abort)))
        assert part
        return part

    def grow(self, size: int, id: bytes | None = None, config: Config | None = None) -> Communicator:
        """A communicator of `size` ranks: these, which keep their numbers, and new ones, which join by
        Communicator(id, rank, size) with the numbers that follow. id: of unique_id(), given by one of these ranks."""
        uid = None if id is None else ctypes.byref(_unique_id_of(id))
        whole = self._child("blinkCommGrow", config, lambda handle: (handle, size, uid))
        assert whole
        return whole

    def _child(
        self, function: str, config: Config | None, arguments: Callable[[int], tuple[Any, ...]]
    ) -> Communicator | None:
        """One that is made of this one by function(*arguments, where, config, error)."""
        handle, error = ctypes.c_void_p(), _library.Error()
        c_config = ctypes.byref(config._as_c()) if config else None
        with self._lock:
            code = getattr(library(), function)(
                *arguments(self._open()), ctypes.byref(handle), c_config, ctypes.byref(error)
            )
        if code:
            raise error_of(code, _text(error.text))
        if not handle.value:
            return None
        child = Communicator.__new__(Communicator)
        child._prepare()
        child._set_handle(handle.value)
        return child

    def wait(self, timeout: float | None = None) -> None:
        """Until all calls are done on this rank. timeout: as of Call.wait."""
        self._wait(0, timeout)

    def error(self) -> BlinkError | None:
        """Why the communicator has failed; None if it has not."""
        text = _library.Error()
        with _Borrowed(self) as handle:
            code = library().blinkCommGetAsyncError(handle, ctypes.byref(text))
        return None if code in (0, IN_PROGRESS) else error_of(code, _text(text.text))

    def abort(self) -> None:
        """End all calls, here and on the other ranks: they raise Aborted. Then it can only be closed."""
        with _Borrowed(self) as handle:
            self._check(library().blinkCommAbort(handle))

    def close(self) -> None:
        """Wait for the calls that were made, and leave. Nothing happens if it is closed. It does not raise why the
        communicator has failed: that is what waiting for a call is for."""
        if not self._handle:
            return
        try:
            self._wait(0, None)
        except BlinkError:
            pass
        with self._lock:
            handle, self._handle = self._handle, None
            self._nobody_waits.wait_for(lambda: self._waiting == 0)
            if handle:
                library().blinkCommDestroy(handle)
            self._kept.clear()

    def __del__(self) -> None:
        """Nobody waits for its calls any more, and the library has to let go of their buffers."""
        handle = getattr(self, "_handle", None)
        if handle and not sys.is_finalizing():
            library().blinkCommAbort(handle)
            library().blinkCommDestroy(handle)

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if value is not None and self._handle:
            self.abort()    # others need not wait for calls that this rank will not make
        self.close()

    # ---- collectives ----

    def broadcast(self, buffer: Buffer, root: int = 0, *, dtype: DataType | None = None) -> Call:
        """Root's buffer becomes everybody's."""
        data = pointer(buffer, dtype, writable=True)
        return self._call("blinkBroadcast", data, data, data.count, root)

    def reduce(
        self, send: Buffer, recv: Buffer | None = None, root: int = 0, op: Op | PreMulSum = Op.SUM,
        *, dtype: DataType | None = None,
    ) -> Call:  # fmt: skip
        """recv: on the root alone; None there: send is overwritten."""
        source = pointer(send, dtype, writable=recv is None)
        target = source if recv is None else pointer(recv, dtype, writable=True)
        return self._call("blinkReduce", source, _same(target, source.count), source.count, _number_of(op), root)

    def all_reduce(
        self, send: Buffer, recv: Buffer | None = None, op: Op | PreMulSum = Op.SUM, *, dtype: DataType | None = None
    ) -> Call:
        """recv: None: send is overwritten."""
        source = pointer(send, dtype, writable=recv is None)
        target = source if recv is None else pointer(recv, dtype, writable=True)
        return self._call("blinkAllReduce", source, _same(target, source.count), source.count, _number_of(op))

    def gather(
        self, send: Buffer, recv: Buffer | None = None, root: int = 0, *, dtype: DataType | None = None
    ) -> Call:
        """recv: on the root alone, a block of each rank."""
        source = pointer(send, dtype, writable=False)
        target = None
        if recv is not None:
            target = _same(pointer(recv, dtype, writable=True), source.count * self.size)
        return self._call("blinkGather", source, target, source.count, root)

    def scatter(
        self, send: Buffer | None, recv: Buffer, root: int = 0, *, dtype: DataType | None = None
    ) -> Call:
        """send: on the root alone, a block for each rank."""
        target = pointer(recv, dtype, writable=True)
        source = None
        if send is not None:
            source = _same(pointer(send, dtype, writable=False), target.count * self.size)
        return self._call("blinkScatter", source, target, target.count, root)

    def all_gather(self, send: Buffer, recv: Buffer, *, dtype: DataType | None = None) -> Call:
        """recv: a block of each rank."""
        source, target = pointer(send, dtype, writable=False), pointer(recv, dtype, writable=True)
        return self._call("blinkAllGather", source, _same(target, source.count * self.size), source.count)

    def reduce_scatter(
        self, send: Buffer, recv: Buffer, op: Op | PreMulSum = Op.SUM, *, dtype: DataType | None = None
    ) -> Call:
        """send: a block for each rank; recv: the sum of those for this one."""
        source, target = pointer(send, dtype, writable=False), pointer(recv, dtype, writable=True)
        _same(source, target.count * self.size)
        return self._call("blinkReduceScatter", source, target, target.count, _number_of(op))

    def all_to_all(self, send: Buffer, recv: Buffer, *, dtype: DataType | None = None) -> Call:
        """send: a block for each rank; recv: a block of each rank."""
        source, target = pointer(send, dtype, writable=False), pointer(recv, dtype, writable=True)
        count, rest = divmod(source.count, self.size)
        if rest:
            raise InvalidArgument(f"send: {source.count} elements: want a multiple of the {self.size} ranks")
        return self._call("blinkAlltoAll", source, _same(target, source.count), count)

    def all_to_allv(
        self, sends: Sequence[Buffer], recvs: Sequence[Buffer], *, dtype: DataType | None = None
    ) -> Call:
        """sends: a block for each rank; recvs: a block of each rank. Of any lengths, also 0, which both ranks know."""
        sources = [pointer(block, dtype, writable=False) for block in sends]
        targets = [pointer(block, dtype, writable=True) for block in recvs]
        if len(sources) != self.size or len(targets) != self.size:
            raise InvalidArgument(f"{len(sources)} and {len(targets)} blocks: want {self.size}, one for each rank")
        kind = sources[0].dtype
        for block in sources + targets:
            if block.dtype != kind:
                raise InvalidArgument(f"blocks of {block.dtype.name} and {kind.name}: want one type")
        arguments = [*_blocks(sources, kind.size), *_blocks(targets, kind.size)]
        return self._start("blinkAlltoAllv", (sources, targets), *arguments, kind)

    def send(self, buffer: Buffer, peer: int, *, dtype: DataType | None = None) -> Call:
        """To one rank. Exchanges in both directions belong into one group."""
        data = pointer(buffer, dtype, writable=False)
        return self._start("blinkSend", data, data.address, data.count, data.dtype, peer)

    def recv(self, buffer: Buffer, peer: int, *, dtype: DataType | None = None) -> Call:
        """From one rank."""
        data = pointer(buffer, dtype, writable=True)
        return self._start("blinkRecv", data, data.address, data.count, data.dtype, peer)

    def probe(self, peer: int) -> int | None:
        """Bytes of a message of that rank for which no `recv` has been made; None: there is none, or calls are not
        done. A message without elements is not seen."""
        size = ctypes.c_size_t()
        with self._lock:
            code = library().blinkCommProbe(self._open(), peer, ctypes.byref(size))
            if code != IN_PROGRESS:
                self._check(code)
        return size.value if code == 0 else None

    def barrier(self) -> Call:
        """Done when every rank has called it."""
        return self.all_reduce(bytearray(4), dtype=DataType.INT32)

    def pre_mul_sum(self, scalar: float | bytes, dtype: DataType) -> PreMulSum:
        """An operation on `dtype`. scalar: a number, or the bytes of an element."""
        data = scalar if isinstance(scalar, bytes) else _element(scalar, dtype)
        if len(data) != dtype.size:
            raise InvalidArgument(f"scalar: {len(data)} bytes: want {dtype.size}, the size of {dtype.name}")
        number = ctypes.c_int()
        with self._lock:
            self._check(library().blinkRedOpCreatePreMulSum(ctypes.byref(number), data, dtype, self._open()))
        return PreMulSum(self, number.value)

    def _forget_operation(self, number: int) -> None:
        with self._lock:
            if self._handle:
                self._check(library().blinkRedOpDestroy(number, self._handle))

    # ---- calls ----

    def _call(self, function: str, send: Pointer | None, recv: Pointer | None, count: int, *rest: int) -> Call:
        kind = (send or recv or _NOTHING).dtype
        if recv and recv.dtype is not kind and recv.dtype != kind:
            raise InvalidArgument(f"recv: elements of {recv.dtype.name}: want {kind.name}, as of send")
        source, target = send.address if send else None, recv.address if recv else None
        return self._start(function, (send, recv), source, target, count, kind, *rest)

    def _start(self, function: str, keep: Any, *arguments: Any) -> Call:
        call = Call(self)
        with self._lock:
            code = getattr(library(), function)(*arguments, self._handle or self._open(), None)
            if code:
                self._check(code)
            if self._kept:
                self._release_done()
            self._kept.append((call, keep))
            if _group.depth:
                _group.calls.append(call)
            else:
                self._number_calls((call,))
        return call

    def _all_reduce_now(self, address: int, count: int, dtype: int, op: int, keep: object) -> None:
        """all_reduce in place, outside of groups, and wait for it: without a Call, which nobody else could wait for,
        and without conversions of arguments, which take longer than a small call."""
        lib, lock, buffer = unchecked(), self._lock, ctypes.c_void_p(address)
        with lock:
            if not self._handle:
                self._open()
            handle = self._pointer
            code = lib.all_reduce(buffer, buffer, ctypes.c_size_t(count), dtype, op, handle, None)
            if code:
                self._check(code)
            lib.last_call(handle, self._last_at)
            self._waiting += 1
            number = ctypes.c_uint64(self._last.value)
        try:
            code = lib.wait(handle, number)
            if code:
                self._kept.append((Call(self), keep))
                raise self._failure(handle, code)
        finally:
            with lock:
                self._waiting -= 1
                if not self._handle:
                    self._nobody_waits.notify_all()

    def _number_calls(self, calls: Iterable[Call]) -> None:
        self._check(library().blinkCommLastCall(self._open(), self._last_at))
        number = self._last.value
        for call in calls:
            call._number = number

    def _release_done(self, done: int = 0) -> None:
        """Of calls that are done: known to be up to number `done`. After a failure the library may still use the
        buffers, until it is closed."""
        while self._kept and (number := self._kept[0][0]._number):
            if number > done and library().blinkCommTest(self._handle, number) != 0:
                break
            self._kept.popleft()

    def _wait(self, number: int, timeout: float | None) -> None:
        with _Borrowed(self) as handle:
            if timeout is None:
                code = library().blinkCommWait(handle, number)
            else:
                code = self._poll(handle, number, timeout)
            if code == IN_PROGRESS:
                raise Timeout(f"call {number}: not done after {timeout:g} s: want more time")
            if code:
                raise self._failure(handle, code)
        with self._lock:
            if self._handle:
                self._release_done(number)

    @staticmethod
    def _poll(handle: int, number: int, timeout: float) -> int:
        deadline, pause = time.monotonic() + timeout, 20e-6
        while (code := int(library().blinkCommTest(handle, number))) == IN_PROGRESS:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(pause, left))
            pause = min(pause * 2, 2e-3)
        return code

    def _test(self, number: int) -> bool:
        with _Borrowed(self) as handle:
            code = library().blinkCommTest(handle, number)
            if code not in (0, IN_PROGRESS):
                raise self._failure(handle, code)
        return bool(code == 0)

    @staticmethod
    def _failure(handle: int | ctypes.c_void_p, code: int) -> BlinkError:
        error = _library.Error()
        failed = library().blinkCommGetAsyncError(handle, ctypes.byref(error))
        if failed == code:
            return error_of(code, _text(error.text))
        return error_of(code, _text(library().blinkCommGetError(handle) or library().blinkGetErrorString(code)))

    # ---- the handle ----

    def _open(self) -> int:
        if not self._handle:
            raise InvalidArgument("communicator: is closed: want one that is open")
        return self._handle

    def _last_error(self) -> str:
        return _text(library().blinkCommGetError(self._open()))

    def _check(self, code: int) -> None:
        if code:
            raise error_of(code, self._last_error() or _text(library().blinkGetErrorString(code)))


class _Borrowed:
    """The handle without the lock: close waits until it is given back."""

    __slots__ = ("_comm",)

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm

    def __enter__(self) -> int:
        with self._comm._lock:
            handle = self._comm._open()
            self._comm._waiting += 1
        return handle

    def __exit__(self, *_: object) -> None:
        with self._comm._lock:
            self._comm._waiting -= 1
            if not self._comm._handle:
                self._comm._nobody_waits.notify_all()


def _same(data: Pointer, count: int) -> Pointer:
    if data.count != count:
        raise InvalidArgument(f"buffer: {data.count} elements: want {count}")
    return data


def _number_of(op: Op | PreMulSum) -> int:
    return op.number if isinstance(op, PreMulSum) else int(op)


def _element(value: float, dtype: DataType) -> bytes:
    if dtype is DataType.BFLOAT16:
        bits = struct.unpack("=I", struct.pack("=f", value))[0]
        return struct.pack("=H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    letters = [letter for letter, kind in _LETTERS.items() if kind is dtype and letter not in "c?lL"]
    if not letters:
        raise InvalidArgument(f"scalar: a number for {dtype.name}: want the bytes of an element")
    return struct.pack("=" + letters[0], int(value) if dtype <= DataType.UINT64 else value)
