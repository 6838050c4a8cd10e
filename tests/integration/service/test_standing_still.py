"""A service stands still for so long that another one takes over what it holds."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

from sqlalchemy import select, update

from catalog.models import Access, AccessTopic
from secadmin.control.upkeep import reconcile
from secadmin.kafka.access import PrincipalsOf
from tests.integration.brokers import embedded_only
from tests.integration.kafka.clients import DENIED_TOPIC, reader
from tests.integration.service.conftest import Scene, decided_by_the_database
from tests.integration.service.racing.arena import readers

pytestmark = [embedded_only, decided_by_the_database]


def test_whom_it_lets_in_too_late_gets_nothing(scene: Scene) -> None:
    credentials = scene.subscribe()
    principal = credentials.username
    topic = str(scene.topic(principal))
    with scene.platform.catalog.bookkeeping() as session:
        own = select(Access.id).where(Access.principal == principal)
        row = update(AccessTopic).where(AccessTopic.access_id.in_(own))
        session.execute(row.values(allowed_at=None))
    asleep = replace(
        scene.platform.alignment,
        kafka=_Asleep(scene),  # type: ignore[arg-type]
        lock=lambda topics, wait: nullcontext(),
    )
    asleep.align([topic])
    kafka = scene.settings.kafka
    assert (principal, topic) in readers(kafka, scene.output), "it was let in too late"
    scene.write(topic, "later")
    with reader(kafka, credentials) as late:
        late.consumer.subscribe([topic])
        late.read_until(lambda: DENIED_TOPIC in late.errors, "the refusal")
        assert late.values == []
    reconcile(scene.platform)
    assert (principal, topic) not in readers(kafka, scene.output)


@dataclass
class _Asleep:
    """Kafka for a service that stands still before it lets somebody in."""

    scene: Scene

    def allow_read(self, principals_of: PrincipalsOf) -> bool:
        """Another service does all of a revocation meanwhile."""
        self.scene.revoke("SUBSCRIBE", "output", self.scene.output)
        (principals,) = principals_of.values()
        assert [self.scene.topic(principal) for principal in principals] == [None]
        return self.scene.platform.kafka.allow_read(principals_of)

    def allow_write(self, principals_of: PrincipalsOf) -> bool:
        raise AssertionError("nobody sends")
