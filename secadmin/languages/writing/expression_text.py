"""Expressions as SQL, which both languages read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.functions import ELEMENT, FIELD, LIKE, REGEXP_GROUPS
from catalog.schema import ArrayType, AttributeType, MapType, StructType, Type
from secadmin.languages.expressions.dialect import Sql
from secadmin.languages.expressions.functions import SCALAR
from secadmin.languages.writing.unsayable import Unsayable

_INFIX = frozenset(
    {
        *("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or", LIKE, "ilike"),
        "micros_between",
    }
)
_SIGNS = {"micros_between": "-"}
_CASTS = {"cast_bigint": "BIGINT", "cast_double": "DOUBLE", "cast_string": "STRING"}
# The other functions, by the name in a plan. (A text is read again, so no other meaning is given.)
_CALLS = {
    **{name: name for name in SCALAR.keys() - _INFIX},
    "position": "strpos",
    "contains": "array_contains",
}
_START_OF = "start_of_"
# The text for the name of an attribute.
Names = Callable[[str], str]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expression_text(expression: Expression, names: Names | None = None) -> str:
    """The expression as SQL. Raises Unsayable if SQL has no form for a part of it.

    `names` gives the text of an attribute; without it, an attribute has its own name.

    >>> expression_text(Call(">", (AttributeRef("price"), Literal(5, Type.BIGINT))))
    'price > 5'
    """
    match expression:
        case AttributeRef(name):
            return (names or name_text)(name)
        case Literal():
            return _literal(expression)
        case Call(function, arguments):
            return _call(function, arguments, names or name_text)


def name_text(name: str) -> str:
    """A name, whose parts are quoted where SQL would read a keyword.

    >>> name_text("left.price"), name_text("trades-eu")
    ('"left".price', '"trades-eu"')
    """
    return ".".join(part if _is_plain(part) else f'"{part}"' for part in name.split("."))


@lru_cache(maxsize=10_000)
def _is_plain(name: str) -> bool:
    try:
        tokens = Sql().tokenize(name)
    except TokenError:
        return False
    return [token.token_type for token in tokens] == [TokenType.VAR] and name.isidentifier()


def _call(function: str, arguments: tuple[Expression, ...], names: Names) -> str:
    texts = [expression_text(argument, names) for argument in arguments]
    nested = [_nested(a, text) for a, text in zip(arguments, texts, strict=True)]
    match function, arguments:
        case "negate", (_,):
            return f"-({texts[0]})"
        case "not", (_,):
            return f"NOT {nested[0]}"
        case "is_null", (_,):
            return f"{nested[0]} IS NULL"
        case "case", _:
            arms = zip(texts[:-1:2], texts[1:-1:2], strict=True)
            whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in arms)
            return f"CASE {whens} ELSE {texts[-1]} END"
        case "element", (whole, _):
            return f"{_parted(whole, texts[0])}[{texts[1]}]"
        case "field", (_, Literal(str(name))):
            # In parentheses, because a relation may have the same name.
            return f"({texts[0]}).{name_text(name)}"
        case "array", _:
            return f"ARRAY[{', '.join(texts)}]"
    if function in _INFIX:
        return f" {_SIGNS.get(function, function.upper())} ".join(nested)
    inner = ", ".join(texts)
    if function in _CASTS:
        return f"CAST({inner} AS {_CASTS[function]})"
    if function.startswith(_START_OF):
        return f"DATE_TRUNC('{function.removeprefix(_START_OF)}', {inner})"
    if function in REGEXP_GROUPS:
        return f"REGEXP_EXTRACT({inner}, {REGEXP_GROUPS[function]})"
    if function not in _CALLS:
        raise Unsayable(f"SQL has no form for the function {function}")
    return f"{_CALLS[function].upper()}({inner})"


def _parted(expression: Expression, text: str) -> str:
    plain = isinstance(expression, AttributeRef) or (
        isinstance(expression, Call) and expression.function in (ELEMENT, FIELD)
    )
    return text if plain else f"({text})"


def type_text(type_: AttributeType) -> str:
    """A type as SQL, whose names are quoted where SQL would read a keyword."""
    match type_:
        case ArrayType(inner):
            return f"ARRAY<{type_text(inner)}>"
        case MapType(inner):
            return f"MAP<STRING, {type_text(inner)}>"
        case StructType(fields):
            inside = ", ".join(f"{name_text(each.name)} {type_text(each.type)}" for each in fields)
            return f"STRUCT<{inside}>"
        case _:
            return type_.upper()


def _nested(expression: Expression, text: str) -> str:
    inner = isinstance(expression, Call) and expression.function in {
        *_INFIX,
        *("negate", "not", "is_null"),
    }
    return f"({text})" if inner or text.startswith("-") else text


def _literal(literal: Literal) -> str:
    value = literal.value
    match value:
        case None:
            return f"CAST(NULL AS {type_text(literal.type)})"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bool():
            return "TRUE" if value else "FALSE"
    if literal.type is not Type.TIMESTAMP:
        return repr(value)
    try:
        at = _EPOCH + timedelta(microseconds=int(value))
    except OverflowError:
        raise Unsayable("SQL has no form for a time outside the years 1 to 9999") from None
    return f"TIMESTAMP '{at.replace(tzinfo=None).isoformat(sep=' ')}'"
