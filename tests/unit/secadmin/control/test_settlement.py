"""Which topic each access reaches after a change, and what is taken from it then."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import ColumnElement, Engine, event, select

from catalog.label import Label
from catalog.migrations import upgrade
from catalog.models import (
    Access,
    AccessTopic,
    CategoryRow,
    DeliveryClass,
    Grant,
    Membership,
    Object,
    OutputInput,
    OutputRow,
    QueryRow,
    SenderRow,
    Session,
    StreamRow,
    User,
    Withdrawal,
)
from catalog.plan import Plan, Source, Union, Window
from catalog.record_format import USUAL
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.sender_state import SenderState
from catalog.store import Catalog
from catalog.stored_form import from_stored, to_stored
from catalog.subject import subject_of_session
from secadmin.control.settlement import (
    Settlement,
    is_access_principal,
    of_objects,
    of_role,
    of_sessions,
    of_user,
)
from secadmin.kafka.principals import new_principal_name
from tests.audit_key import AUDIT_KEY
from tests.plans import grouped, updating
from tests.unit.catalog.world import SettableClock, World

SCHEMA = Schema((Attribute("t", Type.TIMESTAMP), Attribute("a", Type.STRING)))
IN1, IN2, NEWS = 0, 70, 5


@dataclass
class Place:
    """The streams in1 and in2, the outputs out1 and out3 over both, out2 over what is public."""

    catalog: Catalog
    world: World

    def settle(self, which: ColumnElement[bool] | None = None) -> set[str]:
        """Settle what is selected (None: everything); the topics that Kafka is told about."""
        with self.catalog.change("test") as change:
            settlement = Settlement(change, change.now)
            settlement.settle(Access.id > 0 if which is None else which)
            change.audit("settle", "test")
        return settlement.topics

    def access(self, user: str = "bob", what: str = "output out1", **values: object) -> Access:
        """A live access with the role R, which nothing was decided for."""
        made = self.world.access(user, what, "R", session_id=values.pop("session_id", None))  # type: ignore[arg-type]
        if values:
            self.world.edit(Access, made.id, **values)
        return made

    def read(self, access: Access) -> Access:
        """The access as it is now."""
        with self.catalog.read() as session:
            return session.get_one(Access, access.id)

    def topics(self, access: Access) -> dict[str, AccessTopic]:
        """The topics that it reaches, by name."""
        own = select(AccessTopic).where(AccessTopic.access_id == access.id)
        with self.catalog.read() as session:
            return {row.topic: row for row in session.scalars(own)}

    def topic(self, access: Access) -> str | None:
        """The one topic that it reaches, besides such as leave."""
        staying = [name for name, row in self.topics(access).items() if not row.leaving]
        assert len(staying) <= 1
        return staying[0] if staying else None

    def class_of(self, access: Access) -> DeliveryClass:
        """The class of that one topic."""
        (found,) = self.classes(self.topic(access))
        return found

    def classes(self, *topics: str | None) -> list[DeliveryClass]:
        """The classes of these topics."""
        with self.catalog.read() as session:
            found = {row.topic: row for row in session.scalars(select(DeliveryClass))}
        return [found[str(topic)] for topic in topics]

    def withdrawals(self) -> set[tuple[str, str]]:
        """(principal, topic) of all that was taken, at the time at which it was."""
        with self.catalog.read() as session:
            rows = list(session.scalars(select(Withdrawal)))
        assert all((row.decided_at, row.done_at) == (self.catalog.clock(), None) for row in rows)
        return {(row.principal, row.topic) for row in rows}

    def revoke(self, permission: str, what: str) -> None:
        """Take a grant from R."""
        target = self.world.get_object(what).id
        with self.catalog.change("test") as change:
            query = select(Grant).where(Grant.permission == permission, Grant.object_id == target)
            change.session.delete(change.session.scalars(query).one())
            change.audit("revoke", what)


class PreparedWorld(World):
    """A world over a catalog that was filled before."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with all that the tests begin with, to be copied."""
    path = tmp_path_factory.mktemp("settlement") / "prepared.db"
    catalog = Catalog(f"sqlite:///{path}", AUDIT_KEY, clock=SettableClock())
    upgrade(catalog.engine)
    fill(World(catalog))
    with catalog.engine.connect() as connection:
        connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    catalog.close()
    return path


