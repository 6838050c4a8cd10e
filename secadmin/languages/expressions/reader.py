"""From syntax trees to typed expressions. Nodes that are not in `_READERS` are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.functions import REGEXP_LIKE
from catalog.schema import Type
from secadmin.languages.expressions import functions, literals
from secadmin.languages.expressions.casts import cast_to, cast_type
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.nested_values import element_of, field_of
from secadmin.languages.expressions.null_safe import null_safe
from secadmin.languages.expressions.quoted_text import quoted_text
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.syntax import chain
from secadmin.languages.typed import Typed, call, literal, null

# Spark's windows, whose edges are written like fields.
_WINDOWS = ("window", "session_window")


class Calls(Protocol):
    """Reads the calls that are not scalar functions: aggregates, and the edges of windows."""

    def special(self, node: exp.Expr, name: str, reader: Reader) -> Typed | None:
        """The value of the call, or None if it calls a scalar function. Raises InvalidInput."""
        ...

    def column(self, name: str, alias: str | None, position: Position) -> Typed | None:
        """The value of a name that is not an attribute of FROM, or None. Raises InvalidInput."""
        ...


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the expressions of one clause."""

    environment: Environment
    scope: Scope
    calls: Calls

    def read(self, node: exp.Expr) -> Typed:
        """Read the expression of a syntax tree.

        Raises InvalidInput, with its position, for anything that is not in the language.
        """
        reading = _READERS.get(type(node))
        if reading is None:
            raise self.environment.refused(node)
        return reading(self, node)


def _operands(reader: Reader, node: exp.Expr) -> list[Typed]:
    reader.environment.only(node, "this", "expression", "typed", "safe")
    return [reader.read(node.this), reader.read(node.expression)]


def _binary(function: str) -> Callable[[Reader, exp.Expr], Typed]:
    return lambda reader, node: call(function, _operands(reader, node), reader.environment.at(node))


def _text_in_quotes(reader: Reader, node: exp.Expr) -> Typed | None:
    return quoted_text(node, reader.scope, reader.environment)


def _equality(function: str) -> Callable[[Reader, exp.Expr], Typed]:
    """A comparison, in which "send" may be a text where it can be no name."""

    def read(reader: Reader, node: exp.Expr) -> Typed:
        reader.environment.only(node, "this", "expression", "typed", "safe")
        sides = [node.this, node.expression]
        texts = [_text_in_quotes(reader, side) for side in sides]
        if all(texts):
            texts = [None, None]
        operands = [text or reader.read(side) for text, side in zip(texts, sides, strict=True)]
        return call(function, operands, reader.environment.at(node))

    return read


def _minus(reader: Reader, node: exp.Expr) -> Typed:
    """The difference of numbers, or of two timestamps in microseconds."""
    operands = _operands(reader, node)
    times = all(operand.type is Type.TIMESTAMP for operand in operands)
    return call("micros_between" if times else "-", operands, reader.environment.at(node))


def _chained(function: str) -> Callable[[Reader, exp.Expr], Typed]:
    def read(reader: Reader, node: exp.Expr) -> Typed:
        links = chain(node, "safe", place=reader.environment.place)
        operands = [reader.read(part) for part in links]
        return call(function, operands, reader.environment.at(node))

    return read


def _column(reader: Reader, node: exp.Expr) -> Typed:
    """An attribute, perhaps with its relation before it, or fields of a structure behind it."""
    environment = reader.environment
    names, place = environment.path(node), environment.at(node)
    behind = reader.scope.behind_attribute(names)
    if behind < 1:
        name, alias = environment.column(node)
        special = reader.calls.column(name, alias, place)
        return special or reader.scope.resolve(name, alias, place)
    *qualifier, name = names[:-behind]
    value = reader.scope.resolve(name, qualifier[0] if qualifier else None, place)
    for each in names[-behind:]:
        value = field_of(value, each, place)
    return value


def _element(reader: Reader, node: exp.Expr) -> Typed:
    """An element of an array or a map."""
    reader.environment.only(node, "this", "expressions")
    place = reader.environment.at(node)
    if len(node.expressions) != 1:
        raise InvalidInput("an element has one place: write a[1] or m['key']", place)
    return element_of(reader.read(node.this), reader.read(node.expressions[0]), place)


def _array(reader: Reader, node: exp.Expr) -> Typed:
    """ARRAY[1, 2]."""
    reader.environment.only(node, "expressions")
    given = [reader.read(each) for each in node.expressions]
    return functions.scalar_call("array", given, reader.environment.at(node))


