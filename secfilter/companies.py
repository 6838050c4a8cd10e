"""Levels in ingest: the companies that a record is of, and their categories (001 §3).

For each conflict class of a stream's level rule there is a text: a company, T or ⊥. A record is
refused if the text is nothing of these, or if there is none.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.conflict_class import NOTHING, TRUSTED, ConflictClass
from catalog.label import Label
from catalog.label_rule import ByExpression, BySender
from secfilter import role_text
from secfilter.added_labels import Added
from secfilter.rule_columns import value_of
from secfilter.stream_group import STREAM, Kind, StreamGroup

_SEPARATOR = "\x1f"
_TEXT = "__company_{}"
_PARTS = (TRUSTED, NOTHING, "_")


def columns(group: StreamGroup) -> list[str]:
    """The columns of the texts, one for each place in a level."""
    return [_TEXT.format(place) for place in range(_places(group))]


def texts(group: StreamGroup) -> list[Column]:
    """The values of these columns, over the columns of `rule_columns.decoded`."""
    return [
        group.by_kind(partial(_text, group=group, place=place)).alias(name)
        for place, name in enumerate(columns(group))
    ]


def wrong(group: StreamGroup) -> Column:
    """Why the level of the record is not known, or NULL if it is known, or has no rule."""
    return fn.coalesce(*(_wrong(group, *each) for each in enumerate(columns(group))))


def _wrong(group: StreamGroup, place: int, name: str) -> Column:
    known = fn.array_contains(_known(group, place), _key(name))
    asked = group.each(lambda stream: fn.lit(place < len(stream.conflict_classes)))
    which = group.each(lambda stream: _name(stream.conflict_classes, place))
    missing = fn.when(fn.col(name).isNull(), " needs a company, T or _, and the record has none")
    reason = fn.concat(
        fn.lit("level: the conflict class "),
        which,
        missing.otherwise(" has no company of the name that the record has"),
    )
    return fn.when(asked & ~fn.coalesce(known, fn.lit(False)), reason)


def added(group: StreamGroup) -> list[Added]:
    """The categories of the record's companies, one for each place in a level."""
    return [
        Added(_label_texts(group, place), _key(name)) for place, name in enumerate(columns(group))
    ]


def _text(kind: Kind, group: StreamGroup, place: int) -> Column:
    nothing = fn.lit(None).cast("string")
    if kind.level_rule is None or place >= len(kind.level_rule.companies):
        return nothing
    match kind.level_rule.companies[place].rule:
        case BySender():
            pairs = [
                fn.lit(part)
                for sender in group.senders
                if place < len(sender.parts)
                for part in (str(sender.id), sender.parts[place])
            ]
            if not pairs:
                return nothing
            sender = role_text.sender_id(group) if group.ruled else group.sender_id()
            return fn.try_element_at(fn.create_map(*pairs), sender)
        case ByExpression(expression):
            return value_of(kind, expression)


def _places(group: StreamGroup) -> int:
    return max((len(stream.conflict_classes) for stream in group.streams), default=0)


def _name(classes: tuple[ConflictClass, ...], place: int) -> str:
    return classes[place].name if place < len(classes) else ""


def _key(name: str) -> Column:
    return fn.concat_ws(_SEPARATOR, fn.col(STREAM).cast("string"), fn.col(name))


def _known(group: StreamGroup, place: int) -> Column:
    return fn.array(*(fn.lit(key) for key in _label_texts(group, place)))


def _label_texts(group: StreamGroup, place: int) -> dict[str, Label]:
    """The label of each text that is a part of a level, by the stream's number and the text."""
    found: dict[str, Label] = {}
    for number, stream in enumerate(group.streams):
        if place < len(stream.conflict_classes):
            own = stream.conflict_classes[place]
            for text in (*own.companies, *_PARTS):
                label = own.label_of(text)
                if label is not None:
                    found[f"{number}{_SEPARATOR}{text}"] = label
    return found
