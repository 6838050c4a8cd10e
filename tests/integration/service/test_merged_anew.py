"""Queries go on by themselves when policies change what their roles see (002 §3.3, 003 §IV)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from sqlalchemy import delete, select

from catalog.audit import PLATFORM
from catalog.engines import all_engines
from catalog.models import (
    AccessTopic,
    AuditEntry,
    DeliveryClass,
    ExecutionRow,
    Heartbeat,
    Object,
    OutputRow,
    QueryRow,
    Refill,
    RunStatus,
    Withdrawal,
)
from catalog.plan import Filter, walk
from catalog.run_names import query_run_name
from catalog.runs import RunReport
from catalog.topics import lab_topic
from catalog.wanted import generation, report_applied, report_status, wanted_runs
from secadmin.control.new_merging import ACTION, merge_changed
from secadmin.control.query_views import DOES_NOT_FIT
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import NewUser, Scene, topics_of
from tests.integration.service.test_policies import plan_of, policy, query, refused, subscribe

pytestmark = embedded_only
HOURLY = "GROUP BY symbol, TUMBLE(ts, INTERVAL '1' HOUR)"


@pytest.fixture
def role(scene: Scene) -> str:
    """The role of Bob, who may add queries over the stream. It sees prices above 5."""
    scene.grant("ADD QUERY", "system", "system")
    scene.grant("VIEW OBJECT", "schema", scene.admin.get(f"/streams/{scene.stream}")["schema"])
    policy(scene, scene.role)
    return scene.role


@pytest.fixture
def engine(scene: Scene) -> Iterator[Callable[..., None]]:
    """Reports of the engines, which are in step with the catalog: (execution, state, topics)."""

    def say(execution: int | None = None, state: str = "running", *topics: str) -> None:
        with scene.platform.catalog.bookkeeping() as session:
            if execution is not None:
                report = RunReport(query_run_name(execution), state, topics=frozenset(topics))
                report_status(session, report, scene.platform.clock())
            # Other tests may have left heartbeats of any of them.
            for each in all_engines(scene.platform.spaces.count):
                report_applied(session, each, generation(session))

    yield say
    with scene.platform.catalog.bookkeeping() as session:
        session.execute(delete(Heartbeat))
        session.execute(delete(RunStatus))


def output(scene: Scene, name: str) -> OutputRow:
    """What the catalog has of an output."""
    rows = select(OutputRow).join(Object, Object.id == OutputRow.object_id)
    with scene.platform.catalog.read() as session:
        return session.scalars(rows.where(Object.name == name)).one()


def begins(scene: Scene, name: str) -> Mapping[str, int]:
    """Where the output's execution begins: the offset in each topic, which has one partition."""
    with scene.platform.catalog.read() as session:
        row = session.get_one(ExecutionRow, output(scene, name).execution_id)
        return {topic: offsets["0"] for topic, offsets in row.starting_offsets.items()}


def runs(scene: Scene) -> set[str]:
    """The names of all runs that are wanted."""
    with scene.platform.catalog.read() as session:
        return {each.name for each in wanted_runs(session)}


def run_of(scene: Scene, name: str) -> str:
    return query_run_name(output(scene, name).execution_id)


def conditions(scene: Scene, name: str) -> str:
    nodes = walk(plan_of(scene.platform, name).root)
    return str([node.condition for node in nodes if isinstance(node, Filter)])


def undone(scene: Scene, principal: str) -> list[Withdrawal]:
    """What was taken from the principal and is not fenced yet."""
    own = select(Withdrawal).where(Withdrawal.principal == principal)
    with scene.platform.catalog.read() as session:
        return list(session.scalars(own.where(Withdrawal.done_at.is_(None))))


def refills(scene: Scene, name: str) -> set[str]:
    """The topics from which classes of the output are refilled."""
    of = select(Refill.source).join(DeliveryClass, DeliveryClass.id == Refill.class_id)
    number = output(scene, name).object_id
    with scene.platform.catalog.read() as session:
        return set(session.scalars(of.where(DeliveryClass.output_id == number)))


