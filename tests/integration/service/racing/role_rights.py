"""Grants, juniors and members of roles, as an audit log has them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass
class RoleRights:
    """What roles hold: grants are (role, permission, name), juniors (senior, junior), members
    (user, role).
    """

    grants: set[tuple[str, str, str]] = field(default_factory=set)
    juniors: set[tuple[str, str]] = field(default_factory=set)
    members: set[tuple[str, str]] = field(default_factory=set)

    def holds(self, roles: Collection[str], name: str, *permissions: str) -> bool:
        """Whether the roles hold all these permissions on what has that name, without juniors."""
        return all(
            any((role, permission, name) in self.grants for role in roles)
            for permission in permissions
        )

    def closure(self, roles: Collection[str]) -> frozenset[str]:
        """The roles with all their juniors."""
        waiting, seen = list(roles), set(roles)
        while waiting:
            role = waiting.pop()
            below = {junior for senior, junior in self.juniors if senior == role} - seen
            seen |= below
            waiting += below
        return frozenset(seen)
