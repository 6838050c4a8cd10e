"""Backfills against the real service: who gets one, what runs for it, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from catalog.models import Backfill, DeliveryClass
from catalog.runs import QueryRun, RunReport, fingerprint
from catalog.wanted import report_status, wanted_runs
from secadmin.control.backfills import LONGEST, look_after
from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service

LAB = "lab.in1"


@dataclass
class Desk:
    """Bob, who subscribes to an output of the administrator's."""

    service: Service
    admin: Terminal
    bob: Terminal
    folder: Path

    def subscribe(self, output: str = "alerts", name: str = "d") -> str:
        """A subscription that is fed; its principal."""
        given = self.bob.json("subscribe", output, "--dir", str(self.folder / name))
        self.service.feed_all()
        return str(given["principal"])

    def access(self) -> dict[str, Any]:
        """Bob's one subscription as he sees it."""
        [found] = self.bob.json("accesses")
        return dict(found)

    def state(self) -> str:
        """The state of its one backfill."""
        [found] = self.access()["backfills"]
        return str(found["state"])

    def run(self) -> QueryRun | None:
        """What an engine should run for the backfill."""
        with self.service.catalog.read() as session:
            runs = [run for run in wanted_runs(session) if isinstance(run, QueryRun)]
        found = [run for run in runs if run.backfill]
        assert len(found) <= 1
        return found[0] if found else None

    def says(self, run: QueryRun, state: str = "running", *, through: bool) -> None:
        """What its engine says of that run."""
        report = RunReport(run.name, state, fingerprint=fingerprint(run), through=through)
        with self.service.catalog.bookkeeping() as session:
            report_status(session, report, self.service.catalog.clock())

    def look_after(self) -> None:
        look_after(self.service.platform)


@pytest.fixture
def desk(service: Service, admin: Terminal, output: str, new_user: NewUser, tmp_path: Path) -> Desk:
    bob = new_user("bob", "R")
    admin.ok("grant", "R", "VIEW OBJECT", "READ TUPLE", "stream", "in1")
    admin.ok("grant", "R", "VIEW OBJECT", "SUBSCRIBE", "output", output)
    service.kafka.records = 5
    return Desk(service, admin, bob, tmp_path)


def refused(result: Any, status: int, *words: str) -> None:
    assert result.exit_code == status, result.output
    assert all(word in result.output for word in words), result.output


CONFLICT, DENIED, MISSING, WRONG = 6, 4, 5, 2


def test_it_runs_the_same_plan_over_what_came_before_and_ends_by_itself(desk: Desk) -> None:
    principal = desk.subscribe()
    (before,) = desk.access()["topics"]
    answer = desk.bob.json("backfill", principal)
    run = desk.run()
    assert run is not None
    with desk.service.catalog.read() as session:
        (main,) = (
            each
            for each in wanted_runs(session)
            if isinstance(each, QueryRun) and not each.backfill
        )
    assert (run.plan, run.reaches, run.sources) == (main.plan, main.reaches, main.sources)
    assert [each.topic for each in main.classes] == [before], "the live run has no part of it"
    (own,), (live,) = run.classes, main.classes
    assert (own.topic, own.clearance) == (answer["topic"], live.clearance)
    assert run.starting_offsets == run.outputs[0].begins == {LAB: {"0": 0}}
    assert run.ends == {LAB: {"0": 5}}
    access = desk.access()
    assert {*access["topics"]} == {before, answer["topic"]} and access["fed"]
    assert (principal, answer["topic"]) in desk.service.kafka.readers
    desk.says(run, through=False)
    desk.look_after()
    assert desk.state() == answer["state"] == "running"
    for shown in (desk.bob.ok("accesses"), desk.bob.ok("accesses", principal)):
        assert f"running, results since {answer['since']}" in shown
    desk.says(run, through=True)
    desk.look_after()
    assert desk.state() == "complete" and desk.run() is None
    assert (principal, answer["topic"]) in desk.service.kafka.readers, "its topic stays"
    # Its tasks are free when nothing of it runs.
    assert holds_tasks(desk)
    desk.look_after()
    assert holds_tasks(desk)
    desk.says(run, "stopped", through=False)
    desk.look_after()
    assert not holds_tasks(desk)


def holds_tasks(desk: Desk) -> bool:
    with desk.service.catalog.read() as session:
        of_backfill = select(DeliveryClass).where(DeliveryClass.backfills)
        return session.scalars(of_backfill).one().execution_id is not None


