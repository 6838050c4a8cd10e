"""The canonical form of a plan: equal forms have equal results (000: equal queries run once).

Two plans have one form if they differ only in what no result depends on: the order and number of
the conditions that AND joins, the order of what OR joins, the sides of a comparison or of a sum,
the order of a UNION's branches, the sides of a join of changing relations, the names of relations,
and the places in the text. Names and order of the results' attributes belong to the form, and so do
the views of roles, because they are nodes of the plan.

A difference that this module does not know makes another form. So it can miss equal queries, and
never takes two different ones for equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any

from catalog.aggregates import COLLECT_LIST, FIRST, LAST
from catalog.checked_plan import CheckedPlan
from catalog.expression import Call, Expression, conjuncts
from catalog.label import Label
from catalog.placement import Placement
from catalog.plan import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Match,
    Moving,
    MovingJoin,
    Node,
    Ranked,
    Union,
    walk,
)
from catalog.plan_json import encode
from catalog.plan_memory import shared_memory_ms
from catalog.relation import Relation

_EITHER_SIDE = frozenset({"=", "<>", "+", "*"})
_TURNED = {">": "<", ">=": "<="}
_MIRRORED = frozenset({JoinKind.INNER, JoinKind.FULL})


def sharing_key(
    checked: CheckedPlan,
    level: Label | None,
    placement: Placement = Placement.SINK,
    space: str = "",
) -> str:
    """What two queries must have in common to run as one, as a hash. Empty: it runs alone.

    `space` is the engine that the query's role has for itself, if it has one.

    A query that keeps state begins alone, because its state begins when it is added. It moves to an
    older execution with this key later (`catalog.moves`), if its state can become the same. If not,
    it always runs alone. So does one whose classes run apart, or have state of their own.
    """
    if placement is Placement.APART or (checked.keeps_state and not _may_move(checked, placement)):
        return ""
    try:
        form = canonical_form(checked)
    except RecursionError:
        return ""
    text = f"{form}\n{'' if level is None else level.to_wire()}\n{placement}"
    text += f"\n{space}" if space else ""
    return hashlib.sha256(text.encode()).hexdigest()


def _may_move(checked: CheckedPlan, placement: Placement) -> bool:
    return placement is Placement.SINK and shared_memory_ms(checked) is not None


def canonical_form(checked: CheckedPlan) -> str:
    """The canonical form of a plan as a text."""
    nodes = tuple(walk(checked.plan.root))
    first = any(isinstance(node, Ranked) or _takes_first(node) for node in nodes)
    writer = _Writer(
        # Of equal times, the branch of a UNION can decide which row is first.
        any_branch=not first and not any(isinstance(node, Moving | Match) for node in nodes),
        any_side=not first,
    )
    results = (checked.schema, checked.event_time, checked.delay_ms, checked.emission)
    return _joined("Plan", (*map(writer.of, results), writer.of(checked.root.node)))


def _takes_first(node: Node) -> bool:
    """Whether the order of the tuples of one time decides over a result."""
    functions = {a.function for a in node.aggregations} if isinstance(node, Aggregate) else set()
    return not functions.isdisjoint({FIRST, LAST, COLLECT_LIST})


@dataclass(frozen=True, slots=True)
class _Writer:
    any_branch: bool
    any_side: bool

    def of(self, value: Any) -> str:
        """The form of a node, an expression, or another part of a plan."""
        match value:
            case Relation():
                return json.dumps({**encode(value), "name": ""}, sort_keys=True)
            case Filter():
                return self._filter(value)
            case Union() if self.any_branch:
                return _joined("Union", sorted(map(self.of, _branches(value))))
            case MovingJoin() if self.any_side:
                return self._joining(self._turned(value))
            case Join() | MovingJoin():
                return self._joining(value)
            case Call():
                return self._call(value)
            case Enum():
                return json.dumps(value.value)
            case tuple():
                return _joined("", map(self.of, value))
        if not is_dataclass(value):
            return json.dumps(value)
        return _joined(type(value).__name__, self._parts_but(value, "position"))

    def _parts_but(self, value: Any, *names: str) -> list[str]:
        """The forms of all fields of a value but for these."""
        left = (field.name for field in fields(value) if field.name not in names)
        return [self.of(getattr(value, name)) for name in left]

    def _filter(self, node: Filter) -> str:
        below: Node = node
        found: set[str] = set()
        while isinstance(below, Filter):
            found |= self._conditions(below.condition)
            below = below.input
        return _joined("Filter", (*sorted(found), self.of(below)))

    def _conditions(self, condition: Expression) -> set[str]:
        return {self.of(each) for each in conjuncts(condition)}

    def _joining(self, node: Join | MovingJoin) -> str:
        equal = sorted({self.of(pair) for pair in node.equal})
        also = [] if node.condition is None else sorted(self._conditions(node.condition))
        rest = self._parts_but(node, "equal", "condition")
        return _joined(type(node).__name__, (_joined("", equal), _joined("", also), *rest))

    def _turned(self, node: MovingJoin) -> MovingJoin:
        """The join with the sides in one order. The order of its attributes is the root's."""
        turns = node.kind is JoinKind.RIGHT
        if node.kind in _MIRRORED:
            turns = self.of(node.right) < self.of(node.left)
        if not turns:
            return node
        kind = JoinKind.LEFT if node.kind is JoinKind.RIGHT else node.kind
        equal = tuple((right, left) for left, right in node.equal)
        return replace(node, left=node.right, right=node.left, equal=equal, kind=kind)

    def _call(self, call: Call) -> str:
        name = call.function
        if name in ("and", "or"):
            parts = {self.of(each) for each in _flat(call, name)}
            return _joined(name, sorted(parts))
        given = list(map(self.of, call.arguments))
        if name in _TURNED:
            return _joined(_TURNED[name], reversed(given))
        return _joined(name, sorted(given) if name in _EITHER_SIDE else given)


def _branches(union: Union) -> Iterable[Node]:
    for each in union.inputs:
        if isinstance(each, Union):
            yield from _branches(each)
        else:
            yield each


def _flat(call: Call, name: str) -> Iterable[Expression]:
    for each in call.arguments:
        if isinstance(each, Call) and each.function == name:
            yield from _flat(each, name)
        else:
            yield each


def _joined(name: str, parts: Iterable[str]) -> str:
    return f"{name}({','.join(parts)})"
