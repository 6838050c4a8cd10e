"""The user abstraction layer: hidden and absent are one (004 §2)."""

import pytest
from sqlalchemy import event

from catalog.errors import Denied, NotFound
from catalog.models import Grant, Object, Session, User
from catalog.namespace import Namespace
from catalog.permission import ObjectKind, Permission
from catalog.store import Catalog
from tests.unit.catalog.world import START, World, error_of


@pytest.fixture
def filled(world: World) -> World:
    """Some objects; al may view a few of them."""
    world.user("al", "R")
    world.user("joe")
    for name in ("in1", "in2", "hidden"):
        world.object(f"stream {name}", "joe")
    world.object("output out1", "al")
    world.object("query q1", "al")
    world.object("schema s")
    world.object("stream old", "al", removed_at=START)
    for what in ("stream in1", "stream in2", "schema s", "stream old"):
        world.grant("R", "VIEW OBJECT", what)
    world.grant("R", "READ TUPLE", "stream hidden")
    return world


def names(found: tuple[Object, ...]) -> list[str]:
    return [f"{row.kind} {row.name}" for row in found]


def test_only_visible_objects_are_listed(filled: World) -> None:
    filled.grant("R", "VIEW CATALOG", "system system")
    login = filled.session("al", "R")
    everything = [
        *("output out1", "query q1", "schema s", "stream in1", "stream in2", "system system"),
    ]
    assert names(filled.ask(login, lambda a, s: a.visible_objects(s))) == everything
    streams = filled.ask(login, lambda a, s: a.visible_objects(s, ObjectKind.STREAM))
    assert names(streams) == ["stream in1", "stream in2"]


def test_listing_needs_the_catalog(filled: World) -> None:
    login = filled.session("al", "R")
    with pytest.raises(Denied, match="VIEW CATALOG on system is denied"):
        filled.ask(login, lambda a, s: a.visible_objects(s))


def test_what_is_listed_is_what_decide_allows(filled: World) -> None:
    filled.grant("R", "VIEW CATALOG", "system system")
    login = filled.session("al", "R")
    listed = names(filled.ask(login, lambda a, s: a.visible_objects(s)))
    for kind, name in (
        *(("stream", n) for n in ("in1", "in2", "hidden", "old")),
        *(("output", "out1"), ("query", "q1"), ("schema", "s"), ("system", "system")),
    ):
        target = filled.get_object(f"{kind} {name}")
        view = filled.ask(login, lambda a, s: a.decide(s, Permission.VIEW_OBJECT, target))  # noqa: B023
        assert view.allowed == (f"{kind} {name}" in listed)


def test_find(filled: World) -> None:
    login = filled.session("al", "R")
    by_kind = filled.ask(login, lambda a, s: a.find(s, ObjectKind.STREAM, "in1"))
    by_namespace = filled.ask(login, lambda a, s: a.find(s, Namespace.RELATION, "in1"))
    assert by_kind.id == by_namespace.id
    output = filled.ask(login, lambda a, s: a.find(s, Namespace.RELATION, "out1"))
    assert output.kind == ObjectKind.OUTPUT


@pytest.mark.parametrize(
    ("place", "hidden"),
    [
        (ObjectKind.STREAM, "hidden"),
        (ObjectKind.OUTPUT, "hidden"),
        (Namespace.RELATION, "hidden"),
        (ObjectKind.STREAM, "old"),
        (ObjectKind.STREAM, "out1"),
    ],
)
def test_hidden_and_absent_are_the_same_words(
    filled: World, place: ObjectKind | Namespace, hidden: str
) -> None:
    login = filled.session("al", "R")
    answer = error_of(lambda: filled.ask(login, lambda a, s: a.find(s, place, hidden)))
    absent = error_of(lambda: filled.ask(login, lambda a, s: a.find(s, place, "absent")))
    assert answer is not None
    assert absent is not None
    assert answer[0] is NotFound
    assert (absent[0], absent[1].replace("absent", hidden)) == answer


def test_require_and_find_hide_in_the_same_words(filled: World) -> None:
    login = filled.session("al", "R")
    target = filled.get_object("stream hidden")
    for permission in Permission:
        required = error_of(
            lambda: filled.ask(login, lambda a, s: a.require(s, permission, target))  # noqa: B023
        )
        found = error_of(
            lambda: filled.ask(login, lambda a, s: a.find(s, Namespace.RELATION, "hidden"))
        )
        assert required == found == (NotFound, "there is no stream or output 'hidden'")


