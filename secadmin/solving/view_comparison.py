"""What one view of a stream shows more than another one, and what less (002 §2.2).

Conditions are compared by a solver, by the types of the attributes and with NULL. What it cannot
decide in time counts as a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from catalog.expression import Call, Expression
from catalog.role_view import AttributeRight, RoleView, SmallestWindow, TupleWindow
from catalog.schema import Schema
from catalog.view_merging import implies
from secadmin.solving.conflicts import Loss, conflict

# A question takes a few milliseconds, and half a second at most for each of its parts.
MAX_QUESTIONS = 10


class Change(StrEnum):
    """How what is shown differs: the new view shows the same, more, less, or something else."""

    SAME = "same"
    MORE = "more"
    LESS = "less"
    OTHER = "other"

    @classmethod
    def of(cls, *, more: bool, less: bool) -> Change:
        """The change if there is more, less, or both."""
        if more and less:
            return cls.OTHER
        return cls.MORE if more else cls.LESS if less else cls.SAME


@dataclass(frozen=True, slots=True)
class RightChange:
    """The change of an attribute with its rights. None: the view does not show it."""

    attribute: str
    old: AttributeRight | None
    new: AttributeRight | None
    change: Change


@dataclass(frozen=True, slots=True)
class ViewChange:
    """How a view differs from another one: in its rows, each attribute, its windows and groups."""

    rows: Change
    attributes: tuple[RightChange, ...]
    windows: Change
    groups: Change


def compared(old: RoleView, new: RoleView, schema: Schema) -> ViewChange:
    """How the new view differs from the old one. An attribute counts where its rows are shown."""
    conditions = _Conditions(schema)
    return ViewChange(
        conditions.change(old.rows, new.rows),
        tuple(_rights(old, new, conditions)),
        compared_windows(old, new),
        # A minimum counts where something is aggregated only.
        Change.of(
            more=_minimum(new) < _minimum(old),
            less=_minimum(new) > _minimum(old),
        ),
    )


@dataclass
class _Conditions:
    """Compares conditions over the stream's tuples, each pair once."""

    schema: Schema
    _known: dict[tuple[Expression | None, Expression | None], bool] = field(default_factory=dict)
    _asked: int = 0

    def change(self, old: Expression | None, new: Expression | None) -> Change:
        return Change.of(more=not self._within(new, old), less=not self._within(old, new))

    def _within(self, inner: Expression | None, outer: Expression | None) -> bool:
        """Whether each tuple with the inner condition has the outer one."""
        if implies(inner, outer):
            return True
        if (inner, outer) not in self._known:
            self._asked += 1
            self._known[inner, outer] = self._asked <= MAX_QUESTIONS and conflict(
                inner, outer, self.schema
            ).loss in (Loss.NOTHING, Loss.OWN)
        return self._known[inner, outer]


def _rights(old: RoleView, new: RoleView, conditions: _Conditions) -> Iterator[RightChange]:
    for name in conditions.schema.names:
        before, after = old.right(name), new.right(name)
        if before is None or after is None:
            change = Change.of(more=after is not None, less=before is not None)
        else:
            shown = conditions.change(_both(old.rows, before.when), _both(new.rows, after.when))
            change = _joined(shown, _functions(before, after))
        yield RightChange(name, before, after, change)


def _functions(old: AttributeRight, new: AttributeRight) -> Change:
    """The change of the functions in which an attribute can be used. None: in all, and itself."""
    before, after = old.functions, new.functions
    if before is None or after is None:
        return Change.of(
            more=after is None and before is not None, less=before is None and after is not None
        )
    return Change.of(more=not {*after} <= {*before}, less=not {*before} <= {*after})


def _joined(*changes: Change) -> Change:
    return Change.of(
        more=any(each in (Change.MORE, Change.OTHER) for each in changes),
        less=any(each in (Change.LESS, Change.OTHER) for each in changes),
    )


def _both(first: Expression | None, second: Expression | None) -> Expression | None:
    if first is None or second is None:
        return first if second is None else second
    return Call("and", (first, second))


def compared_windows(old: RoleView, new: RoleView) -> Change:
    """Whether windows may be finer, or must be coarser. One type shows what the other does not."""
    if old.window and new.window and type(old.window) is not type(new.window):
        return Change.OTHER
    first, second = map(_lengths, (old, new))
    changes = [_finer(mine, other) for mine, other in zip(first, second, strict=True)]
    if old.only_aggregates and new.only_aggregates:
        changes.append(_finer(int(old.only_tumbling), int(new.only_tumbling)))
    return _joined(*changes)


def _lengths(view: RoleView) -> tuple[int, int]:
    match view.window:
        case SmallestWindow(size, slide) | TupleWindow(size, slide):
            return size, slide
        case None:
            return 0, 0


def _finer(old: int, new: int) -> Change:
    return Change.of(more=new < old, less=new > old)


def _minimum(view: RoleView) -> int:
    return view.minimum if view.only_aggregates else 1
