"""Threads for what hashes passwords, apart from those that serve all else.

bcrypt takes its time by design, and calls wait for their turn at it: a flood of logins must not
keep the threads from a revocation.
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
"""Some seconds of hashing: who comes behind so many is told to come again."""


class HashingThreads:
    """A few threads, and a short line of those who wait for one."""

    def __init__(self) -> None:
        self._limiter = CapacityLimiter(THREADS)
        # Those in a thread and those in line; only the event loop counts.
        self._there = 0

    async def run(self, work: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """What the work gives, done in such a thread. Raises Unavailable if the line is long."""
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
