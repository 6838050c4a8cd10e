"""A plan as the API shows it: with neither the catalog's ids nor the bits of labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from catalog.plan import Plan, Source, at_sources, sources
from catalog.relation import Relation
from catalog.stored_form import to_stored

_SOURCE_BIT, _AGGREGATED_BIT = 0, 1


def shown_form(plan: Plan) -> dict[str, Any]:
    """The form in which a caller gets a plan. `from_stored` reads it.

    An id counts the objects of the whole catalog, and a bit the categories of all streams. So each
    relation and each conflict class gets its number within the plan instead, from 1.
    """
    numbers: dict[int, int] = {}
    classes: dict[int, int] = {}
    for relation in sources(plan):
        numbers.setdefault(relation.object_id, len(numbers) + 1)
        for each in relation.conflict_classes:
            classes.setdefault(each, len(classes) + 1)

    def shown(source: Source) -> Source:
        relation = source.relation
        seen = replace(
            relation,
            object_id=numbers[relation.object_id],
            conflict_classes=tuple(classes[each] for each in relation.conflict_classes),
        )
        return replace(source, relation=_without_bits(seen))

    return to_stored(at_sources(plan, shown))


def _without_bits(relation: Relation) -> Relation:
    if relation.declared is None:
        return relation
    shown = replace(relation.declared, source=_SOURCE_BIT, aggregated=_AGGREGATED_BIT)
    return replace(relation, declared=shown)
