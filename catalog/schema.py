"""Schemas: the attributes of a stream's tuples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from catalog.errors import InvalidInput, Position

# Names with two leading underscores belong to the platform's own columns in the engine.
_ATTRIBUTE = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]{0,63}")
MAX_ATTRIBUTES = 200


class Type(StrEnum):
    """The types of attributes. Integers have 64 bits, doubles are IEEE 754, times are UTC in µs."""

    BOOLEAN = "boolean"
    BIGINT = "bigint"
    DOUBLE = "double"
    STRING = "string"
    TIMESTAMP = "timestamp"


_ALIASES = {
    "bool": Type.BOOLEAN,
    "int": Type.BIGINT,
    "integer": Type.BIGINT,
    "long": Type.BIGINT,
    "float": Type.DOUBLE,
    "real": Type.DOUBLE,
    "varchar": Type.STRING,
    "text": Type.STRING,
}


def parse_type(name: str) -> Type:
    """The type that a schema or a cast names. Raises InvalidInput naming the types there are."""
    key = name.strip().lower()
    if key in _ALIASES:
        return _ALIASES[key]
    try:
        return Type(key)
    except ValueError:
        known = ", ".join([*Type, *_ALIASES])
        raise InvalidInput(f"unknown type {name!r}; use one of {known}") from None


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a schema. A required attribute is never null or absent."""

    name: str
    type: Type
    required: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of a tuple, in order. Their names are unique."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidInput(f"attribute {twice[0]!r} is there twice; give one another name (AS)")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    def get(self, name: str) -> Attribute | None:
        """The attribute of that name, or None."""
        return next((a for a in self.attributes if a.name == name), None)


def check_definition(schema: Schema) -> Schema:
    """Check the schema of a stream or an output: plain names, 1 to 200 attributes.

    Raises InvalidInput. Inside a plan, attributes may have qualified names such as `a.price`.
    """
    if not 1 <= len(schema.attributes) <= MAX_ATTRIBUTES:
        raise InvalidInput(f"a schema has 1 to {MAX_ATTRIBUTES} attributes")
    for name in schema.names:
        check_attribute_name(name)
    return schema


def check_attribute_name(name: str, position: Position | None = None) -> str:
    """Return an attribute's name if users may use it. Raises InvalidInput if not."""
    if not _ATTRIBUTE.fullmatch(name):
        raise InvalidInput(
            f"attribute name {name[:80]!r} is not usable: "
            "letters, digits and _ (but not two to begin with), at most 64",
            position,
        )
    return name
