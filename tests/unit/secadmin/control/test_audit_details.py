"""What the audit log has of a change, however long its words are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial

import pytest
from sqlalchemy import select

from catalog.audit import MAX_NOTED
from catalog.errors import Denied, NotFound, PlatformError
from catalog.models import AuditEntry, StreamRow
from catalog.permission import APPLIES, ObjectKind, Permission
from catalog.relation import Relation
from catalog.role_view import SmallestWindow
from catalog.stored_form import from_stored, to_stored
from secadmin.control import grants, people, policies
from secadmin.control.policies import PolicyDefinition
from secadmin.control.policy_text import WrittenRight, WrittenView, read_view
from secadmin.control.work import Caller
from tests.unit.secadmin.control.floored import Floored, let_joe_administer

READ, SEND = Permission.READ_TUPLE, Permission.SEND


@pytest.fixture
def joe(floored: Floored) -> Caller:
    """The administrator. There is a role SPY, and in2 has an event time, so it has windows."""
    world = floored.place.world
    world.role("SPY")
    number = world.get_object("stream in2").id
    with floored.place.catalog.read() as session:
        relation = from_stored(Relation, session.get_one(StreamRow, number).relation)
    timed = replace(relation, event_time="t", lateness_ms=1)
    world.edit(StreamRow, number, relation=to_stored(timed))
    return let_joe_administer(world)


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


def written(rows: str, *rights: WrittenRight, minimum: int = 1) -> WrittenView:
    window = SmallestWindow(60_000, 60_000) if rights else None
    return WrittenView(rows, rights or None, window, minimum)


def add_policy(floored: Floored, joe: Caller, view: WrittenView, role: str = "SPY") -> None:
    read = partial(read_view, view)
    wanted = PolicyDefinition("p", "in2", role, read, replace=True)
    policies.add_policy(floored.platform, joe, wanted)


ONE = written("a = 'x'", WrittenRight("a", "a <> 'y'", ("count",)), minimum=3)
ONE_NOTED = {
    "rows": "a = 'x'",
    "rights": [
        {"name": "t", "when": None, "functions": []},
        {"name": "a", "when": "a <> 'y'", "functions": ["count"]},
    ],
    "window": {"size_ms": 60_000, "slide_ms": 60_000, "tumbling": False},
    "minimum": 3,
}


def test_what_a_policy_showed_is_in_the_log_when_it_is_gone(floored: Floored, joe: Caller) -> None:
    floored.place.world.role("OTHER")
    add_policy(floored, joe, ONE)
    detail = newest(floored).detail
    assert (detail["role"], detail["replaced"], detail["before"]) == ("SPY", False, None)
    assert detail["view"] == ONE_NOTED
    add_policy(floored, joe, written("a = 'z'"), "OTHER")
    detail = newest(floored).detail
    assert (detail["role"], detail["replaced"]) == ("OTHER", True)
    assert detail["before"] == {"role": "SPY", "view": ONE_NOTED}
    now = detail["view"]
    assert (now["rows"], now["rights"], now["minimum"]) == ("a = 'z'", None, 1)
    policies.remove_policy(floored.platform, joe, "in2", "p")
    detail = newest(floored).detail
    assert (detail["role"], detail["before"]) == ("OTHER", {"role": "OTHER", "view": now})


def test_what_the_policies_of_a_role_showed_is_in_the_log_when_the_role_is_gone(
    floored: Floored, joe: Caller
) -> None:
    add_policy(floored, joe, ONE)
    people.remove_role(floored.platform, joe, "SPY")
    noted = {"policy": "p", "stream": "in2", "view": ONE_NOTED}
    assert newest(floored).detail["policies"] == [noted]


def test_a_long_view_is_noted_by_its_beginning_and_a_digest(floored: Floored, joe: Caller) -> None:
    half = MAX_NOTED // 2
    parts = [f"a = '{'x' * half}{end}'" for end in "12"]
    views = [written(part, WrittenRight("a", part, ("count",))) for part in parts]
    noted = []
    for view in views:
        add_policy(floored, joe, view)
        detail = newest(floored).detail
        assert len(json.dumps(detail)) < 3 * MAX_NOTED
        assert detail["role"] == "SPY" and detail["view"]["beginning"].startswith('{"minimum":1')
        noted.append(detail["view"]["sha256"])
    assert noted[0] != noted[1]
    assert detail["before"]["view"]["sha256"] == noted[0]
    shown = policies.show_policy(floored.platform, joe, "in2", "p")
    text = json.dumps(asdict(shown.view), sort_keys=True, separators=(",", ":"))
    assert noted[1] == hashlib.sha256(text.encode()).hexdigest()
    assert detail["view"]["characters"] == len(text)


def test_a_refused_policy_says_of_which_role(floored: Floored, joe: Caller) -> None:
    with pytest.raises(PlatformError):
        add_policy(floored, joe, written("b = 'x'"))
    assert newest(floored).detail == {"role": "SPY"}
