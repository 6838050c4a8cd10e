"""Views of roles: what a role sees of a stream (paper 002, section 2.2; paper 003, section 3).

A policy of a role gives a view. `catalog.view_merging` combines views, and `catalog.view_plan`
rewrites a query so that it reads no more than a view shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from catalog.aggregates import POLICY_FUNCTIONS
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal, type_of
from catalog.plan_rules import MAX_ROWS, MAX_WINDOW_MS
from catalog.relation import MAX_INDEPENDENT, Relation
from catalog.schema import AttributeType, Type

# These can be decided for one record without an engine (`catalog.view_trial`).
CONDITION_FUNCTIONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is_null"})
MAX_CONDITION_PARTS = 200


@dataclass(frozen=True, slots=True)
class AttributeRight:
    """The right to one attribute (003: ξ, φ and Ω). An attribute without a right is unknown (ψ).

    With a condition `when`, the attribute is NULL in the tuples for which the condition is not
    true. With `functions`, it can be used only inside these aggregate functions. Without any
    function, only windows can use it, as their event time.
    """

    name: str
    when: Expression | None = None
    functions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SmallestWindow:
    """The smallest window, and the smallest slide, of a query (002: window-aggregation).

    If it is `tumbling`, the windows of a query must not overlap.
    """

    size_ms: int
    slide_ms: int
    tumbling: bool = False

    def is_as_coarse_as(self, other: SmallestWindow | TupleWindow) -> bool:
        """Whether it is of the other one's type, and not smaller in size or slide."""
        return (
            isinstance(other, SmallestWindow)
            and self.size_ms >= other.size_ms
            and self.slide_ms >= other.slide_ms
        )


@dataclass(frozen=True, slots=True)
class TupleWindow:
    """The smallest window of tuples of a query: so many tuples, and so many from one to the next.

    Each window of such a query holds as many tuples as the others. If it is `tumbling`, no tuple is
    in two windows.
    """

    size: int
    slide: int
    tumbling: bool = False

    def is_as_coarse_as(self, other: SmallestWindow | TupleWindow) -> bool:
        """Whether it is of the other one's type, and not smaller in size or slide."""
        return (
            isinstance(other, TupleWindow) and self.size >= other.size and self.slide >= other.slide
        )


@dataclass(frozen=True, slots=True)
class RoleView:
    """What a role sees of a stream.

    It sees the tuples for which `rows` is true (None: all), and of them `attributes` (None: all),
    which are in the order of the schema. With a `window`, it sees no single tuple, but only
    aggregates over windows that are at least as coarse. Without one, restricted attributes are
    aggregated over tumbling windows. With a `minimum` above 1, a group has a result only if so many
    independent senders have sent values of each of them.
    """

    rows: Expression | None = None
    attributes: tuple[AttributeRight, ...] | None = None
    window: SmallestWindow | TupleWindow | None = None
    minimum: int = 1

    def right(self, name: str) -> AttributeRight | None:
        """The right to the attribute of that name, or None."""
        if self.attributes is None:
            return AttributeRight(name)
        return next((right for right in self.attributes if right.name == name), None)

    @property
    def visible_when(self) -> Expression | None:
        """The condition under which a tuple has any visible attribute, or None if it always has.

        A tuple whose last visible attribute is gone is not passed at all (003, figure 3).
        """
        if self.attributes is None:
            return None
        known = [right.when for right in self.attributes if right.when is not None]
        if len(known) < len(self.attributes):
            return None
        if not known:
            return Literal(False, Type.BOOLEAN)
        return known[0] if len(known) == 1 else Call("or", tuple(known))

    @property
    def restricts(self) -> bool:
        """Whether the view shows less than the whole stream."""
        whole = (self.rows, self.attributes, self.window) == (None, None, None)
        return not whole

    @property
    def only_aggregates(self) -> bool:
        """Whether something in the view can be used only inside aggregates."""
        rights = self.attributes or ()
        return self.window is not None or any(right.functions is not None for right in rights)

    @property
    def only_tumbling(self) -> bool:
        """Whether windows over restricted attributes must not overlap."""
        return self.only_aggregates if self.window is None else self.window.tumbling


