"""To whom an upsert goes: to everybody, or again to some topics alone (`secfilter.standing`).

Each upsert has a text that says this, in the column `GIVEN_TO`. Labels decide besides.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as fn

from secfilter.columns import GIVEN_TO

FOR_EVERYBODY = ""
# No topic's name has one of these.
_BETWEEN, _READER = ",", "="


def for_topics(topics: Iterable[str]) -> str:
    """The text of a row that stands, which goes to these topics."""
    return _BETWEEN.join(dict.fromkeys(topics))


def for_reader(topics: Iterable[str], reader: int) -> str:
    """The text of a mark: what goes to these topics behind all rows that this reader gets."""
    return for_topics([*topics, f"{_READER}{reader}"])


def reader_in() -> Column:
    """The id of the reader for which the row is the mark, as text. It is empty for other rows."""
    return fn.regexp_extract(fn.col(GIVEN_TO), f"{_BETWEEN}{_READER}([0-9]+)$", 1)


def stands_again() -> Column:
    """Whether it is a row that stands, and goes to some topics alone."""
    return fn.col(GIVEN_TO) != fn.lit(FOR_EVERYBODY)


def goes_to(topic: str) -> Column:
    """Whether the row goes to this topic, if its label allows it (never NULL)."""
    named = fn.array_contains(fn.split(fn.col(GIVEN_TO), _BETWEEN), fn.lit(topic))
    return fn.coalesce((fn.col(GIVEN_TO) == fn.lit(FOR_EVERYBODY)) | named, fn.lit(False))
