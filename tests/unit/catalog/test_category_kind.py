"""The registry of kinds of category is what clearances follow, for each kind and permission."""

from __future__ import annotations

import pytest

from catalog.category_kind import KINDS, CategoryKind, KindEntry
from catalog.clearance import Clearance
from catalog.permission import APPLIES, ObjectKind, Permission
from tests.unit.catalog.world import World

FIRST = 70
ON_STREAMS = sorted(APPLIES[ObjectKind.STREAM])


def test_each_kind_has_an_entry_and_a_bit_of_its_own() -> None:
    assert set(KINDS) == set(CategoryKind)
    assert [entry.after for entry in _in_order()] == list(range(len(_in_order())))
    for entry in _in_order():
        assert entry.kept_from_senders < entry.given_by <= set(ON_STREAMS)
    for kind in (CategoryKind.ROLE_CLAUSE, CategoryKind.ROLE):
        entry = KINDS[kind]
        assert entry.after is None
        assert not entry.given_by | entry.kept_from_senders


@pytest.mark.parametrize("sends", [False, True], ids=["a reader", "a sender"])
@pytest.mark.parametrize("permission", ON_STREAMS)
def test_a_permission_gives_the_categories_of_which_that_is_said(
    world: World, permission: Permission, sends: bool
) -> None:
    world.user("al", "R", "SENDING")
    world.stream("in1", *(FIRST + (entry.after or 0) for entry in _in_order()))
    world.grant("R", permission, "stream in1")
    if sends and permission is not Permission.SEND:
        world.grant("SENDING", "SEND", "stream in1")
    given = {
        FIRST + (entry.after or 0)
        for entry in _in_order()
        if permission in entry.given_by and not (sends and permission in entry.kept_from_senders)
    }
    login = world.session("al", "R")
    assert world.ask(login, lambda a, s: a.clearance_of(s)) == Clearance.of(*given)


def _in_order() -> list[KindEntry]:
    """The kinds with which a stream begins."""
    first = [entry for entry in KINDS.values() if entry.after is not None]
    return sorted(first, key=lambda entry: entry.after or 0)
