"""Steps that upgrade old stored forms by one version each. A released step never changes.

Steps work on JSON and not on classes, because the classes change with the program. A node is an
object whose "node" is the name of its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_PLAN_NODES = ("Source", "Filter", "Project", "Union", "Aggregate", "Join")


def _each_object(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """The JSON value with every object changed, the inner ones first."""
    if isinstance(value, list):
        return [_each_object(item, change) for item in value]
    if isinstance(value, Mapping):
        return change({key: _each_object(item, change) for key, item in value.items()})
    return value


def windows_and_emission(value: Any) -> Any:
    """1 to 2: in form 1 an aggregate had its own window and its own choice of updates."""
    updates = False

    def change(item: dict[str, Any]) -> dict[str, Any]:
        nonlocal updates
        if item.get("node") == "DeclaredAggregate":
            return {"since_ms": 0, **item}
        if item.get("node") != "Aggregate" or "window" not in item:
            return item
        updates = updates or item.get("updates") is True
        windowed = {"node": "Windowed", "input": item.get("input"), "window": item["window"]}
        rest = {k: v for k, v in item.items() if k not in {"window", "updates"}}
        return {**rest, "input": windowed}

    root = _each_object(value, change)
    if isinstance(root, dict) and root.get("node") in _PLAN_NODES:
        return {"node": "Plan", "root": root, "emission": "updates" if updates else "closed"}
    return root


def no_reaches(value: Any) -> Any:
    """2 to 3: in form 2 a relation had the categories that its tuples can carry."""

    def change(item: dict[str, Any]) -> dict[str, Any]:
        if item.get("node") != "Relation":
            return item
        return {k: v for k, v in item.items() if k != "reach"}

    return _each_object(value, change)


def no_offsets(value: Any) -> Any:
    """3 to 4: in form 3 all windows were counted from 1970."""

    def change(item: dict[str, Any]) -> dict[str, Any]:
        return {"offset_ms": 0, **item} if item.get("node") == "Window" else item

    return _each_object(value, change)


def time_by_data(value: Any) -> Any:
    """4 to 5: in form 4 the data moved the time of every relation."""

    def change(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "time": "data"} if item.get("node") == "Relation" else item

    return _each_object(value, change)


def moving_windows(value: Any) -> Any:
    """5 to 6: form 5 had no moving windows. The number keeps older programs from reading them."""
    return value


def joined_moving_windows(value: Any) -> Any:
    """6 to 7: form 6 had no joins of moving windows. Older programs must not read them."""
    return value


def levels_patterns_and_joins(value: Any) -> Any:
    """7 to 8: form 7 had no levels and no event patterns, and inner joins of moving windows."""
    new: dict[str, dict[str, Any]] = {
        "Relation": {"conflict_classes": []},
        "Source": {"shows_level": False},
        "MovingJoin": {"kind": "inner", "nulls_equal": False},
    }

    def change(item: dict[str, Any]) -> dict[str, Any]:
        return {**new.get(str(item.get("node")), {}), **item}

    return _each_object(value, change)


def sessions_and_outer_joins(value: Any) -> Any:
    """8 to 9: form 8 had no session windows, FIRST, LAST, upserts or aggregates in a row.

    And it had inner joins of streams.
    """

    def change(item: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "inner", **item} if item.get("node") == "Join" else item

    return _each_object(value, change)


def rows_of_matches_and_keys(value: Any) -> Any:
    """9 to 10: in form 9 each match was one tuple, and PREV alone left the rows of a variable.

    And no query read upserts, so a relation had no key.
    """

    def change(item: dict[str, Any]) -> dict[str, Any]:
        if item.get("node") == "Relation":
            return {"keys": [], **item}
        if item.get("node") == "Match":
            return {**item, "per_row": False}
        if item.get("node") != "Reading":
            return item
        rest = {key: each for key, each in item.items() if key != "back"}
        if item.get("function") == "prev":
            return {**rest, "function": "last", "offset": 0, "moved": -item["back"], "final": False}
        return {**rest, "offset": 0, "moved": 0, "final": False}

    return _each_object(value, change)


def groups_of_enough_senders(value: Any) -> Any:
    """10 to 11: in form 10 no aggregate left out groups of few senders.

    It had no nested types either. An older program must not read them.
    """

    def change(item: dict[str, Any]) -> dict[str, Any]:
        return {"enough": None, **item} if item.get("node") == "Aggregate" else item

    return _each_object(value, change)


def elements_and_windows_of_tuples(value: Any) -> Any:
    """11 to 12: in form 11 no plan made several tuples of one, and there were no windows of tuples.

    A window of rows moved with each tuple. Older programs must not read what is new.
    """

    def change(item: dict[str, Any]) -> dict[str, Any]:
        return {"slide_rows": None, **item} if item.get("node") == "MovingWindow" else item

    return _each_object(value, change)


def windows_of_one_size(value: Any) -> Any:
    """12 to 13: in form 12 each view had windows of the full size."""

    def change(item: dict[str, Any]) -> dict[str, Any]:
        return {"of_all": False, **item} if item.get("node") == "MovingWindow" else item

    return _each_object(value, change)


UPGRADES: tuple[Callable[[Any], Any], ...] = (
    windows_and_emission,
    no_reaches,
    no_offsets,
    time_by_data,
    moving_windows,
    joined_moving_windows,
    levels_patterns_and_joins,
    sessions_and_outer_joins,
    rows_of_matches_and_keys,
    groups_of_enough_senders,
    elements_and_windows_of_tuples,
    windows_of_one_size,
)
"""The step at index n makes form n + 2 of form n + 1."""
