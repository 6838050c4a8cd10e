"""Where services race, and what came of it: in the audit log, in the catalog and in Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from confluent_kafka import Producer
from sqlalchemy import Select, select

from catalog.label import Label
from catalog.models import (
    Access,
    AccessTopic,
    AuditEntry,
    CategoryRow,
    DeliveryClass,
    Object,
    Withdrawal,
)
from catalog.settings import KafkaSettings, Settings
from deploy.processes import ManagedProcess
from secadmin.control.platform import Platform
from secadmin.kafka.acl import Operation, TopicAcl
from secadmin.kafka.acls import Acls
from secadmin.kafka.connect import AdminClients
from secadmin.kafka.wire.connections import BrokerConnections
from tests.integration.kafka.clients import write
from tests.integration.service.conftest import PASSWORD
from tests.integration.service.racing.actors import Person, Services
from tests.integration.service.racing.history import History


@dataclass
class Race:
    """Two services, an output over three streams, and who is there.

    Of the last stream the output has the declared aggregate alone; `sender` may send to it.
    """

    services: Services
    platform: Platform
    settings: Settings
    admin_token: str
    output: str
    streams: tuple[str, str, str]
    junior: str
    sender: str
    seq: int
    producer: Producer
    processes: Sequence[ManagedProcess]

    def person(self, name: str) -> Person:
        """Somebody who has a password."""
        return Person(self.services, name, PASSWORD, Random(name))

    def admin(self, seed: str) -> Person:
        """The administrator, with random choices of its own."""
        return Person(self.services, "admin", PASSWORD, Random(seed), self.admin_token)

    def write(self, value: str) -> None:
        """Write the value to every class of the output, as the data plane does."""
        for topic in self.classes():
            write(self.producer, topic, [value])

    def classes(self) -> dict[str, str]:
        """The output's topics that are there, with their clearances."""
        with self.platform.catalog.read() as session:
            rows = session.scalars(
                select(DeliveryClass)
                .join(Object, Object.id == DeliveryClass.output_id)
                .where(Object.name == self.output, DeliveryClass.opened_at.is_not(None))
            )
            return {row.topic: row.clearance for row in rows}


def play(race: Race) -> History:
    """What the audit log says since the race was prepared; the whole log is intact."""
    history = History()
    assert race.platform.catalog.verify_audit().intact
    with race.platform.catalog.read() as session:
        entries = select(AuditEntry).where(AuditEntry.seq > race.seq).order_by(AuditEntry.seq)
        for entry in session.scalars(entries):
            history.play(entry)
    return history


def wanted_by(history: History, race: Race) -> dict[str, str | None]:
    """By principal, the clearance of what it may read."""
    with race.platform.catalog.read() as session:
        named = select(Object.name, CategoryRow.kind, CategoryRow.bit).join(
            CategoryRow, CategoryRow.stream_id == Object.id
        )
        streams: dict[str, dict[str, int]] = {}
        for row in session.execute(named.where(Object.name.in_(race.streams))):
            streams.setdefault(row.name, {})[row.kind] = row.bit
    bits = {name: history.bits(name, race.output, streams) for name in history.accesses}
    return {name: Label(each).to_wire() if each else None for name, each in bits.items()}


def in_catalog(race: Race) -> dict[str, str | None]:
    """By principal of a live access, the clearance that its topics show together.

    They are a chain: each takes what is beyond the one before it.
    """
    found: dict[str, str | None] = {}
    with race.platform.catalog.read() as session:
        for access in session.scalars(_live(race)):
            classes = [row.delivery_class for row in access.topics if row.delivery_class]
            beyond = {row.beyond: row.clearance for row in classes}
            assert len(beyond) == len(classes) == len(access.topics)
            assert not any(row.leaving for row in access.topics)
            end = None
            while beyond:
                end = beyond.pop(end)
            found[access.principal] = end
    return found


def reached(race: Race) -> set[tuple[str, str]]:
    """Whom the catalog lets read which of the output's topics."""
    with race.platform.catalog.read() as session:
        accesses = session.scalars(_live(race))
        return {(access.principal, row.topic) for access in accesses for row in access.topics}


def _live(race: Race) -> Select[Access]:
    return (
        select(Access)
        .join(Object, Object.id == Access.object_id)
        .where(Object.name == race.output, Access.ended_at.is_(None))
    )


def readers(kafka: KafkaSettings, output: str) -> set[tuple[str, str]]:
    """Whom Kafka lets read which of the output's topics."""
    acls = Acls(AdminClients.open(kafka), BrokerConnections(kafka)).list_all()
    return {
        (acl.principal, acl.topic)
        for acl in acls
        if isinstance(acl, TopicAcl)
        and acl.operation is Operation.READ
        and acl.topic.startswith(f"out.{output}.")
        and acl.principal not in {kafka.ingest.username, kafka.query.username}
    }


def unfinished(race: Race) -> bool:
    """Whether something was decided that Kafka was not told yet."""
    topics = list(race.classes())
    with race.platform.catalog.read() as session:
        withdrawn = select(Withdrawal.id).where(
            Withdrawal.topic.in_(topics), Withdrawal.done_at.is_(None)
        )
        lacking = select(AccessTopic.access_id).where(
            AccessTopic.allowed_at.is_(None), AccessTopic.topic.in_(topics)
        )
        return session.scalar(withdrawn) is not None or session.scalar(lacking) is not None