@pytest.fixture
def place(tmp_path: Path, prepared: Path) -> Iterator[Place]:
    shutil.copy(prepared, tmp_path / "catalog.db")
    catalog = Catalog(f"sqlite:///{tmp_path}/catalog.db", AUDIT_KEY, clock=SettableClock())
    yield Place(catalog, PreparedWorld(catalog))
    catalog.close()


def fill(world: World) -> None:
    """Joe owns all; R, which Bob has, may do everything."""
    for name in ("joe", "bob"):
        world.user(name)
    world.object("schema s")
    world.add(QueryRow(object_id=world.object("query q").id, language="sql", text=""))
    one, two = (add_stream(world, name, bit) for name, bit in (("in1", IN1), ("in2", IN2)))
    news = add_stream(world, "news", NEWS, public=True)
    both = Plan(Union((Source(one), Source(two))))
    add_output(world, "out1", both)
    add_output(world, "out2", Plan(Source(news)), public=True)
    add_output(world, "out3", both)
    world.member("bob", "R")
    for what in ("output out1", "output out2", "output out3", "stream in1", "stream in2"):
        world.grant("R", "VIEW OBJECT", what)
        right = "SUBSCRIBE" if what.startswith("output") else "READ TUPLE"
        world.grant("R", right, what)
    world.grant("R", "SEND", "stream in1")
    for user in ("bob", "joe"):
        add_sender(world, "in1", user)


def add_sender(
    world: World, stream: str, user: str | None, state: SenderState = SenderState.ACTIVE
) -> None:
    number = world.get_object(f"stream {stream}").id
    with world.catalog.read() as session:
        who = session.scalar(select(User.id).where(User.name == user))
    topic = f"in.{stream}.{user or 'shared'}"
    if state is not SenderState.ACTIVE:
        topic += f".{state}"
    world.add(SenderRow(stream_id=number, user_id=who, topic=topic, state=state))


def add_stream(world: World, name: str, bit: int, *, public: bool = False) -> Relation:
    stream = world.stream(name, bit, owner="joe")
    relation = Relation(stream.id, name, RelationKind.STREAM, SCHEMA, None, 0, public)
    world.add(
        StreamRow(
            object_id=stream.id,
            schema_id=world.get_object("schema s").id,
            relation=to_stored(relation),
            record_format=to_stored(USUAL),
            max_ahead_ms=0,
            max_bytes=1,
            partitions=1,
            shared=False,
            ingest_group=1,
        )
    )
    return relation


def add_output(world: World, name: str, plan: Plan, *, public: bool = False) -> None:
    output = world.object(f"output {name}", owner="joe")
    relation = Relation(output.id, name, RelationKind.OUTPUT, SCHEMA, None, 0, public)
    world.add(
        OutputRow(
            object_id=output.id,
            query_id=world.get_object("query q").id,
            relation=to_stored(relation),
            plan=to_stored(plan),
            starting_offsets={},
            slots=1,
            retention_ms=1,
        )
    )


def test_an_output_is_read_through_the_class_of_ones_clearance(place: Place) -> None:
    access = place.access()
    assert place.settle() == {place.topic(access)}
    found = place.class_of(access)
    assert found.topic == f"out.out1.{found.name}" and len(found.name) == 16
    assert (found.clearance, found.weak) == (Label.of(IN1, IN2).to_wire(), False)
    assert place.withdrawals() == set()
    # What is settled stays as it is.
    assert place.settle() == set()
    assert place.class_of(access).id == found.id


def test_equal_clearances_have_one_class(place: Place) -> None:
    place.world.user("eve")
    place.world.member("eve", "R")
    first, second = place.access(), place.access("eve")
    topics = place.settle()
    assert place.class_of(first).id == place.class_of(second).id
    assert len(topics) == 1
    place.world.role("S")
    place.world.grant("S", "READ TUPLE", "stream in1")
    third = place.world.access("bob", "output out1", "R", "S")
    place.world.member("bob", "S")
    assert place.settle() == {place.topic(first)}
    assert place.class_of(third).id == place.class_of(first).id


