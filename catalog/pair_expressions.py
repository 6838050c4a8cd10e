"""Expressions over the rows of a join of moving windows, and over the rows of a relation below.

Such a join computes its rows in Python, and the engine computes all other expressions. So each
largest part that reads one window alone is computed by the engine, below the join. What combines
several windows is computed with PAIR_FUNCTIONS only. An outer join gives rows without a tuple of
one side. Over that side, everything but plain attributes is computed above the join, because it may
have a value where the attributes are NULL.

The rows of groups, and of an order, are made in Python too. What reads them uses PAIR_FUNCTIONS
only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.changing_parts import (
    ChangingParts,
    JoinPart,
    Part,
    RelationPart,
    SidePart,
    inlined,
    through_steps,
)
from catalog.checked_plan import CheckedNode
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal, attributes_of, type_of
from catalog.plan import JoinKind
from catalog.schema import Attribute, AttributeType, Schema

PAIR_FUNCTIONS = frozenset(
    {
        *("+", "-", "*", "/", "negate", "abs", "micros_between", "concat"),
        *("=", "<>", "<", "<=", ">", ">=", "and", "or", "not"),
        *("is_null", "coalesce", "case", "greatest", "least"),
    }
)
# Each row costs so many steps at most.
MAX_PAIR_PARTS = 200
# The numbers of the sides of a relation: windows, and relations below.
Windows = frozenset[int]
_Values = Mapping[str, Expression]


def window_of(ref: AttributeRef) -> tuple[int, str]:
    """The number of a window, and the name of its attribute or value, of `<number>.<name>`."""
    number, _, name = ref.name.partition(".")
    return int(number), name


class WindowValues:
    """Collects the parts of expressions that read one window alone.

    The given expressions name the attribute `a` of window 0 as `0.a`. In the expressions over rows,
    `0.<n>` is the n-th value of window 0.
    """

    def __init__(self, schemas: Sequence[Schema]) -> None:
        self._schemas = schemas
        self._found: list[dict[Expression, AttributeRef]] = [{} for _ in schemas]
        self._parts = 0

    def values(self, number: int) -> tuple[Expression, ...]:
        """The expressions over the attributes of a window, in the order of their numbers."""
        return tuple(self._found[number])

    def schema(self) -> Schema:
        """The types of all values of all windows."""
        return Schema(
            tuple(
                Attribute(ref.name, type_of(part, schema))
                for schema, found in zip(self._schemas, self._found, strict=True)
                for part, ref in found.items()
            )
        )

    def over_rows(self, expression: Expression, optional: Windows) -> Expression:
        """The expression over the values of all windows, of which `optional` may have no tuple.

        Raises InvalidInput, with its position.
        """
        self._parts += 1
        if self._parts > MAX_PAIR_PARTS:
            raise InvalidInput(
                f"a join of moving windows has at most {MAX_PAIR_PARTS} parts of expressions that "
                "combine both sides; compute more in a query over this one's output",
                expression.position,
            )
        number = _only_window(expression)
        plain = isinstance(expression, AttributeRef)
        if number is not None and (plain or number not in optional):
            known = self._found[number]
            return known.setdefault(_own(expression), AttributeRef(f"{number}.{len(known)}"))
        match expression:
            case Call(function, arguments, position):
                if function not in PAIR_FUNCTIONS:
                    side = "one side only" if number is None else "a side that is always there only"
                    raise InvalidInput(
                        f"over a join of moving windows {function.upper()} takes attributes of "
                        f"{side}; apply it in a query over this one's output",
                        position,
                    )
                made = (self.over_rows(argument, optional) for argument in arguments)
                return Call(function, tuple(made), position)
            case _:
                return expression


def _only_window(expression: Expression) -> int | None:
    """The only window that the expression reads. A constant is a part of any window."""
    if isinstance(expression, Literal):
        return None
    numbers = {window_of(ref)[0] for ref in attributes_of(expression)}
    return numbers.pop() if len(numbers) == 1 else None


def _own(expression: Expression) -> Expression:
    """An expression over one window, with the window's own names."""
    match expression:
        case AttributeRef(position=position):
            return AttributeRef(window_of(expression)[1], position)
        case Call(function, arguments, position):
            return Call(function, tuple(map(_own, arguments)), position)
        case _:
            return expression


