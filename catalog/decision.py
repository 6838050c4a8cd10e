"""Decisions: whether a subject holds a permission, and why."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.permission import Permission


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to "does this subject hold this permission on this object", with its reason.

    `object` is kind and name ("stream in1"). `reason` says which role or ownership gave the
    permission, or what was missing. `via_role` is the name of the role whose grant decided, or None
    if no grant decided (ownership, or a denial).
    """

    allowed: bool
    permission: Permission
    object: str
    reason: str
    via_role: str | None = None

    def as_detail(self) -> dict[str, str | bool | None]:
        """The decision as the audit log keeps it."""
        return {
            "allowed": self.allowed,
            "permission": str(self.permission),
            "object": self.object,
            "reason": self.reason,
            "via_role": self.via_role,
        }
