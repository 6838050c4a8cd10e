"""Registered role expressions: their categories, who holds them, and what a removed role leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from catalog import category_shares, label_texts
from catalog.categories import carried_categories, role_clauses, source_categories
from catalog.category_kind import CategoryKind
from catalog.clearance import Clearance
from catalog.errors import InvalidInput
from catalog.expression import Literal
from catalog.label import MAX_CATEGORIES, Label
from catalog.label_rule import ByExpression, LabelRule
from catalog.label_texts import (
    Registered,
    fixed_texts_of,
    forget_role,
    register,
    roles_named,
    texts_of,
)
from catalog.models import CategoryRow, LabelText, Object, Role, Session, StreamRow, User
from catalog.record_format import USUAL
from catalog.relation import Relation, RelationKind
from catalog.role_clauses import RoleClauses
from catalog.role_expression import read_role_expression
from catalog.schema import Schema, Type
from catalog.stored_form import to_stored
from tests.unit.catalog.world import World

ROLES = ("doctor", "nurse", "icu", "Night Shift")


@pytest.fixture
def ward(world: World) -> World:
    for name in ROLES:
        world.role(name)
    world.stream("ward", 3)
    world.stream("other", 40)
    return world


def registered(
    world: World, text: str, stream: str = "ward", user: int | None = None
) -> Registered:
    number = world.get_object(f"stream {stream}").id
    found: Registered = changed(world, lambda session: register(session, number, text, user))
    return found


def changed(world: World, call: Callable[[Any], Any]) -> Any:
    with world.catalog.change("test") as change:
        result = call(change.session)
        change.audit("change", "test")
    return result


def cleared(world: World, *roles: str) -> Clearance:
    """The clearance of a user with these roles, all of which are active."""
    name = f"u-{'-'.join(sorted(roles)).replace(' ', '_')}"
    if world.find(User, name) is None:
        world.user(name, *roles)
    login: Session = world.session(name, *roles)
    rights = world.ask(login, lambda authorizer, subject: authorizer.clearance_of(subject))
    with world.catalog.read() as session:
        return role_clauses(session).cleared(rights)


def test_equal_clauses_are_one_category(ward: World) -> None:
    first = registered(ward, "doctor & (nurse | icu)")
    assert (first.new_clauses, first.new_roles) == (True, True)
    assert len(first.label.categories()) == 2
    again = registered(ward, "(icu|nurse)&doctor")
    assert again == Registered(first.label)
    part = registered(ward, "nurse | icu")
    assert part.label.within(first.label)
    assert not part.new_clauses
    more = registered(ward, "nurse")
    assert (more.new_clauses, more.new_roles) == (True, False)


def test_a_text_is_registered_once(ward: World) -> None:
    first = registered(ward, "doctor")
    assert registered(ward, "doctor") == Registered(first.label)
    with ward.catalog.read() as session:
        ((_, texts),) = texts_of(session).items()
    assert texts == {"doctor": first.label}


def test_streams_share_roles_and_no_clauses(ward: World) -> None:
    one, two = registered(ward, "doctor"), registered(ward, "doctor", "other")
    assert one.label != two.label
    assert two.new_roles, "no clause of that stream has named it"
    with ward.catalog.read() as session:
        clauses = role_clauses(session)
        carried, sources = carried_categories(session), source_categories(session)
    assert len(set(clauses.roles.values())) == 1
    ward_id = ward.get_object("stream ward").id
    assert sources[ward_id] == Label.of(3)
    assert carried[ward_id] == Label.of(3) | one.label


@pytest.mark.parametrize("roles", [(), *((r,) for r in ROLES), ("doctor", "icu"), ROLES])
def test_a_user_holds_the_clauses_of_its_roles(ward: World, roles: tuple[str, ...]) -> None:
    texts = ("doctor", "doctor & icu", 'nurse | "Night Shift"', "(doctor | nurse) & icu")
    labels = {text: registered(ward, text).label for text in texts}
    held = cleared(ward, *roles)
    for text, label in labels.items():
        assert held.covers(label) == read_role_expression(text).allows(set(roles)), text


def test_a_senior_role_holds_what_its_junior_holds(ward: World) -> None:
    ward.role("head", juniors=["doctor"])
    label = registered(ward, "doctor & head").label
    assert cleared(ward, "head").covers(label)
    assert not cleared(ward, "doctor").covers(label)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("doctor & surgeon", "names 'surgeon', and there is no role of that name"),
        ("doctor & (doctor | surgeon)", "names 'surgeon'"),
        ("doctor nurse", "join roles by & or"),
        ("", "here a role is named"),
    ],
)
def test_what_cannot_be_registered_changes_nothing(ward: World, text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        registered(ward, text)
    with ward.catalog.read() as session:
        assert texts_of(session) == {}
        assert role_clauses(session).roles == {}


def test_the_numbers_are_bounded(ward: World, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = ward.user("bob").id
    monkeypatch.setattr(label_texts, "MAX_TEXTS_OF_SENDER", 2)
    for text in ("doctor", "nurse"):
        registered(ward, text, user=bob)
    with pytest.raises(InvalidInput, match="the sender has used 2 different"):
        registered(ward, "icu", user=bob)
    assert registered(ward, "doctor", user=bob).label, "a known text needs no room"
    registered(ward, "icu")
    monkeypatch.setattr(label_texts, "MAX_CLAUSES_OF_STREAM", label_texts.CLAUSES_OF_RULE + 3)
    with pytest.raises(InvalidInput, match="up to 3 different conditions"):
        registered(ward, "doctor | icu")
    monkeypatch.setattr(label_texts, "MAX_TEXTS", 3)
    with pytest.raises(InvalidInput, match="the stream has 3 different"):
        registered(ward, "nurse & icu")


def conditions(roles: Sequence[str]) -> Iterator[str]:
    """Expressions of one condition each, all different."""
    for count in range(2, len(roles)):
        yield from map(" | ".join, combinations(roles, count))


def bring(world: World, texts: Iterable[str], user: int | None) -> tuple[int, str]:
    """Register texts until there is no room for one: how many it were, and the refusal if any."""
    number = world.get_object("stream ward").id
    with world.catalog.change("test") as change:
        change.audit("bring", "test")
        count = 0
        for text in texts:
            try:
                register(change.session, number, text, user)
            except InvalidInput as refusal:
                return count, refusal.detail
            count += 1
    return count, ""


def test_one_sender_leaves_room_for_the_conditions_of_others(ward: World) -> None:
    eve, bob = ward.user("eve").id, ward.user("bob").id
    many = [ward.role(f"A{number}").name for number in range(11)]
    registered(ward, "doctor & nurse")
    registered(ward, "doctor & nurse & A1 & A2", user=eve)
    count, refusal = bring(ward, conditions(many), eve)
    assert count == 126, "she has brought two already, and not those of the rule"
    assert "has brought 128 different conditions into the stream, and can bring 128" in refusal
    assert registered(ward, "A2 & A1 & nurse", user=eve).label, "it brings nothing new"
    for text in ("icu", "A1 & icu", "A1 | icu"):
        assert registered(ward, text, user=bob).label, "eve has not used up all"
    with pytest.raises(InvalidInput, match="has brought 128"):
        registered(ward, "A2 | icu", user=eve)


def test_senders_with_many_expressions_leave_room_for_others(
    ward: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_texts, "MAX_TEXTS", 20)
    monkeypatch.setattr(label_texts, "KEPT_TEXTS", 6)
    monkeypatch.setattr(label_texts, "FEW_TEXTS", 3)
    many = list(conditions([ward.role(f"A{number}").name for number in range(8)]))
    eve, mallory = ward.user("eve").id, ward.user("mallory").id
    assert bring(ward, many[:8], eve) == (8, "")
    count, refusal = bring(ward, many[8:], mallory)
    assert count == 6, "both have 14, and the rest is kept"
    assert "has 14 different role expressions, and the last 6 are kept" in refusal
    assert "fewer than 3" in refusal
    for name, left in (("bob", 3), ("ann", 3), ("joe", 0)):
        user = ward.user(name).id
        taken = bring(ward, many[20:], user)[0]
        many = many[taken:]
        assert taken == left


def test_senders_with_many_conditions_leave_room_for_others(
    ward: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_texts, "MAX_CLAUSES_OF_STREAM", label_texts.CLAUSES_OF_RULE + 20)
    monkeypatch.setattr(label_texts, "KEPT_CLAUSES", 6)
    monkeypatch.setattr(label_texts, "FEW_CLAUSES", 3)
    many = list(conditions([ward.role(f"A{number}").name for number in range(8)]))
    count, refusal = bring(ward, many, ward.user("eve").id)
    assert count == 14
    assert "has 14 different conditions, and the last 6 are kept for senders" in refusal
    assert "bring up to 3; use conditions that the stream has already" in refusal
    assert registered(ward, many[0], user=ward.user("mallory").id).label, "it is there already"
    assert bring(ward, many[14:], ward.user("bob").id)[0] == 3
    assert bring(ward, many[17:], ward.user("ann").id)[0] == 3


def test_what_a_sender_brought_counts_also_when_others_use_it(
    ward: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve, bob = ward.user("eve").id, ward.user("bob").id
    monkeypatch.setattr(label_texts, "MAX_CLAUSES_OF_SENDER", 2)
    for user, text in ((eve, "doctor"), (bob, "doctor & nurse"), (eve, "nurse & doctor & icu")):
        registered(ward, text, user=user)
    with pytest.raises(InvalidInput, match="has brought 2 different"):
        registered(ward, "doctor | icu", user=eve)
    assert registered(ward, "doctor | icu", user=bob).new_clauses
    with pytest.raises(InvalidInput, match="has brought 2 different"):
        registered(ward, "doctor | nurse", user=bob)


def test_senders_leave_room_for_the_label_rule(
    ward: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role of the rule may be removed and added again, and then its text has new clauses."""
    rule = ByExpression(Literal("doctor & icu", Type.STRING))
    add_row(ward, "ward", rule)
    bob = ward.user("bob").id
    registered(ward, "doctor & icu")
    monkeypatch.setattr(label_texts, "MAX_CLAUSES_OF_STREAM", 6)
    monkeypatch.setattr(label_texts, "CLAUSES_OF_RULE", 2)
    assert bring(ward, conditions(ROLES[:3]), bob)[0] == 2
    changed(ward, lambda session: forget_role(session, session.get_one(Role, doctor(ward))))
    ward.edit(Role, doctor(ward), name="surgeon")
    ward.role("doctor")
    with pytest.raises(InvalidInput, match="up to 4 different conditions"):
        registered(ward, "nurse & doctor", user=bob)
    again = registered(ward, "doctor & icu", user=bob)
    assert again.new_clauses, "bob's record has it, and it is the rule's"
    number = ward.get_object("stream ward").id
    with ward.catalog.read() as session:
        assert fixed_texts_of(session)[number] == {"doctor & icu": again.label}


