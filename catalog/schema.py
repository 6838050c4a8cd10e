"""Schemas: the attributes of a stream's tuples, and their types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from catalog.errors import InvalidInput, Position

# Names with two leading underscores belong to the platform's own columns in the engine.
_ATTRIBUTE = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]{0,63}")
MAX_ATTRIBUTES = 200
# How many arrays, maps and structures may be inside each other.
MAX_TYPE_DEPTH = 4
# Ingest has an expression for each part of a type.
MAX_TYPE_PARTS = 100
_MAX_TYPE_TEXT = 8_000


class Type(StrEnum):
    """The plain types. Integers have 64 bits, doubles are IEEE 754, times are UTC in µs."""

    BOOLEAN = "boolean"
    BIGINT = "bigint"
    DOUBLE = "double"
    STRING = "string"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Several values of one type in an order. Each may be NULL."""

    element: AttributeType

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """Values of one type, each under a text of its own. Each value may be NULL."""

    value: AttributeType

    def __str__(self) -> str:
        return f"map<string, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """One value of a structure. It may be NULL."""

    name: str
    type: AttributeType


@dataclass(frozen=True, slots=True)
class StructType:
    """A fixed number of values, each of its own type under its own name."""

    fields: tuple[StructField, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{each.name} {each.type}' for each in self.fields)}>"

    def type_of(self, name: str) -> AttributeType | None:
        """The type of the field of that name, or None."""
        return next((each.type for each in self.fields if each.name == name), None)


NestedType = ArrayType | MapType | StructType
AttributeType = Type | NestedType


def parts_of(type_: AttributeType) -> tuple[AttributeType, ...]:
    """The types directly inside a type."""
    match type_:
        case ArrayType(inner) | MapType(inner):
            return (inner,)
        case StructType(fields):
            return tuple(each.type for each in fields)
        case _:
            return ()


def walk_type(type_: AttributeType) -> Iterator[AttributeType]:
    """A type and all types inside it."""
    yield type_
    for part in parts_of(type_):
        yield from walk_type(part)


def depth_of(type_: AttributeType) -> int:
    """How many arrays, maps and structures are inside each other in the type."""
    return max((1 + depth_of(part) for part in parts_of(type_)), default=0)


def held_as(type_: AttributeType) -> Type:
    """The plain type of the value that stands for a value of the type inside the platform.

    A nested value is held as a text: its held form (SPEC.md, Nested values).
    """
    return type_ if isinstance(type_, Type) else Type.STRING


def is_comparable(type_: AttributeType) -> bool:
    """Whether two values of the type are equal exactly if their held forms are.

    A double inside a nested value may be written in several ways.
    """
    return isinstance(type_, Type) or Type.DOUBLE not in set(walk_type(type_))


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
_NESTED = {"array": "ARRAY<BIGINT>", "map": "MAP<STRING, BIGINT>", "struct": "STRUCT<a BIGINT>"}
_TYPE_TOKEN = re.compile(r"\s*(?:([A-Za-z0-9_]+)|`([^`]*)`|\"([^\"]*)\"|([<>,:]))")


def parse_type(text: str) -> AttributeType:
    """The type that a schema or a cast names. Raises InvalidInput that says what there is.

    >>> str(parse_type("ARRAY<STRUCT<name VARCHAR, n INT>>"))
    'array<struct<name string, n bigint>>'
    """
    if not set(text) & set("<>"):
        return _plain_type(text)
    if len(text) > _MAX_TYPE_TEXT:
        raise InvalidInput(f"a type has at most {_MAX_TYPE_TEXT} characters")
    return _TypeReader(text).whole()


def _plain_type(name: str) -> Type:
    key = name.strip().lower()
    if key in _ALIASES:
        return _ALIASES[key]
    if key in _NESTED:
        raise InvalidInput(f"say what is in the {key}, such as {_NESTED[key]}")
    try:
        return Type(key)
    except ValueError:
        known = ", ".join([*Type, *_ALIASES, *_NESTED.values()])
        raise InvalidInput(f"unknown type {name[:80]!r}; use one of {known}") from None


class _TypeReader:
    """Reads the text of a nested type from its beginning on."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> AttributeType:
        """The type of the whole text."""
        found = self._type(0)
        if self._text[self._at :].strip():
            raise self._wrong("more behind the type")
        check_type(found)
        return found

    def _type(self, depth: int) -> AttributeType:
        if depth > MAX_TYPE_DEPTH:
            raise InvalidInput(_TOO_DEEP)
        word = self._name("a type").lower()
        if not self._is_next("<"):
            return _plain_type(word)
        match word:
            case "array":
                found: AttributeType = ArrayType(self._type(depth + 1))
            case "map":
                if self._type(depth + 1) is not Type.STRING:
                    raise InvalidInput("the keys of a map are strings: write MAP<STRING, ...>")
                self._take(",")
                found = MapType(self._type(depth + 1))
            case "struct" | "row":
                fields = [self._field(depth)]
                while self._is_next(","):
                    fields.append(self._field(depth))
                found = StructType(tuple(fields))
            case _:
                known = ", ".join(_NESTED.values())
                raise InvalidInput(f"unknown type {word[:80]!r} before <; there are: {known}")
        self._take(">")
        return found

    def _field(self, depth: int) -> StructField:
        name = check_attribute_name(self._name("a field's name"))
        # Spark writes a colon between them.
        self._is_next(":")
        return StructField(name, self._type(depth + 1))

    def _name(self, what: str) -> str:
        found = _TYPE_TOKEN.match(self._text, self._at)
        name = next((each for each in found.groups()[:3] if each is not None), "") if found else ""
        if found is None or not name:
            raise self._wrong(f"{what} belongs")
        self._at = found.end()
        return name

    def _is_next(self, sign: str) -> bool:
        """Whether the sign comes next. If so, it is read."""
        found = _TYPE_TOKEN.match(self._text, self._at)
        if found is None or found[4] != sign:
            return False
        self._at = found.end()
        return True

    def _take(self, sign: str) -> None:
        if not self._is_next(sign):
            raise self._wrong(f"{sign!r} belongs")

    def _wrong(self, what: str) -> InvalidInput:
        before = self._text[: self._at][-40:]
        return InvalidInput(
            f"cannot read the type: {what} behind {before!r}; write it like "
            "ARRAY<STRUCT<name STRING, price DOUBLE>>"
        )


