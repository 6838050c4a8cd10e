"""Nested values: as JSON, and their parts."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from catalog.schema import ArrayType, AttributeType, MapType, StructType, Type
from tests.oracle.text import double_text
from tests.oracle.values import Items, Named, Value

_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
# How many values an array of a group has, and how many bytes a text among them.
_MOST, _LONGEST = 1_000, 4_000


def from_json(found: Any, kind: AttributeType) -> Value:
    """The value that parsed JSON stands for. A time is as in results."""
    if found is None:
        return None
    match kind:
        case ArrayType(inner):
            return Items(tuple(from_json(each, inner) for each in found))
        case MapType(inner):
            return Named(tuple((key, from_json(found[key], inner)) for key in sorted(found)))
        case StructType(fields):
            held = ((each.name, from_json(found.get(each.name), each.type)) for each in fields)
            return Named(tuple(pair for pair in held if pair[1] is not None))
        case Type.TIMESTAMP:
            return datetime.strptime(str(found), _TIME)  # noqa: DTZ007
        case Type.DOUBLE:
            return float(found)
    plain: Value = found
    return plain


def to_json(value: Value) -> str:
    """The held form (SPEC.md, Nested values)."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return double_text(value)
        case datetime():
            return f'"{value.isoformat(timespec="microseconds")}Z"'
        case Items(values):
            return f"[{','.join(map(to_json, values))}]"
        case Named(pairs):
            return "{" + ",".join(f"{to_json(key)}:{to_json(each)}" for key, each in pairs) + "}"
    return json.dumps(value, ensure_ascii=False)


def element(whole: Items | Named, place: int | str) -> Value:
    """The element at a place from 1, or from the end if it is negative, or under a key."""
    if isinstance(whole, Named):
        return dict(whole.pairs).get(str(place))
    values = ["no place", *whole.values] if int(place) > 0 else [*whole.values]
    there = place != 0 and -len(values) <= int(place) < len(values)
    return values[int(place)] if there else None


def contains(whole: Value, value: Value) -> bool | None:
    """As IN: unknown if the value is not there, and a NULL is."""
    if not isinstance(whole, Items) or value is None:
        return None
    return True if value in whole.values else None if None in whole.values else False


def cardinality(whole: Items | Named) -> int:
    """How many elements there are."""
    return len(whole.values if isinstance(whole, Items) else whole.pairs)


def collected(function: str, known: list[Any]) -> Value:
    """COLLECT_LIST, COLLECT_SET, TOPK and TOPKDISTINCT of values in the order of their tuples."""
    texts = [
        each if isinstance(each, str) else to_json(each)
        for each in known
        if isinstance(each, str | Items | Named)
    ]
    if not known or any(len(text.encode()) > _LONGEST for text in texts):
        return None
    if function == "collect_list":
        return Items(tuple(known[:_MOST]))
    if function == "collect_set":
        return Items(tuple(sorted({*known}, key=_order)[:_MOST]))
    name, _, number = function.partition("_")
    chosen = {*known} if name == "topkdistinct" else known
    return Items(tuple(sorted(chosen, reverse=True)[: int(number)]))


def _order(value: Any) -> Any:
    """Nested values are ordered as their texts."""
    return to_json(value) if isinstance(value, Items | Named) else value
