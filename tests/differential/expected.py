"""What the oracle says of a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Aggregate, Join, JoinKind, MovingJoin, Node, ToStream, sources, walk
from catalog.relation import RelationKind
from catalog.single_tuples import of_single_tuples
from tests.differential.case import Case, Class, Outcome, Record
from tests.oracle.delivery import deliver_exactly, deliver_strong, deliver_weak, leave_out, seen_by
from tests.oracle.labels import is_visible, united
from tests.oracle.plans import Tables, run
from tests.oracle.values import Tuple, Value

Records = Mapping[str, Sequence[Record]]


def expected(case: Case, newest: Records | None = None) -> Outcome:
    """The case's outcome by the oracle, all windows closed.

    With `newest`, the last of the case's records, what these change (EMIT UPDATES).
    """
    news = None if newest is None else tables_of(case, newest)
    tables = tables_of(case, case.records)
    if case.view:
        return Outcome([], tuple(_viewed(case, each, tables, news) for each in case.classes))
    if case.exact and not of_single_tuples(case.plan):
        return Outcome([], tuple(_exactly(case, each, tables) for each in case.classes))
    results = run(case.plan.root, tables, case.reach_of, newest=news)
    return Outcome(results, tuple(delivered_to(case, each, results) for each in case.classes))


def _viewed(case: Case, to: Class, tables: Tables, news: Tables | None) -> list[Tuple]:
    """What a class gets that has a view of its own."""
    seen = seen_by(to.clearance, _within_reach(case, tables))
    new = None if news is None else seen_by(to.clearance, _within_reach(case, news))
    results = run(case.plan.root, seen, case.reach_of, newest=new, alone=True)
    floored = [Tuple(each.values, united([each.label, case.floor])) for each in results]
    return deliver_strong(floored, to.clearance)


def _exactly(case: Case, to: Class, tables: Tables) -> list[Tuple]:
    """What the roles of a class get, each in a view of its own, and each result once.

    Each tuple has a label of its own here, so the label of a result says from which it is. Some
    nodes give a row for each different label. There tuples keep their labels. The results of an
    instant are compared by their values and real labels (Delivery.9).
    """
    apart = not any(map(_gives_a_row_for_each_label, walk(case.plan.root)))
    by_instant = isinstance(case.plan.root, ToStream)
    visible = _within_reach(case, tables)
    numbered = [each for name in sorted(visible) for each in visible[name]]
    number = {id(each): at for at, each in enumerate(numbered)}
    labels = {at: each.label for at, each in enumerate(numbered)}
    everything = Label.of(*labels) if apart else united([*labels.values(), Label.of(0)])
    real = labels if apart else None
    merged = Counter[tuple[tuple[Value, ...], Label | None]]()
    for way in to.ways or (to.clearance,):
        if not deliver_strong([Tuple((), case.floor)], way):
            continue
        seen = seen_by(way, visible)
        if apart:
            seen = {
                name: [
                    each if each.hidden else replace(each, label=Label.of(number[id(each)]))
                    for each in several
                ]
                for name, several in seen.items()
            }
        results = run(case.plan.root, seen, lambda _: everything, alone=True)
        found = Counter[tuple[tuple[Value, ...], Label | None]]()
        for each in results:
            label = united(_labels_of(each.label, real)) if by_instant else each.label
            found[each.values, label] += 1
        merged |= found
    named = None if by_instant else real
    return [
        Tuple(values, united([case.floor, *_labels_of(label, named)]))
        for values, label in merged.elements()
    ]


def _gives_a_row_for_each_label(node: Node) -> bool:
    """A semi join, and DISTINCT."""
    if isinstance(node, Join | MovingJoin):
        return node.kind is JoinKind.SEMI
    return isinstance(node, Aggregate) and not node.aggregations


def _labels_of(label: Label | None, real: Mapping[int, Label | None] | None) -> list[Label | None]:
    """The labels of the tuples that the label names, or the label itself."""
    if real is None or label is None:
        return [label]
    return [real[at] for at in label.categories()]


def _within_reach(case: Case, tables: Tables) -> dict[str, list[Tuple]]:
    """The tuples that Source lets in."""
    relations = {relation.name: relation for relation in sources(case.plan)}
    return {
        name: [
            each
            for each in several
            if is_visible(each, relations[name], case.reach_of(relations[name]))
        ]
        for name, several in tables.items()
    }


def tables_of(case: Case, records: Records) -> dict[str, list[Tuple]]:
    """The records as the oracle takes them, by the names of their relations."""
    apart = case.view or (case.exact and not of_single_tuples(case.plan))
    found = {}
    for relation in sources(case.plan):
        stored, users = records[relation.name], case.users_of(relation)
        # Views number the tuples of a stream. The id of another query's result says no number.
        numbered = apart and relation.kind is RelationKind.STREAM
        ordered = stored if numbered else _by_origin(stored)
        found[relation.name] = [each.tuple(users) for each in ordered]
    return found


def _by_origin(stored: Sequence[Record]) -> list[Record]:
    """The records in the order of their origins, which are texts with the offset."""
    return [each for _, each in sorted(enumerate(stored), key=lambda pair: str(pair[0]))]


def delivered_to(case: Case, to: Class, results: list[Tuple]) -> list[Tuple]:
    """What of these results a class gets."""
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
