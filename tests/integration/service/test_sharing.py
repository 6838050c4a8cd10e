"""Equal queries of several users are one execution, and each user keeps a query of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from confluent_kafka import Producer
from fastapi.testclient import TestClient
from sqlalchemy import select

from catalog import executions
from catalog.admission import taken_slots
from catalog.engines import FIRST
from catalog.limits import Limits
from catalog.models import AccessTopic, Assignment, ExecutionRow
from catalog.run_names import execution_of
from catalog.runs import QueryRun, RunReport, fingerprint
from catalog.runs import topics_of as topics_of_run
from catalog.settings import Settings
from catalog.topics import lab_topic
from catalog.wanted import report_status, wanted_runs
from secadmin.control.platform import Platform
from secadmin.control.shared_executions import move_outputs
from secadmin.service.app import create_app
from tests.heartbeat import let_beat
from tests.integration.brokers import embedded_only
from tests.integration.kafka.clients import secadmin_producer, write
from tests.integration.service.conftest import Api, NewUser, add_stream, topics_of

pytestmark = embedded_only
Fresh = Callable[[str], str]


@dataclass
class Two:
    """Two users with a role each, who have added equal queries over a stream of somebody's."""

    platform: Platform
    admin: Api
    stream: str
    ann: Api
    bob: Api
    first: str
    second: str
    roles: tuple[str, str]
    producer: Producer

    def come(self) -> None:
        """Two records come into the stream's lab topic."""
        write(self.producer, lab_topic(self.stream), ["1", "2"])

    def run_of(self, output: str) -> QueryRun | None:
        """The wanted run that computes the output."""
        with self.platform.catalog.read() as session:
            runs = [run for run in wanted_runs(session) if isinstance(run, QueryRun)]
        found = [run for run in runs if output in outputs_of(run)]
        assert len(found) <= 1
        return found[0] if found else None

    def running(self, output: str) -> QueryRun:
        """As `run_of`, where there must be one."""
        run = self.run_of(output)
        assert run is not None
        return run

    def subscribe(self, user: Api, output: str) -> str:
        """The one topic of a new subscription."""
        given = user.post(f"/outputs/{output}/subscriptions", keep=True)
        (topic,) = topics_of(self.platform, given["principal"])
        return topic

    def report(self, run: QueryRun, state: str, ago: timedelta) -> None:
        """Report a state as the engine does that has it for so long."""
        mark = fingerprint(run)
        with self.platform.catalog.bookkeeping() as session:
            report_status(
                session,
                RunReport(run.name, state, "", mark, topics_of_run(run)),
                self.platform.clock() - ago,
            )


def runs_of(two: Two, output: str) -> list[QueryRun]:
    """The wanted runs that compute the output. There are two while it moves."""
    with two.platform.catalog.read() as session:
        runs = [run for run in wanted_runs(session) if isinstance(run, QueryRun)]
    return [run for run in runs if output in outputs_of(run)]


def outputs_of(run: QueryRun) -> list[str]:
    return [each.relation.name for each in run.outputs]


def texts_of(stream: str) -> tuple[str, str]:
    """One query, written by two people."""
    return (
        f"SELECT ts, symbol FROM {stream} WHERE price > 1 AND symbol <> 'A'",
        f"SELECT s.ts, s.symbol FROM {stream} s WHERE 'A' <> s.symbol AND 1 < s.price",
    )


def add(user: Api, name: str, text: str) -> None:
    user.post("/queries", name=name, language="sql", text=text)


@pytest.fixture
def two(
    platform: Platform, admin: Api, new_user: NewUser, fresh: Fresh, service_settings: Settings
) -> Two:
    stream, roles, schema = fresh("in"), (fresh("R"), fresh("R")), fresh("s")
    add_stream(admin, stream, schema)
    ann, bob = (new_user(role) for role in roles)
    first, second = fresh("first"), fresh("second")
    users = zip(roles, (ann, bob), (first, second), texts_of(stream), strict=True)
    for role, user, name, text in users:
        admin.post("/grants", role=role, kind="system", permissions=["ADD QUERY", "VIEW CATALOG"])
        admin.post("/grants", role=role, kind="schema", name=schema, permissions=["VIEW OBJECT"])
        reading = ["VIEW OBJECT", "READ TUPLE"]
        admin.post("/grants", role=role, kind="stream", name=stream, permissions=reading)
        add(user, name, text)
    producer = secadmin_producer(service_settings.kafka)
    return Two(platform, admin, stream, ann, bob, first, second, roles, producer)


