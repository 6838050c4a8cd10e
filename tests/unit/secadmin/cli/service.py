"""The real service on a catalog of its own, with a Kafka that only remembers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from catalog.passwords import Passwords
from catalog.runs import RunReport, fingerprint
from catalog.store import Catalog
from catalog.wanted import report_status, wanted_runs
from secadmin.control.alignment import Alignment
from secadmin.control.anchors import Anchors, Sender
from secadmin.control.head_file import HeadFile
from secadmin.control.platform import Platform
from secadmin.control.wanted_access import WantedState
from secadmin.kafka.access import Granting, PrincipalsOf
from secadmin.service.app import create_app
from tests.audit_key import AUDIT_KEY
from tests.heartbeat import let_beat
from tests.new_catalog import new_catalog
from tests.unit.secadmin.cli.running import AsgiServer

CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@dataclass
class RememberedKafka:
    """Does what the service asks for at once: rights are (principal, topic)."""

    readers: set[tuple[str, str]] = field(default_factory=set)
    # So many records are in each topic.
    records: int = 0
    writers: set[tuple[str, str]] = field(default_factory=set)

    def create_stream_topics(self, stream: str, partitions: int, *, ruled: bool = False) -> None:
        pass

    def create_output_topics(self, output: str) -> None:
        pass

    def delete_topics(self, topics: Sequence[str]) -> None:
        pass

    def partitions(self, topics: Sequence[str]) -> Mapping[str, int]:
        return {}

    def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        return {topic: {"0": self.records} for topic in topics}

    def offsets_at(self, topics: Sequence[str], at: datetime) -> Mapping[str, Mapping[str, int]]:
        return {topic: {"0": 0} for topic in topics}

    def create_principal(self, name: str) -> str:
        return f"secret-of-{name}"

    def create_common_topics(self) -> None:
        pass

    def restore_leftovers(self) -> None:
        pass

    def reconcile(
        self,
        wanted: Callable[[], WantedState],
        intend: Callable[[Collection[str]], None],
        granting: Granting,
    ) -> None:
        pass

    def open_classes(self, retention_ms: Mapping[str, int]) -> None:
        pass

    def open_senders(self, partitions: Mapping[str, int]) -> None:
        pass

    def allow_read(self, principals_of: PrincipalsOf) -> bool:
        self.readers |= _pairs(principals_of)
        return True

    def allow_write(self, principals_of: PrincipalsOf) -> bool:
        self.writers |= _pairs(principals_of)
        return True

    def withdraw(self, principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
        self.readers -= _pairs(principals_of)
        self.writers -= _pairs(principals_of)


def _pairs(principals_of: PrincipalsOf) -> set[tuple[str, str]]:
    return {(name, topic) for topic, names in principals_of.items() for name in names}


@dataclass(frozen=True)
class Service:
    """The service as a transport, its Kafka, and the first administrator's password."""

    transport: AsgiServer
    kafka: RememberedKafka
    first_password: str
    platform: Platform

    @property
    def catalog(self) -> Catalog:
        """The service's catalog."""
        return self.platform.catalog

    def feed_all(self) -> None:
        """Say what a runner says that runs all that should run."""
        with self.catalog.read() as session:
            runs = wanted_runs(session)
        with self.catalog.bookkeeping() as session:
            for run in runs:
                report = RunReport(run.name, "running", "", fingerprint(run))
                report_status(session, report, self.catalog.clock())
        let_beat(self.platform)


@contextmanager
def running_service(folder: Path) -> Iterator[Service]:
    """A service in that folder until the block ends."""
    catalog = new_catalog(folder)
    kafka = RememberedKafka()

    @contextmanager
    def unlocked(topics: Collection[str], wait: timedelta) -> Iterator[None]:
        yield

    file = HeadFile(folder / "audit" / "heads")
    anchors = Anchors([Sender(file, AUDIT_KEY, catalog.clock, catalog.newest_head)])
    catalog.tell_heads(anchors.offer)
    anchors.start()
    platform = Platform(
        catalog=catalog,
        kafka=kafka,  # type: ignore[arg-type]  # as much of it as the commands reach
        alignment=Alignment(catalog, kafka, unlocked, catalog.clock),
        passwords=Passwords(cost=4),
        bootstrap="localhost:9093",
        ca_pem=CA,
        clock=catalog.clock,
        anchors=anchors,
    )
    try:
        first = (folder / "first").read_text().strip()
        yield Service(AsgiServer(create_app(platform)), kafka, first, platform)
    finally:
        anchors.close()
        catalog.close()
