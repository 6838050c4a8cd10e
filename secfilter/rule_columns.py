"""The attributes that the rules of a stream read, as columns of ingest (label and level rules)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.expression import AttributeRef, Call, Expression, attributes_of
from catalog.label_rule import ByExpression
from catalog.schema import Attribute, Schema, Type
from secfilter import texts
from secfilter.expressions import to_column
from secfilter.stream_group import Kind, is_kind

_AFTER_QUOTE = 2
_WHOLE = 2**31 - 1


def decoded(kind: Kind, texts_at: Column, times: Mapping[int, str]) -> list[Column]:
    """The attributes that the kind's rules read, each as a column of its type."""
    return [
        fn.when(is_kind(kind), _typed(kind, place, texts_at, times)).alias(name)
        for place, name in _columns(kind, *_expressions(kind)).items()
    ]


def value_of(kind: Kind, expression: Expression) -> Column:
    """The value of an expression of one of the kind's rules, over the columns of `decoded`."""
    names = _columns(kind, expression)
    places = {name: place for place, name in enumerate(kind.schema.names, start=1)}
    renamed = _renamed(expression, {n: names[p] for n, p in places.items() if p in names})
    read = tuple(
        Attribute(column, kind.schema.attributes[place - 1].type) for place, column in names.items()
    )
    return to_column(renamed, Schema(read))


def _expressions(kind: Kind) -> Iterator[Expression]:
    level = () if kind.level_rule is None else (each.rule for each in kind.level_rule.companies)
    for rule in (kind.rule, *level):
        if isinstance(rule, ByExpression):
            yield rule.expression


def _columns(kind: Kind, *expressions: Expression) -> dict[int, str]:
    """The columns of `decoded`, by the places of the attributes."""
    used = {ref.name for expression in expressions for ref in attributes_of(expression)}
    return {
        place: f"__rule_{kind.number}_{place}"
        for place, name in enumerate(kind.schema.names, start=1)
        if name in used
    }


def _typed(kind: Kind, place: int, texts_at: Column, times: Mapping[int, str]) -> Column:
    text = texts.text_at(texts_at, place)
    match kind.schema.attributes[place - 1].type:
        case Type.STRING:
            return fn.when(text != fn.lit(""), fn.substring(text, _AFTER_QUOTE, _WHOLE))
        case Type.TIMESTAMP:
            return fn.col(times[place])
        case Type() as other:
            return text.try_cast(str(other))
        case _:
            return fn.when(text != fn.lit(""), text)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case AttributeRef(name, position):
            return AttributeRef(names[name], position)
        case Call(function, arguments, position):
            return Call(function, tuple(_renamed(each, names) for each in arguments), position)
        case other:
            return other
