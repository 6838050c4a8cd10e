"""A stream with floors, its senders, and engines that follow when a test says so."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from threading import Event
from types import SimpleNamespace
from typing import cast

from sqlalchemy import select

from catalog.engines import FIRST, INGEST
from catalog.label import Label
from catalog.limits import Limits
from catalog.models import Access, OutputInput, SenderRow, Session, StreamRow
from catalog.plan import Plan, Source
from catalog.runs import IngestRun, RunReport, fingerprint
from catalog.sessions import token_hash
from catalog.spaces import Spaces
from catalog.wanted import generation, report_applied, report_status, wanted_runs
from secadmin.control.floors import raise_floors
from secadmin.control.platform import Platform
from secadmin.control.work import Caller
from tests.unit.catalog.world import START, World
from tests.unit.secadmin.control.place import IN1, IN2, Place, add_output, add_stream

IN3 = 9
BOTH = Label.of(IN1, IN2)


@dataclass
class Floored:
    """The stream in1 has floors. Bob and joe send to it, and bob reads in1 and in2."""

    place: Place
    told: list[set[str]] = field(default_factory=list)
    living: set[str] = field(default_factory=lambda: {INGEST, FIRST})

    def __post_init__(self) -> None:
        parts = SimpleNamespace(
            catalog=self.place.catalog,
            clock=self.place.catalog.clock,
            alignment=self,
            pulse=SimpleNamespace(living=lambda _: self.living),
            limits=Limits(),
            spaces=Spaces(),
            refills_due=Event(),
        )
        self.platform = cast(Platform, parts)

    def align(self, topics: Collection[str]) -> None:
        self.told.append(set(topics))

    def step(self) -> None:
        raise_floors(self.platform)

    def engines_follow(self) -> None:
        """Every engine runs what is wanted now, and says so."""
        with self.place.catalog.read() as session:
            runs = wanted_runs(session)
        with self.place.catalog.bookkeeping() as session:
            for run in runs:
                report_status(session, RunReport(run.name, "running", "", fingerprint(run)), START)
            for engine in (INGEST, FIRST):
                report_applied(session, engine, generation(session))

    def rise(self) -> None:
        """All steps, with engines that follow at once."""
        for _ in range(4):
            self.step()
            self.engines_follow()

    def added(self, user: str = "bob") -> Label | None:
        """What ingest adds to what the user sends to in1; None while it does not read it."""
        with self.place.catalog.read() as session:
            runs = [run for run in wanted_runs(session) if isinstance(run, IngestRun)]
        senders = [each for run in runs for stream in run.streams for each in stream.senders]
        return next((each.floor for each in senders if each.topic == f"in.in1.{user}"), None)

    def row(self, user: str = "bob") -> SenderRow:
        with self.place.catalog.read() as session:
            own = select(SenderRow).where(SenderRow.topic == f"in.in1.{user}")
            return session.scalars(own).one()

    def reads(self, access: Access) -> Label:
        """What the topics of the access take."""
        found = Label()
        for row in self.place.classes(*self.place.topics(access)):
            found |= Label.from_wire(row.clearance) or Label()
        return found


def let_joe_administer(world: World) -> Caller:
    """Give joe, who owns all, a role and a session by which he may change the system."""
    for permission in ("CHANGE SYSTEM", "ADD CONFLICT CLASS"):
        world.grant("admin", permission, "system system")
    world.member("joe", "admin")
    login = world.session("joe", "admin")
    world.edit(Session, login.id, token_hash=token_hash("of joe"))
    return Caller("of joe", "joe")


def with_floors(place: Place) -> Floored:
    """The streams in1, which has floors, in2 and in3, with all that reads them."""
    world = place.world
    number = {name: world.get_object(f"stream {name}").id for name in ("in1", "in2")}
    for output in ("out1", "out3"):
        for stream in number.values():
            own = world.get_object(f"output {output}").id
            world.add(OutputInput(output_id=own, relation_id=stream))
    third = add_stream(world, "in3", IN3)
    add_output(world, "out4", Plan(Source(third)))
    own = world.get_object("output out4").id
    world.add(OutputInput(output_id=own, relation_id=third.object_id))
    for permission in ("VIEW OBJECT", "SUBSCRIBE"):
        world.grant("R", permission, "output out4")
    world.edit(StreamRow, number["in1"], floored=True)
    for user in ("bob", "joe"):
        with place.catalog.bookkeeping() as session:
            topic = select(SenderRow).where(SenderRow.topic == f"in.in1.{user}")
            session.scalars(topic).one().opened_at = START
    return Floored(place)