def checked_view(view: RoleView, stream: Relation) -> RoleView:
    """The view in the order of the stream's schema, with the event time that its windows need.

    Raises InvalidInput if the view does not fit the stream, or cannot be enforced.
    """
    if stream.public:
        raise InvalidInput(f"{stream.name} is public, so everybody sees all of it")
    if not view.restricts:
        raise InvalidInput(
            "the policy restricts nothing; name rows, attributes or a window, or leave it out"
        )
    if not 1 <= view.minimum <= MAX_INDEPENDENT:
        raise InvalidInput(f"the minimum of a group is 1 to {MAX_INDEPENDENT} independent senders")
    if view.rows is not None:
        check_condition(view.rows, stream)
    for right in view.attributes or ():
        _check_right(right, stream)
    if view.window is not None:
        _check_window(view, view.window, stream)
    if view.minimum > 1 and isinstance(view.window, TupleWindow):
        raise InvalidInput(
            "a window of tuples is shown when it is full, whoever sent them; for a minimum of "
            "senders, use a window of time"
        )
    if view.minimum > 1 and not view.only_aggregates:
        raise InvalidInput("a minimum goes with a window, or with attributes for aggregates only")
    return replace(view, attributes=_in_order(view, stream))


def check_condition(condition: Expression, stream: Relation) -> None:
    """Raise InvalidInput for what is no condition of a policy over the stream."""
    if type_of(condition, stream.schema) is not Type.BOOLEAN:
        raise InvalidInput(
            "a condition is true or false; compare with =, < or the like", condition.position
        )
    parts = list(_parts(condition))
    if len(parts) > MAX_CONDITION_PARTS:
        raise InvalidInput(f"a condition of a policy has at most {MAX_CONDITION_PARTS} parts")
    for part in parts:
        if isinstance(part, Call) and part.function not in CONDITION_FUNCTIONS:
            raise InvalidInput(
                "a condition of a policy compares attributes and constants, with AND, OR, NOT, IN, "
                f"BETWEEN and IS NULL; it cannot use {part.function}",
                part.position,
            )


def _parts(expression: Expression) -> Iterator[Expression]:
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _parts(argument)


def _check_right(right: AttributeRight, stream: Relation) -> None:
    type_of(AttributeRef(right.name), stream.schema)
    if right.when is not None:
        check_condition(right.when, stream)
        if right.name == stream.event_time:
            raise InvalidInput(
                f"{right.name} is the event time of {stream.name}, and has no condition of its "
                "own; use a condition of the rows"
            )
    attribute = stream.schema.get(right.name)
    for function in right.functions or ():
        rule = POLICY_FUNCTIONS.get(function)
        if rule is None:
            known = ", ".join(POLICY_FUNCTIONS)
            raise InvalidInput(f"unknown aggregate {function[:40]!r}; there are: {known}")
        if attribute is not None and rule(attribute.type) is None:
            raise InvalidInput(f"{function} does not take {right.name}, a {attribute.type}")


def shows_last_time(view: RoleView, stream: Relation) -> bool:
    """Whether the view lets a result tell the time of the last tuple in it."""
    right = view.right(stream.event_time or "")
    functions = None if right is None else right.functions
    return right is not None and (functions is None or bool({"max", "last"} & {*functions}))


def _check_window(view: RoleView, window: SmallestWindow | TupleWindow, stream: Relation) -> None:
    if stream.event_time is None:
        raise InvalidInput(f"{stream.name} has no event time, so it has no windows")
    if isinstance(window, TupleWindow):
        _check_tuple_window(view, window, stream)
    elif not 0 < window.slide_ms <= window.size_ms <= MAX_WINDOW_MS:
        raise InvalidInput("a window's size is 1 ms to 400 days, its slide at most its size")
    if not any(right.functions for right in view.attributes or ()):
        raise InvalidInput(
            "a window shows aggregates only: name at least one attribute with its functions"
        )


def _check_tuple_window(view: RoleView, window: TupleWindow, stream: Relation) -> None:
    if not 2 <= window.size <= MAX_ROWS or not 1 <= window.slide <= window.size:
        raise InvalidInput(
            f"a window of tuples has 2 to {MAX_ROWS} tuples, and a slide of 1 to its size; a "
            "window of one tuple would show it"
        )
    if not shows_last_time(view, stream):
        raise InvalidInput(
            f"a result of a window of tuples comes at the time of its last tuple, so the policy "
            f"must show that time: let the role use {stream.event_time} with max"
        )


def _in_order(view: RoleView, stream: Relation) -> tuple[AttributeRight, ...] | None:
    if view.attributes is None:
        return None
    rights = {right.name: right for right in view.attributes}
    if len(rights) != len(view.attributes):
        raise InvalidInput("a policy names each attribute once")
    if stream.event_time is not None and view.only_aggregates:
        rights.setdefault(stream.event_time, AttributeRight(stream.event_time, None, ()))
    in_order = (rights.get(name) for name in stream.schema.names)
    return tuple(replace(right, functions=_sorted(right.functions)) for right in in_order if right)


def _sorted(functions: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if functions is None else tuple(sorted(set(functions)))


def null_unless(condition: Expression, name: str, type_: AttributeType) -> Expression:
    """The attribute where the condition is true, otherwise NULL."""
    return Call("case", (condition, AttributeRef(name), Literal(None, type_)))