def test_nobody_else_gets_its_topic(desk: Desk, new_user: NewUser) -> None:
    desk.bob.ok("backfill", desk.subscribe())
    (topic,) = (each["topic"] for each in desk.access()["backfills"])
    eve = new_user("eve")
    desk.admin.ok("user", "assign", "eve", "R")
    eve.ok("login", "eve", "--password-stdin", text="correct horse battery\n")
    given = eve.json("subscribe", "alerts", "--dir", str(desk.folder / "e"))
    assert {name for name, of in desk.service.kafka.readers if of == topic}.isdisjoint(
        {given["principal"]}
    )
    assert eve.run("backfill", desk.access()["principal"]).exit_code == MISSING


@pytest.mark.parametrize(
    "taking",
    [
        ("revoke", "R", "READ TUPLE", "stream", "in1"),
        ("revoke", "R", "SUBSCRIBE", "output", "alerts"),
        ("user", "unassign", "bob", "R"),
        ("user", "lock", "bob"),
        ("query", "remove", "alerts"),
    ],
    ids=" ".join,
)
def test_what_takes_the_right_takes_its_topic_and_ends_its_run(
    desk: Desk, taking: tuple[str, ...]
) -> None:
    desk.bob.ok("backfill", desk.subscribe())
    assert desk.run() is not None
    desk.admin.ok(*taking)
    assert desk.service.kafka.readers == set() and desk.run() is None
    desk.look_after()
    with desk.service.catalog.read() as session:
        row = session.scalars(select(Backfill)).one()
        assert row.ended_at is not None and not row.complete


def test_a_stopped_query_holds_its_backfill_up(desk: Desk) -> None:
    desk.bob.ok("backfill", desk.subscribe())
    desk.admin.ok("query", "stop", "alerts")
    assert desk.run() is None and desk.state() == "running"
    desk.admin.ok("query", "start", "alerts")
    assert desk.run() is not None


def test_rights_that_grow_leave_it_as_it_is(desk: Desk) -> None:
    """It has what the subscription showed when it was asked for. More comes by another one."""
    desk.admin.ok("stream", "add", "in2", "--schema", "trades", "--event-time", "ts")
    text = "SELECT ts, price FROM in1 UNION ALL SELECT ts, price FROM in2"
    desk.admin.ok("query", "add", "both", "-", "--language", "sql", text=text)
    desk.admin.ok("grant", "R", "VIEW OBJECT", "SUBSCRIBE", "output", "both")
    desk.bob.ok("backfill", desk.subscribe("both"))
    before = desk.run()
    assert before is not None
    desk.admin.ok("grant", "R", "READ TUPLE", "stream", "in2")
    after = desk.run()
    assert after is not None and after.classes == before.classes
    assert len(desk.access()["topics"]) == 3, "a difference class beside the two"


def test_one_that_does_not_end_is_given_up(desk: Desk) -> None:
    desk.bob.ok("backfill", desk.subscribe())
    now = desk.service.platform.clock()
    with desk.service.catalog.bookkeeping() as session:
        session.scalars(select(Backfill)).one().ends_at = now - LONGEST + timedelta(minutes=1)
    desk.look_after()
    assert desk.state() == "running"
    with desk.service.catalog.bookkeeping() as session:
        session.scalars(select(Backfill)).one().ends_at = now - LONGEST - timedelta(minutes=1)
    desk.look_after()
    assert desk.state() == "incomplete" and desk.run() is None


@pytest.mark.parametrize("shown", ["window_end, ", ""])
def test_the_first_windows_of_a_subscription_are_whole_in_its_backfill(
    desk: Desk, shown: str
) -> None:
    """Its class began in the middle of a window. So the backfill goes on until that has closed.

    This is so whether results say when their window ends or not.
    """
    windows = "TUMBLE(ts, INTERVAL '1' MINUTE)"
    text = f"SELECT {shown}COUNT(*) AS many FROM in1 GROUP BY {windows}"
    add = ("query", "add", "counts", "-", "--language", "sql", "--semantics", "view")
    desk.admin.ok(*add, text=text)
    desk.admin.ok("grant", "R", "VIEW OBJECT", "SUBSCRIBE", "output", "counts")
    desk.bob.ok("backfill", desk.subscribe("counts"))
    run = desk.run()
    assert run is not None and run.ends is None
    with desk.service.catalog.read() as session:
        due = session.scalars(select(Backfill)).one().ends_at
    # A tuple may be an hour ahead; then a window of a minute, and five seconds of lateness.
    assert timedelta(hours=1, minutes=1) < due - desk.service.platform.clock() < timedelta(hours=2)
    desk.says(run, through=False)
    desk.look_after()
    assert desk.run() == run
    desk.service.kafka.records = 9
    with desk.service.catalog.bookkeeping() as session:
        session.scalars(select(Backfill)).one().ends_at = desk.service.platform.clock()
    desk.look_after()
    ended = desk.run()
    assert ended is not None and ended.ends == {LAB: {"0": 9}}


