"""Random event patterns over one stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from catalog.analysis import analyse_node
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression
from catalog.pattern import (
    Definition,
    Pattern,
    PatternChoice,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
    Reading,
    Skip,
    SkipTo,
    variables_of,
)
from catalog.plan import Match, Node
from catalog.schema import Schema, Type

# Makes a random expression of a type over attributes.
MakeExpression = Callable[[Type, Schema], Expression]
_TRIES = 20


def matching(random: Random, node: Node, make: MakeExpression) -> Node:
    """A random pattern over a node, which has an event time."""
    schema = analyse_node(node).schema
    for _ in range(_TRIES):
        made = _made(random, node, schema, make)
        try:
            analyse_node(made)
        except InvalidInput:
            continue
        return made
    return Match(node, (), (), PatternVariable("a"), 1_000)


def _made(random: Random, node: Node, schema: Schema, make: MakeExpression) -> Match:
    pattern = _pattern(random, 2)
    variables = [*dict.fromkeys(variables_of(pattern))]
    readings: list[Reading] = []
    definitions = []
    for variable in variables:
        if random.random() < 0.35:
            condition = _condition(random, variables, readings, schema, make)
            definitions.append(Definition(variable, condition))
    keys = random.sample(schema.names, 1) if random.random() < 0.3 else []
    per_row = random.random() < 0.4
    measures = [_measure(random, f"m{n}", variables, schema, make, per_row) for n in range(3)]
    to = random.choice(list(SkipTo))
    named = random.choice(variables) if to in (SkipTo.FIRST, SkipTo.LAST) else None
    return Match(
        node,
        tuple(map(AttributeRef, keys)),
        tuple(measures),
        pattern,
        random.choice([1_000, 20_000, 3_600_000, 400 * 86_400_000]),
        tuple(definitions),
        tuple(readings),
        Skip(to, named),
        per_row=per_row,
    )


def _condition(
    random: Random,
    variables: list[str],
    readings: list[Reading],
    schema: Schema,
    make: MakeExpression,
) -> Expression:
    """A condition of the row alone, or one that compares it with other rows."""
    if random.random() < 0.4:
        return make(Type.BOOLEAN, schema)
    kind = random.choice([Type.BIGINT, Type.STRING, Type.TIMESTAMP])
    name = f"row.{len(readings)}"
    if random.random() < 0.5:
        moved = random.choice([-2, -1, 1, 2])
        readings.append(Reading(name, "last", None, make(kind, schema), moved=moved))
    else:
        function = random.choice(["first", "last", "min", "max"])
        variable = random.choice([None, *variables])
        readings.append(Reading(name, function, variable, make(kind, schema)))
    compared = random.choice(["=", "<>", "<", ">="])
    return Call(compared, (make(kind, schema), AttributeRef(name)))


def _measure(
    random: Random,
    name: str,
    variables: list[str],
    schema: Schema,
    make: MakeExpression,
    per_row: bool,
) -> Reading:
    """A value of one row or of many, in results of rows perhaps of the whole match."""
    if random.random() < 0.1:
        return Reading(name, "classifier", None, None)
    made = _reading(random, name, variables, schema, make)
    if made.function in {"first", "last"} and random.random() < 0.4:
        made = replace(made, offset=random.randint(0, 2), moved=random.randint(-1, 1))
    return replace(made, final=per_row and random.random() < 0.4)


def _reading(
    random: Random, name: str, variables: list[str], schema: Schema, make: MakeExpression
) -> Reading:
    variable = random.choice([None, *variables])
    if random.random() < 0.2:
        return Reading(name, "count", variable, None)
    function = random.choice(["first", "last", "min", "max", "count"])
    kind = random.choice([Type.BIGINT, Type.DOUBLE, Type.STRING, Type.TIMESTAMP])
    return Reading(name, function, variable, make(kind, schema))


def _pattern(random: Random, depth: int) -> Pattern:
    if depth == 0 or random.random() < 0.3:
        return PatternVariable(random.choice("abc"))
    inner = tuple(_pattern(random, depth - 1) for _ in range(random.randint(1, 3)))
    match random.choice(["sequence", "sequence", "choice", "repeat"]):
        case "sequence":
            return PatternSequence(inner)
        case "choice":
            return PatternChoice(inner)
        case _:
            least = random.randint(0, 2)
            most = random.choice([None, max(1, least), least + 1])
            return PatternRepeat(inner[0], least, most, random.random() < 0.6)