@dataclass(frozen=True, slots=True)
class JoinRules:
    """What a join of two parts computes for each pair. A part that is one window is its number.

    `keys` has for each side the values that the join compares. The engine computes them for a side
    that is one window, which then has none here. `conditions` decide which pairs there are, and
    `filters` which rows are left.
    """

    kind: JoinKind
    nulls_equal: bool
    sides: tuple[JoinRules | int, JoinRules | int]
    keys: tuple[tuple[AttributeRef, ...], tuple[AttributeRef, ...]]
    conditions: tuple[Expression, ...]
    filters: tuple[Expression, ...]

    @property
    def windows(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The windows of each side."""
        left, right = (
            (side,) if isinstance(side, int) else tuple(n for each in side.windows for n in each)
            for side in self.sides
        )
        return left, right

    @property
    def witnesses(self) -> Windows:
        """The windows that only decide in a semi join, so that no row shows their tuples."""
        own = self.windows[1] if self.kind is JoinKind.SEMI else ()
        joins = (side for side in self.sides if not isinstance(side, int))
        return frozenset(own).union(*(side.witnesses for side in joins))


class RowExpressions:
    """What a join of moving windows computes for its rows, and the values that it reads.

    `shown` are the values of a row, or of a group's key; `arguments` are those that aggregates or
    an order read.
    `compared` has for each window what its join compares. Raises InvalidInput.
    """

    def __init__(self, parts: ChangingParts, join: JoinPart) -> None:
        sides = parts.sides()
        self.values = WindowValues([side.schema for side in sides])
        self.compared: list[tuple[AttributeRef, ...]] = [() for _ in sides]
        self.rules, values, optional = self._join(join)
        shown, arguments = ([inlined(each, values) for each in several] for several in parts.read())
        self.shown = tuple(self.values.over_rows(each, optional) for each in shown)
        self.arguments = tuple(self.values.over_rows(each, optional) for each in arguments)

    def _part(self, part: Part) -> tuple[JoinRules | int, _Values, Windows]:
        """The rules of a part, its attributes in terms of windows, and its optional windows."""
        if isinstance(part, JoinPart):
            return self._join(part)
        names = part.schema.names
        return part.number, {n: AttributeRef(f"{part.number}.{n}") for n in names}, frozenset()

    def _join(self, part: JoinPart) -> tuple[JoinRules, _Values, Windows]:
        node = part.node
        left, mine, few = self._part(part.left)
        right, other, more = self._part(part.right)
        both = {**mine, **other}
        keys = (
            self._keys(part.left, [pair[0] for pair in node.equal], mine, few),
            self._keys(part.right, [pair[1] for pair in node.equal], other, more),
        )
        own = () if node.condition is None else (inlined(node.condition, both),)
        conditions = tuple(self.values.over_rows(each, few | more) for each in own)
        optional = few | more
        if node.kind.keeps_left:
            optional |= {side.number for side in part.right.sides()}
        if node.kind.keeps_right:
            optional |= {side.number for side in part.left.sides()}
        given, values = through_steps(part.steps, both if node.kind.shows_right else mine)
        filters = tuple(self.values.over_rows(each, optional) for each in given)
        rules = JoinRules(node.kind, node.nulls_equal, (left, right), keys, conditions, filters)
        return rules, values, optional

    def _keys(
        self, part: Part, keys: Sequence[AttributeRef], values: _Values, optional: Windows
    ) -> tuple[AttributeRef, ...]:
        if not isinstance(part, JoinPart):
            self.compared[part.number] = tuple(keys)
            return ()
        found = []
        for key in keys:
            value = self.values.over_rows(inlined(key, values), optional)
            if not isinstance(value, AttributeRef):
                raise InvalidInput(
                    "a join of several moving windows compares values of single windows: "
                    f"{key.name!r} is made of several; compare it in a query over this one's "
                    "output",
                    key.position,
                )
            found.append(value)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class SideValues:
    """What a relation reads of the tuples of one side, in terms of the attributes of the side.

    `row` are the values that the relation shows, or the key of a group, or what a join compares.
    `arguments` are those that aggregates, an order or a join read.
    """

    side: SidePart
    row: tuple[Expression, ...]
    arguments: tuple[Expression, ...]


def values_of_sides(parts: ChangingParts, made: RowExpressions | None) -> list[SideValues]:
    """What a relation reads of each of its sides. `made` is what its join computes, if it has one.

    Raises InvalidInput.
    """
    if made is not None:
        return [
            SideValues(side, made.compared[side.number], made.values.values(side.number))
            for side in parts.sides()
        ]
    row, arguments = map(tuple, parts.read())
    return [SideValues(side, row, arguments) for side in parts.sides()]


@dataclass(frozen=True, slots=True)
class RowsBelow:
    """What is computed for each row of a relation below. Its n-th value is called `0.<n>`.

    `schema` has the types of the values. The row is there above if all `conditions` are true.
    """

    schema: Schema
    conditions: tuple[Expression, ...]
    row: tuple[Expression, ...]
    arguments: tuple[Expression, ...]


def rows_below(part: RelationPart, values: SideValues) -> RowsBelow:
    """What a relation computes for the rows of one below it. Raises InvalidInput."""
    below = part.parts
    types = _shown_types(below)
    refs = {name: AttributeRef(f"0.{place}") for place, name in enumerate(below.shown)}
    conditions, known = through_steps(part.steps, refs)
    row, arguments = (
        tuple(inlined(each, known) for each in several)
        for several in (values.row, values.arguments)
    )
    made = (*conditions, *row, *arguments)
    for each in made:
        _require_computed(each)
    if sum(map(_size, made)) > MAX_PAIR_PARTS:
        raise InvalidInput(
            f"expressions over groups have at most {MAX_PAIR_PARTS} parts; compute more in a query "
            "over this one's output"
        )
    schema = Schema(tuple(Attribute(f"0.{place}", kind) for place, kind in enumerate(types)))
    return RowsBelow(schema, conditions, row, arguments)


def _shown_types(below: ChangingParts) -> list[AttributeType]:
    given = below.results.attributes
    types = {each.name: each.type for each in given}
    return [types[name] for name in below.shown]


def _require_computed(expression: Expression) -> None:
    if not isinstance(expression, Call):
        return
    if expression.function not in PAIR_FUNCTIONS:
        raise InvalidInput(
            f"{expression.function.upper()} does not go over groups or over rows in an order; "
            "apply it below them, or in a query over this one's output",
            expression.position,
        )
    for each in expression.arguments:
        _require_computed(each)


def _size(expression: Expression) -> int:
    arguments = expression.arguments if isinstance(expression, Call) else ()
    return 1 + sum(map(_size, arguments))


def check_rows(relation: CheckedNode) -> None:
    """Raise InvalidInput for an expression over rows that cannot be computed in Python."""
    for parts in ChangingParts.of(relation).relations():
        made = None if parts.join is None else RowExpressions(parts, parts.join)
        for values in values_of_sides(parts, made):
            if isinstance(values.side, RelationPart):
                rows_below(values.side, values)
