"""Runners as processes, over a catalog and a broker."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from catalog.bootstrap import ensure_initialised
from catalog.label import Label
from catalog.models import (
    CategoryRow,
    DeliveryClass,
    Object,
    OutputInput,
    OutputRow,
    QueryRow,
    RunStatus,
    SenderRow,
    StreamRow,
)
from catalog.plan_json import encode, encode_plan
from catalog.runs import IngestStream, QueryRun
from catalog.sender_state import SenderState
from catalog.store import Catalog
from deploy.runtime import Runtime
from tests.audit_key import AUDIT_KEY
from tests.integration.brokers import kafka_settings
from tests.integration.secfilter.plane import Plane

# Short batches; what is left as it is settles within seconds.
PACE = {"query_ms": 1_000, "ingest_ms": 1_000, "new_ms": 500, "settle_ms": 10_000}


@dataclass
class Deployment:
    """A settings file, a catalog, and runners' processes over them."""

    plane: Plane
    runtime: Runtime
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        kafka = kafka_settings(self.plane.broker)
        (self.folder / "id.key").write_text("ab" * 32)
        url = f"sqlite:///{self.folder / 'catalog.db'}"
        accounts = "".join(
            f'[kafka.{name}]\nusername = "{a.username}"\npassword_file = "{a.password_file}"\n'
            for name, a in (
                ("secadmin", kafka.secadmin),
                ("secfilter", kafka.secfilter),
                ("audit", kafka.audit),
            )
        )
        unused = (
            *("certificate_file", "key_file", "ca_file"),
            *("first_password_file", "audit_key_file", "audit_heads_file"),
        )
        self.settings = self.folder / "settings.toml"
        self.settings.write_text(
            f'[catalog]\nurl = "{url}"\n'
            f'[kafka]\nbootstrap = "{kafka.bootstrap}"\nca_file = "{kafka.ca_file}"\n{accounts}'
            '[secadmin]\nhost = "localhost"\nport = 1\n'
            + "".join(f'{name} = "none"\n' for name in unused)
            + f'[secfilter]\nmaster = "local[4]"\njars = "{self.runtime.jars.connector}"\n'
            f'checkpoints = "{self.folder / "checkpoints"}"\n'
            f'id_key_file = "{self.folder / "id.key"}"\n'
            '[secfilter.options]\n"spark.driver.memory" = "1g"\n'
            + "".join(f'"secfilter.{name}" = "{value}"\n' for name, value in PACE.items())
        )
        self.catalog = Catalog(url, AUDIT_KEY)
        ensure_initialised(self.catalog, self.folder / "first.password")

    def start(self) -> subprocess.Popen[bytes]:
        """Start a runner and wait until it is ready."""
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        process = self.launch()
        deadline = time.monotonic() + 180
        while not ready.exists():
            assert process.poll() is None, "the runner ended"
            assert time.monotonic() < deadline, "the runner is not ready"
            time.sleep(0.05)
        return process

    def launch(self) -> subprocess.Popen[bytes]:
        """Start a runner's process, with `environment` beside the test's own."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "secfilter", "--settings", str(self.settings)],
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    **self.environment,
                    "SECFILTER_READY_FILE": str(self.folder / "ready"),
                },
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def add(self, stream: IngestStream, run: QueryRun) -> None:
        """Put a stream and a query over it into the catalog, as SecAdmin does."""
        relation, output = stream.relation, run.output
        with self.catalog.change("test") as change:
            add, now = change.session.add, change.now
            names = ((relation.object_id, "stream"), (output.object_id, "output"))
            for number, kind in (*names, (8_001, "schema"), (8_002, "query")):
                made = Object(
                    id=number, kind=kind, namespace=kind, name=f"n{number}", created_at=now
                )
                add(made)
            change.session.flush()
            (bit,) = stream.label.categories()
            add(CategoryRow(bit=bit, kind="source", stream_id=relation.object_id))
            add(
                StreamRow(
                    object_id=relation.object_id,
                    schema_id=8_001,
                    relation=encode(relation),
                    record_format=encode(stream.record_format),
                    max_ahead_ms=stream.max_ahead_ms,
                    max_bytes=stream.max_bytes,
                    partitions=1,
                    shared=False,
                    ingest_group=1,
                )
            )
            for sender in stream.senders:
                made_sender = SenderRow(
                    id=sender.id, stream_id=relation.object_id, topic=sender.topic, opened_at=now
                )
                made_sender.state = SenderState.ACTIVE
                add(made_sender)
            add(QueryRow(object_id=8_002, language="sql", text="", running=True))
            add(
                OutputRow(
                    object_id=output.object_id,
                    query_id=8_002,
                    relation=encode(output),
                    plan=encode_plan(run.plan),
                    starting_offsets={},
                    slots=1,
                    retention_ms=1_000_000,
                )
            )
            add(OutputInput(output_id=output.object_id, relation_id=relation.object_id))
            for number, class_ in enumerate(run.classes):
                add(
                    DeliveryClass(
                        output_id=output.object_id,
                        name=f"c{number}",
                        topic=class_.topic,
                        clearance=Label(class_.clearance.bits).to_wire(),
                        weak=False,
                        opened_at=now,
                    )
                )
            change.audit("add", "test")
            change.bump_generation()

    def states(self) -> dict[str, str]:
        """Run -> what the runner says of it."""
        with self.catalog.read() as session:
            return {row.name: row.state for row in session.query(RunStatus)}

    def await_running(self, timeout_s: float = 90.0) -> None:
        """Wait until all runs are said to run, which may be later than their first tuple."""
        deadline = time.monotonic() + timeout_s
        while set((said := self.states()).values()) != {"running"}:
            assert time.monotonic() < deadline, said
            time.sleep(0.05)

    def messages(self) -> set[str]:
        """What the runner says of runs that are not well."""
        with self.catalog.read() as session:
            return {row.message for row in session.query(RunStatus) if row.message}

    def log(self) -> str:
        """What the runners wrote for their operator."""
        return (self.folder / "log").read_text(errors="replace")

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
