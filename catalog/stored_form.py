"""Stored forms: JSON with the version of the form in it.

`to_stored` always writes the newest form. `from_stored` reads every older form too, and refuses a
form that a newer program wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from catalog.plan_json import decode, encode
from catalog.stored_upgrades import UPGRADES

T = TypeVar("T")
VERSION = 1 + len(UPGRADES)


class NewerForm(ValueError):
    """The value was stored by a newer program, so this program cannot read it."""


def to_stored(value: object) -> dict[str, Any]:
    """A plan, or another value of `catalog.plan_json`, as the JSON object that stores it."""
    return {"version": VERSION, "value": encode(value)}


def from_stored(kind: type[T], data: Mapping[str, Any]) -> T:
    """Read a value of that class that `to_stored` of this program or an older one wrote.

    Raises NewerForm for what a newer program wrote, ValueError for anything else.
    """
    version = data.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("not a stored form: its version is no number from 1")
    if version > VERSION:
        raise NewerForm(
            f"this was stored in form {version}, and this program reads forms up to {VERSION}: "
            "use the program that stored it, or a newer one"
        )
    # The first form was the bare value.
    value = data if version == 1 else data.get("value")
    for upgrade in UPGRADES[version - 1 :]:
        value = upgrade(value)
    found = decode(value)
    if not isinstance(found, kind):
        raise ValueError(f"not a stored {kind.__name__}")
    return found
