"""Which categories the tuples of a relation can carry: looked up when somebody asks.

It is stored in no plan. So a category that a stream gets later is in the reach of all that is
computed from the stream, at the next look.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.label import PUBLIC, Label, combine
from catalog.models import CategoryRow, OutputRow
from catalog.plan import Plan, sources
from catalog.reach import reach
from catalog.relation import Relation, RelationKind
from catalog.stored_form import from_stored


class Reaches:
    """The reaches of relations in one transaction, each computed once.

    A stream's are its source categories; without any, nobody sees a tuple of it. An output's follow
    from its plan.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[int, Label] = {}
        self._plans: dict[int, Plan] = {}
        self._streams: Mapping[int, Label] | None = None

    def of(self, relation: Relation) -> Label:
        """Every category that a tuple of the relation can carry.

        Without recursion: outputs may follow each other in long rows.
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
                    self._known[current.object_id] = reach(plan, self._seen)
        return self._known[relation.object_id]

    def plan_of(self, output_id: int) -> Plan:
        """The plan of an output, read once."""
        if output_id not in self._plans:
            row = self._session.get_one(OutputRow, output_id)
            self._plans[output_id] = from_stored(Plan, row.plan)
        return self._plans[output_id]

    def _seen(self, relation: Relation) -> Label:
        return self._known[relation.object_id]

    def _of_stream(self, stream: Relation) -> Label:
        if stream.public:
            return PUBLIC
        if self._streams is None:
            self._streams = _source_categories(self._session)
        return self._streams.get(stream.object_id, PUBLIC)


def _source_categories(session: Session) -> Mapping[int, Label]:
    """By stream, the categories that ingest can give its tuples."""
    query = select(CategoryRow.stream_id, CategoryRow.bit).where(CategoryRow.kind == "source")
    found: dict[int, Label] = {}
    for row in session.execute(query):
        found[row.stream_id] = combine((found.get(row.stream_id, PUBLIC), Label.of(row.bit)))
    return found
