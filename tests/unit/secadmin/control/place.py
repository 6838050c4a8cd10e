"""A catalog in which accesses are settled, with hands on what it holds."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, select

from catalog.models import (
    Access,
    AccessTopic,
    DeliveryClass,
    Grant,
    OutputRow,
    QueryRow,
    SenderRow,
    StreamRow,
    User,
    Withdrawal,
)
from catalog.plan import Plan, Source, Union
from catalog.record_format import USUAL
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.sender_state import SenderState
from catalog.store import Catalog
from catalog.stored_form import to_stored
from secadmin.control.settlement import Settlement
from tests.outputs import alone
from tests.unit.catalog.world import World

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
    world.add(alone(output.id, plan))
    world.add(
        OutputRow(
            object_id=output.id,
            query_id=world.get_object("query q").id,
            relation=to_stored(relation),
            plan=to_stored(plan),
            starting_offsets={},
            execution_id=output.id,
            retention_ms=1,
        )
    )