def test_conditions_belong_to_the_share_of_the_streams_owner(
    ward: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = ward.user("ann", "keeper").id, ward.user("bob").id
    number = ward.get_object("stream ward").id
    monkeypatch.setattr(category_shares, "CATEGORIES_OF_USER", 4)
    registered(ward, "doctor & nurse & icu", user=bob)
    ward.edit(Object, number, owner_id=ann)
    before = categories(ward)
    assert registered(ward, "nurse & icu", user=bob).label
    with pytest.raises(InvalidInput, match="no categories left for the new conditions"):
        registered(ward, "nurse | icu", user=bob)
    assert categories(ward) == before
    ward.grant("keeper", "CHANGE SYSTEM", "system system")
    assert registered(ward, "nurse | icu", user=bob).new_clauses
    assert registered(ward, "doctor", "other", user=bob).new_clauses, "nobody owns it"


def test_a_new_condition_takes_no_category_that_a_label_cannot_have(ward: World) -> None:
    registered(ward, "doctor")
    ward.add(CategoryRow(bit=MAX_CATEGORIES - 2, kind=CategoryKind.COMPANY))
    before = categories(ward)
    with pytest.raises(InvalidInput, match="no categories left"):
        registered(ward, "nurse")
    assert categories(ward) == before
    assert registered(ward, "doctor & doctor").label
    registered(ward, "doctor", "other")
    assert categories(ward) == [*before, MAX_CATEGORIES - 1]
    with pytest.raises(InvalidInput, match="no categories left"):
        registered(ward, "nurse")


def categories(world: World) -> list[int]:
    with world.catalog.read() as session:
        return list(session.scalars(select(CategoryRow.bit).order_by(CategoryRow.bit)))


def doctor(world: World) -> int:
    return world.get_role("doctor")


def add_row(world: World, name: str, rule: LabelRule) -> None:
    """Make the row of a stream with this label rule."""
    world.object("schema s")
    stream = world.get_object(f"stream {name}")
    relation = Relation(stream.id, name, RelationKind.STREAM, Schema(()), None, 0)
    world.add(
        StreamRow(
            object_id=stream.id,
            schema_id=world.get_object("schema s").id,
            relation=to_stored(relation),
            record_format=to_stored(USUAL),
            label_rule=to_stored(rule),
            max_ahead_ms=0,
            max_bytes=1,
            partitions=1,
            shared=False,
            ingest_group=1,
        )
    )


def test_a_removed_role_gives_nothing_and_its_texts_are_dropped(ward: World) -> None:
    one = registered(ward, "doctor | nurse").label
    two = registered(ward, "doctor").label
    kept = registered(ward, "nurse").label
    absorbed = "nurse & (nurse | doctor)"
    registered(ward, absorbed)
    assert cleared(ward, "doctor").covers(one | two)

    def remove(session: Any) -> None:
        forget_role(session, session.get_one(Role, ward.get_role("doctor")))

    changed(ward, remove)
    with ward.catalog.read() as session:
        ((_, texts),) = texts_of(session).items()
    assert texts == {"nurse": kept}
    assert not cleared(ward, "doctor").covers(one)
    assert not cleared(ward, "doctor", "icu").covers(two)
    assert cleared(ward, "nurse").covers(one), "what was labelled before keeps its label"
    # The role is there again: another category, which does not give what was labelled before.
    again = registered(ward, "doctor").label
    assert again != two
    assert cleared(ward, "doctor", "Night Shift").covers(again)
    assert not cleared(ward, "doctor", "nurse").covers(two)


def test_a_label_that_cannot_be_read_is_left_out(ward: World) -> None:
    label = registered(ward, "doctor").label
    with ward.catalog.read() as session:
        (number,) = [row.id for row in session.query(LabelText)]
    ward.edit(LabelText, number, clauses="0,,")
    with ward.catalog.read() as session:
        assert texts_of(session) == {}
    assert label.bits


def test_all_roles_of_a_text_are_found() -> None:
    assert roles_named('a&(b|"c \\" d")|(a & "e&f")') == {"a", "b", 'c " d', "e&f"}


CLAUSES = RoleClauses({10: Label.of(1), 11: Label.of(1, 2), 12: Label.of(3)})


@given(st.integers(0, 2**13 - 1), st.integers(0, 2**13 - 1))
def test_more_rights_see_more(one: int, two: int) -> None:
    small, large = CLAUSES.cleared(Clearance(one)), CLAUSES.cleared(Clearance(one | two))
    assert large.covers(Label(small.bits))


@given(st.integers(0, 2**13 - 1), st.integers(0, 2**13 - 1))
def test_the_deciding_categories_decide(rights: int, reach: int) -> None:
    """What is visible of a reach is the same with the deciding part of the rights."""
    # Nobody holds a clause but by its roles, and a reach has no category of a role.
    held = Clearance(rights & ~Label.of(10, 11, 12).bits)
    carried = Label(reach & ~Label.of(1, 2, 3).bits)
    decided = held.cut_to(CLAUSES.deciding(carried))
    assert CLAUSES.cleared(decided).cut_to(carried) == CLAUSES.cleared(held).cut_to(carried)
