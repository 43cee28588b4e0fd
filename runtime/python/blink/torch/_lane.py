"""Calls of one communicator, in order, and those who wait for them.

A call that its caller waits for at once is made and waited for in one step, by Lane.call. Any other is a Work: one call
of torch.distributed. When the communicator has done it there may be work left, as copying a result to where it belongs;
whoever finds out first that it is done, finishes it and all before it. These are: a thread that waits for the Work; one
that makes the next call; and, if somebody wants a future, a thread of the lane. That thread runs the callbacks of
futures. They may wait for other futures of the same lane, so another thread takes over while they run: there is one
that waits for calls, and as many others as there are callbacks running or a thread to spare.

A lane may exist before its communicator does: calls are then kept until a thread has connected it. So two ranks may
begin to send to each other, each before it receives.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .. import Aborted, BlinkError, Call, Communicator, Config, Timeout

# Seconds until a thread that has nothing to do ends.
_SPARE = 5.0
# Seconds that callbacks of futures have when their group ends. A thread that is in C++ when the interpreter ends would
# end the process by std::terminate.
_LAST = 10.0


class Work(dist.Work):
    """A call that was made, as torch.distributed knows it."""

    def __init__(self, results: list[torch.Tensor], finish: Callable[[], None] | None, source: int = -1) -> None:
        super().__init__()
        self._results = results
        self._finish = finish
        self._source = source
        self._lane: Lane | None = None      # None: a thread settles it, as of a message from any rank
        self._call: Call | None = None
        self._done = False
        self._settled: threading.Event | None = None    # if a thread waits while another settles it
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._future: Any = None
        self._timeout = 0.0     # seconds after which waiting fails; 0: that is up to libblink

    # ---- for torch.distributed ----

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        if not self._done:
            seconds = timeout.total_seconds()
            limit = seconds if seconds > 0 else None
            if self._lane:
                self._lane.wait(self, limit)
            elif not self.await_settled(limit):
                raise Timeout("a message from any rank: has not come: want more time")
        if self._error:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if not self._done and self._lane:
            self._lane.look(self)
        return self._done

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error if self.is_completed() else None

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return self._results

    def source_rank(self) -> int:
        return self._source

    def _source_rank(self) -> int:
        return self._source

    def get_future(self) -> Any:
        with self._lock:
            if self._future is None:
                self._future = torch.futures.Future()
                # An exception has to be raised in a callback, to be one for C++ too.
                self._seen = self._future.then(_value_of)
                wanted = not self._done
                if not wanted:
                    self._future.set_result(self._outcome())
            else:
                wanted = False
        if wanted and self._lane:
            self._lane.finish_later(self)
        return self._seen

    # ---- for the lane ----

    def settle(self, error: BaseException | None) -> None:
        """It is done, or failed. Once."""
        if error is None and self._finish:
            try:
                self._finish()
            except Exception as reason:     # of a copy, or the user's tensor: to be raised where it is waited for
                error = reason
        self._finish = None
        with self._lock:
            self._error = error
            self._done = True
            settled, future = self._settled, self._future
        if settled:
            settled.set()
        if future is not None:
            future.set_result(self._outcome())

    def await_settled(self, timeout: float | None) -> bool:
        """False: it is not after this time."""
        with self._lock:
            if self._done:
                return True
            settled = self._settled = self._settled or threading.Event()
        return settled.wait(timeout)

    def _outcome(self) -> Any:
        return self._error if self._error else self._results


def _value_of(future: Any) -> Any:
    value = future.value()
    if isinstance(value, BaseException):
        raise value
    return value


Issue = Callable[[Communicator], "Call | None"]


class Lane:
    """A communicator and its calls."""

    def __init__(self, comm: Communicator | None, connect: Callable[[], Communicator] | None = None) -> None:
        self._comm = comm
        self._connect = connect
        self._error: BaseException | None = None
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._early: list[tuple[Work, Issue]] = []      # until there is a communicator
        self._connecting = False
        self._pending: deque[Work] = deque()
        self._wanted: deque[Work] = deque()             # those with a future
        self._leading = False
        self._spare = 0
        self._closing = False
        self._threads: set[threading.Thread] = set()    # for futures
        _lanes.add(self)

    def start(self, work: Work, issue: Issue) -> Work:
        """Make the call."""
        work._lane = self
        with self._lock:
            if self._error:
                raise self._error
            if self._comm is None:
                self._early.append((work, issue))
                self._begin()
                return work
            self._issue(self._comm, work, issue)
            first = self._pending[0] if self._pending else work
        if work._call is None:
            work.settle(None)
        elif first is not work:
            self.look(first)
        return work

    def call(self, issue: Issue, finish: Callable[[], None] | None) -> None:
        """Make the call and wait for it. There is a communicator."""
        with self._lock:
            if self._error:
                raise self._error
            assert self._comm
            call = issue(self._comm)
            before = self._pending[-1] if self._pending else None
        if call:
            error: BlinkError | None = None
            try:
                call.wait()
            except BlinkError as reason:
                error = reason
            if before:
                self._settle_to(before, error)
            if error:
                raise error
        if finish:
            finish()

    def split(self, color: int, key: int, config: Config) -> Communicator | None:
        """Of its communicator, after the calls that were made: see Communicator.split."""
        with self._lock:
            if self._error:
                raise self._error
            assert self._comm
            return self._comm.split(color, key, config)

    def take(self, work: Work, issue: Issue) -> bool:
        """Make the call of a Work that receives, if a message is there. The lane connects first, if it has not."""
        with self._lock:
            if self._error:
                raise self._error
            if self._comm is None:
                self._begin()
                return False
            if self._early or self._comm.probe(0) is None:
                return False
            self._issue(self._comm, work, issue)
            return True

    def _begin(self) -> None:
        if not self._connecting:
            self._connecting = True
            _thread(self._connected)

    def idle(self) -> Communicator | None:
        """The communicator, if no call before it is to be settled."""
        return None if self._pending or self._error else self._comm

    def _issue(self, comm: Communicator, work: Work, issue: Issue) -> None:
        """A Work that needs no call is done."""
        work._call = issue(comm)
        if work._call:
            self._pending.append(work)

    def _connected(self) -> None:
        """A thread: connect, and make the calls that were kept."""
        assert self._connect
        try:
            comm = self._connect()
        except Exception as reason:
            self._fail(reason)
            return
        with self._lock:
            closed = self._error
            if not closed:
                self._comm = comm
                failed = self._issue_early(comm)
        if closed:
            comm.close()
            return
        for work, error in failed:
            work.settle(error)
        with self._lock:
            self._changed.notify_all()

    def _issue_early(self, comm: Communicator) -> list[tuple[Work, BaseException]]:
        failed: list[tuple[Work, BaseException]] = []
        for work, issue in self._early:
            try:
                self._issue(comm, work, issue)
            except Exception as reason:
                failed.append((work, reason))
        self._early.clear()
        return failed

    def _fail(self, reason: BaseException) -> None:
        """No call will be done any more."""
        with self._lock:
            self._error = self._error or reason
            works = [work for work, _ in self._early] + list(self._pending)
            self._early.clear()
            self._pending.clear()
        for work in works:
            work.settle(reason)
        with self._lock:
            self._changed.notify_all()

    # ---- waiting ----

    def wait(self, work: Work, timeout: float | None) -> None:
        """Until the Work is settled. Raises Timeout, and the call goes on; or it fails, by the group's timeout."""
        limit = min(timeout, work._timeout) if timeout and work._timeout else timeout or work._timeout or None
        deadline = None if limit is None else time.monotonic() + limit
        try:
            self._wait_until(work, deadline)
        except Timeout:
            if work._done or (work._timeout and limit == work._timeout):
                self.abort()
            raise

    def _wait_until(self, work: Work, deadline: float | None) -> None:
        if not work._call:
            with self._lock:
                begun = self._changed.wait_for(lambda: work._call or work._done, _left(deadline))
            if not begun:
                raise Timeout("a call: its ranks have not met in time: want more time")
        if work._call and not work._done:
            error: BaseException | None = None
            try:
                work._call.wait(_left(deadline))
            except Timeout as reason:
                if not self._failed():
                    raise
                error = reason
            except BlinkError as reason:
                error = reason
            self._settle_to(work, error)
        if not work._done and not work.await_settled(_left(deadline)):
            raise Timeout("a call: is done, and its result not yet in its place: want more time")

    def _failed(self) -> bool:
        return self._comm is None or self._comm.error() is not None

    def look(self, work: Work) -> None:
        """Settle the Work if its call is done."""
        call = work._call
        if call is None:
            return
        try:
            if not call.done():
                return
            error = None
        except BlinkError as reason:
            error = reason
        self._settle_to(work, error)

    def _settle_to(self, work: Work, error: BaseException | None) -> None:
        """The Work and all before it: calls are done in order. Nothing to do if another thread settles it already."""
        works: list[Work] = []
        with self._lock:
            if work in self._pending:
                while not works or works[-1] is not work:
                    works.append(self._pending.popleft())
        for done in works:
            done.settle(error)

    # ---- futures ----

    def finish_later(self, work: Work) -> None:
        """By a thread of the lane."""
        with self._lock:
            self._wanted.append(work)
            self._call_thread()

    def _call_thread(self) -> None:
        if self._wanted and not self._leading:
            if self._spare:
                self._changed.notify_all()
            else:
                self._spare += 1
                self._threads.add(_thread(self._finish_wanted))

    def _finish_wanted(self) -> None:
        while True:
            with self._lock:
                self._changed.wait_for(lambda: (self._wanted and not self._leading) or self._closing, _SPARE)
                self._spare -= 1
                if not self._wanted or self._leading:
                    self._threads.discard(threading.current_thread())
                    return
                self._leading = True
                work = self._wanted[0]
            error: BaseException | None = None
            try:
                with self._lock:
                    self._changed.wait_for(lambda: work._call or work._done)
                if work._call and not work._done:
                    work._call.wait()
            except BlinkError as reason:
                error = reason
            with self._lock:
                self._wanted.popleft()
                self._leading = False
                self._call_thread()
            self._settle_to(work, error)
            with self._lock:
                self._spare += 1

    # ---- the end ----

    def abort(self) -> None:
        with self._lock:
            comm = self._comm
        if comm:
            try:
                comm.abort()
            except BlinkError:
                pass    # it has failed, or is closed: what was wanted
        self._fail(Aborted("process group: was aborted"))

    def close(self) -> None:
        """Wait for the calls that were made, and leave."""
        with self._lock:
            last = self._pending[-1] if self._pending else None
            early = bool(self._early)
        if early:
            self._fail(Aborted("process group: was destroyed before the ranks of a call had met"))
        if last:
            self._wait_until(last, None)
        with self._lock:
            comm, self._comm = self._comm, None
            self._error = self._error or Aborted("process group: was destroyed: want one that is not")
            self._closing = True
            self._changed.notify_all()
            threads = self._threads - {threading.current_thread()}
        for thread in threads:
            thread.join(_LAST)
        if comm:
            comm.close()

    def leave(self) -> None:
        """At the end of the process: others hear of it. Does not wait for calls that were made and are not done."""
        with self._lock:
            last = self._pending[-1] if self._pending else None
        if last:
            self.look(last)
        if last and not last._done:
            self.abort()
        self.close()


_lanes: weakref.WeakSet[Lane] = weakref.WeakSet()


def leave_all() -> None:
    for lane in list(_lanes):
        lane.leave()


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _thread(target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, name="blink", daemon=True)
    thread.start()
    return thread