@pytest.mark.parametrize("outputs", [("out1", "out3"), ("out3", "out1")])
def test_no_output_has_the_class_of_another(place: Place, outputs: tuple[str, str]) -> None:
    """Also where their classes' clearances are equal."""
    place.world.member("joe", "R")
    topics: set[str | None] = set()
    for user, output in zip(("bob", "joe"), outputs, strict=True):
        access = place.access(user, f"output {output}")
        place.settle()
        assert place.class_of(access).output_id == access.object_id
        topics.add(place.topic(access))
    assert len(topics) == 2


@pytest.mark.parametrize("first", ["bob", "eve"])
def test_whose_rights_differ_reads_another_class(place: Place, first: str) -> None:
    place.world.user("eve", "S")
    for permission, what in (
        ("VIEW OBJECT", "output out1"),
        ("SUBSCRIBE", "output out1"),
        ("READ TUPLE", "stream in2"),
    ):
        place.world.grant("S", permission, what)
    bob, eve = place.access(), place.world.access("eve", "output out1", "S")
    told = place.settle(of_user(place.world.get(User, first))) | place.settle()
    assert told == {place.topic(bob), place.topic(eve)}
    assert place.class_of(eve).clearance == Label.of(IN2).to_wire()
    assert place.class_of(bob).clearance == Label.of(IN1, IN2).to_wire()


def test_less_clearance_takes_the_topic_and_gives_another(place: Place) -> None:
    access = place.access()
    place.settle()
    before = str(place.topic(access))
    place.revoke("READ TUPLE", "stream in2")
    assert place.settle() == {before, place.topic(access)}
    assert place.topic(access) not in (None, before)
    assert place.class_of(access).clearance == Label.of(IN1).to_wire()
    assert place.withdrawals() == {(access.principal, before)}
    # What grows again keeps what it has; the class that is there is for who begins with it.
    less = str(place.topic(access))
    place.world.grant("R", "READ TUPLE", "stream in2")
    place.settle()
    assert less in place.topics(access) and before not in place.topics(access)
    place.world.member("joe", "R")
    another = place.access("joe")
    place.settle(Access.id == another.id)
    assert place.topic(another) == before


@pytest.mark.parametrize(
    ("kind", "what", "permissions"),
    [
        ("output", "output out1", ("VIEW OBJECT", "SUBSCRIBE")),
        ("output", "output out2", ("VIEW OBJECT", "SUBSCRIBE")),
        ("quarantine", "stream in1", ("VIEW OBJECT", "READ TUPLE")),
        ("send", "stream in1", ("VIEW OBJECT", "SEND")),
    ],
)
def test_without_one_of_its_rights_an_access_reaches_nothing(
    place: Place, kind: str, what: str, permissions: tuple[str, str]
) -> None:
    access = place.access(what=what, kind=kind)
    for permission in permissions:
        place.settle()
        before = str(place.topic(access))
        place.revoke(permission, what)
        assert place.settle() == {before}
        assert place.topics(access) == {}
        assert place.read(access).ended_at is None
        assert (access.principal, before) in place.withdrawals()
        place.world.grant("R", permission, what)
    place.settle()
    assert place.topic(access) is not None


def test_without_any_clearance_only_what_is_public_is_read(place: Place) -> None:
    place.world.member("joe", "R")
    hidden, public = place.access(), place.access("joe", "output out2")
    for stream in ("stream in1", "stream in2"):
        place.revoke("READ TUPLE", stream)
    place.settle()
    assert place.topic(hidden) is None
    assert place.class_of(public).clearance == "0"


def test_senders_and_quarantines_have_the_topics_of_their_stream(place: Place) -> None:
    send = place.access(what="stream in1", kind="send")
    quarantine = place.access("joe", "stream in2", kind="quarantine")
    place.world.member("joe", "R")
    assert place.settle() == {"in.in1.bob", "quarantine.in2"}
    for access, topic in ((send, "in.in1.bob"), (quarantine, "quarantine.in2")):
        ((name, row),) = place.topics(access).items()
        assert (name, row.class_id) == (topic, None)
    assert place.settle() == set(), "they stay as they are"


