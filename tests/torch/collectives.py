"""Every collective, type and operation: against gloo where it has them, and against the sum of what the ranks have.

Integers, and whatever is only moved, are the same bit by bit; sums of floating-point numbers too between two ranks, where
there is one order of addition, and else within the error that any order has."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import torch
import torch.distributed as dist
from harness import case, init

INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
EIGHTS = [torch.float8_e4m3fn, torch.float8_e5m2]
COMPLEX = [torch.complex64, torch.complex128]
ALL = [*INTEGERS, *UNSIGNED, *FLOATS, *EIGHTS, *COMPLEX, torch.bool]
Op = dist.ReduceOp
OPS = {"SUM": Op.SUM, "PRODUCT": Op.PRODUCT, "MIN": Op.MIN, "MAX": Op.MAX, "AVG": Op.AVG,
       "BAND": Op.BAND, "BOR": Op.BOR, "BXOR": Op.BXOR}  # fmt: skip
GLOO_TYPES = {*INTEGERS, *FLOATS} - {torch.int16}
SHAPES = [(), (1,), (7,), (3, 5), (0,), (1000,)]
SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def values(dtype: torch.dtype, shape: Any, rank: int, seed: int = 0) -> torch.Tensor:
    """What a rank has: every rank can work out what the others have."""
    g = torch.Generator().manual_seed(1000 * seed + rank)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=g).bool()
    if dtype.is_complex:
        return torch.randn(shape, generator=g, dtype=dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=g).to(dtype)
    return torch.randint(-(2**31), 2**31, shape, generator=g).to(dtype)


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bit by bit."""
    def to_bytes(t: torch.Tensor) -> torch.Tensor:
        return torch.empty(t.numel(), dtype=t.dtype).copy_(t.reshape(-1)).view(torch.uint8)

    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(to_bytes(a), to_bytes(b))


def has(dtype: torch.dtype, op: str) -> bool:
    """Whether the backend has it."""
    if op in ("BAND", "BOR", "BXOR"):
        return not dtype.is_floating_point and not dtype.is_complex
    if dtype.is_complex:
        return op in ("SUM", "AVG")
    return not (dtype is torch.bool and op == "AVG")


