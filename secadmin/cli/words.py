"""Attributes and grants: from the words on the command line to values for the API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from catalog.errors import InvalidInput
from catalog.permission import ObjectKind, Permission
from catalog.schema import parse_type

_LONGEST = max(len(permission.split()) for permission in Permission)


def parse_attribute(text: str) -> dict[str, Any]:
    """Read `name:type`, or `name:type!` for a required attribute. Raises InvalidInput.

    >>> parse_attribute("price:double!")
    {'name': 'price', 'type': 'double', 'required': True}
    """
    # A type may have colons of its own: s:STRUCT<a: BIGINT>
    name, separator, written = text.partition(":")
    if not separator or not name.strip():
        raise InvalidInput(
            f"{text!r} is not an attribute; write NAME:TYPE, or NAME:TYPE! if required"
        )
    required = written.rstrip().endswith("!")
    kind = parse_type(written.rstrip().removesuffix("!"))
    return {"name": name.strip(), "type": str(kind), "required": required}


def parse_schema_file(text: str) -> list[dict[str, Any]]:
    """The attributes in a JSON file: a list, or an object with one. Raises InvalidInput."""
    try:
        data = json.loads(text)
        listed = data["attributes"] if isinstance(data, dict) else data
        return [
            {
                "name": str(item["name"]),
                "type": str(parse_type(str(item["type"]))),
                "required": bool(item.get("required", False)),
            }
            for item in listed
        ]
    except json.JSONDecodeError as error:
        raise InvalidInput(f"the schema file is not JSON: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        # The last two: a number of too many digits, brackets too deep.
        raise InvalidInput(
            'the schema file does not fit; write {"attributes": [{"name": "ts", '
            '"type": "timestamp", "required": true}]}'
        ) from None


@dataclass(frozen=True, slots=True)
class GrantWords:
    """Permissions, and the object that they are for."""

    permissions: tuple[Permission, ...]
    kind: ObjectKind
    name: str


def parse_grant(words: Sequence[str]) -> GrantWords:
    """`PERMISSION... [on] KIND NAME` or `PERMISSION... [on] system`. Raises InvalidInput.

    Permissions may be quoted or not, in any case, with or without commas between them.

    >>> parse_grant(["read", "tuple,", "VIEW_OBJECT", "on", "stream", "in1"]).name
    'in1'
    """
    if len(words) >= 2 and words[-1].lower() == ObjectKind.SYSTEM:
        # "ADD STREAM system" and "SEND stream system" end alike; only one of them has permissions.
        try:
            permissions = parse_permissions(_without_on(words[:-1]))
            return GrantWords(permissions, ObjectKind.SYSTEM, ObjectKind.SYSTEM.value)
        except InvalidInput:
            if words[-2].lower() not in set(ObjectKind):
                raise
    if len(words) < 3 or words[-2].lower() not in set(ObjectKind):
        kinds = ", ".join(ObjectKind)
        raise InvalidInput(
            "name the object with its kind, such as: READ TUPLE on stream london, "
            f"or: ADD QUERY on system (kinds: {kinds})"
        )
    permissions = parse_permissions(_without_on(words[:-2]))
    return GrantWords(permissions, ObjectKind(words[-2].lower()), words[-1])


def pair_of(
    text: str, form: str = "CLASS=VALUE", example: str = "COI1=Company1"
) -> tuple[str, str]:
    """The two parts of NAME=VALUE. Raises InvalidInput, with the form and an example of it.

    >>> pair_of("COI1=CASE WHEN a = 1 THEN 'x' ELSE '_' END")[0]
    'COI1'
    """
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise InvalidInput(f"{text[:80]!r} is not {form}, such as {example}")
    return name.strip(), value.strip()


def _without_on(words: Sequence[str]) -> Sequence[str]:
    return words[:-1] if words and words[-1].lower() == "on" else words


def parse_permissions(words: Sequence[str]) -> tuple[Permission, ...]:
    """All named permissions, in order. No permission's name is the beginning of another's."""
    text = " ".join(words).upper()
    for separator in ",_-":
        text = text.replace(separator, " ")
    left, found = text.split(), []
    while left:
        for length in range(_LONGEST, 0, -1):
            candidate = " ".join(left[:length])
            if candidate in set(Permission):
                found.append(Permission(candidate))
                left = left[length:]
                break
        else:
            known = ", ".join(Permission)
            if found and left[0] == "ON":
                raise InvalidInput("a call is about one object: write a call for each of them")
            raise InvalidInput(f"unknown permission {' '.join(left)[:80]!r}; there are: {known}")
    if not found:
        raise InvalidInput(f"name at least one permission of: {', '.join(Permission)}")
    return tuple(found)
