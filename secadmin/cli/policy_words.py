"""Policies on the command line: from options to values for the API, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from catalog.errors import InvalidInput
from secadmin.cli.durations import duration_words, milliseconds

_SHOWN = re.compile(r"\s*(\w+)(?:\s+(?i:when)\s+(.+))?\s*", re.DOTALL)
_AGGREGATED = re.compile(r"\s*(\w+)\s*:\s*([\w\s,]+)")
_WINDOW = re.compile(r"\s*(\w+(?:\.\w+)?)(?:\s*/\s*(\w+(?:\.\w+)?))?\s*")

_TUPLES = re.compile(r"\s*([0-9]{1,9})(?:\s*/\s*([0-9]{1,9}))?\s*")


def shown_attribute(text: str) -> dict[str, Any]:
    """Read `NAME`, or `NAME when CONDITION`. Raises InvalidInput.

    >>> shown_attribute("price when symbol = 'ACME'")
    {'name': 'price', 'when': "symbol = 'ACME'"}
    """
    found = _SHOWN.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{text[:80]!r} is no attribute; write NAME or NAME when CONDITION")
    name, condition = found.groups()
    return {"name": name} | ({"when": condition.strip()} if condition else {})


def aggregated_attribute(text: str) -> dict[str, Any]:
    """Read `NAME:FUNCTION,...`. Raises InvalidInput.

    >>> aggregated_attribute("price:avg,max")
    {'name': 'price', 'functions': ['avg', 'max']}
    """
    found = _AGGREGATED.fullmatch(text)
    functions = [word.strip() for word in found[2].split(",")] if found else []
    if found is None or not all(functions):
        raise InvalidInput(
            f"{text[:80]!r} is no attribute for aggregates; write NAME:FUNCTION,FUNCTION"
        )
    return {"name": found[1], "functions": functions}


def smallest_window(text: str) -> dict[str, Any]:
    """Read `SIZE` or `SIZE/SLIDE`, as in 5m/1m. Raises InvalidInput.

    >>> smallest_window("5m/1m")
    {'size_ms': 300000, 'slide_ms': 60000}
    """
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{text[:80]!r} is no window; write SIZE or SIZE/SLIDE, as in 5m/1m")
    size = milliseconds(found[1])
    return {"size_ms": size, "slide_ms": milliseconds(found[2]) if found[2] else size}


def tuple_window(text: str) -> dict[str, Any]:
    """Read `SIZE` or `SIZE/SLIDE` in tuples, as in 10/2. Raises InvalidInput.

    >>> tuple_window("10/2")
    {'size': 10, 'slide': 2}
    """
    found = _TUPLES.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{text[:80]!r} is no window of tuples; write SIZE or SIZE/SLIDE: 10/2")
    return {"size": int(found[1]), "slide": int(found[2] or found[1])}


def rights_in_words(policy: Mapping[str, Any]) -> dict[str, str]:
    """What a policy shows, by part."""
    window = policy["window"]
    words = {
        "rows": policy["rows"] or "all",
        "attributes": "all"
        if policy["rights"] is None
        else "; ".join(map(_right, policy["rights"])),
    }
    if window is not None:
        words["windows"] = _lengths(window) + (", tumbling" if window["tumbling"] else "")
    if policy["minimum"] > 1:
        words["groups"] = f"of {policy['minimum']} independent senders or more"
    return words


def _lengths(window: Mapping[str, Any]) -> str:
    if "size_ms" not in window:
        return f"{window['size']} tuples or more, slide {window['slide']} or more"
    size, slide = duration_words(window["size_ms"]), duration_words(window["slide_ms"])
    return f"{size} or more, slide {slide} or more"


def _right(right: Mapping[str, Any]) -> str:
    name, functions = right["name"], right["functions"]
    if functions is not None and not functions:
        return f"{name} as the time of windows"
    text = name if functions is None else ", ".join(f"{each}({name})" for each in functions)
    return f"{text} when {right['when']}" if right["when"] else str(text)


def written_policy(shown: Mapping[str, Any]) -> dict[str, Any]:
    """What adds a policy that is shown. The event time of windows is added by itself.

    >>> written_policy({"policy": "p", "role": "R", "rows": None, "rights": None, "xacml": ""})
    {'rows': None, 'policy': 'p', 'role': 'R'}
    """
    known = ("policy", "role", "rows", "rights", "window", "minimum")
    found: dict[str, Any] = {"rows": None}
    found |= {name: shown[name] for name in known if shown.get(name) is not None}
    if isinstance(found.get("rights"), list):
        rights = [each for each in found["rights"] if isinstance(each, dict)]
        found["rights"] = [each for each in rights if each.get("functions") != []]
    return found


def difference_in_words(difference: Mapping[str, Any]) -> dict[str, str]:
    """What two versions of a policy show of one part of a stream."""
    change = {"more": "more", "less": "less", "other": "more and less"}
    return {
        "role": difference["role"],
        "part": difference["attribute"] or difference["part"],
        "old": difference["old"] or "-",
        "new": difference["new"] or "-",
        "shows": change.get(difference["change"], "the same"),
    }


def sight_in_words(sight: Mapping[str, Any]) -> str:
    """What a role sees of a record."""
    if not sight["seen"]:
        return "nothing"
    parts = [f"{name}={json.dumps(value)}" for name, value in sight["values"].items()]
    for name, functions in sight["aggregated"].items():
        parts += [f"{each}({name})" for each in functions]
    words = ", ".join(parts) or "that it is there"
    if sight["window_tuples"] is not None:
        return f"in windows of {sight['window_tuples']} tuples or more: {words}"
    if sight["window_ms"] is None:
        return words
    return f"in windows of {duration_words(sight['window_ms'])} or more: {words}"