_TOO_DEEP = (
    f"a type has at most {MAX_TYPE_DEPTH} arrays, maps and structures inside each other; "
    "send the inner part as a stream of its own"
)


def check_type(type_: AttributeType) -> None:
    """Raise InvalidInput for a type that is too deep or too large, or names a field twice."""
    level: tuple[AttributeType, ...] = (type_,)
    for _ in range(MAX_TYPE_DEPTH + 1):
        level = tuple(part for each in level for part in parts_of(each))
    if level:
        raise InvalidInput(_TOO_DEEP)
    for each in walk_type(type_):
        if isinstance(each, StructType):
            names = [field.name for field in each.fields]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise InvalidInput(f"a structure has the field {twice[0]!r} twice")
            for name in names:
                check_attribute_name(name)
            if not names:
                raise InvalidInput("a structure has at least one field")
    _check_parts(sum(1 for _ in walk_type(type_)))


def _check_parts(count: int) -> None:
    if count > MAX_TYPE_PARTS:
        raise InvalidInput(
            f"the arrays, maps and structures of a schema have at most {MAX_TYPE_PARTS} parts "
            "together; use fewer fields"
        )


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a schema. A required attribute is never null or absent."""

    name: str
    type: AttributeType
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
    nested = [each.type for each in schema.attributes if not isinstance(each.type, Type)]
    for type_ in nested:
        check_type(type_)
    _check_parts(sum(1 for type_ in nested for _ in walk_type(type_)))
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