def add(scene: Scene, name: str, text: str = "SELECT * FROM {}", **more: Any) -> str:
    """Bob adds a query over the stream, and subscribes to it; its principal."""
    query(scene.bob, name, text.format(scene.stream), **more)
    return subscribe(scene.bob, name)


def test_a_query_goes_on_with_what_its_role_sees_now(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    name = fresh("q")
    principal = add(scene, name)
    before, old_topics = output(scene, name), topics_of(scene.platform, principal)
    scene.write(lab_topic(scene.stream), "one", "two")
    time.sleep(0.1)
    answer = policy(scene, role, rows="price > 9", replace=True)
    # When the call has returned, nothing comes by the old plan any more.
    assert answer["begun_anew"] == [before.object_id]
    assert topics_of(scene.platform, principal) == set() and not undone(scene, principal)
    assert query_run_name(before.execution_id) not in runs(scene)
    shown = scene.bob.get(f"/queries/{name}")
    assert shown["running"] and shown["state"] == "restarting"
    assert "begins anew" in shown["message"]
    time.sleep(0.1)
    scene.write(lab_topic(scene.stream), "three")
    merge_changed(scene.platform)
    after = output(scene, name)
    assert (after.object_id, after.query_id) == (before.object_id, before.query_id)
    assert after.execution_id != before.execution_id, "with empty state"
    assert "value=9," in conditions(scene, name) and "value=5," not in conditions(scene, name)
    assert begins(scene, name) == {lab_topic(scene.stream): 2}, "what came after the change"
    new_topics = topics_of(scene.platform, principal)
    assert new_topics and not new_topics & old_topics
    assert refills(scene, name) == set(), "the old results show more"
    assert runs(scene) >= {run_of(scene, name)}
    assert not undone(scene, principal)
    own = select(AuditEntry).where(AuditEntry.action == ACTION).order_by(AuditEntry.seq.desc())
    with scene.platform.catalog.read() as session:
        entry = session.scalars(own).first()
    assert entry is not None and (entry.actor, entry.object) == (PLATFORM, f"query {name}")
    assert entry.detail == {"outputs": [after.object_id]}
    merge_changed(scene.platform)
    assert output(scene, name).execution_id == after.execution_id, "once"
    called = select(AuditEntry).where(AuditEntry.action == "add policy")
    with scene.platform.catalog.read() as session:
        entry = session.scalars(called.order_by(AuditEntry.seq.desc())).first()
    assert entry is not None and entry.object == f"policy p on stream {scene.stream}"
    told = {key: entry.detail[key] for key in ("role", "replaced", "begun anew")}
    assert told == {"role": role, "replaced": True, "begun anew": [before.object_id]}
    assert entry.detail["before"]["view"] != entry.detail["view"]


def test_who_sees_more_loses_nothing(scene: Scene, role: str, fresh: Callable[[str], str]) -> None:
    """The old results show no more than the new view, so what was not read of them comes, too."""
    name = fresh("q")
    principal = add(scene, name)
    before, old_topics = output(scene, name), topics_of(scene.platform, principal)
    answer = scene.admin.delete(f"/streams/{scene.stream}/policies/p")
    assert answer == {"begun_anew": [before.object_id]}
    assert topics_of(scene.platform, principal) == old_topics
    merge_changed(scene.platform)
    assert conditions(scene, name) == "[]"
    assert not topics_of(scene.platform, principal) & old_topics
    assert refills(scene, name) == old_topics


def test_a_wider_view_before_a_stricter_one_shows_nothing_old(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    name = fresh("q")
    principal = add(scene, name)
    scene.admin.delete(f"/streams/{scene.stream}/policies/p")
    policy(scene, role, rows="price > 9")
    assert topics_of(scene.platform, principal) == set()
    merge_changed(scene.platform)
    assert topics_of(scene.platform, principal) and refills(scene, name) == set()


def test_a_query_over_an_output_begins_behind_what_the_old_plan_wrote(
    scene: Scene, role: str, fresh: Callable[[str], str], engine: Callable[..., None]
) -> None:
    first, second = fresh("q"), fresh("q")
    add(scene, first)
    query(scene.bob, second, f"SELECT symbol, count(*) AS n FROM {first} {HOURLY}")
    principal = subscribe(scene.bob, second)
    old = [output(scene, name) for name in (first, second)]
    answer = policy(scene, role, rows="price > 9", replace=True)
    assert answer["begun_anew"] == [each.object_id for each in old]
    assert topics_of(scene.platform, principal) == set()
    # No engine has said yet that the old plan does not run any more.
    merge_changed(scene.platform)
    engine(old[0].execution_id, "running", lab_topic(first))
    merge_changed(scene.platform)
    assert output(scene, first).execution_id == old[0].execution_id
    scene.write(lab_topic(first), *map(str, range(7)))
    engine(old[0].execution_id, "stopped")
    merge_changed(scene.platform)
    for name, before in zip((first, second), old, strict=True):
        assert output(scene, name).execution_id != before.execution_id
    assert begins(scene, second) == {lab_topic(first): 7}
    assert topics_of(scene.platform, principal)


def test_nobody_reads_an_output_while_it_waits(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    name = fresh("q")
    add(scene, name)
    policy(scene, role, rows="price > 9", replace=True)
    text = f"SELECT * FROM {name}"
    told = refused(scene.bob, "/queries", 409, name=fresh("q"), language="sql", text=text)
    assert told.endswith("try again in a moment")
    # What he sees now is less than the old plan shows.
    refused(scene.bob, f"/outputs/{name}/subscriptions", 403)
    merge_changed(scene.platform)
    assert topics_of(scene.platform, subscribe(scene.bob, name))
    query(scene.bob, fresh("q"), text)


@pytest.mark.long
def test_who_subscribes_while_it_waits_gets_the_new_results(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    name = fresh("q")
    add(scene, name)
    scene.admin.delete(f"/streams/{scene.stream}/policies/p")
    principal = subscribe(scene.bob, name)
    assert topics_of(scene.platform, principal) == set()
    merge_changed(scene.platform)
    assert topics_of(scene.platform, principal)


def test_what_is_over_the_output_of_others_begins_anew_too(
    scene: Scene, role: str, fresh: Callable[[str], str], engine: Callable[..., None]
) -> None:
    """The administrator sees the whole stream. The state of its query has what Bob lost."""
    first, over = fresh("q"), fresh("q")
    add(scene, first)
    body = {"role": "ADMIN", "permissions": ["VIEW OBJECT", "SUBSCRIBE"], "kind": "output"}
    scene.bob.post("/grants", **body, name=first)
    query(scene.admin, over, f"SELECT symbol, count(*) AS n FROM {first} {HOURLY}")
    for permission in ("VIEW OBJECT", "SUBSCRIBE"):
        scene.grant(permission, "output", over)
    principal, old = subscribe(scene.bob, over), output(scene, over)
    assert topics_of(scene.platform, principal)
    policy(scene, role, rows="price > 9", replace=True)
    assert topics_of(scene.platform, principal) == set()
    engine()
    merge_changed(scene.platform)
    assert output(scene, over).execution_id != old.execution_id
    assert topics_of(scene.platform, principal)


def test_a_query_that_does_not_fit_any_more_stops_with_the_reason(
    scene: Scene, role: str, fresh: Callable[[str], str], new_user: NewUser
) -> None:
    name, other = fresh("q"), fresh("R")
    principal = add(scene, name, "SELECT symbol, price FROM {}")
    policy(scene, role, rows=None, rights=[{"name": "symbol"}], replace=True)
    merge_changed(scene.platform)
    shown = scene.bob.get(f"/queries/{name}")
    assert not shown["running"] and topics_of(scene.platform, principal) == set()
    assert shown["message"].startswith(DOES_NOT_FIT)
    assert "unknown attribute 'price'; there are: symbol" in shown["message"]
    assert run_of(scene, name) not in runs(scene)
    # Who may not see the stream is not told its attributes.
    viewer = new_user(other)
    body = {"role": other, "permissions": ["VIEW OBJECT"], "kind": "query", "name": name}
    scene.bob.post("/grants", **body)
    told = viewer.get(f"/queries/{name}")
    assert (told["message"], told["text"]) == (DOES_NOT_FIT, "")
    # What fits again goes on when it is started.
    policy(
        scene, role, rows="price > 7", rights=[{"name": "price"}, {"name": "symbol"}], replace=True
    )
    scene.bob.post(f"/queries/{name}/start")
    merge_changed(scene.platform)
    shown = scene.bob.get(f"/queries/{name}")
    assert shown["running"] and not shown["message"].startswith(DOES_NOT_FIT)
    assert topics_of(scene.platform, principal) and "value=7," in conditions(scene, name)


def test_a_query_that_was_stopped_is_merged_when_it_is_started(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    name = fresh("q")
    add(scene, name)
    before = output(scene, name)
    scene.bob.post(f"/queries/{name}/stop")
    answer = policy(scene, role, rows="price > 9", replace=True)
    assert answer["begun_anew"] == [], "it does not run"
    merge_changed(scene.platform)
    assert output(scene, name).execution_id == before.execution_id
    scene.write(lab_topic(scene.stream), "while it was stopped")
    time.sleep(0.1)
    scene.bob.post(f"/queries/{name}/start")
    assert run_of(scene, name) not in runs(scene), "not with the old plan"
    merge_changed(scene.platform)
    assert output(scene, name).execution_id != before.execution_id
    assert begins(scene, name) == {lab_topic(scene.stream): 1}, "it begins at its start"


def test_a_change_while_a_query_is_merged_counts(
    scene: Scene, role: str, fresh: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = fresh("q")
    principal = add(scene, name)
    policy(scene, role, rows="price > 9", replace=True)
    kafka = scene.platform.kafka
    looked_up = kafka.offsets_at

    def meanwhile(*asked: Any) -> Any:
        monkeypatch.undo()
        policy(scene, role, rows="price > 11", replace=True)
        return looked_up(*asked)

    monkeypatch.setattr(kafka, "offsets_at", meanwhile)
    merge_changed(scene.platform)
    assert topics_of(scene.platform, principal) == set(), "not with the policy before"
    merge_changed(scene.platform)
    assert "value=11," in conditions(scene, name) and topics_of(scene.platform, principal)


@pytest.mark.long
def test_equal_queries_are_one_again(
    scene: Scene, role: str, fresh: Callable[[str], str], new_user: NewUser
) -> None:
    names = fresh("q"), fresh("q")
    for user, name in zip((scene.bob, new_user(role)), names, strict=True):
        query(user, name, f"SELECT symbol FROM {scene.stream}")
    old = {output(scene, name).execution_id for name in names}
    policy(scene, role, rows="price > 9", replace=True)
    merge_changed(scene.platform)
    new = {output(scene, name).execution_id for name in names}
    assert len(old) == len(new) == 1 and new != old


def test_a_role_that_its_owner_has_lost_does_not_count(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    name = fresh("q")
    query(scene.bob, name, f"SELECT * FROM {scene.stream}")
    scene.admin.delete(f"/users/{scene.bob.user}/roles/{role}")
    policy(scene, role, rows="price > 9", replace=True)
    merge_changed(scene.platform)
    with scene.platform.catalog.read() as session:
        row = session.get_one(QueryRow, output(scene, name).query_id)
    assert not row.running and row.stopped_because.startswith(DOES_NOT_FIT)
    assert run_of(scene, name) not in runs(scene)


@pytest.mark.long
def test_no_access_has_a_topic_of_a_closed_class(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    name = fresh("q")
    add(scene, name)
    add(scene, fresh("q"), "SELECT symbol FROM {}")
    policy(scene, role, rows="price > 9", replace=True)
    held = select(AccessTopic.topic).join(DeliveryClass, DeliveryClass.id == AccessTopic.class_id)
    for _ in range(2):
        with scene.platform.catalog.read() as session:
            closed = session.scalars(held.where(DeliveryClass.closed_at.is_not(None))).all()
        assert closed == []
        merge_changed(scene.platform)
