"""Expressions of a policy, and their evaluation (XACML 3.0, sections 7.3 to 7.11).

The kind of every expression is known before it is evaluated. An evaluation has a budget of steps:
variables and functions over bags can ask for far more work than a policy has characters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from secadmin.xacml.functions import (
    BOOLEAN,
    INTEGER,
    PREFIX,
    Function,
    Indeterminate,
    Kind,
)
from secadmin.xacml.request import Name, Request

MAX_STEPS = 1_000_000


class TooMuchWork(Exception):
    """The evaluation needs more steps than it may take. The whole decision is Indeterminate."""


@dataclass(slots=True)
class Evaluation:
    """One evaluation: its request, the steps that are left, and the variables it knows already."""

    request: Request
    steps: int = MAX_STEPS
    variables: dict[int, Any] = field(default_factory=dict)

    def spend(self, steps: int = 1) -> None:
        """Take steps. Raises TooMuchWork when none are left."""
        self.steps -= steps
        if self.steps < 0:
            raise TooMuchWork


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    kind: Kind
    value: Any

    def evaluate(self, _evaluation: Evaluation) -> Any:
        """The constant."""
        return self.value


@dataclass(frozen=True, slots=True)
class Designator:
    """The bag of an attribute's values in the request."""

    kind: Kind
    name: Name
    issuer: str | None
    must_be_present: bool

    def evaluate(self, evaluation: Evaluation) -> tuple[Any, ...]:
        """The bag. Raises Indeterminate if it is empty and must not be."""
        evaluation.spend()
        bag = evaluation.request.bag(self.name, self.issuer)
        if self.must_be_present and not bag:
            raise Indeterminate(f"the request has no attribute {self.name.attribute}")
        return bag


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A defined expression, which is evaluated at most once in an evaluation."""

    kind: Kind
    body: Expression

    def evaluate(self, evaluation: Evaluation) -> Any:
        """The value of the body. Raises Indeterminate as the body does."""
        evaluation.spend()
        if id(self) not in evaluation.variables:
            evaluation.variables[id(self)] = self.body.evaluate(evaluation)
        return evaluation.variables[id(self)]


@dataclass(frozen=True, slots=True)
class Call:
    """A function on the values of its arguments."""

    kind: Kind
    function: Function
    arguments: tuple[Expression, ...]

    def evaluate(self, evaluation: Evaluation) -> Any:
        """The function's result. Raises Indeterminate if it or an argument has none."""
        values = [one.evaluate(evaluation) for one in self.arguments]
        evaluation.spend(cost(self.function, values))
        return self.function.run(*values)


@dataclass(frozen=True, slots=True)
class Logic:
    """`and`, `or` and `n-of`: they stop at the argument that decides."""

    kind: Kind
    name: str
    arguments: tuple[Expression, ...]

    def evaluate(self, evaluation: Evaluation) -> bool:
        """The truth value. Raises Indeterminate if an argument before the end has none."""
        evaluation.spend()
        if self.name == "n-of":
            return self._enough(evaluation)
        stop = self.name == "or"
        return any(one.evaluate(evaluation) == stop for one in self.arguments) == stop

    def _enough(self, evaluation: Evaluation) -> bool:
        wanted: Any = self.arguments[0].evaluate(evaluation)
        left = len(self.arguments) - 1
        if wanted > left:
            raise Indeterminate(f"n-of asks for more than its {left} arguments")
        for one in self.arguments[1:]:
            if wanted <= 0:
                return True
            wanted -= one.evaluate(evaluation)
        return bool(wanted <= 0)


@dataclass(frozen=True, slots=True)
class OverBags:
    """A function of a function (section A.3.12): `name` says how bags go through `function`."""

    kind: Kind
    name: str
    function: Function
    arguments: tuple[Expression, ...]

    def evaluate(self, evaluation: Evaluation) -> Any:
        """The result. Raises Indeterminate if one call that is needed has none."""
        values: list[Any] = [one.evaluate(evaluation) for one in self.arguments]

        def run(*chosen: Any) -> Any:
            evaluation.spend(cost(self.function, chosen))
            return self.function.run(*chosen)

        if self.name in _PAIRS:
            return _PAIRS[self.name](run, *values)
        bags = [
            value if one.kind.bag else (value,)
            for one, value in zip(self.arguments, values, strict=True)
        ]
        calls = (run(*chosen) for chosen in product(*bags))
        if self.name == "map":
            return tuple(calls)
        return all(calls) if self.name == "all-of" else any(calls)


Expression = Literal | Designator | Variable | Call | Logic | OverBags
_Run = Callable[..., Any]
_PAIRS: dict[str, Callable[[_Run, tuple[Any, ...], tuple[Any, ...]], bool]] = {
    "all-of-any": lambda run, a, b: all(any(run(x, y) for y in b) for x in a),
    "any-of-all": lambda run, a, b: any(all(run(x, y) for y in b) for x in a),
    "all-of-all": lambda run, a, b: all(run(x, y) for x in a for y in b),
}
_HIGHER = {
    f"{PREFIX}{version}:function:{name}"
    for version in ("1.0", "3.0")
    for name in (*_PAIRS, "any-of", "all-of", "any-of-any", "map")
}


def cost(function: Function, values: Any) -> int:
    """The steps of a call: each function is linear in its values."""
    own = 0 if function.steps is None else function.steps(*values)
    return own + 1 + sum(len(value) if isinstance(value, tuple) else 1 for value in values)


def is_over_bags(function_id: str) -> bool:
    """Whether the function takes another function."""
    return function_id in _HIGHER


def over_bags(
    function_id: str, function: Function, arguments: tuple[Expression, ...]
) -> Expression:
    """The call of a function over bags. Raises ValueError if its arguments do not fit."""
    name = function_id.rsplit(":", 1)[1]
    bags = [one.kind.bag for one in arguments]
    inner = tuple(Kind(one.kind.name) for one in arguments)
    if name in _PAIRS and bags != [True, True]:
        raise ValueError("two bags are expected")
    if name in ("any-of", "all-of", "map") and bags.count(True) != 1:
        raise ValueError("exactly one bag is expected")
    if not function.fits(inner):
        raise ValueError("the function does not take values of these types")
    if name == "map":
        if function.gives.bag:
            raise ValueError("the function must give one value, not a bag")
        return OverBags(Kind(function.gives.name, bag=True), name, function, arguments)
    if function.gives != BOOLEAN:
        raise ValueError("the function must give a boolean")
    return OverBags(BOOLEAN, name, function, arguments)


def logic(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """A call of `and`, `or` or `n-of`. Raises ValueError if its arguments do not fit."""
    kinds = [one.kind for one in arguments]
    wanted = [BOOLEAN] * len(kinds)
    if name == "n-of":
        wanted[:1] = [INTEGER]
    if kinds != wanted:
        raise ValueError(f"{name} does not take values of these types")
    return Logic(BOOLEAN, name, arguments)
