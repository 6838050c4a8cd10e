"""Writes plans and their parts as JSON: a node is {"node": its class, its fields...}.

Use `catalog.stored_form` to store a value. It adds the version of the form.
"""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from catalog import expression, pattern, plan
from catalog.errors import InvalidInput, Position
from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.label_rule import ByExpression, ByHeader, BySender
from catalog.level_rule import CompanyRule, LevelRule
from catalog.record_format import RecordFormat
from catalog.relation import DeclaredAggregate, Relation
from catalog.role_view import AttributeRight, RoleView, SmallestWindow, TupleWindow
from catalog.schema import (
    ArrayType,
    Attribute,
    AttributeType,
    MapType,
    Schema,
    StructType,
    parse_type,
)

_CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(plan.Source, plan.Filter, plan.Project, plan.Union, plan.Aggregate, plan.Join),
        plan.Unnest,
        *(plan.Moving, plan.MovingWindow, plan.MovingJoin, plan.ToStream),
        *(plan.Match, pattern.Reading, pattern.Definition, pattern.Skip),
        *(pattern.PatternVariable, pattern.PatternSequence),
        *(pattern.PatternChoice, pattern.PatternRepeat),
        *(plan.Ranked, plan.OrderKey, plan.Neighbour),
        *(plan.Plan, plan.Windowed, plan.Column, plan.Window, plan.SessionWindow, plan.Aggregation),
        plan.Enough,
        *(expression.AttributeRef, expression.Literal, expression.Call, Position),
        *(Relation, DeclaredAggregate, Schema, Attribute, RecordFormat, LabelLayout),
        *(BySender, ByHeader, ByExpression, LevelRule, CompanyRule),
        *(RoleView, AttributeRight, SmallestWindow, TupleWindow),
    )
}
# This is computed once, because evaluating annotations is the slowest part of decoding.
_HINTS = {cls: get_type_hints(cls) for cls in _CLASSES.values()}


def encode(value: Any) -> Any:
    """A value of the plan's classes as JSON objects, lists and scalars."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Label):
        # Write a label in words. Python writes no integer of more than 4,300 digits.
        return {"node": "Label", "words": value.to_wire()}
    if isinstance(value, ArrayType | MapType | StructType):
        # Every type is stored as its text.
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        own = {f.name: encode(getattr(value, f.name)) for f in fields(value)}
        return {"node": type(value).__name__, **own}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


def decode(data: Any) -> Any:
    """The value that `encode` wrote. Raises ValueError for anything else."""
    if isinstance(data, list):
        return tuple(decode(item) for item in data)
    if not isinstance(data, dict):
        return data
    if data.get("node") == "Label":
        return _label(data.get("words"))
    node = str(data.get("node"))
    cls = _CLASSES.get(node)
    given = {key: data[key] for key in data if key != "node"}
    if cls is None or {field.name for field in fields(cls)} != given.keys():
        raise ValueError("not a stored plan")
    hints = _HINTS[cls]
    return cls(**{name: _typed(hints[name], decode(value)) for name, value in given.items()})


def _label(words: object) -> Label:
    label = Label.from_wire(words) if isinstance(words, str) else None
    if label is None:
        raise ValueError("not a stored label")
    return label


def _type(text: object) -> AttributeType:
    try:
        found = parse_type(text) if isinstance(text, str) else None
    except InvalidInput:
        found = None
    if found is None or str(found) != text:
        raise ValueError("not a stored type")
    return found


def _typed(hint: Any, value: Any) -> Any:
    """Turn a scalar back into the enum value or the type that the field holds."""
    if hint == AttributeType:
        return _type(value)
    if get_origin(hint) in (Union, types.UnionType):
        enums = [h for h in get_args(hint) if isinstance(h, type) and issubclass(h, Enum)]
        hint = enums[0] if enums else hint
    if isinstance(hint, type) and issubclass(hint, Enum) and value is not None:
        return hint(value)
    return value
