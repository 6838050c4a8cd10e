"""The error for a plan that a language has no text for, and a resolver to read a text again."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.errors import InvalidInput
from catalog.plan import Plan, sources
from catalog.record_format import TimeFormat
from catalog.relation import Relation


class Unsayable(InvalidInput):
    """A language has no text that gives exactly this plan."""

    title = "The language cannot say this"


class PlannedRelations:
    """A resolver that knows the relations which some plans read."""

    def __init__(self, *plans: Plan) -> None:
        self._known: Mapping[str, Relation] = {
            relation.name: relation for plan in plans for relation in sources(plan)
        }

    def relation(self, name: str) -> Relation:
        """The relation of that name. Raises Unsayable for a name that no plan reads."""
        if name not in self._known:
            raise Unsayable(f"the text names {name[:80]!r}, which the plan does not read")
        return self._known[name]

    def time_format(self, _name: str) -> TimeFormat:
        """A text that is made of a plan has its times as timestamps."""
        return TimeFormat.ISO