def _dot(reader: Reader, node: exp.Expr) -> Typed:
    """A field of a structure; Spark's window(ts, '1 hour').start and .end, and session_window's."""
    environment = reader.environment
    environment.only(node, "this", "expression")
    call_, edge = node.this, node.expression
    named = isinstance(call_, exp.Anonymous) and str(call_.this).lower() in _WINDOWS
    if not named and isinstance(edge, exp.Identifier):
        whole, name = reader.read(call_), environment.identifier(edge)
        return field_of(whole, name, environment.at(node))
    name = str(call_.this).lower() if isinstance(call_, exp.Anonymous) else ""
    if (
        name not in _WINDOWS
        or not isinstance(edge, exp.Identifier)
        or edge.this not in ("start", "end")
    ):
        raise InvalidInput("only window(...) has parts: .start and .end", environment.at(node))
    call_.set("this", f"{name}_{edge.this}")
    return reader.read(call_)


def _filter(reader: Reader, node: exp.Expr) -> Typed:
    """An aggregate of some tuples of its group: count(*) FILTER (WHERE price > 10)."""
    environment = reader.environment
    environment.only(node, "this", "expression")
    inner = node.this
    name = str(inner.this).lower() if isinstance(inner, exp.Anonymous) else ""
    value = reader.calls.special(node, name, reader)
    if value is None:
        raise InvalidInput(
            "FILTER (WHERE ...) belongs behind an aggregate, such as count(*)", environment.at(node)
        )
    return value


def _over(reader: Reader, node: exp.Expr) -> Typed:
    """A value of another row: LAG(price) OVER (ORDER BY ts)."""
    value = reader.calls.special(node, "", reader)
    if value is None:
        raise reader.environment.refused(node)
    return value


def _literal(reader: Reader, node: exp.Expr) -> Typed:
    place = reader.environment.at(node)
    text = str(node.this)
    if node.is_string:
        return literal(text, Type.STRING, place)
    return literals.number(text, place)


def _boolean(reader: Reader, node: exp.Expr) -> Typed:
    return literal(bool(node.this), Type.BOOLEAN, reader.environment.at(node))


def _null(reader: Reader, node: exp.Expr) -> Typed:
    return null(reader.environment.at(node))


def _paren(reader: Reader, node: exp.Expr) -> Typed:
    reader.environment.only(node, "this")
    return reader.read(node.this)


def _negative(reader: Reader, node: exp.Expr) -> Typed:
    reader.environment.only(node, "this")
    place = reader.environment.at(node)
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return literals.number(str(node.this.this), place, negative=True)
    return call("negate", [reader.read(node.this)], place)


def _not(reader: Reader, node: exp.Expr) -> Typed:
    reader.environment.only(node, "this")
    return call("not", [reader.read(node.this)], reader.environment.at(node))


def _is_null(reader: Reader, node: exp.Expr) -> Typed:
    reader.environment.only(node, "this", "expression", "negate")
    place = reader.environment.at(node)
    if not isinstance(node.expression, exp.Null):
        raise InvalidInput("IS takes NULL or NOT NULL; compare with = instead", place)
    found = call("is_null", [reader.read(node.this)], place)
    return call("not", [found], place) if node.args.get("negate") else found


def _like(function: str) -> Callable[[Reader, exp.Expr], Typed]:
    def read(reader: Reader, node: exp.Expr) -> Typed:
        reader.environment.only(node, "this", "expression", "negate")
        place = reader.environment.at(node)
        matches = call(function, [reader.read(node.this), reader.read(node.expression)], place)
        return call("not", [matches], place) if node.args.get("negate") else matches

    return read


def _between(reader: Reader, node: exp.Expr) -> Typed:
    reader.environment.only(node, "this", "low", "high")
    place = reader.environment.at(node)
    value, low, high = (reader.read(node.args[part]) for part in ("this", "low", "high"))
    return call("and", [call(">=", [value, low], place), call("<=", [value, high], place)], place)


def _constant_query(reader: Reader, node: exp.Expr) -> Typed:
    """A query without FROM inside an expression, such as (SELECT 100)."""
    environment = reader.environment
    inner = node.this
    if not isinstance(inner, exp.Select) or inner.args.get("from_") is not None:
        raise InvalidInput(
            "a query inside an expression needs an operator that does not exist yet; "
            "write an interval JOIN",
            environment.at(inner),
        )
    environment.only(node, "this")
    environment.only(inner, "expressions")
    if len(inner.expressions) != 1:
        raise InvalidInput("a query inside an expression has one result", environment.at(inner))
    item = inner.expressions[0]
    if isinstance(item, exp.Alias):
        environment.only(item, "this", "alias")
        item = item.this
    return Reader(environment, Scope(()), reader.calls).read(item)


def _distinct_from(same: bool) -> Callable[[Reader, exp.Expr], Typed]:
    """IS [NOT] DISTINCT FROM."""
    return lambda reader, node: null_safe(
        same, _operands(reader, node), reader.environment.at(node)
    )