def test_hidden_and_absent_cost_the_same_queries(filled: World, catalog: Catalog) -> None:
    login = filled.session("al", "R")
    counts = []
    for name in ("hidden", "absent"):
        statements: list[str] = []

        def count(*args: object, seen: list[str] = statements) -> None:
            seen.append(str(args[2]))

        event.listen(catalog.engine, "before_cursor_execute", count)
        error_of(lambda: filled.ask(login, lambda a, s: a.find(s, ObjectKind.STREAM, name)))  # noqa: B023
        event.remove(catalog.engine, "before_cursor_execute", count)
        counts.append(statements)
    assert counts[0] == counts[1]


@pytest.mark.parametrize("name", ["", "a\0", "\ud800", "ä", "x" * 100_000, "' OR 1=1 --", "%"])
def test_what_no_object_can_be_called_is_not_found(filled: World, name: str) -> None:
    login = filled.session("al", "R")
    with pytest.raises(NotFound) as refusal:
        filled.ask(login, lambda a, s: a.find(s, Namespace.RELATION, name))
    assert len(str(refusal.value)) < 200
    assert str(refusal.value).isprintable()


def test_a_name_is_free_again_only_for_the_living(filled: World) -> None:
    old = filled.get_object("stream old")
    filled.edit(Object, old.id, gone_at=START)
    new = filled.object("stream old", "al")
    login = filled.session("al", "R")
    assert filled.ask(login, lambda a, s: a.find(s, ObjectKind.STREAM, "old")).id == new.id


def test_a_locked_user_sees_nothing(filled: World) -> None:
    login = filled.session("al", "R")
    filled.edit(User, filled.get(User, "al").id, locked=True)
    for place, name in ((ObjectKind.STREAM, "in1"), (ObjectKind.SYSTEM, "system")):
        with pytest.raises(NotFound):
            filled.ask(login, lambda a, s: a.find(s, place, name))  # noqa: B023


def test_a_revoked_grant_hides_at_once(filled: World, catalog: Catalog) -> None:
    login = filled.session("al", "R")
    target = filled.get_object("stream in1")
    with catalog.change("joe") as change:
        change.session.query(Grant).where(
            Grant.object_id == target.id, Grant.permission == "VIEW OBJECT"
        ).delete()
        change.audit("revoke", "stream in1")
    with pytest.raises(NotFound):
        filled.ask(login, lambda a, s: a.find(s, ObjectKind.STREAM, "in1"))


def found(world: World, login: Session, place: ObjectKind | Namespace, name: str) -> str | None:
    """The kind of what is found there, None where nothing is."""
    try:
        return world.ask(login, lambda a, s: a.find(s, place, name)).kind
    except NotFound:
        return None


def test_one_name_in_each_namespace_is_one_object_each(world: World) -> None:
    world.user("al", "R")
    login = world.session("al", "R")
    kinds = {
        Namespace.QUERY: "query",
        Namespace.RELATION: "stream",
        Namespace.SCHEMA: "schema",
        Namespace.SYSTEM: None,
    }
    for kind in filter(None, kinds.values()):
        world.object(f"{kind} twin", "al")
        world.object(f"{kind} only-{kind}", "al")
    assert {place: found(world, login, place, "twin") for place in kinds} == kinds
    for place, there in kinds.items():
        for kind in filter(None, kinds.values()):
            wanted = kind if kind == there else None
            assert found(world, login, place, f"only-{kind}") == wanted


def test_a_relation_of_the_other_kind_is_not_found(filled: World) -> None:
    login = filled.session("al", "R")
    assert found(filled, login, ObjectKind.OUTPUT, "in1") is None
    assert found(filled, login, ObjectKind.STREAM, "out1") is None


def test_owning_is_each_users_own(filled: World) -> None:
    filled.user("eve", id=70_000)
    filled.object("stream late", "eve")
    owners = {"output out1": "al", "stream hidden": "joe", "stream late": "eve"}
    for user in owners.values():
        login = filled.session(user)
        for what, owner in owners.items():
            target = filled.get_object(what)
            own, *_ = filled.ask(
                login,
                lambda a, s: a.explain(s, Permission.VIEW_OBJECT, target),  # noqa: B023
            )
            view = filled.ask(login, lambda a, s: a.decide(s, Permission.VIEW_OBJECT, target))  # noqa: B023
            assert own.allowed == view.allowed == (user == owner)
            assert ("does not own" in own.reason) == (user != owner)
            kind = found(filled, login, Namespace.RELATION, target.name)
            assert kind == (target.kind if user == owner else None)
