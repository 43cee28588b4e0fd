"""The process group: each call of torch.distributed as calls of one communicator.

Every call is a step, or several that start together: a function that makes the calls, and one that puts results
where they belong, if libblink could not write there at once: into tensors whose elements do not lie in order, into
lists of tensors, or of types that libblink does not have.

Messages between two ranks have communicators of their own, one for each direction and tag, so that they neither wait
for collectives nor for each other; they are made when the first message is sent or awaited.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    PrefixStore,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)

from .. import BlinkError, Call, Communicator, Config, Op, PreMulSum, SystemFailure, Timeout, group, unique_id
from ._anybody import Anybody
from ._lane import Lane, Work, leave_all
from ._types import Factor, Reduction, check, data, decode, encode, is_plain, plain, reduction, room

Tensors = Sequence[torch.Tensor]

atexit.register(leave_all)

_DONE = Work([], None)
_DONE.settle(None)


@dataclass
class Step:
    """issue: makes calls, and returns the last; finish: when they are done."""

    issue: Callable[[Communicator], Call | None]
    finish: Callable[[], None] | None = None


def connect(store: Any, key: str, rank: int, size: int, config: Config) -> Communicator:
    """Rank 0 makes the id, the others get it by the store, where it has no use once all have come."""
    if rank:
        try:
            store.wait([key], timedelta(seconds=config.timeout))
        except Exception as reason:
            raise Timeout(f"rank {rank}: rank 0 has not made an id for {key}: {reason}") from reason
        value = bytes(store.get(key))
        if not value.startswith(b"id"):
            raise SystemFailure(f"rank 0: {value.decode(errors='replace')}")
        return Communicator(value[2:], rank, size, config)
    try:
        id = unique_id()
    except BlinkError as reason:
        store.set(key, str(reason))
        raise
    store.set(key, b"id" + id)
    comm = Communicator(id, rank, size, config)
    store.delete_key(key)
    return comm


class _Devices(list[torch.device]):
    """False, as those of a group without a backend in C++, which PyTorch's flight recorder cannot record."""

    def __bool__(self) -> bool:
        return False


