"""Threads that hash passwords, separate from the threads for all other work.

bcrypt is slow on purpose, and calls must wait for it. A flood of logins must not take the threads
that a revocation needs.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from secadmin.service.few_threads import FewThreads

THREADS = 8
MOST_WAITING = 60
"""Some seconds of hashing. If so many calls wait, the next one is told to try again."""


def hashing_threads() -> FewThreads:
    """The threads of one service."""
    return FewThreads(THREADS, MOST_WAITING, "too many passwords are being checked")


async def _threads_of(request: Request) -> FewThreads:
    threads: FewThreads = request.app.state.hashing
    return threads


InHashingThread = Annotated[FewThreads, Depends(_threads_of)]
