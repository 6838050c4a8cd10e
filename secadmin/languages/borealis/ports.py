"""The filter box: one output for each expression, and one for the tuples that pass none."""

from __future__ import annotations

from catalog.errors import InvalidInput
from catalog.plan import Filter
from catalog.schema import Type
from secadmin.languages.borealis.document import Box
from secadmin.languages.borealis.expression import Operands, operands_of, read
from secadmin.languages.borealis.flow import Flow, after
from secadmin.languages.borealis.parameters import Parameter
from secadmin.languages.building import build
from secadmin.languages.typed import Typed, call, literal

_ELSE = "pass-on-false-port"
# The condition of an output has the expressions of all outputs before it.
MAX_OUTPUTS = 100


def filter_ports(box: Box, source: Flow) -> tuple[Flow, ...]:
    """One Filter for each output of a box. Raises InvalidInput.

    A tuple leaves at the first output whose expression is true. With `pass-on-false-port` = 1 there
    is one more output, for the tuples for which no expression is true (so it is false or NULL).
    """
    parameters = box.parameters
    parameters.check(_ELSE, series=("expression",))
    parameters.choice(_ELSE, "0", "1", required=False)
    has_else = parameters.get(_ELSE)
    operands = operands_of(source)
    expressions = [_condition(each, operands) for each in parameters.series("expression")]
    if len(expressions) > MAX_OUTPUTS:
        raise InvalidInput(f"a filter has at most {MAX_OUTPUTS} expressions", box.position)
    last = has_else is not None and has_else.text == "1"
    count = len(expressions) + last
    if len(box.outputs) != count:
        raise InvalidInput(
            f"a filter has one output for each expression, and one more if {_ELSE} is 1: "
            f"{count} here, not {len(box.outputs)}",
            box.position,
        )
    passed = [_at(expressions, index) for index in range(len(expressions))]
    conditions = [*passed, _none_of(expressions)] if last else passed
    return tuple(_filtered(source, condition) for condition in conditions)


def _condition(parameter: Parameter, operands: Operands) -> Typed:
    condition = read(parameter, operands, "a filter")
    if condition.type is not Type.BOOLEAN:
        raise InvalidInput(
            "a condition is true or false; compare with =, < or the like", condition.position
        )
    return condition


def _filtered(source: Flow, condition: Typed) -> Flow:
    node = Filter(source.built.node, condition.expression)
    built = build(node, (source.built,), condition.position)
    return after((source,), built, keeps_order=True)


def _at(expressions: list[Typed], index: int) -> Typed:
    """The condition of the output at an index: its expression is the first that is true."""
    own = expressions[index]
    if index == 0:
        return own
    return call("and", [*map(_not_true, expressions[:index]), own], own.position)


def _none_of(expressions: list[Typed]) -> Typed:
    if len(expressions) == 1:
        return _not_true(expressions[0])
    return call("and", [_not_true(each) for each in expressions], expressions[-1].position)


def _not_true(value: Typed) -> Typed:
    """True where the value is false or NULL."""
    false = literal(value=False, kind=Type.BOOLEAN, position=value.position)
    return call("not", [call("coalesce", [value, false], value.position)], value.position)
