"""Threads that hash passwords, separate from the threads for all other work.

bcrypt is slow on purpose, and calls must wait for it. A flood of logins must not take the threads
that a revocation needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request

from catalog.errors import Unavailable

_P = ParamSpec("_P")
_T = TypeVar("_T")
THREADS = 8
MOST_WAITING = 60
"""Some seconds of hashing. If so many calls wait, the next one is told to try again."""


class HashingThreads:
    """A few threads, and a short queue of calls that wait for one."""

    def __init__(self) -> None:
        self._limiter = CapacityLimiter(THREADS)
        # The calls in a thread and in the queue. Only the event loop changes it.
        self._there = 0

    async def run(self, work: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Do the work in such a thread. Gives its result. Raises Unavailable if too many wait."""
        if self._there >= THREADS + MOST_WAITING:
            raise Unavailable("too many passwords are being checked; try again")
        self._there += 1
        try:
            return await to_thread.run_sync(
                partial(work, *arguments, **named), limiter=self._limiter
            )
        finally:
            self._there -= 1


async def _threads_of(request: Request) -> HashingThreads:
    threads: HashingThreads = request.app.state.hashing
    return threads


InHashingThread = Annotated[HashingThreads, Depends(_threads_of)]
