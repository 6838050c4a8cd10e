"""How long chosen functions take while the real thing runs through them."""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    """Sums up the time within functions, by the part that they are of, in milliseconds.

    A function that another timed one calls counts with that one.
    """

    def __init__(self) -> None:
        self.ms: defaultdict[str, float] = defaultdict(float)
        self._inside = False

    @contextmanager
    def watching(self, parts: dict[str, Sequence[tuple[Any, str]]]) -> Iterator[None]:
        """Time functions (part -> modules or classes and names) until the block ends."""
        originals = [
            (owner, name, getattr(owner, name)) for s in parts.values() for owner, name in s
        ]
        for part, functions in parts.items():
            for owner, name in functions:
                setattr(owner, name, self._timed(part, getattr(owner, name)))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            if self._inside:
                return function(*arguments, **named)
            self._inside, started = True, time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.ms[part] += (time.perf_counter() - started) * 1000
                self._inside = False

        return timed
