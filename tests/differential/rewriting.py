"""Other ways to write a plan: those that mean the same, and small changes that may mean another.

The canonical form (`catalog.canonical`) must be the same for the first, and may be so only for
changes that give the same results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from random import Random
from typing import Any

from catalog.expression import Call, Expression, Literal, conjuncts
from catalog.plan import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Match,
    Moving,
    MovingJoin,
    Node,
    Plan,
    Ranked,
    Union,
    Window,
    walk,
)
from catalog.relation import Relation

_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OTHERS = {
    "and": "or",
    "or": "and",
    "=": "<>",
    "<>": "=",
    "+": "-",
    "-": "+",
    "*": "+",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": "<",
    "greatest": "least",
    "least": "greatest",
}
_SWITCHED = {JoinKind.LEFT: JoinKind.RIGHT, JoinKind.RIGHT: JoinKind.LEFT}


def rewritten(random: Random, plan: Plan) -> Plan:
    """The plan in another order: of conditions, sides and branches."""
    nodes = list(walk(plan.root))
    rewriting = _Rewriting(
        random,
        branches=not any(isinstance(node, Moving | Match) or _by_order(node) for node in nodes),
        sides=not any(map(_by_order, nodes)),
    )
    root = rewriting.of(plan.root)
    return replace(plan, root=root)


def _by_order(node: Node) -> bool:
    """Whether the order of tuples of one time decides over a result."""
    if isinstance(node, Aggregate):
        return any(each.function in {"first", "last"} for each in node.aggregations)
    return isinstance(node, Ranked)


@dataclass(frozen=True, slots=True)
class _Rewriting:
    random: Random
    branches: bool
    sides: bool

    def of(self, value: Any) -> Any:
        """A node, an expression or another part, in another order."""
        if isinstance(value, tuple):
            return tuple(map(self.of, value))
        if isinstance(value, Relation) or not is_dataclass(value) or isinstance(value, type):
            return value
        parts = {each.name: self.of(getattr(value, each.name)) for each in fields(value)}
        made: Any = type(value)(**parts)
        match made:
            case Filter():
                return self._filter(made)
            case Union() if self.branches:
                return self._union(made)
            case MovingJoin() if self.sides:
                return self._turned(made)
            case Join():
                also = made.condition and self._anded(conjuncts(made.condition))
                return replace(made, equal=self._shuffled(made.equal), condition=also)
            case Call():
                return self._call(made)
        return made

    def _shuffled(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self.random.sample(items, len(items)))

    def _anded(self, parts: tuple[Expression, ...]) -> Expression:
        mixed = self._shuffled((*parts, self.random.choice(parts)))
        return Call("and", mixed)

    def _filter(self, node: Filter) -> Node:
        parts = conjuncts(node.condition)
        if len(parts) > 1 and self.random.random() < 0.5:
            first, *others = self._shuffled(parts)
            return Filter(Filter(node.input, self._anded(tuple(others))), first)
        return replace(node, condition=self._anded(parts))

    def _union(self, node: Union) -> Union:
        mixed = self._shuffled(node.inputs)
        if len(mixed) > 2 and self.random.random() < 0.5:
            return Union((Union(mixed[:2]), *mixed[2:]))
        return Union(mixed)

    def _turned(self, node: MovingJoin) -> MovingJoin:
        if node.kind in (JoinKind.SEMI, JoinKind.ANTI) or self.random.random() < 0.3:
            return node
        equal = tuple((right, left) for left, right in node.equal)
        kind = _SWITCHED.get(node.kind, node.kind)
        return replace(node, left=node.right, right=node.left, equal=equal, kind=kind)

    def _call(self, call: Call) -> Call:
        given = call.arguments
        if call.function in ("and", "or"):
            return replace(call, arguments=self._shuffled((*given, self.random.choice(given))))
        if self.random.random() < 0.5:
            return call
        if call.function in ("=", "<>", "+", "*"):
            return replace(call, arguments=given[::-1])
        if call.function in _MIRROR:
            return Call(_MIRROR[call.function], given[::-1])
        return call


def changed(value: Any) -> Iterator[Any]:
    """The value with one small change anywhere in it, in all ways that are known here."""
    yield from _changed_here(value)
    if isinstance(value, tuple):
        for place, item in enumerate(value):
            for other in changed(item):
                yield (*value[:place], other, *value[place + 1 :])
        if len(value) > 1:
            yield value[::-1]
    elif is_dataclass(value) and not isinstance(value, Relation | type):
        for each in fields(value):
            for other in changed(getattr(value, each.name)):
                yield replace(value, **{each.name: other})


def _changed_here(value: Any) -> Iterator[Any]:
    match value:
        case Literal(bool(known)):
            yield replace(value, value=not known)
        case Literal(int(known)) | Literal(float(known)):
            yield replace(value, value=known + 1)
        case Literal(str(known)):
            yield replace(value, value=f"{known}x")
        case Call(name) if name in _OTHERS:
            yield replace(value, function=_OTHERS[name])
        case Filter(below, condition):
            yield below
            yield Filter(below, Call("not", (condition,)))
        case Union(several):
            yield Union((*several, several[0]))
        case Join():
            yield replace(value, lower_ms=value.lower_ms - 1_000)
            equal = tuple((right, left) for left, right in value.equal)
            yield replace(value, left=value.right, right=value.left, equal=equal)
        case MovingJoin():
            yield from (replace(value, kind=kind) for kind in JoinKind if kind is not value.kind)
        case Window(size, slide, offset):
            yield Window(size * 2, slide, offset)
