"""The limits of one deployment. A request that would exceed them is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from catalog.errors import InvalidInput

MAX_RATE = 10_000_000
"""The highest rate that a stream can declare, in tuples a second."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of queries, engines and streams.

    `sources` is how often one query may read streams and outputs, a stream that is read twice
    counted twice. `window_copies` is in how many windows of one query a tuple may be (size ÷
    slide, summed over its windows): each is state. `slots` are
    the tasks of one engine: each source of each running query takes one for each partition, in the
    engine of the query; each partition of a sender's topic takes one, in the engine of ingest, and
    a stream counts for one sender at least. The side run of a query takes as many tasks as the
    query, and that of ingest as many as its new senders: they are not counted, for an engine has
    twice as many (`secfilter.session`). So many
    `senders` with topics of their own may one stream have. So many delivery `classes` of one output
    may be open; a call that takes rights away may open more. So many of them may one user hold by
    its own subscriptions (`classes_a_user`). With semantics `view`, each class has state of its own
    for each tuple. So `view_copies` limits classes times windows of a tuple (`catalog.admission`).
    `view_rate` limits classes times windows times the tuples a second of all that the query reads.
    A stream without a declared rate counts for `stream_rate` of them (`catalog.rates`).
    With semantics `isolated`, each class has a run of its own. So many `isolated_classes` may an
    output have, and its query takes the tasks of all of them when it is added. A backfill
    reads what came in so many hours (`backfill_hours`), less than the day for which Kafka keeps it.
    """

    sources: int = 64
    window_copies: int = 60
    slots: int = 256
    senders: int = 16
    classes: int = 64
    classes_a_user: int = 16
    view_copies: int = 240
    view_rate: int = 480_000
    stream_rate: int = 1000
    isolated_classes: int = 4
    backfill_hours: int = 23


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
