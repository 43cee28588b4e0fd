"""Types and operations of torch, by those of libblink.

To move data, any type will do: one that libblink lacks is moved as bytes. To reduce it, a tensor is encoded as a
contiguous one of a type that libblink has, and the result is decoded:

    complex             pairs of floating-point numbers; sums only
    bool                uint8: a sum is the largest value, as an "or"; a product the smallest
    int16, uint16       int32, whose low half is the same

Bitwise operations are done here, on the gathered tensors of all ranks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from .. import DataType, Op, Pointer

TYPES = {
    torch.int8: DataType.INT8,
    torch.uint8: DataType.UINT8,
    torch.int32: DataType.INT32,
    torch.uint32: DataType.UINT32,
    torch.int64: DataType.INT64,
    torch.uint64: DataType.UINT64,
    torch.float16: DataType.FLOAT16,
    torch.float32: DataType.FLOAT32,
    torch.float64: DataType.FLOAT64,
    torch.bfloat16: DataType.BFLOAT16,
    torch.float8_e4m3fn: DataType.FLOAT8_E4M3,
    torch.float8_e5m2: DataType.FLOAT8_E5M2,
    torch.bool: DataType.UINT8,
}
_WIDER = {torch.int16: torch.int32, torch.uint16: torch.int32}
_OPS = {"SUM": Op.SUM, "PRODUCT": Op.PROD, "MIN": Op.MIN, "MAX": Op.MAX, "AVG": Op.AVG}
# Where false is 0 and true is 1.
_BOOL_OPS = {
    "SUM": Op.MAX, "PRODUCT": Op.MIN, "MIN": Op.MIN, "MAX": Op.MAX, "BOR": Op.MAX, "BAND": Op.MIN,
}  # fmt: skip
_BITWISE = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}
_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def check(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, if this backend can have it, without its history."""
    if not tensor.is_cpu:
        raise ValueError(f"tensor: on {tensor.device}: want one on the CPU, the only device of the backend blink")
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise TypeError(f"tensor: {tensor.layout}{' quantized' * tensor.is_quantized}: want a dense one")
    return tensor.detach() if tensor.requires_grad else tensor


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if its elements lie in order; else a copy of it where they do."""
    return tensor if is_plain(tensor) else tensor.resolve_conj().resolve_neg().contiguous()


def is_plain(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def data(tensor: torch.Tensor) -> Pointer:
    """The elements of a plain tensor. The Pointer keeps it alive."""
    kind = TYPES.get(tensor.dtype)
    if kind is not None:
        return Pointer(tensor.data_ptr(), tensor.numel(), kind, tensor)
    return Pointer(tensor.data_ptr(), tensor.nbytes, DataType.UINT8, tensor)


@dataclass(frozen=True)
class Factor:
    """Each rank's values are multiplied by it, then all are summed."""

    element: bytes
    dtype: DataType


Combine = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Reduction:
    """What libblink is to do; or, if `combine` is set, what is to be done with the tensors of all ranks, stacked."""

    op: Op | Factor = Op.SUM
    combine: Combine | None = None
    direct: tuple[int, int] | None = None
    """Type and operation of libblink, if a tensor need not be encoded."""


def reduction(dtype: torch.dtype, reduce_op: object) -> Reduction:
    """How an operation of torch is done on tensors of this type."""
    if reduce_op == dist.ReduceOp.SUM and dtype in _SUMS:
        return _SUMS[dtype]
    how = _reduction(dtype, getattr(reduce_op, "op", reduce_op))
    return Reduction(_factor(_encoded(dtype), reduce_op)) if how is None else how


@functools.cache
def _reduction(dtype: torch.dtype, kind: Any) -> Reduction | None:
    """None: the one that has a factor."""
    name: str = kind.name
    if dtype is torch.bool and name in _BOOL_OPS:
        return Reduction(_BOOL_OPS[name])
    if name in _BITWISE and not dtype.is_floating_point and not dtype.is_complex:
        return Reduction(combine=functools.partial(_fold, _BITWISE[name]))
    if name == "PREMUL_SUM" and dtype.is_floating_point | dtype.is_complex and _encoded(dtype) in TYPES:
        return None
    allowed = name in _OPS and dtype is not torch.bool and not (dtype.is_complex and name not in ("SUM", "AVG"))
    if not allowed or _encoded(dtype) not in TYPES:
        raise TypeError(f"ReduceOp.{name} of {dtype}: want an operation that the backend blink has on this type")
    return Reduction(_OPS[name], direct=(TYPES[dtype].value, _OPS[name].value) if dtype in TYPES else None)


_SUMS = {
    dtype: Reduction(direct=(kind.value, Op.SUM.value)) for dtype, kind in TYPES.items() if dtype is not torch.bool
}


def _factor(dtype: torch.dtype, reduce_op: object) -> Factor:
    value = reduce_op.__getstate__()[1]  # type: ignore[index]
    element = torch.as_tensor(value).reshape(()).to(dtype)
    return Factor(bytes(element.untyped_storage()), TYPES[dtype])


def _encoded(dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if dtype.is_complex else _WIDER.get(dtype, dtype)


def _fold(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], stacked: torch.Tensor) -> torch.Tensor:
    signed = stacked.view(_SIGNED[stacked.element_size()])
    return functools.reduce(function, signed.unbind(0)).view(stacked.dtype)


def encode(tensor: torch.Tensor) -> torch.Tensor:
    """A plain tensor of a type that libblink reduces. It is the tensor's own memory where that is possible."""
    if tensor.is_complex():
        return torch.view_as_real(plain(tensor))
    if tensor.dtype in _WIDER:
        return plain(tensor).to(_WIDER[tensor.dtype])
    return plain(tensor)


def room(tensor: torch.Tensor) -> torch.Tensor:
    """Where the result for a tensor may be put, encoded: its own memory where that is possible."""
    if is_plain(tensor) and tensor.dtype not in _WIDER:
        return torch.view_as_real(tensor) if tensor.is_complex() else tensor
    shape = (*tensor.shape, 2) if tensor.is_complex() else tensor.shape
    return torch.empty(shape, dtype=_encoded(tensor.dtype))


def decode(encoded: torch.Tensor, tensor: torch.Tensor) -> None:
    """Put a result where it belongs, unless it is there."""
    if encoded.data_ptr() != tensor.data_ptr():
        pairs = tensor.is_complex() and not encoded.is_complex()
        tensor.copy_(torch.view_as_complex(encoded) if pairs else encoded)
