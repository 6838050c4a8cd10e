"""Work that may take long, in its own thread, so that the caller does not wait."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Task(Generic[Result]):
    """Work that was started. Callers look at it, and never wait for it."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._result: Result | None = None
        self._error: Exception | None = None
        self.done = False

    def do(self) -> None:
        """Do the work in the current thread. Keep its error for `result`."""
        try:
            self._result = self._work()
        except Exception as error:  # whose work it is decides what it means
            self._error = error
        self.done = True

    def result(self) -> Result:
        """The result. Call it only after it is `done`. Raises the error of the work."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


# Starts a task. The name is for people who list the threads.
Begin = Callable[[str, Task[Any]], object]


def in_thread(name: str, task: Task[Any]) -> None:
    """Start a task in a thread that does not stop the process from ending."""
    Thread(target=task.do, name=name, daemon=True).start()
