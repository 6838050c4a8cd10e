"""What the oracle says of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from catalog.clearance import Clearance
from catalog.plan import sources
from tests.differential.case import Case, Class, Outcome, Record
from tests.oracle.delivery import deliver_exactly, deliver_strong, deliver_weak, leave_out, seen_by
from tests.oracle.labels import united
from tests.oracle.plans import Tables, run
from tests.oracle.values import Tuple

Records = Mapping[str, Sequence[Record]]


def expected(case: Case, newest: Records | None = None) -> Outcome:
    """The case's outcome by the oracle, all windows closed.

    With `newest`, the last of the case's records, what these change (EMIT UPDATES).
    """
    news = None if newest is None else _tables(case, newest)
    tables = _tables(case, case.records)
    if case.view:
        return Outcome([], tuple(_viewed(case, each, tables, news) for each in case.classes))
    results = run(case.plan.root, tables, case.reach_of, newest=news)
    return Outcome(results, tuple(_delivered(case, each, results) for each in case.classes))


def _viewed(case: Case, to: Class, tables: Tables, news: Tables | None) -> list[Tuple]:
    """What a class gets that has a view of its own."""
    seen = seen_by(to.clearance, tables)
    new = None if news is None else seen_by(to.clearance, news)
    results = run(case.plan.root, seen, case.reach_of, newest=new, alone=True)
    floored = [Tuple(each.values, united([each.label, case.floor])) for each in results]
    return deliver_strong(floored, to.clearance)


def _tables(case: Case, records: Records) -> dict[str, list[Tuple]]:
    users = {relation.name: case.users_of(relation) for relation in sources(case.plan)}
    return {
        name: [each.tuple(users[name]) for each in (stored if case.view else _by_origin(stored))]
        for name, stored in records.items()
    }


def _by_origin(stored: Sequence[Record]) -> list[Record]:
    """The records in the order of their origins, which are texts with the offset."""
    return [each for _, each in sorted(enumerate(stored), key=lambda pair: str(pair[0]))]


def _delivered(case: Case, to: Class, results: list[Tuple]) -> list[Tuple]:
    delivered = _to(case, to.clearance, to.weak, results)
    if to.ways:
        return deliver_exactly(delivered, to.ways)
    if to.beyond is None:
        return delivered
    return leave_out(delivered, _to(case, to.beyond, to.weak, results))


def _to(case: Case, clearance: Clearance, weak: bool, results: list[Tuple]) -> list[Tuple]:
    if weak:
        return deliver_weak(results, clearance, case.sources)
    return deliver_strong(results, clearance)
