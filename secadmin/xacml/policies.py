"""Rules, policies and policy sets, and what they decide (XACML 3.0, sections 7.12 to 7.19)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from secadmin.xacml.combining import (
    IND_D,
    IND_DP,
    IND_P,
    NA,
    Algorithm,
    D,
    Decision,
    P,
)
from secadmin.xacml.expressions import Evaluation, Expression, TooMuchWork
from secadmin.xacml.functions import Indeterminate
from secadmin.xacml.request import Request
from secadmin.xacml.target import Target
from secadmin.xacml.target_index import TargetIndex


@dataclass(frozen=True, slots=True)
class Assignment:
    """One attribute of an obligation or advice, with the short name of its data type."""

    attribute: str
    data_type: str
    value: Any


@dataclass(frozen=True, slots=True)
class Duty:
    """An obligation, or an advice. The enforcement point must fulfil each obligation or deny."""

    id: str
    assignments: tuple[Assignment, ...]
    advice: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """A decision with the duties that go with it. Only Permit lets anything through."""

    decision: Decision
    duties: tuple[Duty, ...] = ()

    @property
    def obligations(self) -> tuple[Duty, ...]:
        """The obligations, in the order of the policies."""
        return tuple(one for one in self.duties if not one.advice)


@dataclass(frozen=True, slots=True)
class DutyExpression:
    """What makes an obligation or advice when the decision is `on`."""

    id: str
    on: Decision
    assignments: tuple[tuple[str, Expression], ...]
    advice: bool = False

    def evaluate(self, evaluation: Evaluation) -> Duty:
        """The duty; a bag gives one assignment for each value. Raises Indeterminate."""
        found = []
        for attribute, expression in self.assignments:
            value: Any = expression.evaluate(evaluation)
            values = value if expression.kind.bag else (value,)
            found += [Assignment(attribute, expression.kind.name, one) for one in values]
        return Duty(self.id, tuple(found), self.advice)


def _with_duties(
    decision: Decision, duties: tuple[DutyExpression, ...], evaluation: Evaluation
) -> Result:
    """The decision with its own duties; a duty that has no value makes it Indeterminate."""
    try:
        own = tuple(one.evaluate(evaluation) for one in duties if one.on is decision)
    except Indeterminate:
        return Result(_doubtful(decision))
    return Result(decision, own)


def _doubtful(decision: Decision) -> Decision:
    """What a decision becomes if an error lies above it (table 7)."""
    return {P: IND_P, D: IND_D}.get(decision, decision)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its effect holds where target and condition do."""

    id: str
    effect: Decision
    target: Target
    condition: Expression | None
    duties: tuple[DutyExpression, ...] = ()

    def evaluate(self, evaluation: Evaluation) -> Result:
        """The rule's decision (table 4)."""
        try:
            if not self.target.matches(evaluation):
                return Result(NA)
            if self.condition is not None and not self.condition.evaluate(evaluation):
                return Result(NA)
        except Indeterminate:
            return Result(_doubtful(self.effect))
        return _with_duties(self.effect, self.duties, evaluation)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of rules, or a policy set of policies. Without `algorithm`: only-one-applicable.

    `index` leaves out children whose targets surely do not match: they are NotApplicable, and
    no algorithm gives that any weight.
    """

    id: str
    target: Target
    algorithm: Algorithm | None
    children: tuple[Rule | Policy, ...]
    duties: tuple[DutyExpression, ...] = ()
    index: TargetIndex | None = None

    def evaluate(self, evaluation: Evaluation) -> Result:
        """The policy's decision (tables 5 to 7)."""
        evaluation.spend()
        try:
            applies = self.target.matches(evaluation)
        except Indeterminate:
            return Result(_doubtful(self._combined(evaluation).decision))
        return self._combined(evaluation) if applies else Result(NA)

    def _combined(self, evaluation: Evaluation) -> Result:
        seen: list[Result] = []

        def decisions() -> Iterator[Decision]:
            for child in self._candidates(evaluation):
                seen.append(child.evaluate(evaluation))
                yield seen[-1].decision

        if self.algorithm is None:
            result = self._only_one(evaluation)
            decision, inner = result.decision, result.duties
        else:
            decision = self.algorithm(decisions())
            inner = tuple(duty for one in seen if one.decision is decision for duty in one.duties)
        own = _with_duties(decision, self.duties, evaluation)
        return Result(own.decision, inner + own.duties if own.decision is decision else ())

    def _candidates(self, evaluation: Evaluation) -> Iterator[Rule | Policy]:
        if self.index is None:
            return iter(self.children)
        return (self.children[place] for place in self.index.places(evaluation))

    def _only_one(self, evaluation: Evaluation) -> Result:
        """The decision of the only child that applies (C.9); two, or an error: Indeterminate."""
        applicable = []
        for child in self._candidates(evaluation):
            try:
                if child.target.matches(evaluation):
                    applicable.append(child)
            except Indeterminate:
                return Result(IND_DP)
        if len(applicable) > 1:
            return Result(IND_DP)
        return applicable[0].evaluate(evaluation) if applicable else Result(NA)


def decide(policy: Policy, request: Request) -> Result:
    """What a policy decides. Too much or too deep work is Indeterminate{DP}: it permits nothing."""
    try:
        return policy.evaluate(Evaluation(request))
    except (TooMuchWork, RecursionError):
        return Result(IND_DP)
