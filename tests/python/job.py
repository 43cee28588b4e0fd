"""The package blink without torch: every call, by buffers of the standard library; errors; groups.

Prints lines `ok NAME`, `not ok NAME: why`. Every job ends by a deadline."""

from __future__ import annotations

import multiprocessing
import os
import signal
import struct
import threading
import time
from array import array
from collections.abc import Callable
from typing import Any

import blink
from blink import Communicator, Config, DataType, Op

SUITE = os.environ.get("suite", "python")
# Letters of array and memoryview, and the types that they are.
LETTERS = "bBiIqQfd"


def report(name: str, why: str | None = None) -> None:
    print(f"ok {SUITE}: {name}" if why is None else f"not ok {SUITE}: {name}: {why}", flush=True)


class Check:
    def __init__(self) -> None:
        self.wrong: list[str] = []

    def __call__(self, name: str, got: Any, want: Any = True) -> None:
        if got != want:
            self.wrong.append(f"{name}: {got!r}: want {want!r}"[:300])

    def raises(self, name: str, kind: type[BaseException], words: str, function: Any, *args: Any, **more: Any) -> None:
        try:
            function(*args, **more)
        except kind as reason:
            if words not in str(reason):
                self.wrong.append(f"{name}: {reason}: want {words}")
        except BaseException as reason:
            self.wrong.append(f"{name}: {type(reason).__name__}: {reason}: want {kind.__name__}")
        else:
            self.wrong.append(f"{name}: no {kind.__name__}")


Body = Callable[[Communicator, Check], None]


def _child(body: Body, id: bytes, rank: int, size: int, pipe: Any) -> None:
    check = Check()
    try:
        with Communicator(id, rank, size, Config(timeout=20)) as comm:
            body(comm, check)
    except BaseException as reason:
        check.wrong.append(f"{type(reason).__name__}: {reason}")
    pipe.send(check.wrong)
    pipe.close()
    os._exit(0)


def case(name: str, size: int, body: Body, victim: int = -1) -> None:
    """A rank is a process; the id comes from here. victim: a rank that has to die."""
    context, id = multiprocessing.get_context("fork"), blink.unique_id()
    ranks = []
    for rank in range(size):
        here, there = context.Pipe(False)
        process = context.Process(target=_child, args=(body, id, rank, size, there))
        process.start()
        there.close()
        ranks.append((process, here))
    wrong, deadline = [], time.monotonic() + 60
    for rank, (process, pipe) in enumerate(ranks):
        try:
            result = pipe.recv() if pipe.poll(max(0.0, deadline - time.monotonic())) else ["did not end"]
        except EOFError:
            result = [] if rank == victim else ["died"]
        wrong += [f"rank {rank}: {item}" for item in result]
        process.kill()
        process.join()
    report(f"{name}, {size} ranks", f"{len(wrong)} faults: {wrong[0]}" if wrong else None)


def numbers(letter: str, count: int, start: int) -> array[Any]:
    return array(letter, [start + i % 7 for i in range(count)])


def collectives(comm: Communicator, check: Check) -> None:
    n, me, total = comm.size, comm.rank, sum(range(comm.size))
    for letter in LETTERS:
        for count in (0, 1, 1000):
            mine, name = numbers(letter, count, me), f"{letter}, {count}"
            summed = array(letter, [total + n * (i % 7) for i in range(count)])
            everything = sum((numbers(letter, count, r) for r in range(n)), array(letter))
            data = mine[:]
            comm.all_reduce(data).wait()
            check(f"allreduce in place, {name}", data, summed)
            out = array(letter, bytes(mine.itemsize * count))
            comm.all_reduce(mine, out, Op.MAX).wait()
            check(f"allreduce, max, {name}", out, numbers(letter, count, n - 1))
            data = mine[:]
            comm.reduce(data, data if me == 1 else None, 1).wait()
            check(f"reduce, {name}", data, summed if me == 1 else mine)
            data = mine[:]
            comm.broadcast(data, 1).wait()
            check(f"broadcast, {name}", data, numbers(letter, count, 1))
            whole = array(letter, bytes(mine.itemsize * count * n))
            comm.all_gather(mine, whole).wait()
            check(f"allgather, {name}", whole, everything)
            whole = array(letter, bytes(mine.itemsize * count * n))
            comm.gather(mine, whole if me == 0 else None).wait()
            check(f"gather, {name}", whole == everything, me == 0 or count == 0)
            comm.scatter(everything if me == 0 else None, out).wait()
            check(f"scatter, {name}", out, mine)
            comm.reduce_scatter(everything, out, Op.SUM).wait()
            check(f"reducescatter, {name}", list(out), [n * x for x in mine])
            comm.all_to_all(mine * n, whole).wait()
            check(f"alltoall, {name}", whole, everything)
            parts = [memoryview(mine)[: count * (peer != 1)] for peer in range(n)]
            got = [array(letter, bytes(mine.itemsize * count * (me != 1))) for _ in range(n)]
            comm.all_to_allv(parts, got).wait()
            check(f"alltoallv, {name}", [list(block) for block in got], [
                list(numbers(letter, count * (me != 1), peer)) for peer in range(n)])


