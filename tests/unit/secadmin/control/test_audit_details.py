"""What the audit log has of a change, however long its words are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import select

from catalog.errors import Denied, NotFound, PlatformError
from catalog.models import AuditEntry
from catalog.permission import APPLIES, ObjectKind, Permission
from secadmin.control import grants, people
from secadmin.control.work import Caller
from tests.unit.secadmin.control.floored import Floored, let_joe_administer

READ, SEND = Permission.READ_TUPLE, Permission.SEND


@pytest.fixture
def joe(floored: Floored) -> Caller:
    floored.place.world.role("SPY")
    return let_joe_administer(floored.place.world)


def newest(floored: Floored) -> AuditEntry:
    with floored.place.catalog.read() as session:
        found = session.scalars(select(AuditEntry).order_by(AuditEntry.seq.desc())).first()
        assert found is not None
        return found


Call = Callable[..., object]


@pytest.mark.parametrize("call", [grants.grant, grants.revoke])
@pytest.mark.parametrize("given", [[READ] * 20, [SEND, READ, READ], [READ, SEND] * 10])
def test_a_grant_says_to_whom_and_what_once(
    floored: Floored, joe: Caller, call: Call, given: Sequence[Permission]
) -> None:
    call(floored.platform, joe, "SPY", given, ObjectKind.STREAM, "in2")
    entry = newest(floored)
    assert entry.action == call.__name__
    once = list(dict.fromkeys(given))
    assert entry.object == f"stream in2: {', '.join(once)} of SPY"
    assert entry.detail == {"role": "SPY", "permissions": sorted(once)}


@pytest.mark.parametrize("call", [grants.grant, grants.revoke])
def test_the_longest_names_are_there(floored: Floored, joe: Caller, call: Call) -> None:
    role, applies = "R" * 63, sorted(APPLIES[ObjectKind.STREAM])
    floored.place.world.role(role)
    call(floored.platform, joe, role, applies * 4, ObjectKind.STREAM, "in2")
    entry = newest(floored)
    assert entry.object == f"stream in2: {', '.join(applies)} of {role}"
    assert entry.detail == {"role": role, "permissions": applies}


@pytest.mark.parametrize("call", [grants.grant, grants.revoke])
def test_a_refused_grant_says_to_whom(floored: Floored, joe: Caller, call: Call) -> None:
    """Also one whose words are too long for the entry."""
    with pytest.raises(PlatformError):
        call(floored.platform, joe, "SPY", [*Permission], ObjectKind.STREAM, "in2")
    entry = newest(floored)
    assert entry.outcome == "failed" and entry.object.endswith(" of SPY")
    assert entry.detail == {"role": "SPY", "permissions": sorted(Permission)}
    with pytest.raises((Denied, NotFound)):
        call(floored.platform, joe, "SPY", [READ], ObjectKind.STREAM, "x" * 300)
    entry = newest(floored)
    assert entry.outcome == "denied" and entry.detail["role"] == "SPY"


def test_long_words_are_cut_in_the_middle(floored: Floored, joe: Caller) -> None:
    """What an entry is about begins with the object, and it ends with what is done to it."""
    with pytest.raises(NotFound):
        people.assign_role(floored.platform, joe, "u" * 300, "SPY")
    entry = newest(floored)
    assert len(entry.object) == 200
    assert entry.object.startswith("user uuu") and entry.object.endswith("uuu: SPY")
    assert "…" in entry.object