def test_equal_queries_are_one_execution_and_only_an_administrator_is_told(two: Two) -> None:
    run = two.running(two.first)
    assert outputs_of(run) == [two.first, two.second]
    topics = two.subscribe(two.ann, two.first), two.subscribe(two.bob, two.second)
    assert topics[0].startswith(f"out.{two.first}.") and topics[1].startswith(f"out.{two.second}.")
    rows = [row for row in two.admin.get("/executions") if row["run"] == run.name]
    assert [(row["owner"], row["sharing"]) for row in rows] == [
        (two.ann.user, 2),
        (two.bob.user, 2),
    ]
    for user, name in ((two.ann, two.first), (two.bob, two.second)):
        assert "sharing" not in user.get(f"/queries/{name}")
    for own, user, other in (
        (two.first, two.ann, two.second),
        (two.second, two.bob, two.first),
    ):
        known = str(
            [user.get(f"/queries/{own}"), user.get(f"/outputs/{own}"), user.get("/queries")]
        )
        assert other not in known
    assert two.ann.get(f"/outputs/{two.first}")["execution"] == rows[0]["id"]
    assert two.bob.get(f"/outputs/{two.second}")["execution"] == rows[1]["id"] != rows[0]["id"]


def test_a_later_query_runs_for_no_longer_than_it_exists(two: Two) -> None:
    run = two.running(two.first)
    two.report(run, "running", timedelta(hours=1))
    let_beat(two.platform)
    shown = two.bob.get(f"/queries/{two.second}")
    added = [row["added_at"] for row in two.admin.get("/executions") if row["run"] == run.name]
    assert (shown["state"], shown["since"]) == ("running", added[1])


def test_other_queries_run_apart(two: Two, fresh: Fresh) -> None:
    stateful = f"SELECT count(*) AS n FROM {two.stream} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    names = [fresh("q") for _ in range(3)]
    add(two.ann, names[0], f"SELECT ts, symbol FROM {two.stream} WHERE price > 1")
    # State would tell when its first query was added.
    add(two.ann, names[1], stateful)
    add(two.bob, names[2], stateful)
    assert [outputs_of(two.running(name)) for name in names] == [[name] for name in names]


def test_what_ends_for_one_goes_on_for_the_other(two: Two) -> None:
    run = two.running(two.first)
    mine, theirs = two.subscribe(two.ann, two.first), two.subscribe(two.bob, two.second)
    two.admin.post(f"/users/{two.ann.user}/lock")
    assert fed(two, two.second) == {theirs}
    two.admin.post(f"/users/{two.ann.user}/unlock")
    right = {"kind": "stream", "name": two.stream, "permissions": ["READ TUPLE"]}
    two.admin.post("/revocations", role=two.roles[0], **right)
    assert subscribers(two, mine) == 0 and subscribers(two, theirs) == 1
    (execution,) = (
        row["id"] for row in two.admin.get("/executions") if row["owner"] == two.ann.user
    )
    two.admin.delete(f"/executions/{execution}")
    left = two.running(two.second)
    assert (left.name, left.plan, outputs_of(left)) == (run.name, run.plan, [two.second])
    assert fed(two, two.second) == {theirs}
    two.bob.delete(f"/queries/{two.second}")
    assert two.run_of(two.second) is None


def fed(two: Two, output: str) -> set[str]:
    return {cls.topic for cls in two.running(output).classes if f".{output}." in cls.topic}


def subscribers(two: Two, topic: str) -> int:
    with two.platform.catalog.read() as session:
        return len(session.scalars(select(AccessTopic).where(AccessTopic.topic == topic)).all())


def test_a_stopped_query_leaves_and_goes_on_where_it_stopped(two: Two) -> None:
    two.subscribe(two.ann, two.first)
    run = two.running(two.first)
    two.report(run, "running", timedelta(hours=1))
    two.ann.post(f"/queries/{two.first}/stop")
    assert outputs_of(two.running(two.second)) == [two.second]
    assert two.run_of(two.first) is None
    let_beat(two.platform)
    state = two.ann.get(f"/queries/{two.first}")["state"]
    assert state == "stopping", "until its batch ends, it delivers to the topic"
    two.report(two.running(two.second), "running", timedelta(0))
    shown = two.ann.get(f"/queries/{two.first}")
    assert shown["state"] == "stopped" and shown["since"] is not None
    two.come()
    two.ann.post(f"/queries/{two.first}/start")
    again = two.running(two.first)
    assert outputs_of(again) == [two.first] and again.name != run.name
    assert again.plan == run.plan, "so its ids are those of before"
    assert again.starting_offsets == {lab_topic(two.stream): {"0": 0}}
    two.bob.post(f"/queries/{two.second}/stop")
    two.bob.post(f"/queries/{two.second}/start")
    assert two.running(two.second).name == run.name, "it was alone and keeps its checkpoint"


