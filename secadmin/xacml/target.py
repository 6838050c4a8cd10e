"""Targets: for which requests a rule or a policy is (XACML 3.0, section 7.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from secadmin.xacml.expressions import Designator, Evaluation, cost
from secadmin.xacml.functions import Function, Indeterminate

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Match:
    """A comparison of a constant with each value of an attribute."""

    function: Function
    value: Any
    attribute: Designator

    def matches(self, evaluation: Evaluation) -> bool:
        """Whether one value matches. Raises Indeterminate if none does and one has an error."""
        failed: Indeterminate | None = None
        for value in self.attribute.evaluate(evaluation):
            evaluation.spend(cost(self.function, (self.value, value)))
            try:
                if self.function.run(self.value, value):
                    return True
            except Indeterminate as error:
                failed = error
        if failed:
            raise failed
        return False


@dataclass(frozen=True, slots=True)
class Target:
    """All of the outer tuple, any of the middle one, all of the inner one must match."""

    any_ofs: tuple[tuple[tuple[Match, ...], ...], ...] = ()

    def matches(self, evaluation: Evaluation) -> bool:
        """Whether the request is in the target (tables 1 to 3). Raises Indeterminate."""
        return _three(False, self.any_ofs, lambda any_of: self._any(any_of, evaluation))

    @staticmethod
    def _any(any_of: tuple[tuple[Match, ...], ...], evaluation: Evaluation) -> bool:
        return _three(
            True,
            any_of,
            lambda all_of: _three(False, all_of, lambda one: one.matches(evaluation)),
        )


def _three(stop: bool, parts: Iterable[Part], matches: Callable[[Part], bool]) -> bool:
    """`all` (stop is False) or `any` (True); an error counts only if no part decides."""
    failed: Indeterminate | None = None
    for part in parts:
        try:
            if matches(part) is stop:
                return stop
        except Indeterminate as error:
            failed = error
    if failed:
        raise failed
    return not stop
