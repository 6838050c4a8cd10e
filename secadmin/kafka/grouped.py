"""Requests of several threads at a time, sent as one.

The cluster commits a change of ACLs or settings in tens of milliseconds, and a broker takes up one
request of a connection at a time; but one request may change many things.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Grouped(Generic[_Item]):
    """Collects items while a request is under way, and sends them all in the next one."""

    def __init__(self, send: Callable[[Sequence[_Item]], Sequence[Exception | None]]) -> None:
        """`send` carries out items in one request; it gives each item's failure, or None."""
        self._send = send
        self._waiting: list[tuple[_Item, Future[None]]] = []
        self._waiting_lock = Lock()
        self._one_request = Lock()

    def run(self, items: Sequence[_Item]) -> None:
        """Return when all items have been carried out. Raises the first failure of one of them."""
        futures: list[Future[None]] = [Future() for _ in items]
        with self._waiting_lock:
            self._waiting += zip(items, futures, strict=True)
        with self._one_request:
            self._send_waiting()
        for future in futures:
            future.result()

    def _send_waiting(self) -> None:
        """Send what waits; it may be that another thread has already sent our own items."""
        with self._waiting_lock:
            batch, self._waiting = self._waiting, []
        if not batch:
            return
        try:
            failures = self._send([item for item, _ in batch])
        except Exception as error:
            failures = [error] * len(batch)
        for (_, future), failure in zip(batch, failures, strict=True):
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)
