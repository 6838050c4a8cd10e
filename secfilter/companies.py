"""Levels in ingest: the companies that a record is of, and their categories (001 §3).

For each conflict class of a stream's level rule there is a text: a company, T or ⊥. A record is
refused if the text is nothing of these, or if there is none.
"""

from __future__ import annotations

from functools import partial, reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.conflict_class import NOTHING, TRUSTED, ConflictClass
from catalog.label import MAX_WORDS, Label
from catalog.label_rule import ByExpression, BySender
from secfilter import role_text
from secfilter.lab import short_label
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


def with_companies(label: Column, group: StreamGroup) -> Column:
    """The text of a label with the categories of the record's companies added.

    NULL stays NULL: a label that is not known yet.
    """
    each = [_label_texts(group, place) for place in range(_places(group))]
    labels = [found for of_place in each for found in of_place.values()]
    count = max((-(-found.bits.bit_length() // 64) for found in labels), default=0)
    parts = fn.split(label, ",", -1)
    words = []
    for index in range(max(count, 1)):
        own = fn.coalesce(fn.get(parts, fn.lit(index)), fn.lit("0")).cast("bigint")
        pairs = zip(each, columns(group), strict=True)
        added = [_word(found, name, index) for found, name in pairs]
        words.append(reduce(lambda a, b: a.bitwiseOR(b), added, own))
    # A label that is sent again may have more words than the companies.
    rest = fn.slice(parts, len(words) + 1, MAX_WORDS)
    texts = [word.cast("string") for word in words]
    written = fn.when(fn.size(rest) > 0, fn.concat_ws(",", *texts, rest))
    short = short_label(fn.concat_ws(",", *texts), last=words[-1])
    return fn.when(label.isNotNull(), written.otherwise(short))


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


def _word(labels: dict[str, Label], name: str, index: int) -> Column:
    """The word at `index` of the label of the record's text. 0 where the stream has no rule."""
    pairs = [fn.lit(part) for text, label in labels.items() for part in (text, label.word(index))]
    if not pairs:
        return fn.lit(0).cast("bigint")
    found = fn.try_element_at(fn.create_map(*pairs).cast("map<string,bigint>"), _key(name))
    return fn.coalesce(found, fn.lit(0).cast("bigint"))
