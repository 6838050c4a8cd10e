"""Looks up the reach of a relation: the categories that its tuples can carry.

No plan stores a reach. So if a stream gets a category later, the next look-up finds it in the reach
of everything that is computed from the stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.categories import carried_categories, role_clauses
from catalog.conflict_class import dominated
from catalog.conflict_classes import company_categories, conflict_classes
from catalog.label import PUBLIC, Label, combine
from catalog.models import OutputRow
from catalog.plan import Plan, sources
from catalog.reach import reach
from catalog.relation import Relation, RelationKind
from catalog.role_clauses import RoleClauses
from catalog.stored_form import from_stored


class Reaches:
    """The reaches of relations in one transaction, each computed once.

    The reach of a stream is its source category, its role clauses, its companies, and what floors
    bring. Without any, nobody sees a tuple of it. That of an output follows from its plan and its
    level.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[int, Label] = {}
        self._plans: dict[int, Plan] = {}
        self._streams: Mapping[int, Label] | None = None
        self._clauses: RoleClauses | None = None
        self._levels: Mapping[int, Label] | None = None
        self._all_companies: Label | None = None

    @property
    def clauses(self) -> RoleClauses:
        """All role clauses, which reaches can contain."""
        if self._clauses is None:
            self._clauses = role_clauses(self._session)
        return self._clauses

    def of(self, relation: Relation) -> Label:
        """Every category that a tuple of the relation can carry.

        There is no recursion, because there may be long chains of outputs.
        """
        waiting = [relation]
        while waiting:
            current = waiting[-1]
            if current.object_id in self._known:
                waiting.pop()
            elif current.kind is RelationKind.STREAM:
                self._known[current.object_id] = self._of_stream(current)
            else:
                plan = self.plan_of(current.object_id)
                missing = [r for r in sources(plan) if r.object_id not in self._known]
                waiting += missing
                if not missing:
                    found = self.within_level(current.object_id, reach(plan, self._seen))
                    self._known[current.object_id] = found | self.floor_of(current.object_id)
        return self._known[relation.object_id]

    def plan_of(self, output_id: int) -> Plan:
        """The plan of an output, read once."""
        if output_id not in self._plans:
            row = self._session.get_one(OutputRow, output_id)
            self._plans[output_id] = from_stored(Plan, row.plan)
        return self._plans[output_id]

    def floor_of(self, output_id: int) -> Label:
        """What the label of each result has: the level at which the output's query runs."""
        return self._levels_of_outputs().get(output_id, PUBLIC)

    def within_level(self, output_id: int, reached: Label) -> Label:
        """The part of a reach that the level of the output's query dominates (001, definition 6).

        A query without a level reads the tuples of all companies.
        """
        return self._at_level(reached, self._levels_of_outputs().get(output_id))

    def of_new(self, plan: Plan, level: Label | None) -> Label:
        """Every category that a result of a plan can carry, if it is added at this level."""
        return self._at_level(reach(plan, self.of), level) | (PUBLIC if level is None else level)

    def _at_level(self, reached: Label, level: Label | None) -> Label:
        if level is None:
            return reached
        return dominated(reached, level, self.clauses, self._companies())

    def _levels_of_outputs(self) -> Mapping[int, Label]:
        if self._levels is None:
            rows = self._session.execute(
                select(OutputRow.object_id, OutputRow.level).where(OutputRow.level.is_not(None))
            )
            self._levels = {row.object_id: _read(row.level) for row in rows}
        return self._levels

    def _companies(self) -> Label:
        if self._all_companies is None:
            self._all_companies = company_categories(self._session)
        return self._all_companies

    def _seen(self, relation: Relation) -> Label:
        return self._known[relation.object_id]

    def _of_stream(self, stream: Relation) -> Label:
        if stream.public:
            return PUBLIC
        if self._streams is None:
            self._streams = carried_categories(self._session)
        companies = self._of_classes(stream.conflict_classes)
        return self._streams.get(stream.object_id, PUBLIC) | companies

    def _of_classes(self, ids: tuple[int, ...]) -> Label:
        if not ids:
            return PUBLIC
        found = conflict_classes(self._session, ids)
        return combine(each.categories for each in found.values())


def _read(level: str) -> Label:
    label = Label.from_wire(level)
    if label is None:
        raise ValueError("not the stored level of an output")
    return label
