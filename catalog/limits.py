"""The limits of one deployment. A request that would exceed them is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from catalog.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of queries, engines and streams.

    The defaults suit the default engines: local[256], 1 GB of heap.

    `sources` is how often one query may read streams and outputs. A stream that is read twice
    counts twice. `window_copies` is the number of windows of one query that a tuple may be in (size
    ÷ slide, summed over its windows), because each takes memory. `slots` is the number of tasks of
    one engine. Each source of a running query takes one task for each partition, in the engine of
    the query. Each partition of a sender's topic takes one task in the engine `ingest`. A stream
    without senders counts as one sender. `senders` is the number of senders with their own topics
    in one stream.
    """

    sources: int = 64
    window_copies: int = 60
    slots: int = 256
    senders: int = 16


_Table = TypeVar("_Table")


def read_limits(kind: type[_Table], given: Mapping[str, object], place: str) -> _Table:
    """Read limits of that kind (a dataclass of numbers) from a table of the settings.

    `place` is the table's name. A limit that is not given has its default. Raises InvalidInput for
    an unknown name, or a value that is not a whole number from 1.
    """
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name, value in given.items():
        if name not in known:
            there = ", ".join(known)
            raise InvalidInput(f"{place}.{name}, which does not exist; there are {there}")
        if type(value) is not int or value < 1:
            raise InvalidInput(f"{place}.{name}: it is {value!r}, and not a whole number from 1 on")
    return kind(**given)
