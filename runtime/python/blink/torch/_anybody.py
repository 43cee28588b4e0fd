"""Messages from whichever rank sends first.

Each sender has a lane of its own (_group.py), made at its first message. A thread for each tag looks which of them has
a message, and makes the call that receives it there: for the Work that waits longest. While nothing comes it looks less
and less often: at lanes once in a millisecond, in the store, where the id of a sender's lane would be, at 20 times
that.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from .. import Aborted, BlinkError, Timeout
from ._lane import Issue, Lane, Work

# Seconds between two looks, at first and at most; and of the store, in such times.
_FIRST, _MOST, _STORE = 10e-6, 1e-3, 20


class Anybody:
    """sender(rank, tag, look): its lane, if it has one; look: in the store, too."""

    def __init__(self, rank: int, size: int, timeout: float, sender: Callable[[int, int, bool], Lane | None]) -> None:
        self._others = [(rank + i) % size for i in range(1, size)]
        self._rank = rank
        self._timeout = timeout
        self._sender = sender
        self._lock = threading.Lock()
        self._waiting: dict[int, deque[tuple[Work, Issue]]] = {}    # by tag; a thread serves each that is not empty
        self._closed = False

    def start(self, tag: int, work: Work, issue: Issue) -> None:
        with self._lock:
            queue = self._waiting.setdefault(tag, deque())
            queue.append((work, issue))
            if len(queue) == 1:
                threading.Thread(target=self._serve, args=(tag, queue), name="blink", daemon=True).start()

    def close(self) -> None:
        """Works that wait fail, in a while."""
        self._closed = True

    def _serve(self, tag: int, queue: deque[tuple[Work, Issue]]) -> None:
        while True:
            work, issue = queue[0]
            try:
                self._find(tag, work, issue).wait(work, None)
            except Exception as reason:
                if not work._done:
                    work.settle(reason)
            with self._lock:
                queue.popleft()
                if not queue:
                    return

    def _find(self, tag: int, work: Work, issue: Issue) -> Lane:
        """The lane that has a message, once its call is made. One that has failed is left out: others may send."""
        deadline, pause, n = time.monotonic() + self._timeout, _FIRST, 0
        while not self._closed:
            failures: list[BlinkError] = []
            for source in self._others:
                try:
                    lane = self._sender(source, tag, n % _STORE == 0)
                    if lane and lane.take(work, issue):
                        work._source = source
                        return lane
                except BlinkError as reason:
                    failures.append(reason)
            if failures and len(failures) == len(self._others):
                raise failures[0]
            if time.monotonic() >= deadline:
                raise Timeout(f"rank {self._rank}: no message from any rank in {self._timeout:g} s")
            time.sleep(pause)
            pause, n = min(2 * pause, _MOST), n + 1
        raise Aborted("process group: was destroyed before a message came from any rank")
