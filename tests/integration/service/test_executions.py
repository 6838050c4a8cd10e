"""What runs is stopped and removed by who may not see what it is; nothing is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from catalog.executions import execution_of
from catalog.models import Access, AuditEntry
from catalog.run_names import query_run_name
from catalog.wanted import wanted_runs
from secadmin.control.platform import Platform
from tests.heartbeat import let_beat
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import PASSWORD, Api, NewUser, add_stream, log_in

pytestmark = embedded_only


@dataclass
class Burning:
    """A query of somebody's, over a stream of somebody else's, that no administrator may view."""

    sender: Api
    stream: str
    owner: Api
    query: str
    execution: int
    role: str


@pytest.fixture
def burning(admin: Api, new_user: NewUser, fresh: Callable[[str], str]) -> Burning:
    stream, schema, query, role = fresh("in"), fresh("s"), fresh("q"), fresh("R")
    sender, owner = new_user(role), new_user(role)
    rights = ["ADD SCHEMA", "ADD STREAM", "ADD QUERY", "VIEW CATALOG"]
    admin.post("/grants", role=role, kind="system", permissions=rights)
    add_stream(sender, stream, schema)
    for kind, name in (("schema", schema), ("stream", stream)):
        sender.post("/grants", role=role, kind=kind, name=name, permissions=["VIEW OBJECT"])
    text = f"SELECT symbol FROM {stream}"
    owner.post("/queries", name=query, language="sql", text=text)
    execution = owner.get(f"/outputs/{query}")["execution"]
    return Burning(sender, stream, owner, query, execution, role)


def listed(admin: Api, execution: int) -> dict[str, Any]:
    (found,) = (row for row in admin.get("/executions") if row["id"] == execution)
    return dict(found)


def runs(platform: Platform, execution: int) -> bool:
    with platform.catalog.read() as session:
        name = query_run_name(execution_of(session, execution))
        return name in {run.name for run in wanted_runs(session)}


def test_an_administrator_sees_what_runs_and_no_names(
    admin: Api, platform: Platform, burning: Burning
) -> None:
    assert admin.call("GET", f"/queries/{burning.query}").status_code == 404
    assert listed(admin, burning.execution)["state"] == "unknown", "there is no runner"
    let_beat(platform)
    row = listed(admin, burning.execution)
    told = {name: row[name] for name in ("owner", "running", "state", "kind", "weak")}
    assert told == {
        "owner": burning.owner.user,
        "running": True,
        "state": "starting",
        "kind": "stateless",
        "weak": False,
    }
    assert (row["sources"], row["classes"], row["slots"]) == (1, 0, 1)
    everything = str(admin.get("/executions"))
    assert burning.query not in everything
    assert burning.stream not in everything
    assert burning.owner.call("GET", "/executions").status_code == 403


def test_it_is_stopped_and_its_owner_is_told(
    admin: Api, burning: Burning, platform: Platform
) -> None:
    assert runs(platform, burning.execution)
    stopped = admin.post(f"/executions/{burning.execution}/stop")
    assert stopped == {"stopped": [burning.execution]}
    assert not runs(platform, burning.execution)
    shown = burning.owner.get(f"/queries/{burning.query}")
    assert (shown["running"], shown["message"]) == (False, "stopped by an administrator")
    assert admin.post(f"/executions/{burning.execution}/stop") == {"stopped": []}
    with platform.catalog.read() as session:
        own = AuditEntry.object == f"execution {burning.execution}"
        entries = session.scalars(select(AuditEntry).where(own).order_by(AuditEntry.seq)).all()
        assert [(e.actor, e.action, e.outcome) for e in entries[:1]] == [
            ("admin", "stop execution", "changed")
        ]
    burning.owner.post(f"/queries/{burning.query}/start")
    assert burning.owner.get(f"/queries/{burning.query}")["message"] == ""


def test_it_is_removed_but_for_what_reads_it_whose_ids_are_told(
    admin: Api, burning: Burning, platform: Platform, fresh: Callable[[str], str]
) -> None:
    above = fresh("q")
    text = f"SELECT symbol FROM {burning.query}"
    burning.owner.post("/queries", name=above, language="sql", text=text)
    reader = burning.owner.get(f"/outputs/{above}")["execution"]
    refused = admin.call("DELETE", f"/executions/{burning.execution}")
    assert refused.status_code == 409
    assert f"executions {reader}" in refused.json()["detail"]
    for execution in (reader, burning.execution):
        assert admin.delete(f"/executions/{execution}") == {"removed": [execution]}
        with platform.catalog.read() as session:
            own = AuditEntry.object == f"execution {execution}"
            entries = session.scalars(select(AuditEntry).where(own).order_by(AuditEntry.seq)).all()
            told = entries[-1]
        assert (told.actor, told.action, told.outcome) == ("admin", "remove execution", "changed")
    assert burning.owner.call("GET", f"/queries/{burning.query}").status_code == 404
    for method, path in (("POST", "/stop"), ("DELETE", "")):
        gone = admin.call(method, f"/executions/{burning.execution}{path}")
        assert gone.status_code == 404


def test_its_output_is_turned_weak_and_strong_unseen(admin: Api, burning: Burning) -> None:
    assert admin.call("GET", f"/outputs/{burning.query}").status_code == 404
    for weak in (True, False):
        admin.put(f"/executions/{burning.execution}/semantics", weak=weak)
        assert listed(admin, burning.execution)["weak"] is weak
        assert burning.owner.get(f"/outputs/{burning.query}")["weak"] is weak


def test_a_stream_is_read_by_so_many_and_its_owner_may_end_that(
    burning: Burning, platform: Platform
) -> None:
    path = f"/streams/{burning.stream}/readers"
    assert burning.sender.get(path) == [{"id": burning.execution, "running": True}]
    for method, where in (("GET", path), ("POST", f"{path}/stop")):
        assert burning.owner.call(method, where).status_code == 403
    blocked = burning.sender.call("DELETE", f"/streams/{burning.stream}")
    assert f"executions {burning.execution}" in blocked.json()["detail"]
    assert burning.sender.post(f"{path}/stop") == {"stopped": [burning.execution]}
    assert not runs(platform, burning.execution)
    message = burning.owner.get(f"/queries/{burning.query}")["message"]
    assert message == "stopped by the owner of a stream that it reads"


def test_locking_a_user_stops_its_queries_and_unlocking_starts_none(
    admin: Api, burning: Burning, platform: Platform
) -> None:
    admin.post(f"/users/{burning.owner.user}/lock")
    assert not runs(platform, burning.execution)
    admin.post(f"/users/{burning.owner.user}/unlock")
    assert not runs(platform, burning.execution)
    again = log_in(Api(admin.client), burning.owner.user, PASSWORD)
    shown = again.get(f"/queries/{burning.query}")
    assert (shown["running"], shown["message"]) == (False, "stopped when its owner was locked")


def test_a_new_one_time_password_ends_sessions_and_their_accesses(
    admin: Api, burning: Burning, platform: Platform
) -> None:
    user = burning.owner
    of_session, kept = (
        user.post(f"/outputs/{burning.query}/subscriptions", keep=keep)["principal"]
        for keep in (False, True)
    )
    assert user.call("POST", f"/users/{user.user}/password-reset").status_code == 403
    made = admin.post(f"/users/{user.user}/password-reset")["password"]
    assert user.call("GET", "/whoami").status_code == 401
    with platform.catalog.read() as session:
        ended = select(Access.principal).where(Access.ended_at.is_not(None))
        assert {of_session, kept} & set(session.scalars(ended)) == {of_session}
    old = admin.call("POST", "/login", json={"user": user.user, "password": PASSWORD})
    assert old.status_code == 401
    again = log_in(Api(admin.client), user.user, made)
    assert again.get("/whoami")["must_change_password"]
    assert again.call("GET", f"/queries/{burning.query}").status_code == 403
    again.post("/password", old=made, new=PASSWORD)
    assert again.get(f"/queries/{burning.query}")["name"] == burning.query
