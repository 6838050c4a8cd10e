"""The names of columns inside Spark, and how code refers to an attribute."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.errors import InvalidInput
from catalog.label import Label
from catalog.schema import Schema, Type

ID = "__id"
# The id of the sender of a tuple (BIGINT), or NULL if the record says none.
SENDER = "__sender"
# The id of the delivery class whose view the tuple is in (BIGINT), in a plan that keeps state for
# each class (`secfilter.class_views`).
CLASS = "__class"
# The time of a tick in a plan that keeps state (`secfilter.timeline`).
TICK_COLUMN = "__tick"
# Which of the outputs that began later had begun when the tuple came (`secfilter.beginnings`).
BEGUN = "__begun"
# The echo of a tick in a plan that keeps no state (`secfilter.output_ticker`), or NULL for a tuple.
ECHO = "__echo"
# Whether a result is in the part of an output that moves (`secfilter.beginnings`).
PART = "__part_"
# To whom an upsert goes (`secfilter.given_to`).
GIVEN_TO = "__given_to"
# Of a tuple that the query left out: what its subscribers learn of it. NULL for a result.
LEFT_OUT = "__left_out"
_LABEL = "__label_"
_RESERVED = re.compile(
    r"__id|__class|__sender|__clock|__moment|__tick|__begun|__echo|__given_to|__left_out"
    r"|__label_\d+|__part_\d+"
)

ValueOf = Callable[[str], Column]
"""Gives the value of an attribute of a tuple, by its name."""

SPARK_TYPES: dict[Type, str] = {
    Type.BOOLEAN: "boolean",
    Type.BIGINT: "bigint",
    Type.DOUBLE: "double",
    Type.STRING: "string",
    Type.TIMESTAMP: "timestamp",
}


def label_column(index: int) -> str:
    """The column that holds the 64-bit label word at `index` (0 is the lowest), as BIGINT."""
    return f"{_LABEL}{index}"


def words_of(reach: Label) -> tuple[int, ...]:
    """The indexes of the label words that tuples within `reach` need. There is at least one."""
    return reach.word_indexes() or (0,)


def attribute(name: str) -> Column:
    """The column of an attribute. Its name is quoted, because it may contain dots (`a.price`)."""
    return fn.col(quoted(name))


def quoted(name: str) -> str:
    """The name, quoted so that Spark reads it unchanged."""
    return "`" + name.replace("`", "``") + "`"


def check_names(schema: Schema) -> None:
    """Raise InvalidInput if an attribute has the name of one of the platform's own columns.

    Otherwise a query could set a label, by giving a result the name of a label word.
    """
    for name in schema.names:
        if _RESERVED.fullmatch(name):
            raise InvalidInput(f"the name {name!r} is the platform's own; rename it with AS")
