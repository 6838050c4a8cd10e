"""A check of a query says what adding it would say, and adds nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select

from catalog.models import AuditEntry, Object, OutputRow
from catalog.relation import Relation
from catalog.runs import QueryRun
from catalog.stored_form import from_stored, to_stored
from catalog.wanted import wanted_runs
from secadmin.control.platform import Platform
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, add_stream

pytestmark = embedded_only


@pytest.fixture
def stream(admin: Api, fresh: Callable[[str], str]) -> str:
    name = fresh("in")
    add_stream(admin, name, fresh("s"), partitions=3)
    return name


def asked(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "language": "sql", "text": text, **more}


def objects(platform: Platform) -> int:
    with platform.catalog.read() as session:
        return session.scalar(select(func.count()).select_from(Object)) or 0


def test_it_says_what_the_query_needs_and_whom_it_reaches(
    admin: Api, new_user: NewUser, platform: Platform, stream: str, fresh: Callable[[str], str]
) -> None:
    other, query, one, both = fresh("in"), fresh("q"), fresh("ONE"), fresh("BOTH")
    add_stream(admin, other, fresh("s"))
    ann, bob, eve = new_user(one), new_user(both), new_user(fresh("NONE"))
    for role, streams in ((one, [stream]), (both, [stream, other])):
        for name in streams:
            body = {"role": role, "permissions": ["READ TUPLE"], "kind": "stream", "name": name}
            admin.post("/grants", **body)
    text = (
        f"SELECT a.symbol FROM {stream} a JOIN {other} b ON a.symbol = b.symbol "
        "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' MINUTE"
    )
    before = objects(platform)
    found = admin.post("/queries/check", **asked(query, text))
    assert objects(platform) == before
    assert admin.call("GET", f"/queries/{query}").status_code == 404
    (output,) = found["outputs"]
    assert (output["name"], output["tasks"], output["reads"]) == (query, 4, 2)
    assert output["keeps_state"]
    assert {each["needs"] for each in output["rights"]} == {
        f"READ TUPLE on stream {stream}",
        f"READ TUPLE on stream {other}",
    }
    assert bob.user in output["reached"]["all"]
    assert ann.user in output["reached"]["some"]
    assert eve.user not in {*output["reached"]["all"], *output["reached"]["some"]}
    assert any("ADD QUERY" in reason for reason in found["allowed_because"])
    with platform.catalog.read() as session:
        own = select(AuditEntry.action).where(AuditEntry.object == f"query {query}")
        actions = set(session.scalars(own))
    assert actions >= {"check query", "check room for query"}
    assert "add query" not in actions
    # What was checked can be added, with the same attributes.
    added = admin.post("/queries", **asked(query, text))
    assert added["outputs"][0]["attributes"] == output["attributes"]


def test_users_are_told_to_administrators_alone(
    admin: Api, new_user: NewUser, stream: str, fresh: Callable[[str], str]
) -> None:
    role = fresh("R")
    shown = admin.get(f"/streams/{stream}")["schema"]
    admin.post("/grants", role="ADMIN", permissions=["READ TUPLE"], kind="stream", name=stream)
    analyst = new_user(role)
    admin.post("/grants", role=role, kind="system", permissions=["ADD QUERY"])
    for kind, name in (("stream", stream), ("schema", shown)):
        admin.post("/grants", role=role, kind=kind, name=name, permissions=["VIEW OBJECT"])
    found = analyst.post("/queries/check", **asked(fresh("q"), f"SELECT * FROM {stream}"))
    assert found["outputs"][0]["reached"] is None
    assert "admin" not in str(found)


def test_it_refuses_what_adding_would_refuse(
    admin: Api, new_user: NewUser, stream: str, fresh: Callable[[str], str]
) -> None:
    query = fresh("q")
    admin.post("/queries", **asked(query, f"SELECT symbol FROM {stream}"))
    wrong = [
        asked(query, f"SELECT symbol FROM {stream}"),
        asked(fresh("q"), f"SELECT symbol FROM {stream}", output=stream),
        asked(fresh("q"), f"SELECT prize FROM {stream}"),
        asked(fresh("q"), "SELECT * FROM " + fresh("in")),
        asked(fresh("q"), f"SELECT symbol FROM {stream}", as_roles=["NOBODY"]),
        asked(fresh("q"), " UNION ALL ".join([f"SELECT symbol FROM {stream}"] * 65)),
    ]
    for body in wrong:
        checked, added = (admin.call("POST", p, json=body) for p in ("/queries/check", "/queries"))
        assert checked.status_code == added.status_code >= 400, body
        assert checked.json()["detail"] == added.json()["detail"]
    nobody = new_user(fresh("R"))
    assert nobody.call("POST", "/queries/check", json=wrong[2]).status_code == 403


def test_a_query_reads_upserts_as_a_relation(
    admin: Api, platform: Platform, stream: str, fresh: Callable[[str], str]
) -> None:
    query, reader = fresh("q"), fresh("q")
    text = f"SELECT symbol, count(*) AS n FROM {stream} GROUP BY symbol"
    added = admin.post("/queries", **asked(query, text))
    names = [each["name"] for each in added["outputs"][0]["attributes"]]
    assert names == ["instant", "deleted", "symbol", "n"]
    body = asked(fresh("q"), f"SELECT symbol FROM {query} [ROWS 5]")
    refused = admin.call("POST", "/queries/check", json=body)
    assert refused.status_code == 422
    assert f"{query} [PARTITION BY symbol ROWS 1]" in refused.json()["detail"]
    few = admin.post("/queries", **asked(reader, f"SELECT * FROM {query} WHERE n < 3"))
    assert [each["name"] for each in few["outputs"][0]["attributes"]] == names
    with platform.catalog.read() as session:
        runs = [run for run in wanted_runs(session) if isinstance(run, QueryRun)]
    outputs = {output.relation.name: output for run in runs for output in run.outputs}
    own = outputs[query]
    assert (own.labelled, own.kept_ms) == (True, 86_400_000)
    assert own.readers == {outputs[reader].relation.object_id}
    assert outputs[reader].readers == frozenset()


def test_upserts_of_an_older_version_are_not_read(
    admin: Api, platform: Platform, stream: str, fresh: Callable[[str], str]
) -> None:
    query = fresh("q")
    text = f"SELECT symbol, count(*) AS n FROM {stream} GROUP BY symbol"
    admin.post("/queries", **asked(query, text))
    with platform.catalog.bookkeeping() as session:
        named = select(OutputRow).join(Object, Object.id == OutputRow.object_id)
        row = session.scalars(named.where(Object.name == query)).one()
        row.relation = to_stored(replace(from_stored(Relation, row.relation), keys=()))
    body = asked(fresh("q"), f"SELECT symbol FROM {query}")
    refused = admin.call("POST", "/queries/check", json=body)
    assert refused.status_code == 422
    assert "an older version" in refused.json()["detail"]
