"""The authorizer's answers, case by case; the cases are data."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.authorizer import Authorizer
from catalog.decision import Decision
from catalog.errors import Denied, NotFound, PlatformError
from catalog.models import Object, User
from catalog.permission import APPLIES, OWNER_HOLDS, ObjectKind, Permission
from catalog.store import Catalog
from catalog.subject import Subject
from tests.audit_key import AUDIT_KEY
from tests.unit.catalog.conftest import DATABASES, migrated_database
from tests.unit.catalog.world import START, SettableClock, World

DATA = json.loads(Path(__file__).with_name("authorizer_cases.json").read_text())
ANSWERS: dict[str, type[PlatformError] | None] = {
    "allowed": None,
    "denied": Denied,
    "hidden": NotFound,
}


def build(world: World, description: dict[str, Any]) -> None:
    for role, juniors in description["hierarchy"].items():
        world.role(role, juniors)
    for user, roles in description["users"].items():
        world.user(user, *roles)
    for what, owner in description["objects"].items():
        world.object(what, owner)
    for role, permission, what in description["grants"]:
        world.grant(role, permission, what)
    for what in description["removed"]:
        world.edit(Object, world.get_object(what).id, removed_at=START)


@pytest.fixture
def paper(world: World) -> World:
    """The world of the cases: the paper's scenario (004 §4.1) and more."""
    build(world, DATA["world"])
    return world


@pytest.fixture(scope="module", params=DATABASES)
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, migrated_file: Path
) -> Iterator[World]:
    """The same world, made once: a case adds nothing to it but a session of its own."""
    folder = tmp_path_factory.mktemp("asked")
    with migrated_database(request, folder, migrated_file) as url:
        catalog = Catalog(url, AUDIT_KEY, clock=SettableClock())
        world = World(catalog)
        build(world, DATA["world"])
        yield world
        catalog.close()


@pytest.mark.parametrize("case", DATA["cases"], ids=[case["id"] for case in DATA["cases"]])
def test_case(asked: World, case: dict[str, Any]) -> None:
    permission, target = Permission(case["ask"][0]), asked.get_object(case["ask"][1])
    login = asked.session(case["as"], *case["active"])

    def question(authorizer: Authorizer, subject: Subject) -> tuple[Decision, PlatformError | None]:
        decision = authorizer.decide(subject, permission, target)
        ways = authorizer.explain(subject, permission, target)
        assert any(way.allowed for way in ways) == decision.allowed
        assert decision.allowed is False or decision in ways
        try:
            assert authorizer.require(subject, permission, target) == decision
        except PlatformError as error:
            return decision, error
        return decision, None

    decision, error = asked.ask(login, question)
    expected = ANSWERS[case["answer"]]
    assert (type(error) if error else None) is expected
    if case["answer"] == "hidden":
        assert "denied" not in str(error)
    else:
        assert decision.allowed == (case["answer"] == "allowed")
        assert decision.via_role == case.get("via")
        assert case.get("because", "") in decision.reason


def test_the_owner_holds_exactly_what_the_table_says(paper: World) -> None:
    for what in ("schema s", "stream in1", "query q1", "output out1", "system system"):
        target = paper.get_object(what)
        owner = "al" if what in ("query q1", "output out1") else "joe"
        if what == "system system":
            paper.edit(Object, target.id, owner_id=paper.get(User, owner).id)
            target = paper.get_object(what)
        login = paper.session(owner)
        for permission in Permission:
            applies = permission in APPLIES[ObjectKind(target.kind)]
            held = applies and permission in OWNER_HOLDS
            if target.kind == ObjectKind.SYSTEM and permission is Permission.VIEW_OBJECT:
                held = True
            decision = paper.ask(login, lambda a, s: a.decide(s, permission, target))  # noqa: B023
            assert decision.allowed == held, (what, permission)


def test_without_any_grant_everything_is_denied(paper: World) -> None:
    login = paper.session("eve")
    for what in DATA["world"]["objects"]:
        target = paper.get_object(what)
        for permission in Permission:
            decision = paper.ask(login, lambda a, s: a.decide(s, permission, target))  # noqa: B023
            assert not decision.allowed
            assert decision.reason


def test_a_locked_user_holds_nothing_not_even_by_owning(paper: World) -> None:
    login = paper.session("al", "CUSTOMER1")
    paper.edit(User, paper.get(User, "al").id, locked=True)
    for what in ("stream in1", "query q1", "output out1", "system system"):
        target = paper.get_object(what)
        for permission in Permission:
            decision = paper.ask(login, lambda a, s: a.decide(s, permission, target))  # noqa: B023
            assert not decision.allowed
            assert decision.reason == "the user is locked"
    assert paper.ask(login, lambda a, s: a.clearance_of(s)).bits == 0


def test_the_trail_holds_each_decision_for_the_audit_log(paper: World) -> None:
    login = paper.session("ed", "INFO PROVIDER")
    in1, in2 = paper.get_object("stream in1"), paper.get_object("stream in2")

    def question(authorizer: Authorizer, subject: Subject) -> list[Decision]:
        authorizer.require(subject, Permission.SEND, in1)
        with pytest.raises(Denied):
            authorizer.require(subject, Permission.READ_TUPLE, in1)
        with pytest.raises(NotFound):
            authorizer.require(subject, Permission.SEND, in2)
        return authorizer.trail

    trail = paper.ask(login, question)
    assert [(d.allowed, d.permission, d.object) for d in trail] == [
        (True, Permission.SEND, "stream in1"),
        (False, Permission.READ_TUPLE, "stream in1"),
        (False, Permission.VIEW_OBJECT, "stream in2"),
    ]


def test_explain_tells_each_way(paper: World) -> None:
    login = paper.session("sam", "DESK", "CUSTOMER2")
    target = paper.get_object("stream in1")
    ways = paper.ask(login, lambda a, s: a.explain(s, Permission.READ_AGGREGATE, target))
    assert [(way.allowed, way.reason) for way in ways] == [
        (False, "sam does not own stream in1"),
        (
            True,
            (
                "role CUSTOMER1 (through DESK) holds READ TUPLE on stream in1, "
                "which includes READ AGGREGATE"
            ),
        ),
        (True, "role CUSTOMER2 holds READ AGGREGATE on stream in1"),
        (False, "role DESK does not hold READ AGGREGATE"),
        (False, "role TRADER (through DESK) does not hold READ AGGREGATE"),
    ]


def test_before_bootstrap_there_is_no_system(paper: World) -> None:
    paper.edit(Object, paper.get_object("system system").id, removed_at=START, gone_at=START)
    login = paper.session("joe", "ADMIN")
    with pytest.raises(NotFound):
        paper.ask(login, lambda a, s: a.visible_objects(s))


def test_a_refusal_names_the_roles_that_were_active(asked: World) -> None:
    target = asked.get_object("stream in1")
    reasons = [
        asked.ask(
            asked.session("sam", *active), lambda a, s: a.decide(s, Permission.SEND, target)
        ).reason
        for active in ((), ("CUSTOMER2",))
    ]
    assert reasons == [
        "no active role holds SEND (no role is active)",
        "no active role holds SEND (CUSTOMER2)",
    ]
