"""What all subscribers share: the service, the data that flow, and who may read what."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from catalog.models import Access, AccessTopic
from catalog.settings import KafkaSettings
from secadmin.control.platform import Platform
from secadmin.kafka.principals import Credentials
from tests.integration.service.conftest import Api
from tests.integration.service.revocations.ledger import Ledger
from tests.integration.service.revocations.numbered_flow import Flow
from tests.integration.service.revocations.watching_client import Subscription


@dataclass(frozen=True)
class Surroundings:
    """What the rounds of all teams share."""

    platform: Platform
    settings: KafkaSettings
    flow: Flow
    ledger: Ledger
    folder: Path

    def topics(self, principals: Collection[str]) -> dict[str, set[str]]:
        """The topics that the catalog lets each of the principals reach."""
        own = (
            select(Access.principal, AccessTopic.topic)
            .join(AccessTopic, AccessTopic.access_id == Access.id)
            .where(Access.principal.in_(principals))
        )
        found: dict[str, set[str]] = {principal: set() for principal in principals}
        with self.platform.catalog.read() as session:
            for row in session.execute(own):
                found[row.principal].add(row.topic)
        return found

    def subscribe(self, user: Api, output: str, keep: bool = False) -> Subscription:
        """A subscription of the user to the output, whose topic is written to."""
        given = user.post(f"/outputs/{output}/subscriptions", keep=keep)
        credentials = Credentials(given["principal"], given["secret"])
        (topic,) = self.topics([credentials.username])[credentials.username]
        self.flow.open(topic)
        return Subscription(self.settings, credentials, topic, output, self.folder)


@contextmanager
def flowing(platform: Platform, settings: KafkaSettings, folder: Path) -> Iterator[Surroundings]:
    """Data flow until the block ends."""
    with Flow(settings) as flow:
        yield Surroundings(platform, settings, flow, Ledger(), folder)
