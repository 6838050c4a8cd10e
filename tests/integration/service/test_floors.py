"""Floors on the service: no laundering from one stream to another (001 §3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from catalog.engines import all_engines
from catalog.runs import IngestRun, Run, RunReport, fingerprint
from catalog.wanted import generation, report_applied, report_status, wanted_runs
from secadmin.control.floors import raise_floors
from secadmin.control.platform import Platform
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, add_stream, topics_of

pytestmark = embedded_only


@dataclass
class Desk:
    """Ann reads one stream and writes another one with floors. She subscribes to an output."""

    admin: Api
    platform: Platform
    ann: Api
    role: str
    secret: str
    notes: str
    output: str
    schema: str

    def grant(self, kind: str, name: str, *permissions: str) -> None:
        self.admin.post("/grants", role=self.role, permissions=[*permissions], kind=kind, name=name)

    def rise(self) -> None:
        """All steps, with engines that follow at once."""
        engines = frozenset(all_engines(self.platform.spaces.count))
        # No other test may find engines that seem to be alive.
        alive = replace(self.platform, pulse=cast(Any, SimpleNamespace(living=lambda _: engines)))
        for _ in range(4):
            raise_floors(alive)
            self.engines_follow()

    def engines_follow(self) -> None:
        with self.platform.catalog.read() as session:
            runs = [run for run in wanted_runs(session) if self._is_of_notes(run)]
        with self.platform.catalog.bookkeeping() as session:
            now = self.platform.clock()
            for run in runs:
                report_status(session, RunReport(run.name, "running", "", fingerprint(run)), now)
            for engine in all_engines(self.platform.spaces.count):
                report_applied(session, engine, generation(session))

    def _is_of_notes(self, run: Run) -> bool:
        """Whether it is the ingest of the stream. No query reads it."""
        streams = run.streams if isinstance(run, IngestRun) else ()
        return any(each.relation.name == self.notes for each in streams)

    def added(self) -> list[int]:
        """How many categories ingest adds to what each sender of the stream sends."""
        with self.platform.catalog.read() as session:
            runs = [run for run in wanted_runs(session) if isinstance(run, IngestRun)]
        streams = [each for run in runs for each in run.streams if each.relation.name == self.notes]
        return [len(each.floor.categories()) for of in streams for each in of.senders]


@pytest.fixture
def desk(admin: Api, platform: Platform, new_user: NewUser, fresh: Callable[[str], str]) -> Desk:
    secret, notes, output, role = fresh("secret"), fresh("notes"), fresh("o"), fresh("R")
    schema = fresh("schema")
    add_stream(admin, secret, schema)
    admin.post("/streams", name=notes, schema=schema, floored=True)
    text = f"SELECT * FROM {secret}"
    admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    made = Desk(admin, platform, new_user(role), role, secret, notes, output, schema)
    made.grant("output", output, "VIEW OBJECT", "SUBSCRIBE")
    return made


def test_what_is_read_is_in_the_floor_before_it_is_read(desk: Desk) -> None:
    desk.grant("stream", desk.notes, "VIEW OBJECT", "SEND")
    assert desk.added() == [0], "she reads nothing, so ingest reads her topic at once"
    principal = desk.ann.post(f"/outputs/{desk.output}/subscriptions", keep=True)["principal"]
    desk.engines_follow()
    desk.grant("stream", desk.secret, "VIEW OBJECT", "READ TUPLE")
    assert topics_of(desk.platform, principal) == set(), "the right waits for the floor"
    told = desk.admin.get(f"/outputs/{desk.output}/explanation", user=desk.ann.user, label="1")
    assert told["visible"] is False
    desk.rise()
    assert desk.added() == [1]
    assert topics_of(desk.platform, principal)
    floors = desk.admin.get(f"/streams/{desk.notes}/floors")
    words = [f"tuples of stream {desk.secret}"]
    wanted = {"user": desk.ann.user, "floor": words, "applied": True, "lowered": False}
    assert floors == [wanted]


def test_who_reads_already_is_ingested_with_its_floor_from_the_first_record(desk: Desk) -> None:
    desk.grant("stream", desk.secret, "VIEW OBJECT", "READ TUPLE")
    principal = desk.ann.post(f"/outputs/{desk.output}/subscriptions", keep=True)["principal"]
    before = topics_of(desk.platform, principal)
    assert before
    desk.grant("stream", desk.notes, "VIEW OBJECT", "SEND")
    assert desk.added() == [], "ingest waits until queries know the category"
    assert topics_of(desk.platform, principal) == before, "nothing is taken from her"
    desk.rise()
    assert desk.added() == [1]
    assert topics_of(desk.platform, principal) == before


def test_a_lowered_floor_is_declassified(desk: Desk) -> None:
    desk.grant("stream", desk.secret, "VIEW OBJECT", "READ TUPLE")
    desk.grant("stream", desk.notes, "VIEW OBJECT", "SEND")
    desk.rise()
    path = f"/streams/{desk.notes}/floors/{desk.ann.user}"
    assert desk.ann.call("DELETE", path).status_code == 403
    desk.admin.delete(path)
    assert desk.added() == [0]
    newest = desk.admin.get("/audit/head")["seq"]
    (entry,) = [
        each
        for each in desk.admin.get("/audit", after=newest - 20, limit=50)
        if each["action"] == "declassify sender" and each["outcome"] == "changed"
    ]
    assert entry["object"] == f"stream {desk.notes}: {desk.ann.user}" and entry["detail"]["was"]
    desk.rise()
    assert desk.added() == [0], "it does not rise again"


def test_only_who_may_change_the_system_adds_a_stream_without_floors(
    desk: Desk, new_user: NewUser, fresh: Callable[[str], str]
) -> None:
    """Its owner gives the rights to read it, and could show there what only senders may read."""
    role, schema = fresh("R"), fresh("schema")
    owner = new_user(role)
    system = {"role": role, "kind": "system", "permissions": ["ADD SCHEMA", "ADD STREAM"]}
    desk.admin.post("/grants", **system)
    attributes = [{"name": "ts", "type": "timestamp", "required": True}]
    owner.post("/schemas", name=schema, attributes=attributes)
    usual = fresh("s")
    owner.post("/streams", name=usual, schema=schema)
    assert owner.get(f"/streams/{usual}")["floored"] is True
    for more in ({"floored": False}, {"senders": "shared"}, {"public": True}):
        body = {"name": fresh("s"), "schema": schema, **more}
        refused = owner.call("POST", "/streams", json=body)
        assert (refused.status_code, "CHANGE SYSTEM" in refused.text) == (403, True), more
    for more, floored in (({}, False), ({"floored": True}, True), ({"floored": False}, False)):
        name = fresh("s")
        desk.admin.post("/streams", name=name, schema=desk.schema, **more)
        assert desk.admin.get(f"/streams/{name}")["floored"] is floored
    newest = desk.admin.get("/audit/head")["seq"]
    told = {
        each["object"]: each["detail"]["floors"]
        for each in desk.admin.get("/audit", after=newest - 60, limit=100)
        if each["action"] == "add stream" and each["outcome"] == "changed"
    }
    assert told[f"stream {usual}"] is True and told[f"stream {name}"] is False


def test_a_sender_reads_its_own_stream_without_a_wait(desk: Desk) -> None:
    """All that it sends there carries the category of the stream anyway."""
    desk.grant("stream", desk.notes, "VIEW OBJECT", "SEND")
    text = f"SELECT * FROM {desk.notes}"
    output = f"own{desk.output}"
    desk.admin.post("/queries", name=f"q{output}", language="sql", text=text, output=output)
    desk.grant("output", output, "VIEW OBJECT", "SUBSCRIBE")
    principal = desk.ann.post(f"/outputs/{output}/subscriptions", keep=True)["principal"]
    assert topics_of(desk.platform, principal) == set()
    desk.grant("stream", desk.notes, "READ TUPLE")
    assert topics_of(desk.platform, principal)