def test_a_query_that_leaves_what_does_not_run_begins_where_that_began(two: Two) -> None:
    two.ann.post(f"/queries/{two.first}/stop")
    two.come()
    two.ann.post(f"/queries/{two.first}/start")
    again = two.running(two.first)
    assert again.starting_offsets == two.running(two.second).starting_offsets
    assert outputs_of(again) == [two.first]


def test_an_output_begins_when_its_query_is_added(two: Two, fresh: Fresh) -> None:
    two.come()
    third = fresh("third")
    add(two.ann, third, texts_of(two.stream)[1])
    run = two.running(third)
    assert outputs_of(run) == [two.first, two.second, third]
    topic = lab_topic(two.stream)
    assert [dict(each.begins[topic]) for each in run.outputs] == [{"0": 0}, {"0": 0}, {"0": 2}]
    assert run.starting_offsets == {topic: {"0": 0}}


def test_a_full_engine_takes_no_equal_query_either(two: Two, fresh: Fresh) -> None:
    with two.platform.catalog.read() as session:
        taken = taken_slots(session, [FIRST])[FIRST]
    body = {"name": fresh("q"), "language": "sql", "text": texts_of(two.stream)[0]}
    full = create_app(replace(two.platform, limits=Limits(slots=taken)))
    with TestClient(full) as client:
        answer = Api(client, two.bob.token).call("POST", "/queries", json=body)
    assert answer.status_code == 409 and "is full" in answer.json()["detail"]
    two.bob.post("/queries", **body)
    with two.platform.catalog.read() as session:
        assert taken_slots(session, [FIRST])[FIRST] == taken, "what is shared takes slots once"


def test_a_parked_execution_parks_all_its_outputs(two: Two, fresh: Fresh) -> None:
    run = two.running(two.first)
    park(two, run)
    let_beat(two.platform)
    states = [
        user.get(f"/queries/{name}")["state"]
        for user, name in ((two.ann, two.first), (two.bob, two.second))
    ]
    assert states == ["failed", "failed"] and two.run_of(two.first) is None
    new = fresh("q")
    add(two.ann, new, texts_of(two.stream)[0])
    assert outputs_of(two.running(new)) == [new], "it does not join what does not run"


def park(two: Two, run: QueryRun) -> None:
    with two.platform.catalog.bookkeeping() as session:
        session.get_one(Assignment, execution_of(run.name)).parked_because = "it kills"


def test_an_execution_has_a_limit(two: Two, fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "MOST_SHARING", 2)
    names = [fresh("q"), fresh("q")]
    for name in names:
        add(two.bob, name, texts_of(two.stream)[0])
    assert outputs_of(two.running(two.first)) == [two.first, two.second]
    assert outputs_of(two.running(names[0])) == names


def test_what_was_added_before_shares_with_nobody(two: Two, fresh: Fresh) -> None:
    """An older version kept no keys: see the upgrade's test."""
    run = two.running(two.first)
    with two.platform.catalog.bookkeeping() as session:
        session.get_one(ExecutionRow, execution_of(run.name)).key = ""
    new = fresh("q")
    add(two.bob, new, texts_of(two.stream)[0])
    assert outputs_of(two.running(new)) == [new]


