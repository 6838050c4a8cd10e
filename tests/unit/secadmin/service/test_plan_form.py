"""The API's plans have neither the catalog's ids nor the bits of labels."""

from __future__ import annotations

import json
from dataclasses import replace

from catalog.plan import Node, Plan, Source, Union, sources
from catalog.relation import DeclaredAggregate
from catalog.stored_form import from_stored
from secadmin.service.plan_form import shown_form
from tests.plans import checked, whole
from tests.unit.catalog.plans import relation

FAR = 1_000_007


def over(*named: tuple[str, int], bits: tuple[int, int] = (0, 1)) -> Plan:
    """A union of streams with these names and ids, and conflict classes by the ids."""
    declared = DeclaredAggregate(60_000, ("symbol",), ("count",), 5, *bits)
    nodes: list[Node] = [
        Source(
            replace(
                relation(name, declared=declared),
                object_id=number,
                conflict_classes=(number, number + FAR),
            )
        )
        for name, number in named
    ]
    return whole(Union(tuple(nodes)))


def test_equal_plans_of_two_catalogs_are_shown_alike() -> None:
    here = shown_form(over(("a", 3), ("b", 4), ("a", 3), bits=(0, 9)))
    there = shown_form(over(("a", 90), ("b", 7), ("a", 90), bits=(40, 41)))
    assert here == there
    first, second = sources(from_stored(Plan, here))
    assert (first.object_id, second.object_id) == (1, 2)
    assert (first.conflict_classes, second.conflict_classes) == ((1, 2), (3, 4))


def test_no_id_of_the_catalog_is_in_it() -> None:
    assert str(FAR) in json.dumps(over(("a", FAR)), default=repr)
    assert str(FAR)[:-1] not in json.dumps(shown_form(over(("a", FAR), bits=(FAR, FAR))))


def test_its_meaning_is_the_same() -> None:
    plan = over(("a", 30), ("b", 40))
    shown = from_stored(Plan, shown_form(plan))
    assert checked(shown).schema == checked(plan).schema
    assert [each.name for each in sources(shown)] == ["a", "b"]
    assert type(shown.root) is type(plan.root)
