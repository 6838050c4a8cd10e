"""Work that may take long, in a thread of its own, so that whoever begins it goes on."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Task(Generic[Result]):
    """Work that has begun; it is looked at, never waited for."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._result: Result | None = None
        self._error: Exception | None = None
        self.done = False

    def do(self) -> None:
        """Do the work, in whatever thread; its error is kept for who asks."""
        try:
            self._result = self._work()
        except Exception as error:  # whose work it is decides what it means
            self._error = error
        self.done = True

    def result(self) -> Result:
        """What came of it, once it is `done`. Raises what the work raised."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


# Begins a task under a name, for who looks at the threads.
Begin = Callable[[str, Task[Any]], object]


def in_thread(name: str, task: Task[Any]) -> None:
    """Begin a task in a thread that does not keep the process from ending."""
    Thread(target=task.do, name=name, daemon=True).start()
