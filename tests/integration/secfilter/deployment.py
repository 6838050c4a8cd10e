"""Engines as processes, over a catalog and a broker."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import select

from catalog.assignments import assign, engine_of
from catalog.bootstrap import ensure_initialised
from catalog.engines import FIRST, INGEST, all_engines
from catalog.label import Label
from catalog.limits import Limits
from catalog.models import (
    Assignment,
    CategoryRow,
    DeliveryClass,
    Heartbeat,
    Object,
    OutputInput,
    OutputRow,
    QueryRow,
    RunStatus,
    SenderRow,
    StreamRow,
)
from catalog.run_state import QueryState, state_of_query
from catalog.runs import FanOutClass, IngestStream, QueryRun, Sender
from catalog.sender_state import SenderState
from catalog.store import Catalog, Change
from catalog.stored_form import to_stored
from catalog.wanted import fed_classes
from deploy.runtime import Runtime
from deploy.settings import Table, merged, to_toml
from secfilter.checkpoint import Checkpoints
from secfilter.life import READY_FILE
from secfilter.side_notes import SideNotes
from secfilter.spare import SPARE
from tests.audit_key import AUDIT_KEY
from tests.integration.brokers import kafka_settings
from tests.integration.secfilter.plane import Plane
from tests.outputs import alone
from tests.spark_cluster import SparkCluster

SECOND = "query-2"
# Short batches; what is left as it is settles within seconds.
PACE = {"query_ms": 1_000, "ingest_ms": 1_000, "new_ms": 500, "settle_ms": 10_000, "past_ms": 1_000}
# A batch that ends before its tasks have begun reads nothing. On a cluster they begin later.
CLUSTER_PACE = {"query_ms": 3_000, "ingest_ms": 3_000, "new_ms": 1_500}


@dataclass(frozen=True)
class Engines:
    """Processes of engines, by their engines' names."""

    processes: dict[str, subprocess.Popen[bytes]]

    def kill(self, *engines: str) -> None:
        """End these at once, or all of them."""
        killed = [self.processes[name] for name in engines or self.processes]
        for process in killed:
            process.kill()
        for process in killed:
            process.wait()

    def join(self, others: "Engines") -> None:
        """Take over what was started since."""
        self.processes.update(others.processes)

    def end(self) -> None:
        """Let all of them end in order."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        assert {process.wait(90) for process in self.processes.values()} == {0}


@dataclass
class Deployment:
    """A settings file, a catalog, and engines' processes over them."""

    plane: Plane
    runtime: Runtime
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    query_engines: int = 1

    def __post_init__(self) -> None:
        kafka = kafka_settings(self.plane.broker)
        (self.folder / "id.key").write_text("ab" * 32)
        url = f"sqlite:///{self.folder / 'catalog.db'}"
        accounts = "".join(
            f'[kafka.{name}]\nusername = "{a.username}"\npassword_file = "{a.password_file}"\n'
            for name, a in (
                ("secadmin", kafka.secadmin),
                ("ingest", kafka.ingest),
                ("query", kafka.query),
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

    @property
    def sides(self) -> SideNotes:
        """What its engines keep of side runs."""
        return SideNotes(Checkpoints(self.folder / "checkpoints"))

    def set_pace(self, **lengths: int) -> None:
        """Let engines that begin later have batches of these lengths."""
        text = self.settings.read_text()
        for name, value in lengths.items():
            option = f'"secfilter.{name}" = '
            text = text.replace(f'{option}"{PACE[name]}"', f'{option}"{value}"')
        self.settings.write_text(text)

    def set_engines(self, count: int) -> None:
        """Let the deployment have so many query engines."""
        text = self.settings.read_text()
        self.settings.write_text(text.replace("[secfilter]", f"[secfilter]\nengines = {count}"))
        self.query_engines = count

    def start(self, *engines: str) -> "Engines":
        """Start these engines, or ingest and one for queries, and wait until they are ready."""
        started = {name: self.launch(name) for name in engines or (INGEST, FIRST)}
        deadline = time.monotonic() + 180
        for name, process in started.items():
            while not self.ready_file(name).exists():
                assert process.poll() is None, f"{name} ended"
                assert time.monotonic() < deadline, f"{name} is not ready"
                time.sleep(0.05)
        return Engines(started)

    def ready_file(self, engine: str) -> Path:
        """The file in which the engine says that it is ready."""
        return self.folder / f"{engine}.ready"

    def launch(self, engine: str) -> subprocess.Popen[bytes]:
        """Start an engine's process, with `environment` beside the test's own."""
        return self._launch(engine, ["--engine", engine])

    def launch_spare(self) -> subprocess.Popen[bytes]:
        """Start a spare engine, and wait until it can be asked for."""
        process = self._launch(SPARE, ["--spare"])
        deadline = time.monotonic() + 180
        while not self.ready_file(SPARE).exists():
            assert process.poll() is None, "the spare ended"
            assert time.monotonic() < deadline, "the spare is not ready"
            time.sleep(0.05)
        return process

    def _launch(self, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        self.ready_file(name).unlink(missing_ok=True)
        command = ["-m", "secfilter", "--settings", str(self.settings), *arguments]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *command],
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    **self.environment,
                    READY_FILE: str(self.ready_file(name)),
                },
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def use(self, cluster: SparkCluster) -> None:
        """Let engines that begin later use the cluster."""
        table = tomllib.loads(self.settings.read_text())
        options: Table = {f"secfilter.{name}": str(ms) for name, ms in CLUSTER_PACE.items()}
        own = merged({"secfilter": cluster.settings}, {"secfilter": {"options": options}})
        self.settings.write_text(to_toml(merged(table, own)))

    def add(
        self,
        stream: IngestStream,
        *runs: QueryRun,
        apart: Sequence[QueryRun] = (),
        partitions: int = 1,
    ) -> None:
        """Put a stream and queries over it into the catalog, as SecAdmin does.

        Those that are `apart` go to the second query engine.
        """
        relation = stream.relation
        with self.catalog.change("test") as change:
            add = change.session.add
            self._name(change, relation.object_id, "stream")
            self._name(change, 8_001, "schema")
            (bit,) = stream.label.categories()
            add(CategoryRow(bit=bit, kind="source", stream_id=relation.object_id))
            add(
                StreamRow(
                    object_id=relation.object_id,
                    schema_id=8_001,
                    relation=to_stored(relation),
                    record_format=to_stored(stream.record_format),
                    max_ahead_ms=stream.max_ahead_ms,
                    max_bytes=stream.max_bytes,
                    partitions=partitions,
                    shared=False,
                    ingest_group=1,
                )
            )
            for sender in stream.senders:
                self._add_sender(change, relation.object_id, sender)
            for number, run in enumerate((*runs, *apart), start=8_002):
                self._add_query(change, number, relation.object_id, run)
                for class_ in run.classes:
                    self._add_class(change, run, class_)
            change.session.flush()
            for engine, theirs in ((FIRST, runs), (SECOND, apart)):
                slots = {run.output.object_id: 1 for run in theirs}
                assign(change.session, slots, [engine], Limits())
            change.audit("add", "test")
            change.bump_generation()

    def add_class(self, run: QueryRun) -> None:
        """Open the run's last class, whose topic is there."""
        with self.catalog.change("test") as change:
            self._add_class(change, run, run.classes[-1])
            change.audit("add", "test")
            change.bump_generation()

    def add_sender(self, stream: IngestStream) -> None:
        """Add the stream's last sender, whose topic is there."""
        with self.catalog.change("test") as change:
            self._add_sender(change, stream.relation.object_id, stream.senders[-1])
            change.audit("add", "test")
            change.bump_generation()

    @staticmethod
    def _add_sender(change: Change, stream: int, sender: Sender) -> None:
        made = SenderRow(id=sender.id, stream_id=stream, topic=sender.topic, opened_at=change.now)
        made.state = SenderState.ACTIVE
        change.session.add(made)

    def feeds(self, run: QueryRun) -> bool:
        """Whether all classes of the run are told to be fed."""
        with self.catalog.read() as session:
            topics = [each.topic for each in run.classes]
            own = select(DeliveryClass.id).where(DeliveryClass.topic.in_(topics))
            ids = set(session.scalars(own))
            return len(ids) == len(topics) and fed_classes(session, ids, [FIRST]) == ids

    @staticmethod
    def _add_class(change: Change, run: QueryRun, class_: FanOutClass) -> None:
        change.session.add(
            DeliveryClass(
                output_id=run.output.object_id,
                name=class_.topic,
                topic=class_.topic,
                clearance=Label(class_.clearance.bits).to_wire(),
                weak=False,
                starting_offsets={topic: dict(of) for topic, of in class_.begins.items()},
                opened_at=change.now,
            )
        )

    @staticmethod
    def _name(change: Change, number: int, kind: str) -> None:
        made = Object(
            id=number, kind=kind, namespace=kind, name=f"n{number}", created_at=change.now
        )
        change.session.add(made)
        change.session.flush()

    def _add_query(self, change: Change, number: int, relation_id: int, run: QueryRun) -> None:
        output, add = run.output, change.session.add
        self._name(change, output.object_id, "output")
        self._name(change, number, "query")
        add(QueryRow(object_id=number, language="sql", text="", running=True))
        add(alone(output.object_id, run.plan))
        change.session.flush()
        add(
            OutputRow(
                object_id=output.object_id,
                query_id=number,
                relation=to_stored(output),
                plan=to_stored(run.plan),
                starting_offsets={},
                execution_id=output.object_id,
                retention_ms=1_000_000,
            )
        )
        add(OutputInput(output_id=output.object_id, relation_id=relation_id))

    def make_old(self, run: QueryRun) -> None:
        """Let the run have been as it is for hours."""
        with self.catalog.bookkeeping() as session:
            session.get_one(Assignment, run.output.object_id).changed_beat = -100_000

    def make_young(self, run: QueryRun) -> None:
        """Let the run have changed a moment ago."""
        with self.catalog.bookkeeping() as session:
            row = session.get_one(Assignment, run.output.object_id)
            row.changed_beat = session.get_one(Heartbeat, row.home).beats

    def distrust(self, run: QueryRun) -> None:
        """Let the run have survived trials before, so that its next one takes minutes."""
        with self.catalog.bookkeeping() as session:
            session.get_one(Assignment, run.output.object_id).trials = 3

    def remove(self, run: QueryRun) -> None:
        """Remove the run's output, and so the run, as SecAdmin does."""
        with self.catalog.change("test") as change:
            change.session.get_one(Object, run.output.object_id).removed_at = change.now
            change.audit("remove", "test")
            change.bump_generation()

    def stop(self, *runs: QueryRun) -> None:
        """Stop queries, as their owners do."""
        with self.catalog.change("test") as change:
            for run in runs:
                output = change.session.get_one(OutputRow, run.output.object_id)
                change.session.get_one(QueryRow, output.query_id).running = False
            change.audit("stop", "test")
            change.bump_generation()

    def run_in(self, engine: str, runs: Iterable[QueryRun]) -> bool:
        """Whether all these are said to run in that engine."""
        with self.catalog.read() as session:
            engines = {engine_of(session, run.name) for run in runs}
        return engines <= {engine} and all(self.told(run).state == "running" for run in runs)

    def have_left(self, engine: str, runs: Iterable[QueryRun]) -> bool:
        """Whether the engine has handed all of these over."""
        with self.catalog.read() as session:
            return engine not in {engine_of(session, run.name) for run in runs}

    def told(self, run: QueryRun) -> QueryState:
        """What people are told about a query."""
        with self.catalog.read() as session:
            return state_of_query(
                session, [run.output.object_id], True, all_engines(self.query_engines)
            )

    def states(self) -> dict[str, str]:
        """Run -> what its engine says of it."""
        with self.catalog.read() as session:
            return {row.name: row.state for row in session.query(RunStatus)}

    def await_running(self, timeout_s: float = 90.0) -> None:
        """Wait until all runs are said to run, which may be later than their first tuple."""
        deadline = time.monotonic() + timeout_s
        while set((said := self.states()).values()) != {"running"}:
            assert time.monotonic() < deadline, said
            time.sleep(0.05)

    def messages(self) -> set[str]:
        """What engines say of runs that are not well."""
        with self.catalog.read() as session:
            return {row.message for row in session.query(RunStatus) if row.message}

    def log(self) -> str:
        """What the engines wrote for their operator."""
        return (self.folder / "log").read_text(errors="replace")

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
