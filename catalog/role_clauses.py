"""Role clauses as categories: which roles give a category that stands for a clause (000 §5).

Each clause of a role expression is one category, so a tuple is visible exactly if its label is
within the clearance, as with every other category. Nobody is granted a clause. Each role that is
named in an expression has a category of its own, which is in no label, and whoever has the role
active holds it. The *rights* of a subject are the categories that it holds by grants and by roles;
its clauses follow from them. So a clause that comes later belongs at once to all rights with one of
its roles, and rights are compared without knowing what clauses there will be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.clearance import Clearance
from catalog.label import PUBLIC, Label, combine


@dataclass(frozen=True, slots=True)
class RoleClauses:
    """The categories of clauses, each with the categories of its roles."""

    roles: Mapping[int, Label] = field(default_factory=dict)

    def cleared(self, rights: Clearance) -> Clearance:
        """The clearance of these rights: with their clauses, without the categories of roles."""
        held = Label.of(*(at for at, roles in self.roles.items() if roles.bits & rights.bits))
        return Clearance((rights.bits & ~self._all_roles.bits) | held.bits)

    def deciding(self, reach: Label) -> Label:
        """The categories on which it depends what is visible of this reach: the roles of its
        clauses in their place.
        """
        asked = [at for at in self.roles if reach.bits >> at & 1]
        own = Label(reach.bits & ~Label.of(*asked).bits)
        return own | combine(self.roles[at] for at in asked)

    @property
    def _all_roles(self) -> Label:
        return combine(self.roles.values()) if self.roles else PUBLIC


NO_CLAUSES = RoleClauses()