def test_a_sender_reaches_its_own_topic_in_that_stream_alone(place: Place) -> None:
    place.world.grant("R", "SEND", "stream in2")
    for stream in ("in1", "in2"):
        for state in (SenderState.DRAINING, SenderState.GONE):
            add_sender(place.world, stream, "bob", state)
    first = place.access(what="stream in1", kind="send", principal="first")
    second = place.access(what="stream in2", kind="send")
    place.settle()
    assert (place.topic(first), place.topic(second)) == ("in.in1.bob", None)
    add_sender(place.world, "in2", "joe")
    place.settle()
    assert place.topic(second) is None, "it is somebody else's"
    add_sender(place.world, "in2", "bob")
    place.settle()
    assert place.topic(second) == "in.in2.bob"


def test_all_users_of_a_shared_stream_write_its_one_topic(place: Place) -> None:
    place.world.member("joe", "R")
    place.world.grant("R", "SEND", "stream in2")
    add_sender(place.world, "in2", None)
    accesses = [place.access(user, "stream in2", kind="send") for user in ("bob", "joe")]
    place.settle()
    assert [place.topic(access) for access in accesses] == ["in.in2.shared"] * 2


def test_a_quarantine_needs_all_that_the_stream_can_carry(place: Place) -> None:
    access = place.access(what="stream in1", kind="quarantine")
    place.world.add(
        CategoryRow(bit=7, kind="source", stream_id=place.world.get_object("stream in1").id)
    )
    place.settle()
    assert place.topic(access) == "quarantine.in1"
    place.revoke("READ TUPLE", "stream in1")
    place.settle()
    assert place.topic(access) is None


def test_who_owns_reads_what_others_with_the_same_roles_do_not(place: Place) -> None:
    place.world.member("joe", "R")
    for permission in ("VIEW OBJECT", "SUBSCRIBE"):
        place.revoke(permission, "output out1")
    accesses = place.access(), place.access("joe")
    place.settle()
    bob, owner = (place.topic(access) for access in accesses)
    assert bob is None and owner is not None


def test_weak_delivery_and_closed_classes_have_classes_of_their_own(place: Place) -> None:
    access = place.access()
    output = place.world.get_object("output out1").id
    seen: set[str | None] = set()
    for change in ({}, {"weak": True}, {"weak": False}):
        if change:
            place.world.edit(OutputRow, output, **change)
        place.settle()
        found = place.class_of(access)
        assert found.weak is change.get("weak", False)
        seen.add(found.topic)
    assert len(seen) == 2
    place.world.edit(DeliveryClass, place.class_of(access).id, closed_at=place.catalog.clock())
    place.settle()
    assert place.topic(access) not in seen


def test_rights_that_grow_keep_the_topic_and_get_one_more(place: Place) -> None:
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    first = str(place.topic(access))
    place.world.grant("R", "READ TUPLE", "stream in2")
    told = place.settle()
    assert first not in told, "Kafka has nothing to do with the topic that stays"
    assert place.withdrawals() == set()
    (second,) = place.topics(access).keys() - {first}
    assert told == {second}
    whole, difference = place.classes(first, second)
    assert (whole.clearance, whole.beyond) == (Label.of(IN1).to_wire(), None)
    assert difference.clearance == Label.of(IN1, IN2).to_wire()
    assert difference.beyond == Label.of(IN1).to_wire()
    # And what is taken again is in the one that was added.
    place.revoke("READ TUPLE", "stream in2")
    assert place.settle() == {second}
    assert place.withdrawals() == {(access.principal, second)}
    assert place.topics(access).keys() == {first}


def test_one_call_gives_and_takes(place: Place) -> None:
    """As SEND does, which takes an aggregate; here one stream goes and another one comes."""
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    before = str(place.topic(access))
    place.revoke("READ TUPLE", "stream in1")
    place.world.grant("R", "READ TUPLE", "stream in2")
    assert place.settle() == {before, place.topic(access)}
    assert place.withdrawals() == {(access.principal, before)}
    assert place.class_of(access).clearance == Label.of(IN2).to_wire()


