"""Where the fan-out by delivery class is in a run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from catalog.plan import Plan
from catalog.single_tuples import of_single_tuples


class Placement(StrEnum):
    """Where results, or the tuples that they come from, are divided among the classes.

    SINK: behind the plan. Each result exists once, and goes to who may see all that went into it
    (semantics `strong` and `weak`; 004 §3.2). SOURCES: above each source, before the first node
    that keeps state. So each class gets what the plan gives over the tuples that the class may see
    (semantics `view`: the partitioned windows of 000 §5.2, the stream shepherd of 001 §4.1). APART:
    each class has a run of its own, which reads nothing but what the class may see (semantics
    `isolated`: the replicated query processors of 001 §2). ROLES: a class gets what the plan gives
    over the tuples that each of its roles may see alone, merged (semantics `exact`: exact match,
    000 §5.2.1). Where no result depends on other tuples, this is behind the plan, as SINK: a
    result goes to who may see all that went into it by one role. Elsewhere it is above the
    sources, with a view for each role.
    """

    SINK = "sink"
    SOURCES = "sources"
    APART = "apart"
    ROLES = "roles"

    @property
    def by_class(self) -> bool:
        """Whether each class gets what the plan gives over the tuples that the class may see."""
        return self in (Placement.SOURCES, Placement.APART)

    def has_views_of_roles(self, plan: Plan) -> bool:
        """Whether each role of a class has a view of its own of the plan's sources."""
        return self is Placement.ROLES and not of_single_tuples(plan)

    def has_common_results(self, plan: Plan) -> bool:
        """Whether a result exists once for all classes, so that other queries can read it."""
        return not (self.by_class or self.has_views_of_roles(plan))

    @property
    def semantics(self) -> str:
        """The semantics that have this placement, as a query names them."""
        return next(name for name, each in PLACEMENTS.items() if each is self)


STRONG = "strong"
PLACEMENTS: Mapping[str, Placement] = MappingProxyType(
    {
        STRONG: Placement.SINK,
        "view": Placement.SOURCES,
        "isolated": Placement.APART,
        "exact": Placement.ROLES,
    }
)
"""The semantics that a query may name, each with its placement."""
