"""The parts that every operation uses. They are put together once, at start-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from typing import Protocol

from catalog.limits import Limits
from catalog.passwords import Passwords
from catalog.pulse import Pulse
from catalog.settings import IDLE_CLASS_S
from catalog.spaces import Spaces
from catalog.store import Catalog
from catalog.user_limits import UserLimits
from secadmin.control.alignment import Alignment, TopicControl
from secadmin.control.anchors import Anchors
from secadmin.control.wanted_access import WantedState
from secadmin.kafka.access import Granting
from secadmin.kafka.reconcile import Taking


class KafkaControl(TopicControl, Protocol):
    """All work of the service in Kafka."""

    def create_stream_topics(self, stream: str, partitions: int, *, ruled: bool = False) -> None:
        """Create lab.<stream> and quarantine.<stream>, and let SecFilter use them.

        A stream that is `ruled`, one with a label rule, also gets parked.<stream>.
        """

    def create_output_topics(self, output: str) -> None:
        """Create lab.<output>, for queries over it."""

    def delete_topics(self, topics: Sequence[str]) -> None:
        """Delete topics with the ACLs on them, and wait until they are gone."""

    def offsets_at(self, topics: Sequence[str], at: datetime) -> Mapping[str, Mapping[str, int]]:
        """By topic and partition, the offset of the first record that was written at `at` or later.

        It is that of the next record if there is none.
        """

    def partitions(self, topics: Sequence[str]) -> Mapping[str, int]:
        """The number of partitions of those of the topics that exist."""

    def add_partitions(self, wanted: Mapping[str, int]) -> None:
        """Let each topic have at least so many partitions."""

    def create_principal(self, name: str) -> str:
        """Create the SCRAM user and return its new random password."""

    def replenish(self) -> int:
        """Give topics that lost replicas new ones, some at a time: the number of partitions."""

    def create_common_topics(self) -> None:
        """Create the topics that all streams, and all outputs, have in common."""

    def restore_leftovers(self) -> None:
        """Reset the settings that a service left changed when it was killed during a fence."""

    def reconcile(
        self, wanted: Callable[[], WantedState], taking: Taking, granting: Granting
    ) -> None:
        """Delete the ACLs that the catalog does not want, and add the missing ones.

        Before anything is deleted, `taking` records the topics to be fenced. Before anything is
        added, `granting` records it.
        """

    def principals(self) -> frozenset[str]:
        """All SCRAM users of the cluster that are not closed."""

    def closed_principals(self) -> int:
        """The number of users of the cluster that are closed and were not removed."""

    def delete_principal(self, name: str) -> None:
        """Delete the SCRAM user's ACLs, then remove or close the user."""


def _live_unseen(stop: Event) -> None:
    """What a service does that no other one looks at."""
    stop.wait()


@dataclass(frozen=True)
class Platform:
    """The parts of the service: catalog, Kafka, their alignment, the anchors of the audit log.

    `bootstrap` and `ca_pem` go to users. `pulse` says which engines are alive; `spaces` has those
    that should run queries, and for which roles. A delivery class without a subscription is closed
    after `idle_class`. `live` shows other services, until the event is set, that this one is alive.
    `refills_due` is set when a call may have opened a class that is to be refilled.
    """

    catalog: Catalog
    kafka: KafkaControl
    alignment: Alignment
    passwords: Passwords
    bootstrap: str
    ca_pem: str
    clock: Callable[[], datetime]
    anchors: Anchors
    pulse: Pulse = field(default_factory=Pulse)
    limits: Limits = field(default_factory=Limits)
    user_limits: UserLimits = field(default_factory=UserLimits)
    spaces: Spaces = field(default_factory=Spaces)
    idle_class: timedelta = timedelta(seconds=IDLE_CLASS_S)
    live: Callable[[Event], None] = _live_unseen
    refills_due: Event = field(default_factory=Event)