@pytest.mark.parametrize("by", ["weak delivery", "updates", "updates of what is read"])
def test_elsewhere_a_whole_class_is_opened_beside(place: Place, by: str) -> None:
    output = place.world.get_object("output out1").id
    with place.catalog.read() as session:
        plan = from_stored(Plan, session.get_one(OutputRow, output).plan)
    updates = updating(grouped(plan.root, Window(1_000, 1_000), (), ()))
    if by == "weak delivery":
        place.world.edit(OutputRow, output, weak=True)
    elif by == "updates":
        place.world.edit(OutputRow, output, plan=to_stored(updates))
    else:
        add_output(place.world, "sums", updates)
        read = place.world.get_object("output sums").id
        place.world.add(OutputInput(output_id=output, relation_id=read))
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    before = str(place.topic(access))
    place.world.grant("R", "READ TUPLE", "stream in2")
    place.settle()
    assert place.withdrawals() == set(), "both are read until the new one is fed"
    assert place.topics(access)[before].leaving
    found = place.class_of(access)
    assert (found.clearance, found.beyond) == (Label.of(IN1, IN2).to_wire(), None)
    # Taken before it was fed: its reader goes on where it was.
    place.revoke("READ TUPLE", "stream in2")
    assert place.settle() == {found.topic}
    assert place.topic(access) == before


def test_what_is_replaced_is_cut(place: Place) -> None:
    place.world.edit(OutputRow, place.world.get_object("output out1").id, weak=True)
    place.revoke("READ TUPLE", "stream in2")
    access = place.access()
    place.settle()
    before = str(place.topic(access))
    place.world.grant("R", "READ TUPLE", "stream in2")
    place.settle()
    after = place.topic(access)
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        settlement.cut_leaving([change.session.get_one(Access, access.id)])
        change.audit("cut", "test")
    assert settlement.topics == {before}
    assert place.withdrawals() == {(access.principal, before)}
    assert place.topics(access).keys() == {after}


def test_settling_twice_in_one_change_is_settling_once(place: Place) -> None:
    access = place.access()
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        settlement.settle(Access.id == access.id)
        settlement.settle(Access.id > 0)
        change.audit("settle", "test")
    assert place.withdrawals() == set()
    assert settlement.topics == {place.topic(access)}


def test_a_class_that_cannot_be_read_is_cut(place: Place) -> None:
    access = place.access()
    place.settle()
    before = place.topic(access)
    place.world.edit(DeliveryClass, place.class_of(access).id, beyond="garbage")
    place.settle()
    assert place.withdrawals() == {(access.principal, before)}
    assert place.topic(access) != before


