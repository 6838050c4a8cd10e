"""A change may touch more accesses than a database takes as parameters of one statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import ColumnElement, event, func, insert, select

from catalog.bootstrap import ensure_initialised
from catalog.label import Label
from catalog.models import Access, AccessTopic, Object, User
from catalog.passwords import Passwords
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.store import Catalog
from secadmin.control import slices as slicing
from secadmin.control.alignment import Alignment
from secadmin.control.settlement import Settlement, _Reached
from secadmin.control.slices import slices
from secadmin.kafka.access import PrincipalsOf
from tests.audit_key import AUDIT_KEY
from tests.unit.secadmin.control.test_alignment import Kafka, Locks

# What a statement takes here; more than SQLAlchemy itself asks for at once.
LIMIT, AT_ONCE, ACCESSES = 600, 400, 1_300


class Open(Kafka):
    """Lets everybody in."""

    def allow_write(self, principals_of: PrincipalsOf) -> bool:
        self.withdrawn |= {topic: sorted(names) for topic, names in principals_of.items()}
        return True


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.setattr(slicing, "MOST", AT_ONCE)
    catalog = Catalog(f"sqlite:///{tmp_path}/catalog.db", AUDIT_KEY)
    ensure_initialised(catalog, tmp_path / "first", Passwords(cost=4))

    def connect(connection: sqlite3.Connection, *_more: object) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, LIMIT)

    catalog.close()
    event.listen(catalog.engine, "connect", connect)
    now = catalog.clock()
    with catalog.bookkeeping() as session:
        user, system = session.scalars(select(User.id)).one(), session.scalar(select(Object.id))
        fields = {"kind": "send", "user_id": user, "object_id": system, "created_at": now}
        session.execute(
            insert(Access),
            [fields | {"principal": f"send-{number}"} for number in range(ACCESSES)],
        )
        ids = session.scalars(select(Access.id)).all()
        rows = [{"access_id": each, "topic": "in.s", "leaving": False} for each in ids]
        session.execute(insert(AccessTopic), rows)
    yield catalog
    catalog.close()


def _count(catalog: Catalog, where: ColumnElement[bool]) -> int:
    with catalog.read() as session:
        return session.scalar(select(func.count(Access.id)).where(where)) or 0


def test_slices() -> None:
    assert [list(part) for part in slices([1, 2, 3, 4, 5], 2)] == [[1, 2], [3, 4], [5]]
    assert list(slices([])) == []


def test_letting_in_many(catalog: Catalog) -> None:
    kafka = Open()
    Alignment(catalog, kafka, Locks(), catalog.clock).align(["in.s"])
    assert len(kafka.withdrawn["in.s"]) == ACCESSES
    let_in = select(AccessTopic.access_id).where(AccessTopic.allowed_at.is_not(None))
    assert _count(catalog, Access.id.in_(let_in)) == ACCESSES


def test_settling_many(catalog: Catalog) -> None:
    schema = Schema((Attribute("a", Type.STRING),))
    stream = Relation(1, "s", RelationKind.STREAM, schema, None, 0)
    with catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        removed = change.session.scalars(select(Object)).one()
        removed.removed_at = change.now
        settlement._reached[removed.id] = _Reached(
            removed,
            stream,
            Label(0),
            Label(0),
            False,
            by_roles=None,
            exact=False,
            waits=False,
        )
        settlement.settle(Access.object_id == removed.id)
        change.audit("test", "accesses")
    assert settlement.topics == {"in.s"}
    assert _count(catalog, Access.ended_at.is_(None)) == 0