def _in(reader: Reader, node: exp.Expr) -> Typed:
    if node.args.get("query") is not None:
        raise InvalidInput(
            "IN (SELECT ...) is a semi join: a condition of its own in WHERE, behind AND, over "
            "moving windows: FROM trades [NOW] WHERE symbol IN (SELECT symbol FROM quotes [ROWS "
            "100])",
            reader.environment.at(node.args["query"]),
        )
    reader.environment.only(node, "this", "expressions")
    place = reader.environment.at(node)
    value = reader.read(node.this)
    choices = [
        call("=", [value, _text_in_quotes(reader, item) or reader.read(item)], place)
        for item in node.expressions
    ]
    if not choices:
        raise InvalidInput("IN takes a list of values", place)
    return choices[0] if len(choices) == 1 else call("or", choices, place)


def _case(reader: Reader, node: exp.Expr) -> Typed:
    """CASE WHEN c THEN v ..., and CASE x WHEN y THEN v ..., which compares x with each y."""
    environment = reader.environment
    environment.only(node, "this", "ifs", "default")
    place = environment.at(node)
    chosen = reader.read(node.this) if node.args.get("this") is not None else None
    parts: list[Typed] = []
    for arm in node.args["ifs"]:
        environment.only(arm, "this", "true")
        when = reader.read(arm.this)
        if chosen is not None:
            when = call("=", [chosen, when], environment.at(arm))
        parts += [when, reader.read(arm.args["true"])]
    default = node.args.get("default")
    return call("case", [*parts, reader.read(default) if default else null(place)], place)


def _cast(reader: Reader, node: exp.Expr) -> Typed:
    environment = reader.environment
    environment.only(node, "this", "to", "_type")
    place = environment.at(node)
    kind = cast_type(node.args["to"], place, environment)
    if kind is Type.TIMESTAMP and isinstance(node.this, exp.Literal) and node.this.is_string:
        return literals.timestamp(str(node.this.this), place)
    return cast_to(kind, reader.read(node.this), place)


def _extract(reader: Reader, node: exp.Expr) -> Typed:
    reader.environment.only(node, "this", "expression")
    place = reader.environment.at(node)
    unit = str(node.this.this).lower() if isinstance(node.this, exp.Var) else ""
    if unit not in functions.EXTRACTED:
        known = ", ".join(sorted(functions.EXTRACTED)).upper()
        raise InvalidInput(f"EXTRACT takes {known}", place)
    return call(unit, [reader.read(node.expression)], place)


def _substring(reader: Reader, node: exp.Expr) -> Typed:
    reader.environment.only(node, "this", "start", "length")
    given = [node.args[part] for part in ("this", "start", "length") if node.args.get(part)]
    arguments = [reader.read(argument) for argument in given]
    return functions.scalar_call("substring", arguments, reader.environment.at(node))


def _position(reader: Reader, node: exp.Expr) -> Typed:
    """POSITION('a' IN s), or POSITION('a', s)."""
    reader.environment.only(node, "this", "substr")
    arguments = [reader.read(node.args["substr"]), reader.read(node.this)]
    return functions.scalar_call("position", arguments, reader.environment.at(node))


def _call(reader: Reader, node: exp.Expr) -> Typed:
    environment = reader.environment
    environment.only(node, "this", "expressions")
    place = environment.at(node)
    if not isinstance(node.this, str):
        raise InvalidInput("a function's name is written without quotes", place)
    name = node.this.lower()
    special = reader.calls.special(node, name, reader)
    if special is not None:
        return special
    if not functions.is_known(name):
        return functions.scalar_call(name, [], place)  # raises before any argument is read
    return functions.scalar_call(name, [reader.read(a) for a in node.expressions], place)


_READERS: dict[type[exp.Expr], Callable[[Reader, exp.Expr], Typed]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _paren,
    exp.Neg: _negative,
    exp.Not: _not,
    exp.Is: _is_null,
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
    exp.RegexpLike: _like(REGEXP_LIKE),
    exp.NullSafeEQ: _distinct_from(same=True),
    exp.NullSafeNEQ: _distinct_from(same=False),
    exp.Subquery: _constant_query,
    exp.Dot: _dot,
    exp.Bracket: _element,
    exp.Array: _array,
    exp.Filter: _filter,
    exp.Window: _over,
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.Anonymous: _call,
    exp.And: _chained("and"),
    exp.Or: _chained("or"),
    exp.DPipe: _chained("concat"),
    exp.Add: _binary("+"),
    exp.Sub: _minus,
    exp.Mul: _binary("*"),
    exp.Div: _binary("/"),
    exp.Mod: _binary("%"),
    exp.EQ: _equality("="),
    exp.NEQ: _equality("<>"),
    exp.LT: _binary("<"),
    exp.LTE: _binary("<="),
    exp.GT: _binary(">"),
    exp.GTE: _binary(">="),
}