def test_it_begins_where_it_is_asked_to(desk: Desk) -> None:
    principal = desk.subscribe()
    at = desk.service.platform.clock() - timedelta(hours=3)
    there = at.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=2)))
    answer = desk.bob.json("backfill", principal, "--since", there.isoformat())
    assert datetime.fromisoformat(answer["since"]) == there
    given = desk.bob.run("backfill", principal, "--since", "soon")
    refused(given, WRONG, "write how long ago it was")


def test_a_subscription_can_begin_with_one(desk: Desk) -> None:
    folder = ("--dir", str(desk.folder / "d"))
    refused(
        desk.bob.run("subscribe", "alerts", *folder, "--no-wait", "--backfill", "all"),
        WRONG,
        "leave out --no-wait",
    )
    desk.service.transport.before = lambda _request: desk.service.feed_all()
    result = desk.bob.run("subscribe", "alerts", *folder, "--backfill", "2h", wait="1m")
    assert result.exit_code == 0 and "a backfill runs" in result.output, result.output
    assert desk.state() == "running"


def test_what_is_refused(desk: Desk) -> None:
    given = desk.bob.json("subscribe", "alerts", "--dir", str(desk.folder / "d"))
    again = ("backfill", given["principal"])
    refused(desk.bob.run(*again), CONFLICT, "is not fed yet")
    desk.service.feed_all()
    future = ("--since", "2126-01-31T12:00:00Z")
    refused(desk.bob.run(*again, *future), WRONG, "begins in the past")
    refused(desk.bob.run(*again, "--since", "24h"), WRONG, "in the last 23 hours")
    desk.bob.ok(*again)
    refused(desk.bob.run(*again), CONFLICT, "a backfill of the subscription runs")
    assert len(desk.access()["backfills"]) == 1


def test_results_that_replace_others_have_none(desk: Desk) -> None:
    text = "SELECT COUNT(*) AS many FROM in1 GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE) EMIT UPDATES"
    desk.admin.ok("query", "add", "counts", "-", "--language", "sql", text=text)
    desk.admin.ok("grant", "R", "VIEW OBJECT", "SUBSCRIBE", "output", "counts")
    refused(desk.bob.run("backfill", desk.subscribe("counts")), CONFLICT, "replace others")


def test_aggregates_alone_have_none(desk: Desk) -> None:
    """Two that begin at different times would differ in few tuples (002 §3.4, issue 24.4)."""
    policy = ("policy", "add", "in1", "p", "--role", "R", "--window", "1m")
    desk.admin.ok(*policy, "--aggregate", "price:avg")
    desk.admin.ok("grant", "R", "ADD QUERY", "system")
    desk.admin.ok("grant", "R", "VIEW OBJECT", "schema", "trades")
    text = "SELECT AVG(price) AS mean FROM in1 GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    desk.bob.ok("query", "add", "means", "-", "--language", "sql", text=text)
    refused(desk.bob.run("backfill", desk.subscribe("means")), DENIED, "in aggregates alone")


def test_it_counts_as_a_running_query_of_its_user(desk: Desk) -> None:
    principal = desk.subscribe()
    desk.bob.ok("backfill", principal)
    second = desk.bob.json("subscribe", "alerts", "--dir", str(desk.folder / "e"))
    desk.service.feed_all()
    limits = replace(desk.service.platform.user_limits, running_queries=1)
    object.__setattr__(desk.service.platform, "user_limits", limits)
    refused(desk.bob.run("backfill", second["principal"]), CONFLICT, "limit of running queries")


def test_another_querys_results_begin_where_the_query_began_to_read_them(desk: Desk) -> None:
    """What is older may be of a plan that policies do not allow any more."""
    desk.admin.ok("query", "add", "over", "-", "--language", "sql", text="SELECT price FROM alerts")
    desk.admin.ok("grant", "R", "VIEW OBJECT", "SUBSCRIBE", "output", "over")
    principal = desk.subscribe("over")
    desk.service.kafka.records = 8
    desk.bob.ok("backfill", principal)
    run = desk.run()
    assert run is not None
    assert run.starting_offsets == {"lab.alerts": {"0": 5}} and run.ends == {"lab.alerts": {"0": 8}}


def test_the_audit_log_has_who_asked_for_what(desk: Desk) -> None:
    principal = desk.subscribe()
    desk.bob.ok("backfill", principal)
    entries = desk.admin.json("audit")
    (asked,) = (each for each in entries if each["action"] == "backfill")
    assert (asked["actor"], asked["object"]) == ("bob", f"access {principal}")
    (found,) = desk.access()["backfills"]
    assert asked["detail"]["output"] == "alerts" and asked["detail"]["topic"] == found["topic"]
    assert datetime.fromisoformat(asked["detail"]["since"]).replace(tzinfo=UTC) == (
        datetime.fromisoformat(found["since"])
    )