class ProcessGroup(dist.ProcessGroup):
    """A process group over libblink, for tensors on the CPU."""

    def __init__(
        self, store: Any, rank: int, size: int, timeout: timedelta, options: Config | None = None,
        comm: Communicator | None = None,
    ) -> None:  # fmt: skip
        """comm: of these ranks, if there is one."""
        super().__init__(rank, size)
        self._store = store
        self._size = size
        self._rank = rank
        self._config = options if options and options.timeout else replace(
            options or Config(), timeout=timeout.total_seconds()
        )  # fmt: skip
        self._timeout = 0.0
        self._name = ""
        self._peers: dict[tuple[int, int, int], Lane] = {}
        self._lock = threading.Lock()   # of _peers
        self._barriers = 0              # monitored ones
        self._anybody = Anybody(rank, size, self._config.timeout, self._sender)
        self._lane = Lane(comm or connect(store, "blink", rank, size, self._config))

    # ---- what torch.distributed asks of a group ----

    def getBackendName(self) -> str:
        return "blink"

    def name(self) -> str:
        return "blink"

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    def get_group_store(self) -> Any:
        return self._store

    def _get_backend(self, device: torch.device) -> Any:
        """Itself: there is no backend behind it."""
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"process group: has no backend for {device}: blink is for the CPU")
        return self

    get_backend = _get_backend
    supports_coalescing = False
    supports_splitting = True

    @property
    def _device_types(self) -> list[torch.device]:
        return _Devices([torch.device("cpu")])

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: object = None,
    ) -> ProcessGroup | None:
        """A group of these ranks, in this order, without another meeting. All ranks of this group call it, each with
        the ranks of its own part, or, if it is in none, with those of another: it gets None."""
        if opts is not None and not isinstance(opts, Config):
            raise TypeError(f"pg_options: {type(opts).__name__}: want blink.torch.Options")
        member = self._rank in ranks
        seconds = timeout.total_seconds() if timeout else self._config.timeout
        config = opts if opts and opts.timeout else replace(opts or self._config, timeout=seconds)
        rank = list(ranks).index(self._rank) if member else 0
        comm = self._lane.split(min(ranks) if member else -1, rank, config)
        if comm is None:
            return None
        store = PrefixStore(f"{group_name or min(ranks)}/", self._store)
        part = ProcessGroup(store, rank, len(ranks), timedelta(seconds=seconds), config, comm)
        if group_name:
            part._set_group_name(group_name)  # type: ignore[arg-type]
        if group_desc:
            part._set_group_desc(group_desc)
        return part

    def set_timeout(self, timeout: timedelta) -> None:
        """Of calls from now on, if it is less than the group was made with: that one stays the largest."""
        self._timeout = timeout.total_seconds()

    def shutdown(self) -> None:
        self._anybody.close()
        for lane in self._lanes():
            lane.close()

    def abort(self) -> None:
        self._anybody.close()
        for lane in self._lanes():
            lane.abort()

    def _lanes(self) -> list[Lane]:
        return [self._lane, *self._peers.values()]

    # ---- making calls ----

    def _run(self, steps: Sequence[Step], results: Sequence[torch.Tensor], opts: Any) -> Work:
        if len(steps) == 1:
            issue, finish = steps[0].issue, steps[0].finish
        else:
            finishing = [step.finish for step in steps if step.finish]

            def issue(comm: Communicator) -> Call | None:
                with group():
                    calls = [step.issue(comm) for step in steps]
                return next((call for call in reversed(calls) if call), None)

            def finish() -> None:
                for function in finishing:
                    function()

        if self._at_once(opts):
            self._lane.call(issue, finish)
            return _DONE
        return self._start(self._lane, Work(list(results), finish), issue)

    def _at_once(self, opts: Any) -> bool:
        """Does the caller wait at once, for as long as libblink does? It asks for no result then."""
        return not self._timeout and not getattr(opts, "asyncOp", True)

    def _start(self, lane: Lane, work: Work, issue: Callable[[Communicator], Call | None]) -> Work:
        work._timeout = self._timeout
        return lane.start(work, issue)

    def _copied(self, source: torch.Tensor, target: torch.Tensor) -> Callable[[], None] | None:
        """What is left to do when `source` has the result for `target`."""
        if source.data_ptr() == target.data_ptr():
            return None
        return lambda: decode(source, target)

    # ---- broadcast, reduce, allreduce ----

    def broadcast(self, tensors: Tensors, opts: Any = BroadcastOptions()) -> Work:  # type: ignore[override]
        tensor = _only(tensors)
        return self._run([self._broadcast(tensor, opts.rootRank)], [tensor], opts)

    def _broadcast(self, tensor: torch.Tensor, root: int) -> Step:
        buffer = plain(tensor)
        return Step(lambda comm: comm.broadcast(data(buffer), root), self._copied(buffer, tensor))

    def allreduce(self, tensors: Tensors, opts: Any = AllreduceOptions()) -> Work:  # type: ignore[override]
        tensor = _only(tensors)
        how = reduction(tensor.dtype, opts.reduceOp)
        # What most calls are: the least work before libblink has them.
        if how.direct and is_plain(tensor) and self._at_once(opts) and (comm := self._lane.idle()):
            comm._all_reduce_now(tensor.data_ptr(), tensor.numel(), *how.direct, tensor)
            return _DONE
        return self._run([self._all_reduce(tensor, how)], [tensor], opts)

    def allreduce_coalesced(
        self, tensors: Tensors, opts: Any = AllreduceCoalescedOptions()
    ) -> Work:
        all = [check(tensor) for tensor in tensors]
        steps = [self._all_reduce(tensor, reduction(tensor.dtype, opts.reduceOp)) for tensor in all]
        return self._run(steps, all, opts)

    def _all_reduce(self, tensor: torch.Tensor, how: Reduction) -> Step:
        if how.combine:
            return self._combined(how, tensor, tensor)
        buffer = encode(tensor)
        return self._reducing(
            how, lambda comm, op: comm.all_reduce(data(buffer), op=op), self._copied(buffer, tensor)
        )

    def reduce(self, tensors: Tensors, opts: Any = ReduceOptions()) -> Work:  # type: ignore[override]
        tensor = _only(tensors)
        return self._run([self._reduce(tensor, tensor, opts.rootRank, opts.reduceOp)], [tensor], opts)

    def _reduce(self, send: torch.Tensor, recv: torch.Tensor | None, root: int, reduce_op: Any) -> Step:
        how = reduction(send.dtype, reduce_op)
        if how.combine:
            return self._combined(how, send, recv if self._rank == root else None)
        source = encode(send)
        if self._rank != root or recv is None:
            return self._reducing(how, lambda comm, op: comm.reduce(data(source), None, root, op), None)
        target = room(recv)
        return self._reducing(
            how, lambda comm, op: comm.reduce(data(source), data(target), root, op), self._copied(target, recv)
        )

    def _reducing(
        self, how: Reduction, call: Callable[[Communicator, Op | PreMulSum], Call], finish: Callable[[], None] | None
    ) -> Step:
        """A step by an operation of libblink, one that lives as long as the call if it has a factor."""
        if not isinstance(how.op, Factor):
            op = how.op
            return Step(lambda comm: call(comm, op), finish)
        factor, made = how.op, []

        def issue(comm: Communicator) -> Call:
            made.append(comm.pre_mul_sum(factor.element, factor.dtype))
            return call(comm, made[0])

        def end() -> None:
            made[0].close()
            if finish:
                finish()

        return Step(issue, end)

    def _combined(self, how: Reduction, send: torch.Tensor, recv: torch.Tensor | None) -> Step:
        """By gathering the tensors of all ranks."""
        source, combine = plain(send), how.combine
        stacked = torch.empty((self._size, *source.shape), dtype=source.dtype)

        def finish() -> None:
            if recv is not None and combine:
                recv.copy_(combine(stacked))

        return Step(lambda comm: comm.all_gather(data(source), data(stacked)), finish)

    # ---- gather, allgather, scatter ----

    def allgather(  # type: ignore[override]
        self, output_tensors: Sequence[Tensors], input_tensors: Tensors, opts: Any = AllgatherOptions()
    ) -> Work:
        outputs, tensor = _list_of(output_tensors, self._size), _only(input_tensors)
        return self._run(self._all_gather(outputs, tensor), outputs, opts)

    def allgather_coalesced(
        self, output_lists: Sequence[Tensors], input_list: Tensors, opts: Any = AllgatherOptions()
    ) -> Work:
        """output_lists: a list for each tensor."""
        steps: list[Step] = []
        results: list[torch.Tensor] = []
        for outputs, tensor in zip(output_lists, input_list):
            checked = _list_of([outputs], self._size)
            steps += self._all_gather(checked, check(tensor))
            results += checked
        return self._run(steps, results, opts)

    def _all_gather(self, outputs: list[torch.Tensor], tensor: torch.Tensor) -> list[Step]:
        _same_type(outputs, tensor)
        if any(output.numel() != tensor.numel() for output in outputs):
            return self._all_gather_unequal(outputs, tensor)
        source = plain(tensor)
        joined, finish = _gathered(outputs, source)
        return [Step(lambda comm: comm.all_gather(data(source), data(joined)), finish)]

    def _all_gather_unequal(self, outputs: list[torch.Tensor], tensor: torch.Tensor) -> list[Step]:
        """A broadcast by each rank."""
        if outputs[self._rank].numel() != tensor.numel():
            raise ValueError(
                f"output {self._rank}: {outputs[self._rank].numel()} elements: want {tensor.numel()}, as of the input"
            )
        outputs[self._rank].copy_(tensor.reshape(outputs[self._rank].shape))
        return [self._broadcast(output, root) for root, output in enumerate(outputs)]

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = AllgatherOptions()) -> Work:
        output, input = check(output), check(input)
        return self._run([self._all_gather_single(output, input)], [output], opts)

    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = AllgatherOptions()
    ) -> Work:
        outputs = [check(output) for output in outputs]
        steps = [self._all_gather_single(out, check(tensor)) for out, tensor in zip(outputs, inputs)]
        return self._run(steps, outputs, opts)

    def _all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor) -> Step:
        _same_type([output], tensor)
        source, target = plain(tensor), room_to_move(output)
        return Step(lambda comm: comm.all_gather(data(source), data(target)), self._copied(target, output))

    def gather(  # type: ignore[override]
        self, output_tensors: Sequence[Tensors], input_tensors: Tensors, opts: Any = GatherOptions()
    ) -> Work:
        source, root = plain(_only(input_tensors)), opts.rootRank
        if self._rank != root:
            return self._run([Step(lambda comm: comm.gather(data(source), None, root))], [], opts)
        outputs = _list_of(output_tensors, self._size)
        _same_type(outputs, source)
        joined, finish = _gathered(outputs, source)
        return self._run([Step(lambda comm: comm.gather(data(source), data(joined), root), finish)], outputs, opts)

    def gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = GatherOptions()) -> Work:
        source, root, output = plain(check(input)), opts.rootRank, check(output)
        if self._rank != root:
            return self._run([Step(lambda comm: comm.gather(data(source), None, root))], [], opts)
        target = room_to_move(output)
        finish = self._copied(target, output)
        return self._run([Step(lambda comm: comm.gather(data(source), data(target), root), finish)], [output], opts)

    def scatter(  # type: ignore[override]
        self, output_tensors: Tensors, input_tensors: Sequence[Tensors], opts: Any = ScatterOptions()
    ) -> Work:
        output, root = _only(output_tensors), opts.rootRank
        target = room_to_move(output)
        finish = self._copied(target, output)
        if self._rank != root:
            return self._run([Step(lambda comm: comm.scatter(None, data(target), root), finish)], [output], opts)
        joined = _joined(_list_of(input_tensors, self._size), output)
        return self._run([Step(lambda comm: comm.scatter(data(joined), data(target), root), finish)], [output], opts)

    # ---- reducescatter ----

    def reduce_scatter(  # type: ignore[override]
        self, output_tensors: Tensors, input_tensors: Sequence[Tensors], opts: Any = ReduceScatterOptions()
    ) -> Work:
        output, inputs = _only(output_tensors), _list_of(input_tensors, self._size)
        _same_type(inputs, output)
        if all(tensor.numel() == output.numel() for tensor in inputs):
            joined = _joined(inputs, output)
            return self._run([self._reduce_scatter(output, joined, opts.reduceOp)], [output], opts)
        steps = [
            self._reduce(tensor, output if root == self._rank else None, root, opts.reduceOp)
            for root, tensor in enumerate(inputs)
        ]
        return self._run(steps, [output], opts)

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = ReduceScatterOptions()
    ) -> Work:
        output, input = check(output), check(input)
        return self._run([self._reduce_scatter(output, input, opts.reduceOp)], [output], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = ReduceScatterOptions()
    ) -> Work:
        outputs = [check(output) for output in outputs]
        steps = [self._reduce_scatter(out, check(tensor), opts.reduceOp) for out, tensor in zip(outputs, inputs)]
        return self._run(steps, outputs, opts)

    def _reduce_scatter(self, output: torch.Tensor, tensor: torch.Tensor, reduce_op: Any) -> Step:
        _same_type([output], tensor)
        how = reduction(tensor.dtype, reduce_op)
        if how.combine:
            return self._reduce_scatter_combined(how, output, tensor)
        source, target = encode(tensor), room(output)
        return self._reducing(
            how,
            lambda comm, op: comm.reduce_scatter(data(source), data(target), op),
            self._copied(target, output),
        )

    def _reduce_scatter_combined(self, how: Reduction, output: torch.Tensor, tensor: torch.Tensor) -> Step:
        source, combine = plain(tensor), how.combine
        stacked = torch.empty((self._size, *output.shape), dtype=output.dtype)

        def finish() -> None:
            if combine:
                output.copy_(combine(stacked))

        return Step(lambda comm: comm.all_to_all(data(source), data(stacked)), finish)

    # ---- alltoall ----

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: Any = AllToAllOptions(),
    ) -> Work:
        """Splits: of dimension 0; none: equal ones, on all ranks."""
        output, input = check(output), check(input)
        _same_type([output], input)
        source, target = plain(input), room_to_move(output)
        finish = self._copied(target, output)
        if not output_split_sizes and not input_split_sizes:
            return self._run([Step(lambda comm: comm.all_to_all(data(source), data(target)), finish)], [output], opts)
        sends = _blocks(source, input_split_sizes, self._size)
        recvs = _blocks(target, output_split_sizes, self._size)
        return self._run([self._exchange(sends, recvs, finish)], [output], opts)

    def alltoall(
        self, output_tensors: Tensors, input_tensors: Tensors, opts: Any = AllToAllOptions()
    ) -> Work:
        outputs, inputs = _list_of([output_tensors], self._size), _list_of([input_tensors], self._size)
        _same_type(outputs, inputs[0])
        targets = [room_to_move(output) for output in outputs]
        copies = [copy for target, output in zip(targets, outputs) if (copy := self._copied(target, output))]

        def finish() -> None:
            for copy in copies:
                copy()

        return self._run([self._exchange([plain(tensor) for tensor in inputs], targets, finish)], outputs, opts)

    def _exchange(self, sends: Tensors, recvs: Tensors, finish: Callable[[], None] | None) -> Step:
        """A block to and from every rank. Both sides know which are empty."""
        me = self._rank
        if sends[me].numel() != recvs[me].numel():
            raise ValueError(f"to rank {me} itself: {sends[me].numel()} elements, {recvs[me].numel()} of them expected")
        sources, targets = [data(block) for block in sends], [data(block) for block in recvs]
        return Step(lambda comm: comm.all_to_allv(sources, targets), finish)

    # ---- barrier, messages ----

    def barrier(self, opts: Any = BarrierOptions()) -> Work:
        return self._run([Step(lambda comm: comm.barrier())], [], opts)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """By the store, so that it says who is missing even where collectives hang. Rank 0 waits for the others and
        tells them: all raise Timeout with the ranks that have not come in time, the first, or all of them."""
        seconds = timeout.total_seconds() if timeout else self._config.timeout
        deadline, at = time.monotonic() + seconds, f"blink/barrier/{self._barriers}"
        self._barriers += 1
        if self._rank:
            self._store.set(f"{at}/{self._rank}", "here")
            # Rank 0 may begin to wait later than this one.
            if not self._comes(f"{at}/0", deadline + seconds):
                raise Timeout(f"rank 0: did not pass monitored_barrier in {2 * seconds:g} s")
            verdict = bytes(self._store.get(f"{at}/0")).decode()
        else:
            missing: list[int] = []
            for rank in range(1, self._size):
                if (wait_all_ranks or not missing) and not self._comes(f"{at}/{rank}", deadline):
                    missing.append(rank)
            names = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
            verdict = f"{names}: did not pass monitored_barrier in {seconds:g} s" if missing else "passed"
            self._store.set(f"{at}/0", verdict)
            self._forget_barrier(self._barriers - 2)
        if verdict != "passed":
            raise Timeout(verdict)

    def _comes(self, key: str, deadline: float) -> bool:
        """Whether another rank has set it by then. A FileStore would wait for whole seconds."""
        pause = 0.001
        while not self._store.check([key]):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, 0.05)
        return True

    def _forget_barrier(self, number: int) -> None:
        """All ranks have read what rank 0 said in it, as they came to the next one."""
        for rank in range(self._size if number >= 0 else 0):
            self._store.delete_key(f"blink/barrier/{number}/{rank}")

    def send(self, tensors: Tensors, dst: int, tag: int = 0) -> Work:
        source = plain(_only(tensors))
        lane = self._peer(self._rank, dst, tag)
        return self._start(lane, Work([], None), lambda comm: comm.send(data(source), 1))

    def recv(self, tensors: Tensors, src: int, tag: int = 0) -> Work:
        tensor = _only(tensors)
        target = room_to_move(tensor)
        lane = self._peer(src, self._rank, tag)
        work = Work([tensor], self._copied(target, tensor), src)
        return self._start(lane, work, lambda comm: comm.recv(data(target), 0))

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Work:
        tensor = _only(tensors)
        if tensor.numel() == 0:
            raise ValueError("recv from any source: a tensor without elements: want one, or a source")
        target = room_to_move(tensor)
        work = Work([tensor], self._copied(target, tensor))
        self._anybody.start(tag, work, lambda comm: comm.recv(data(target), 0))
        return work

    def _peer(self, source: int, target: int, tag: int) -> Lane:
        """Of messages in one direction; the sender is rank 0 of two."""
        key = (source, target, tag)
        with self._lock:
            if key not in self._peers:
                name = _key_of(*key)
                self._peers[key] = Lane(
                    None, lambda: connect(self._store, name, int(self._rank == target), 2, self._config)
                )
            return self._peers[key]

    def _sender(self, source: int, tag: int, look: bool) -> Lane | None:
        """Of messages from that rank, if it has sent any. look: in the store, too, where it has the id of the lane."""
        lane = self._peers.get((source, self._rank, tag))
        if lane is None and look and self._store.check([_key_of(source, self._rank, tag)]):
            lane = self._peer(source, self._rank, tag)
        return lane

    if not TYPE_CHECKING:   # names that torch had before
        _allgather_base = all_gather_single
        allgather_into_tensor_coalesced = all_gather_single_coalesced
        _reduce_scatter_base = reduce_scatter_single
        reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
        alltoall_base = all_to_all_single
        gather_into_tensor = gather_single