ENDS: dict[str, Callable[[Place, Access], object]] = {
    "the session ended": lambda place, access: place.world.edit(
        Session, access.session_id, ended_at=place.catalog.clock()
    ),
    "the session's time is over": lambda place, access: place.world.edit(
        Session, access.session_id, expires_at=place.catalog.clock()
    ),
    "the user is locked": lambda place, access: place.world.edit(User, access.user_id, locked=True),
    "the object is removed": lambda place, access: place.world.edit(
        Object, access.object_id, removed_at=place.catalog.clock()
    ),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_an_access_ends(place: Place, end: Callable[[Place, Access], object]) -> None:
    login = place.world.session("bob", "R")
    access, kept = place.access(session_id=login.id), place.access("joe")
    place.world.member("joe", "R")
    place.settle()
    before = str(place.topic(access))
    end(place, access)
    place.catalog.clock.advance(seconds=1)  # type: ignore[attr-defined]
    assert place.settle(of_user(place.world.get(User, "bob"))) == {before}
    assert place.topics(access) == {}
    assert place.read(access).ended_at == place.catalog.clock()
    assert place.withdrawals() == {(access.principal, before)}
    assert place.topic(kept) == before


def test_an_access_that_lost_a_role_ends(place: Place) -> None:
    place.world.role("S")
    place.world.member("bob", "S")
    with_both = place.world.access("bob", "output out1", "R", "S")
    access = place.access()
    place.settle()
    with place.catalog.bookkeeping() as session:
        role = place.world.get_role("S")
        session.delete(session.get_one(Membership, (with_both.user_id, role)))
    place.settle()
    assert place.read(with_both).ended_at is not None
    assert place.read(access).ended_at is None and place.topic(access) is not None


def test_what_has_ended_is_not_settled_again(place: Place) -> None:
    access = place.access(ended_at=place.catalog.clock())
    assert place.settle() == set()
    assert place.topic(access) is None


def test_what_is_taken_and_not_done_is_taken_up(place: Place) -> None:
    access, other = place.access(), place.access("joe")
    place.world.member("joe", "R")
    place.settle()
    before = place.topic(access)
    now = place.catalog.clock()
    rows = (
        (access.principal, "out.undone", None),
        (access.principal, "out.done", now),
        (other.principal, "out.another's", None),
    )
    for principal, topic, done_at in rows:
        place.world.add(
            Withdrawal(principal=principal, topic=topic, decided_at=now, done_at=done_at)
        )
    mine = of_user(place.world.get(User, "bob"))
    assert place.settle(mine) == {"out.undone"}
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        settlement.end(change.session.get_one(Access, access.id))
        change.audit("end", "test")
    assert settlement.topics == {before, "out.undone"}
    assert place.read(access).ended_at == now
    # Nobody else would ask for what an ended access has lost.
    assert place.settle(mine) == {before, "out.undone"}


def test_a_new_access_gets_what_its_session_allows(place: Place) -> None:
    login, access = place.world.session("bob", "R"), place.access()
    place.world.add(
        Withdrawal(principal=access.principal, topic="x", decided_at=place.catalog.clock())
    )
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        subject = subject_of_session(change.session, change.session.get_one(Session, login.id))
        settlement.settle_new(change.session.get_one(Access, access.id), subject)
        change.audit("subscribe", "test")
    assert settlement.topics == {place.topic(access)}
    assert place.class_of(access).clearance == Label.of(IN1, IN2).to_wire()


def test_what_accesses_have_in_common_is_looked_up_once(place: Place) -> None:
    """However many there are: some more cost no statement more."""
    numbers = count(1)

    def statements(more: int) -> int:
        for _ in range(more):
            name = f"u{next(numbers)}"
            place.world.user(name, "R")
            place.access(name)
        seen: list[str] = []

        def note(_connection: object, _cursor: object, sql: str, *_rest: object) -> None:
            if sql.startswith("SELECT"):
                seen.append(sql)

        engine: Engine = place.catalog.engine
        event.listen(engine, "before_cursor_execute", note)
        try:
            place.settle()
        finally:
            event.remove(engine, "before_cursor_execute", note)
        return len(seen)

    statements(1)
    assert statements(2) == statements(6)


def test_which_accesses_a_change_is_about(place: Place) -> None:
    place.world.role("SENIOR", juniors=["R"])
    place.world.user("eve", "SENIOR")
    login = place.world.session("eve", "SENIOR")
    direct = place.access()
    senior = place.world.access("eve", "output out2", "SENIOR", session_id=login.id)
    place.world.user("mia", "OTHER")
    other = place.world.access("mia", "output out1", "OTHER")
    objects = [place.world.get_object(f"output {name}").id for name in ("out1", "out2")]

    def found(which: ColumnElement[bool]) -> set[int]:
        with place.catalog.read() as session:
            return set(session.scalars(select(Access.id).where(which)))

    with place.catalog.change("test") as change:
        change.audit("look", "test")
        of_r = of_role(change, place.world.get_role("R"))
        of_senior = of_role(change, place.world.get_role("SENIOR"))
        of_nobody = of_role(change, 999)
    assert found(of_r) == {direct.id, senior.id}
    assert found(of_senior) == {senior.id}
    assert found(of_nobody) == set()
    assert found(of_user(place.world.get(User, "eve"))) == {senior.id}
    assert found(of_objects(objects[0])) == {direct.id, other.id}
    assert found(of_objects(*objects)) == {direct.id, other.id, senior.id}
    assert found(of_sessions(login.id)) == {senior.id}


def test_principals_of_accesses_are_known_by_their_names() -> None:
    for kind in ("output", "quarantine", "send"):
        assert is_access_principal(new_principal_name(kind))
    for name in ("secadmin", "output-1", new_principal_name("other"), new_principal_name("")):
        assert not is_access_principal(name)
