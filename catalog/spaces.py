"""Execution spaces: the engines that run the queries of one role alone (003 §III).

A query that reads its streams as a role sees them (`AS role`) belongs to the role's space. If the
role has an engine of its own, its queries run there, and no others do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.engines import FIRST, query_engines


@dataclass(frozen=True, slots=True)
class Spaces:
    """The query engines of a deployment, and the roles that have one of their own, by name.

    Raises ValueError for an engine that there is not, and for the first one: what belongs to no
    other engine runs there.
    """

    count: int = 1
    of_roles: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        possible = [name for name in self.engines if name != FIRST]
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

    def own(self, role: str | None) -> str:
        """The engine that the role has for itself, or nothing."""
        return "" if role is None else self.of_roles.get(role, "")

    def homes(self, role: str | None = None) -> tuple[str, ...]:
        """The engines that may run a query of the role's space, or one of no space."""
        own = self.own(role)
        if own:
            return (own,)
        return tuple(name for name in self.engines if name not in {*self.of_roles.values()})
