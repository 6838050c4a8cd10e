"""Execution spaces: the engines that run the queries of one role alone (003 §III), or of one level.

A query that reads its streams as a role sees them (`AS role`) belongs to the role's space. If the
role has an engine of its own, its queries run there, and no others do.

Some engines may be set aside for levels (001 §2: the replicated query processors). Then each class
of an output with semantics `isolated` runs in an engine that no other level uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.engines import FIRST, LEVELS, query_engines
from catalog.placement import Placement


@dataclass(frozen=True, slots=True)
class Spaces:
    """The query engines of a deployment, and the roles that have one of their own, by name.

    The last so many engines are for `levels`. Raises ValueError for an engine that there is not, or
    that is for levels, and for the first one: what belongs to no other engine runs there.
    """

    count: int = 1
    of_roles: Mapping[str, str] = field(default_factory=dict)
    levels: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.levels < self.count:
            raise ValueError(
                f"level_engines = {self.levels}, and {self.count - 1} of {self.count} engines can "
                "be for levels: the first one is for all else; raise `engines`"
            )
        possible = [name for name in self.engines if name not in {FIRST, *self.of_levels}]
        for role, engine in self.of_roles.items():
            if engine not in possible:
                known = ", ".join(possible) or "none"
                raise ValueError(
                    f"spaces: {role} = {engine!r} is no engine that a role can have ({known}); "
                    "raise `engines`"
                )

    @property
    def engines(self) -> tuple[str, ...]:
        """All query engines."""
        return query_engines(self.count)

    @property
    def of_levels(self) -> tuple[str, ...]:
        """The engines that are for levels."""
        return self.engines[self.count - self.levels :]

    def own(self, role: str | None) -> str:
        """The engine that the role has for itself, or nothing."""
        return "" if role is None else self.of_roles.get(role, "")

    def homes(
        self, role: str | None = None, placement: Placement = Placement.SINK
    ) -> tuple[str, ...]:
        """The engines that may run a query of the role's space, or one of no space.

        What is isolated waits for level engines, if there are such.
        """
        own = self.own(role)
        if own:
            return (own,)
        if self.levels and placement is Placement.APART:
            return (LEVELS,)
        taken = {*self.of_roles.values(), *self.of_levels}
        return tuple(name for name in self.engines if name not in taken)