def _key_of(source: int, target: int, tag: int) -> str:
    return f"blink/{source}/{target}/{tag}"


def room_to_move(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if is_plain(tensor) else torch.empty(tensor.shape, dtype=tensor.dtype)


def _only(tensors: Tensors) -> torch.Tensor:
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors: want 1")
    return check(tensors[0])


def _list_of(lists: Sequence[Tensors], size: int) -> list[torch.Tensor]:
    if len(lists) != 1 or len(lists[0]) != size:
        raise ValueError(f"{len(lists[0]) if lists else 0} tensors: want {size}, one for each rank")
    return [check(tensor) for tensor in lists[0]]


def _same_type(tensors: Tensors, other: torch.Tensor) -> None:
    for tensor in tensors:
        if tensor.dtype != other.dtype:
            raise TypeError(f"tensors of {tensor.dtype} and {other.dtype}: want one type")


def _blocks(tensor: torch.Tensor, splits: Sequence[int], size: int) -> list[torch.Tensor]:
    """Blocks along dimension 0 of a plain tensor; each is plain."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if not splits and rows % size == 0:
        splits = [rows // size] * size
    if len(splits) != size or sum(splits) != rows:
        raise ValueError(f"split sizes {list(splits)}: want {size} of them, {rows} in all")
    return list(torch.split(tensor, list(splits)))


def _gathered(outputs: list[torch.Tensor], tensor: torch.Tensor) -> tuple[torch.Tensor, Callable[[], None] | None]:
    """Where to gather blocks, and how they come from there into the list: not at all where they lie side by side."""
    for output in outputs:
        if output.numel() != tensor.numel():
            raise ValueError(f"output: {output.numel()} elements: want {tensor.numel()}, as of the input")
    side_by_side = _side_by_side(outputs)
    if side_by_side is not None:
        return side_by_side, None
    joined = torch.empty((len(outputs), tensor.numel()), dtype=tensor.dtype)

    def finish() -> None:
        for output, block in zip(outputs, joined):
            output.copy_(block.view(output.shape))

    return joined, finish


def _joined(inputs: list[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
    """The blocks, one after the other."""
    for tensor in inputs:
        if tensor.numel() != like.numel():
            raise ValueError(f"input: {tensor.numel()} elements: want {like.numel()}, as of the output")
    _same_type(inputs, like)
    side_by_side = _side_by_side(inputs)
    return side_by_side if side_by_side is not None else torch.cat([plain(tensor).reshape(-1) for tensor in inputs])


def _side_by_side(blocks: list[torch.Tensor]) -> torch.Tensor | None:
    """The blocks as one tensor, if they are parts of one in order."""
    first, size = blocks[0], blocks[0].numel()
    storage = first.untyped_storage().data_ptr()
    for i, block in enumerate(blocks):
        if not is_plain(block) or block.untyped_storage().data_ptr() != storage:
            return None
        if block.storage_offset() != first.storage_offset() + i * size:
            return None
    return first.as_strided((len(blocks) * size,), (1,))