def expected(op: str, tensors: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The result in a type that holds it, and how far a floating-point result may be from it."""
    dtype, n = tensors[0].dtype, len(tensors)
    if dtype is torch.bool:
        logical: Any = torch.logical_xor if op == "BXOR" else (
            torch.logical_or if op in ("SUM", "MAX", "BOR") else torch.logical_and
        )  # fmt: skip
        return functools.reduce(logical, tensors), None
    if op in ("BAND", "BOR", "BXOR"):
        signed = [t.view(SIGNED[t.element_size()]) for t in tensors]
        bitwise: Any = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}[op]
        return functools.reduce(bitwise, signed).view(dtype), None
    if not dtype.is_floating_point and not dtype.is_complex:
        return _expected_integer(op, tensors, dtype), None
    wide = [t.to(torch.complex128 if dtype.is_complex else torch.float64) for t in tensors]
    stacked, eps = torch.stack(wide), torch.finfo(dtype).eps
    least = torch.finfo(dtype).smallest_normal
    if op in ("MIN", "MAX"):
        return stacked.amin(0) if op == "MIN" else stacked.amax(0), torch.zeros(wide[0].shape)
    if op == "PRODUCT":
        return stacked.prod(0), n * eps * stacked.prod(0).abs() + n * least
    share = 1 / n if op == "AVG" else 1
    return stacked.sum(0) * share, (n + 1) * eps * stacked.abs().sum(0) * share + n * least


def _expected_integer(op: str, tensors: list[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    if dtype in (torch.uint32, torch.uint64):   # torch has no arithmetic for them
        return _expected_unsigned(op, tensors, dtype)
    wide = [t.to(torch.int64) for t in tensors]
    if op == "AVG":
        narrow = functools.reduce(torch.add, wide)
        if dtype not in (torch.int16, torch.uint16):
            narrow = narrow.to(dtype).to(torch.int64)   # sums wrap
        return torch.div(narrow, len(tensors), rounding_mode="trunc").to(dtype)
    functions: Any = {"SUM": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum, "MAX": torch.maximum}
    result: torch.Tensor = functools.reduce(functions[op], wide)
    return result.to(dtype)


def _expected_unsigned(op: str, tensors: list[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    bits = 8 * tensors[0].element_size()
    rows = zip(*(t.reshape(-1).tolist() for t in tensors))
    functions: Any = {"SUM": sum, "MIN": min, "MAX": max, "PRODUCT": lambda row: functools.reduce(lambda a, b: a * b, row),
                 "AVG": lambda row: sum(row) % 2**bits // len(row)}  # fmt: skip
    numbers = [functions[op](row) % 2**bits for row in rows]
    return torch.tensor(numbers, dtype=dtype).reshape(tensors[0].shape)


def right(name: str, op: str, got: torch.Tensor, tensors: list[torch.Tensor]) -> list[str]:
    want, bound = expected(op, tensors)
    if bound is None:
        return [] if same(got, want) else [f"{name}: {got.tolist()} but want {want.tolist()}"[:300]]
    error = (got.to(want.dtype) - want).abs()
    if not bool((error <= bound).all()):
        return [f"{name}: off by {float(error.max())}, want at most {float(bound.max())}"]
    exact = len(tensors) == 2 and op in ("SUM", "PRODUCT") and not got.dtype.is_complex
    return [f"{name}: not rounded to nearest"] if exact and not same(got, want.to(got.dtype)) else []


class Groups:
    """One group of each backend, over all ranks."""

    def __init__(self, rank: int, size: int, folder: str) -> None:
        init(rank, size, folder, "gloo")
        self.rank, self.size = rank, size
        self.blink: Any = dist.new_group(backend="blink")
        self.gloo: Any = dist.group.WORLD
        self.wrong: list[str] = []

    def all(self, dtype: torch.dtype, shape: Any, seed: int = 0) -> list[torch.Tensor]:
        return [values(dtype, shape, rank, seed) for rank in range(self.size)]

    def expect(self, name: str, got: torch.Tensor, want: torch.Tensor) -> None:
        if not same(got, want):
            self.wrong.append(f"rank {self.rank}: {name}: {got.tolist()} but want {want.tolist()}"[:300])


def reductions(rank: int, size: int, folder: str) -> list[str]:
    """allreduce, reduce and reducescatter; also what is refused."""
    g = Groups(rank, size, folder)
    for (dtype, op), shape in itertools.product(itertools.product(ALL, OPS), SHAPES):
        name = f"{op} of {dtype} {shape}"
        if not has(dtype, op):
            try:
                dist.all_reduce(values(dtype, shape, rank), OPS[op], group=g.blink)
                g.wrong.append(f"{name}: was not refused")
            except (TypeError, ValueError):
                pass
            continue
        all_reduce(g, name, dtype, op, shape)
        if shape != ():
            reduce_scatter(g, name, dtype, op, shape)
    return g.wrong


def all_reduce(g: Groups, name: str, dtype: torch.dtype, op: str, shape: Any) -> None:
    all = g.all(dtype, shape)
    got, root = all[g.rank].clone(), len(name) % g.size
    dist.all_reduce(got, OPS[op], group=g.blink)
    g.wrong += right(f"allreduce, {name}", op, got, all)
    reduced = all[g.rank].clone()
    dist.reduce(reduced, root, OPS[op], group=g.blink)
    if g.rank == root:
        g.wrong += right(f"reduce, {name}", op, reduced, all)
    else:
        g.expect(f"reduce, {name}: where it is not the root", reduced, all[g.rank])
    if dtype in GLOO_TYPES and op != "AVG" and not (dtype.is_floating_point and op.startswith("B")):
        exact = not dtype.is_floating_point or g.size == 2 or op in ("MIN", "MAX")
        theirs = all[g.rank].clone()
        dist.all_reduce(theirs, OPS[op], group=g.gloo)
        if exact:
            g.expect(f"allreduce, {name}: gloo's", got, theirs)
        else:
            g.wrong += right(f"gloo's allreduce, {name}", op, theirs, all)


def reduce_scatter(g: Groups, name: str, dtype: torch.dtype, op: str, shape: Any) -> None:
    all = g.all(dtype, (g.size, *shape), 1)
    mine = [rank_tensor[g.rank] for rank_tensor in all]
    got, listed = torch.empty_like(mine[0]), torch.empty_like(mine[0])
    dist.reduce_scatter_tensor(got, all[g.rank].reshape(g.size * shape[0], *shape[1:]), OPS[op], group=g.blink)
    g.wrong += right(f"reducescatter, {name}", op, got, mine)
    dist.reduce_scatter(listed, [block.clone() for block in all[g.rank]], OPS[op], group=g.blink)
    g.expect(f"reducescatter, {name}: of a list", listed, got)


def pre_mul_sum(rank: int, size: int, folder: str) -> list[str]:
    g = Groups(rank, size, folder)
    factors: list[Any] = [0.5, torch.tensor(2.0)]
    for dtype, factor in itertools.product([*FLOATS, *EIGHTS], factors):
        op: Any = dist._make_nccl_premul_sum(factor)    # type: ignore[attr-defined]
        all = g.all(dtype, (33,))
        got = all[rank].clone()
        dist.all_reduce(got, op, group=g.blink)
        scaled = [(t.to(torch.float64) * float(factor)).to(dtype) for t in all]
        g.wrong += right(f"premulsum of {dtype}", "SUM", got, scaled)
    return g.wrong


def moves(rank: int, size: int, folder: str) -> list[str]:
    """What only moves data, of each type: contiguous, and as parts of other tensors."""
    g = Groups(rank, size, folder)
    for dtype, shape, strided in itertools.product(ALL, [(1,), (4, 3), (0,), (500,)], (False, True)):
        def place(like: torch.Tensor) -> torch.Tensor:
            """Room for a result."""
            return torch.empty((*like.shape, 2), dtype=dtype)[..., 0] if strided else torch.empty_like(like)

        def put(data: torch.Tensor) -> torch.Tensor:
            return place(data).copy_(data)

        name, root, all = f"{dtype} {shape}{' strided' * strided}", shape[0] % size, g.all(dtype, shape)
        moves_of_one(g, name, root, all, place, put)
        moves_of_blocks(g, name, all, dtype, shape, place, put)
    return g.wrong


def moves_of_one(g: Groups, name: str, root: int, all: list[torch.Tensor], place: Any, put: Any) -> None:
    got = put(all[g.rank])
    dist.broadcast(got, root, group=g.blink)
    g.expect(f"broadcast, {name}", got, all[root])
    outputs = [place(t) for t in all]
    dist.all_gather(outputs, put(all[g.rank]), group=g.blink)
    for output, want in zip(outputs, all):
        g.expect(f"allgather, {name}", output, want)
    whole = place(torch.cat(all))
    dist.all_gather_into_tensor(whole, put(all[g.rank]), group=g.blink)
    g.expect(f"allgather into a tensor, {name}", whole, torch.cat(all))
    outputs = [place(t) for t in all]
    dist.gather(put(all[g.rank]), outputs if g.rank == root else None, root, group=g.blink)
    if g.rank == root:
        for output, want in zip(outputs, all):
            g.expect(f"gather, {name}", output, want)
    received = place(all[0])
    dist.scatter(received, [put(t) for t in all] if g.rank == root else None, root, group=g.blink)
    g.expect(f"scatter, {name}", received, all[g.rank])
    received = place(all[0])
    for request in [
        dist.isend(put(all[g.rank]), (g.rank + 1) % g.size, group=g.blink),
        dist.irecv(received, (g.rank - 1) % g.size, group=g.blink),
    ]:
        assert request
        request.wait()
    g.expect(f"sendrecv, {name}", received, all[g.rank - 1])


def moves_of_blocks(
    g: Groups, name: str, all: list[torch.Tensor], dtype: torch.dtype, shape: Any, place: Any, put: Any
) -> None:
    """Alltoall: by equal blocks, by lists, and by blocks of different sizes: i + 2j rows from rank i to rank j."""
    blocks = g.all(dtype, (g.size, *shape), 2)
    flat = (g.size * shape[0], *shape[1:])
    want = torch.stack([t[g.rank] for t in blocks]).reshape(flat)
    got = place(want)
    dist.all_to_all_single(got, put(blocks[g.rank].reshape(flat)), group=g.blink)
    g.expect(f"alltoall, {name}", got, want)
    outputs = [place(all[0]) for _ in range(g.size)]
    dist.all_to_all(outputs, [put(block) for block in blocks[g.rank]], group=g.blink)
    g.expect(f"alltoall of lists, {name}", torch.stack(list(outputs)).reshape(flat), want)
    sends, recvs = [g.rank + 2 * j for j in range(g.size)], [i + 2 * g.rank for i in range(g.size)]
    rows = [values(dtype, (sum(i + 2 * j for j in range(g.size)), 2), i, 3) for i in range(g.size)]
    starts = [sum(i + 2 * j for j in range(g.rank)) for i in range(g.size)]
    want = torch.cat([rows[i][starts[i] : starts[i] + recvs[i]] for i in range(g.size)])
    got = place(want)
    dist.all_to_all_single(got, put(rows[g.rank]), recvs, sends, group=g.blink)
    g.expect(f"alltoall of unequal blocks, {name}", got, want)
    unequal = [values(dtype, (rank + 1, 2), rank, 4) for rank in range(g.size)]
    outputs = [place(t) for t in unequal]
    dist.all_gather(outputs, put(unequal[g.rank]), group=g.blink)
    for output, expected_output in zip(outputs, unequal):
        g.expect(f"allgather of unequal tensors, {name}", output, expected_output)


def large(rank: int, size: int, folder: str) -> list[str]:
    """More than fits into the library's rings."""
    g = Groups(rank, size, folder)
    for count in (99_999, 3_000_001):
        all = g.all(torch.float32, (count,))
        got = all[rank].clone()
        dist.all_reduce(got, group=g.blink)
        g.wrong += right(f"allreduce of {count}", "SUM", got, all)
        whole = torch.empty(size * count)
        dist.all_gather_into_tensor(whole, all[rank], group=g.blink)
        g.expect(f"allgather of {count}", whole, torch.cat(all))
    return g.wrong


def coalesced(rank: int, size: int, folder: str) -> list[str]:
    g = Groups(rank, size, folder)
    shapes = [(3,), (2, 2), (0,), (50,)]
    all = [g.all(torch.float64, shape, seed) for seed, shape in enumerate(shapes)]
    got = [tensors[rank].clone() for tensors in all]
    dist.all_reduce_coalesced(got, group=g.blink)
    for tensor, tensors in zip(got, all):
        g.wrong += right("allreduce coalesced", "SUM", tensor, tensors)
    whole = [torch.empty((size * t[0].shape[0], *t[0].shape[1:]), dtype=torch.float64) for t in all]
    g.blink.all_gather_single_coalesced(whole, [t[rank] for t in all]).wait()
    for tensor, tensors in zip(whole, all):
        g.expect("allgather coalesced", tensor, torch.cat(tensors))
    lists = [[torch.empty_like(t[0]) for _ in range(size)] for t in all]
    g.blink.allgather_coalesced(lists, [t[rank] for t in all]).wait()
    for outputs, tensors in zip(lists, all):
        g.expect("allgather of lists, coalesced", torch.cat(outputs), torch.cat(tensors))
    parts = [torch.empty_like(t[0]) for t in all]
    g.blink.reduce_scatter_single_coalesced(parts, [torch.cat([t[rank]] * size) for t in all]).wait()
    for part, tensors in zip(parts, all):
        g.wrong += right("reducescatter coalesced", "SUM", part, tensors)
    return g.wrong


def objects(rank: int, size: int, folder: str) -> list[str]:
    """What is built on collectives of bytes."""
    g = Groups(rank, size, folder)
    got: list[Any] = [None] * size
    dist.all_gather_object(got, {"rank": rank, "text": "x" * 1000 * rank}, group=g.blink)
    if [item["rank"] for item in got] != list(range(size)):
        g.wrong.append(f"all_gather_object: {got}")
    box: list[Any] = [("from", rank) if rank == 1 else None]
    dist.broadcast_object_list(box, 1, group=g.blink)
    if box != [("from", 1)]:
        g.wrong.append(f"broadcast_object_list: {box}")
    return g.wrong


for ranks in (2, 3, 4):
    for function in (reductions, pre_mul_sum, moves, coalesced, objects):
        case(f"{function.__name__.replace('_', ' ')}, {ranks} ranks", ranks, function)
case("large, 3 ranks", 3, large)
case("moves, 8 ranks", 8, moves)