@pytest.fixture
def stateful(two: Two, fresh: Fresh) -> Two:
    """The same, with equal queries that keep state, over a stream whose time ticks move."""
    stream, schema = fresh("in"), fresh("s")
    add_stream(two.admin, stream, schema, time="broker", max_ahead_ms=1_000)
    text = (
        f"SELECT window_end, count(*) AS n FROM {stream} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    )
    made = replace(two, stream=stream, first=fresh("first"), second=fresh("second"))
    named = zip(two.roles, (two.ann, two.bob), (made.first, made.second), strict=True)
    for role, user, name in named:
        two.admin.post(
            "/grants", role=role, kind="schema", name=schema, permissions=["VIEW OBJECT"]
        )
        reading = ["VIEW OBJECT", "READ TUPLE"]
        two.admin.post("/grants", role=role, kind="stream", name=stream, permissions=reading)
        add(user, name, text)
    return made


def move(two: Two, delivered_ms: int | None = None) -> None:
    """Let all wanted runs run, the engine say what is delivered, and the next step be done."""
    for name in (two.first, two.second):
        for run in runs_of(two, name):
            report = RunReport(run.name, "running", "", fingerprint(run), topics_of_run(run))
            with two.platform.catalog.bookkeeping() as session:
                since = two.platform.clock() - timedelta(minutes=1)
                report_status(session, replace(report, delivered_ms=delivered_ms), since)
    move_outputs(two.platform)


def test_equal_queries_with_state_begin_apart_and_one_moves(stateful: Two) -> None:
    two = stateful
    first, second = two.running(two.first), two.running(two.second)
    assert (outputs_of(first), outputs_of(second)) == ([two.first], [two.second])
    topic = two.subscribe(two.bob, two.second)
    move(two)
    before = seen_by_bob(two)
    assert [run.name for run in runs_of(two, two.second)] == [first.name, second.name]
    move(two)
    assert seen_by_bob(two) == before
    (turn,) = {each.until_ms for each in runs_of(two, two.second)[1].outputs}
    assert turn is not None
    move(two, delivered_ms=turn)
    assert seen_by_bob(two) == before, "and nothing reveals the move"
    (shared,) = runs_of(two, two.second)
    assert (shared.name, outputs_of(shared)) == (first.name, [two.first, two.second])
    assert [each.after_ms for each in shared.outputs] == [None, turn]
    assert topic in {each.topic for each in shared.classes}
    rows = [row for row in two.admin.get("/executions") if row["run"] == first.name]
    assert [row["sharing"] for row in rows] == [2, 2]


def seen_by_bob(two: Two) -> object:
    """What the owner of the later query sees of it, but for what each restart changes."""
    let_beat(two.platform)
    shown, accesses = two.bob.get(f"/queries/{two.second}"), two.bob.get("/accesses")
    assert shown.pop("since") is not None
    assert all(each.pop("fed") in (True, False) for each in accesses)
    return [shown, two.bob.get(f"/outputs/{two.second}"), accesses]


@pytest.mark.long
def test_a_stopped_query_with_state_takes_a_copy_of_it(stateful: Two) -> None:
    two = stateful
    moved(two)
    shared = two.running(two.first)
    two.bob.post(f"/queries/{two.second}/stop")
    left = two.running(two.first)
    assert (left.name, outputs_of(left)) == (shared.name, [two.first])
    two.bob.post(f"/queries/{two.second}/start")
    own = two.running(two.second)
    assert left.copies == (own.name,) and own.copied_from == left.name
    assert own.plan == left.plan and outputs_of(own) == [two.second]
    moved(two)
    assert two.running(two.second).name == shared.name, "it comes back"
    two.ann.delete(f"/queries/{two.first}")
    two.bob.delete(f"/queries/{two.second}")
    with two.platform.catalog.read() as session:
        assert shared.name not in {run.name for run in wanted_runs(session)}


def moved(two: Two) -> None:
    """The later query's output has moved."""
    move(two)
    move(two)
    (turn,) = {each.until_ms for each in runs_of(two, two.second)[1].outputs}
    assert turn is not None
    move(two, delivered_ms=turn)


@pytest.mark.long
def test_updates_and_sources_that_data_moves_stay_apart(stateful: Two, fresh: Fresh) -> None:
    two, names = stateful, [fresh("q") for _ in range(4)]
    counting = "SELECT window_end, count(*) AS n FROM {} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    data = fresh("in")
    add_stream(two.admin, data, fresh("s"))
    for name, text in zip(
        names,
        [*[f"{counting} EMIT UPDATES".format(two.stream)] * 2, *[counting.format(data)] * 2],
        strict=True,
    ):
        add(two.admin, name, text)
    for name in names:
        run = two.running(name)
        two.report(run, "running", timedelta(hours=1))
    move_outputs(two.platform)
    assert all(len(runs_of(two, name)) == 1 for name in names)
    keys = set()
    with two.platform.catalog.read() as session:
        for name in names:
            number = execution_of(two.running(name).name)
            keys.add(session.get_one(ExecutionRow, number).key)
    assert keys == {""}
