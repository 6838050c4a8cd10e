"""A few threads for one kind of work, so that a flood of it takes no thread from the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from catalog.errors import Unavailable

_P = ParamSpec("_P")
_T = TypeVar("_T")


class FewThreads:
    """A few threads, and a short queue of calls that wait for one."""

    def __init__(self, threads: int, most_waiting: int, busy: str) -> None:
        """`busy` says what the threads do, to a call that finds the queue full."""
        self._limiter = CapacityLimiter(threads)
        self._most = threads + most_waiting
        self._busy = busy
        # The calls in a thread and in the queue. Only the event loop changes it.
        self._there = 0

    async def run(self, work: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Do the work in such a thread. Gives its result. Raises Unavailable if too many wait."""
        if self._there >= self._most:
            raise Unavailable(f"{self._busy}; try again")
        self._there += 1
        try:
            return await to_thread.run_sync(
                partial(work, *arguments, **named), limiter=self._limiter
            )
        finally:
            self._there -= 1