def buffers(comm: Communicator, check: Check) -> None:
    """Whatever has the buffer protocol; types that it lacks; pointers."""
    me, n = comm.rank, comm.size
    half = bytearray(struct.pack("=4e", 1, 2, 3, me))
    comm.all_reduce(half, dtype=DataType.FLOAT16).wait()
    check("float16", struct.unpack("=4e", half), (n, 2 * n, 3 * n, sum(range(n))))
    brain = bytearray(struct.pack("=H", 0x3F80))
    comm.all_reduce(brain, dtype=DataType.BFLOAT16).wait()
    check("bfloat16", struct.unpack("=f", b"\0\0" + bytes(brain))[0], float(n))
    matrix = memoryview(bytearray(24)).cast("B", (2, 3, 4))
    comm.broadcast(matrix).wait()
    received = bytearray(3)
    comm.all_reduce(bytes((1, 2, me)), received).wait()
    check("bytes can be sent", received, bytes((n, 2 * n, sum(range(n)))))
    values = array("d", [1.5, 2.5])
    comm.all_reduce(blink.Pointer(values.buffer_info()[0], 2, DataType.FLOAT64, values)).wait()
    check("a pointer", list(values), [1.5 * n, 2.5 * n])
    op = comm.pre_mul_sum(0.5, DataType.FLOAT32)
    data = array("f", [2, 4])
    comm.all_reduce(data, op=op).wait()
    op.close()
    check("pre_mul_sum", list(data), [n, 2 * n])
    whole = array("q", [7, -7])
    comm.all_reduce(whole, op=Op.AVG).wait()
    check("average", list(whole), [7, -7])
    check.raises("read-only", blink.InvalidArgument, "read-only", comm.broadcast, b"xy")
    check.raises("not contiguous", blink.InvalidArgument, "contiguous", comm.broadcast, memoryview(bytearray(9))[::2])
    check.raises("count", blink.InvalidArgument, "want", comm.all_gather, bytes(2), bytearray(3))
    check.raises("type", blink.InvalidArgument, "INT8", comm.all_reduce, array("b", [1]), array("B", [1]))
    check.raises("format", blink.InvalidArgument, "format", comm.broadcast, array("h", [1]))
    part = bytearray(3)
    check.raises("part of an element", blink.InvalidArgument, "multiple", comm.broadcast, part, dtype=DataType.INT32)
    check.raises("root", blink.InvalidArgument, "root", comm.broadcast, bytearray(4), 99)
    comm.barrier().wait()


def in_the_air(comm: Communicator, check: Check) -> None:
    """Calls that are not waited for in order, in groups, from threads; whose buffers nobody else holds."""
    n, me = comm.size, comm.rank
    data = [array("i", [i, me]) for i in range(30)]
    calls = [comm.all_reduce(item) for item in data]
    calls[-1].wait(10)
    check("all before it are done", all(call.done() for call in calls))
    check("sums", [list(item) for item in data], [[n * i, sum(range(n))] for i in range(30)])
    target = bytearray(8 * n)
    for i in range(20):
        comm.all_gather(struct.pack("=q", i), target)
    comm.wait()
    check("buffers are kept", bytes(target), struct.pack("=q", 19) * n)
    right, left = (me + 1) % n, (me - 1) % n
    got = bytearray(3)
    with blink.group():
        sent = comm.send(bytes((me, 1, 2)), right)
        with blink.group():
            received = comm.recv(got, left)
        check.raises("a call inside a group", blink.InvalidArgument, "group", received.wait)
    sent.wait()
    check("no message", comm.probe(left), None)
    comm.barrier().wait()
    if me == 0:
        comm.send(bytes(5), 1).wait()
    if me == 1:
        while (size := comm.probe(0)) is None:
            pass
        check("a message, and its size", size, 5)
        comm.recv(bytearray(size), 0).wait()
        check("it was received", comm.probe(0), None)
    check.raises("a probe of no rank", blink.InvalidArgument, "peer", comm.probe, n)
    check("sendrecv", bytes(got), bytes((left, 1, 2)))
    part = comm.split(me % 2, -me)
    assert part
    check("split", (part.size, part.rank), (len(range(me % 2, n, 2)), len(range(me + 2, n, 2))))
    done: list[int] = []

    def beside() -> None:
        item = array("i", [1])
        part.all_reduce(item).wait()
        done.append(item[0])

    thread = threading.Thread(target=beside)
    thread.start()
    comm.barrier().wait()
    thread.join()
    check("a thread on another communicator", done, [part.size])
    part.close()
    part.close()
    check.raises("closed", blink.InvalidArgument, "closed", part.barrier)
    check("no part", comm.split(-1), None)


