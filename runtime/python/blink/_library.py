"""libblink.so: where it is, and its functions with their types, as blink.h declares them."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SONAME = "libblink.so.0"
UNIQUE_ID_BYTES = 128


class Error(ctypes.Structure):
    """blinkError_t"""

    text: bytes
    _fields_ = [("text", ctypes.c_char * 1024)]


class Config(ctypes.Structure):
    """blinkConfig_t"""

    _fields_ = [
        ("chunkBytes", c_size_t),
        ("threads", c_int),
        ("timeoutMs", c_int64),
        ("schedules", c_char_p),
        ("gpu", c_char_p),
        ("backend", c_char_p),
    ]


class UniqueId(ctypes.Structure):
    """blinkUniqueId_t"""

    _fields_ = [("internal", ctypes.c_char * UNIQUE_ID_BYTES)]


def _pointer(structure: type[ctypes.Structure]) -> Any:
    return ctypes.POINTER(structure)


_out_handle = ctypes.POINTER(c_void_p)
_error = _pointer(Error)
_config = _pointer(Config)

# Each returns a blinkResult_t, but for those in _OTHERS. send, recv, count, type first, then comm, stream.
_BUFFERS: list[Any] = [c_void_p, c_void_p, c_size_t, c_int]
_ONE_BUFFER: list[Any] = [c_void_p, c_size_t, c_int]
_BLOCKS: list[Any] = [c_void_p, ctypes.POINTER(c_size_t), ctypes.POINTER(c_size_t)]
_END: list[Any] = [c_void_p, c_void_p]
_FUNCTIONS: dict[str, Sequence[Any]] = {
    "blinkGetUniqueId": [_pointer(UniqueId), _error],
    "blinkCommInitRank": [_out_handle, c_int, _pointer(UniqueId), c_int, _config, _error],
    "blinkCommDestroy": [c_void_p],
    "blinkCommGrow": [c_void_p, c_int, _pointer(UniqueId), _out_handle, _config, _error],
    "blinkCommShrink": [c_void_p, ctypes.POINTER(c_int), c_int, c_int, _out_handle, _config, _error],
    "blinkCommSplit": [c_void_p, c_int, c_int, _out_handle, _config, _error],
    "blinkCommCount": [c_void_p, ctypes.POINTER(c_int)],
    "blinkCommUserRank": [c_void_p, ctypes.POINTER(c_int)],
    "blinkBroadcast": [*_BUFFERS, c_int, *_END],
    "blinkReduce": [*_BUFFERS, c_int, c_int, *_END],
    "blinkAllReduce": [*_BUFFERS, c_int, *_END],
    "blinkGather": [*_BUFFERS, c_int, *_END],
    "blinkScatter": [*_BUFFERS, c_int, *_END],
    "blinkAllGather": [*_BUFFERS, *_END],
    "blinkReduceScatter": [*_BUFFERS, c_int, *_END],
    "blinkAlltoAll": [*_BUFFERS, *_END],
    "blinkAlltoAllv": [*_BLOCKS, *_BLOCKS, c_int, *_END],
    "blinkSend": [*_ONE_BUFFER, c_int, *_END],
    "blinkRecv": [*_ONE_BUFFER, c_int, *_END],
    "blinkCommProbe": [c_void_p, c_int, ctypes.POINTER(c_size_t)],
    "blinkGroupStart": [],
    "blinkGroupEnd": [],
    "blinkCommLastCall": [c_void_p, ctypes.POINTER(c_uint64)],
    "blinkCommWait": [c_void_p, c_uint64],
    "blinkCommTest": [c_void_p, c_uint64],
    "blinkCommAbort": [c_void_p],
    "blinkCommGetAsyncError": [c_void_p, _error],
    "blinkRedOpCreatePreMulSum": [ctypes.POINTER(c_int), c_void_p, c_int, c_void_p],
    "blinkRedOpCreatePreMulSumDevice": [ctypes.POINTER(c_int), c_void_p, c_int, c_void_p],
    "blinkRedOpDestroy": [c_int, c_void_p],
}
_OTHERS: dict[str, tuple[Any, Sequence[Any]]] = {
    "blinkVersion": (c_char_p, []),
    "blinkGetErrorString": (c_char_p, [c_int]),
    "blinkCommGetError": (c_char_p, [c_void_p]),
}


def _candidates() -> list[str]:
    """BLINK_LIBRARY alone if it is set; else what lies beside this file, as in a wheel; else where the system looks."""
    named = os.environ.get("BLINK_LIBRARY")
    if named:
        return [named]
    beside = Path(__file__).parent / SONAME
    return [str(beside)] if beside.exists() else [SONAME, "libblink.so"]


@functools.cache
def library() -> ctypes.CDLL:
    """libblink, loaded once. Its calls do not hold the interpreter's lock."""
    reasons = []
    for name in _candidates():
        try:
            lib = ctypes.CDLL(name)
        except OSError as reason:
            reasons.append(str(reason))
            continue
        for function, arguments in _FUNCTIONS.items():
            _declare(lib, name, function, c_int, arguments)
        for function, (result, arguments) in _OTHERS.items():
            _declare(lib, name, function, result, arguments)
        return lib
    wanted = "want libblink beside this package, in BLINK_LIBRARY, or where the system looks"
    raise ImportError(f"{'; '.join(reasons)}: {wanted}")


@dataclass(frozen=True)
class Unchecked:
    """The functions of an all_reduce without declared arguments, whose conversion takes longer than a small call:
    c_void_p, c_size_t and c_uint64 have to be given as such; an int is a C int."""

    all_reduce: Any
    last_call: Any
    wait: Any


@functools.cache
def unchecked() -> Unchecked:
    lib = library()
    return Unchecked(lib["blinkAllReduce"], lib["blinkCommLastCall"], lib["blinkCommWait"])


def _declare(lib: ctypes.CDLL, name: str, function: str, result: Any, arguments: Sequence[Any]) -> None:
    try:
        pointer = getattr(lib, function)
    except AttributeError:
        raise ImportError(f"{name}: has no {function}: want libblink of the version of this package") from None
    pointer.restype = result
    pointer.argtypes = list(arguments)
