"""Parts of nested values: an element `a[1]` or `m['key']`, a field `s.f` (ksqlDB: `s->f`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from catalog.errors import InvalidInput, Position
from catalog.functions import ELEMENT, FIELD
from catalog.schema import (
    ArrayType,
    AttributeType,
    MapType,
    StructField,
    StructType,
    Type,
    check_attribute_name,
    check_type,
)
from secadmin.languages.typed import Typed, call, known, literal

_PLAIN = {
    exp.DType.BIGINT: Type.BIGINT,
    exp.DType.INT: Type.BIGINT,
    exp.DType.DOUBLE: Type.DOUBLE,
    exp.DType.FLOAT: Type.DOUBLE,
    exp.DType.TEXT: Type.STRING,
    exp.DType.VARCHAR: Type.STRING,
    exp.DType.TIMESTAMP: Type.TIMESTAMP,
    exp.DType.BOOLEAN: Type.BOOLEAN,
}


def plain_arrows(tokens: list[Token]) -> None:
    """Read ksqlDB's `s->f` as `s.f`."""
    for token, behind in pairwise(tokens):
        named = behind.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        if token.token_type == TokenType.ARROW and named:
            token.token_type = TokenType.DOT


def plain_lateral(tokens: list[Token]) -> None:
    """Leave out LATERAL before UNNEST, which says nothing new."""
    for index in range(len(tokens) - 1, 0, -1):
        if (tokens[index - 1].token_type, tokens[index].token_type) == (
            TokenType.LATERAL,
            TokenType.UNNEST,
        ):
            del tokens[index - 1]


def field_of(whole: Typed, name: str, place: Position) -> Typed:
    """The field of a structure. Raises InvalidInput."""
    kind = known(whole)
    if not isinstance(kind, StructType):
        raise InvalidInput(f"{name[:80]!r} is no field: {kind} has no fields", place)
    names = [each.name for each in kind.fields]
    # SQL writes names in any case, where this is not ambiguous.
    alike = [each for each in names if each.lower() == name.lower()]
    meant = name if name in names or len(alike) != 1 else alike[0]
    return call(FIELD, [whole, literal(meant, Type.STRING, place)], place)


def element_of(whole: Typed, place_in_it: Typed, place: Position) -> Typed:
    """The element of an array at a place from 1, or of a map under a key. Raises InvalidInput."""
    kind = known(whole)
    if not isinstance(kind, ArrayType | MapType):
        raise InvalidInput(
            f"only an array or a map has elements, and this is {kind}; a field of a structure "
            "is written s.f",
            place,
        )
    wanted = Type.BIGINT if isinstance(kind, ArrayType) else Type.STRING
    if known(place_in_it) is not wanted:
        what = "the place of an element is a whole number from 1"
        if isinstance(kind, MapType):
            what = "the key of a map is a string"
        raise InvalidInput(f"{what}, and this is a {place_in_it.type}", place_in_it.position)
    return call(ELEMENT, [whole, place_in_it], place)


def type_of_cast(target: exp.Expr, place: Position) -> AttributeType | None:
    """The type that a cast names, or None if there is no such type. Raises InvalidInput."""
    found = _type(target)
    if found is not None:
        try:
            check_type(found)
        except InvalidInput as error:
            raise InvalidInput(error.detail, place) from None
    return found


def _type(target: exp.Expr) -> AttributeType | None:
    several = target.expressions
    match target.this:
        case exp.DType.ARRAY if len(several) == 1:
            element = _type(several[0])
            return None if element is None else ArrayType(element)
        case exp.DType.MAP if len(several) == 2:
            value = _type(several[1])
            return MapType(value) if value and _type(several[0]) is Type.STRING else None
        case exp.DType.STRUCT:
            return _structure(several)
        case kind:
            return None if several else _PLAIN.get(kind)


def _structure(several: Sequence[exp.Expr]) -> StructType | None:
    fields = []
    for each in several:
        kind = each.args.get("kind")
        inner = _type(kind) if isinstance(each, exp.ColumnDef) and kind is not None else None
        if inner is None or not isinstance(each.this, exp.Identifier):
            return None
        fields.append(StructField(check_attribute_name(str(each.this.this)), inner))
    return StructType(tuple(fields))