def dies(comm: Communicator, check: Check) -> None:
    """Ranks that are left go on without the one that has died."""
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    check.raises("the others hear of it", blink.RemoteError, "rank 1", lambda: comm.all_reduce(bytearray(4)).wait())
    with comm.shrink([1], abort=True) as rest:
        check("who is left", (rest.rank, rest.size), (comm.rank // 2, comm.size - 1))
        check("sum of those", sum_of_ranks(rest), sum(range(rest.size)))


def grows(comm: Communicator, check: Check) -> None:
    """Without the last rank, and then with it again."""
    old = comm.size - 1
    check.raises("who leaves itself out", blink.InvalidArgument, "itself", comm.shrink, [comm.rank])
    check.raises("no such rank", blink.InvalidArgument, "99", comm.shrink, iter([99]))
    check.raises("too few", blink.InvalidArgument, "want", comm.grow, comm.size)
    check.raises("no id", blink.InvalidArgument, "128", comm.grow, comm.size + 1, b"short")
    id = bytearray(blink.unique_id() if comm.rank == 0 else 128)
    comm.broadcast(id).wait()
    if comm.rank == old:
        grown = Communicator(bytes(id), old, comm.size)
    else:
        few = comm.shrink({old})
        grown = few.grow(comm.size, bytes(id) if few.rank == 0 else None)
        few.close()
    with grown:
        check("as it was", (grown.rank, grown.size, sum_of_ranks(grown)), (comm.rank, old + 1, sum(range(old + 1))))


def sum_of_ranks(comm: Communicator) -> int:
    data = array("i", [comm.rank])
    comm.all_reduce(data).wait()
    return data[0]


def failures(comm: Communicator, check: Check) -> None:
    check.raises("mismatch", blink.Mismatch, "allreduce", lambda: comm.all_reduce(bytearray(4 + comm.rank)).wait())
    check("error", isinstance(comm.error(), blink.Mismatch))


def aborts(comm: Communicator, check: Check) -> None:
    if comm.rank == 0:
        call = comm.all_reduce(bytearray(4))
        check("not done", call.done(), False)
        check.raises("a short wait", blink.Timeout, "not done", call.wait, 0.05)
        check("no error", comm.error(), None)
        threading.Timer(0.1, comm.abort).start()
        check.raises("aborted here", blink.Aborted, "", call.wait)
    else:
        time.sleep(0.5)
        check.raises("aborted there", blink.Aborted, "", lambda: comm.all_reduce(bytearray(4)).wait())


def ends(comm: Communicator, check: Check) -> None:
    """A rank leaves by an exception: the others hear of it."""
    if comm.rank == 0:
        try:
            with comm:
                raise KeyError
        except KeyError:
            return
    check.raises("others", blink.Aborted, "rank 0", lambda: comm.all_reduce(bytearray(4)).wait())


def alone() -> None:
    check = Check()
    check("version", blink.version().count("."), 2)
    check.raises("id", blink.InvalidArgument, "128", Communicator, b"short", 0, 1)
    check.raises("rank", blink.InvalidArgument, "rank", Communicator, blink.unique_id(), 1, 1)
    begin = time.monotonic()
    check.raises("nobody comes", blink.Timeout, "rank", Communicator, blink.unique_id(), 0, 2, Config(timeout=0.5))
    check("in time", time.monotonic() - begin < 5)
    with Communicator(blink.unique_id(), 0, 1) as comm:
        data = array("f", [1, 2])
        comm.all_reduce(data).wait()
        check("a rank alone", list(data), [1, 2])
        comm.all_reduce(bytearray(100))
        del comm    # with a call that nobody waited for
    codes = [kind.code for kind in blink.BlinkError.__subclasses__()]
    check("codes", codes, [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14])
    report("without others", f"{len(check.wrong)} faults: {check.wrong[0]}" if check.wrong else None)


for size in (2, 3, 5):
    case("collectives", size, collectives)
case("buffers", 3, buffers)
case("calls in the air", 4, in_the_air)
case("failures", 2, failures)
case("aborts", 2, aborts)
case("ends", 3, ends)
case("dies", 3, dies, 1)
case("grows", 3, grows)
alone()
