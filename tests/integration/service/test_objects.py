"""Objects, owners and views: what is there, for whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from catalog.executions import execution_of
from catalog.models import CategoryRow, Object
from catalog.run_names import query_run_name
from catalog.runs import RunReport
from catalog.wanted import report_status
from secadmin.control.platform import Platform
from tests.heartbeat import let_beat
from tests.integration.service.conftest import ATTRIBUTES, Api, NewUser, add_stream

Fresh = Callable[[str], str]


def test_a_schema_is_shown_as_it_was_added(admin: Api, fresh: Fresh) -> None:
    name = fresh("s")
    admin.post("/schemas", name=name, attributes=ATTRIBUTES)
    assert [a["name"] for a in admin.get(f"/schemas/{name}")["attributes"]] == [
        "ts",
        "symbol",
        "price",
    ]


def test_nested_types_are_shown_in_one_form(admin: Api, fresh: Fresh) -> None:
    name, stream = fresh("s"), fresh("in")
    types = {
        "ts": "timestamp",
        "tags": "ARRAY< varchar >",
        "place": "STRUCT<city: TEXT, at MAP<STRING, ARRAY<INT>>>",
    }
    attributes = [{"name": n, "type": t, "required": n == "ts"} for n, t in types.items()]
    admin.post("/schemas", name=name, attributes=attributes)
    admin.post("/streams", name=stream, schema=name, event_time="ts")
    for where in (f"/schemas/{name}", f"/streams/{stream}"):
        assert [each["type"] for each in admin.get(where)["attributes"]] == [
            "timestamp",
            "array<string>",
            "struct<city string, at map<string, array<bigint>>>",
        ]


@pytest.mark.parametrize(
    "kind", ["ARRAY", "ARRAY<", "LIST<INT>", "MAP<INT, INT>", "ARRAY<" * 2_000]
)
def test_what_is_no_type_is_refused(admin: Api, fresh: Fresh, kind: str) -> None:
    attributes = [{"name": "a", "type": kind}]
    answer = admin.call("POST", "/schemas", json={"name": fresh("s"), "attributes": attributes})
    assert answer.status_code == 422


def test_hidden_and_absent_are_the_same_answer(admin: Api, new_user: NewUser, fresh: Fresh) -> None:
    stream, schema = fresh("in"), fresh("s")
    add_stream(admin, stream, schema)
    bob = new_user("VIEWER")
    hidden = bob.call("GET", f"/streams/{stream}")
    absent = bob.call("GET", f"/streams/{fresh('in')}")
    assert (hidden.status_code, absent.status_code) == (404, 404)
    assert hidden.json()["detail"].split("'")[0] == absent.json()["detail"].split("'")[0]
    assert hidden.headers["content-type"] == "application/problem+json"


def test_the_catalog_shows_what_was_granted_and_no_more(
    admin: Api, new_user: NewUser, fresh: Fresh
) -> None:
    stream, schema, role = fresh("in"), fresh("s"), fresh("R")
    add_stream(admin, stream, schema)
    bob = new_user(role)
    assert bob.call("GET", "/catalog").status_code == 403
    admin.post("/grants", role=role, permissions=["VIEW CATALOG"], kind="system")
    assert bob.get("/catalog") == []
    admin.post("/grants", role=role, permissions=["VIEW OBJECT"], kind="stream", name=stream)
    assert [row["name"] for row in bob.get("/catalog")] == [stream]


def test_categories_are_given_in_the_order_of_creation_and_never_again(
    admin: Api, platform: Platform, fresh: Fresh
) -> None:
    def bit(stream: str) -> int:
        own = select(CategoryRow.bit).join(Object, Object.id == CategoryRow.stream_id)
        with platform.catalog.read() as session:
            return session.scalars(own.where(Object.name == stream)).one()

    names = [fresh("in") for _ in range(3)]
    for name in names[:2]:
        add_stream(admin, name, fresh("s"))
    bits = [bit(name) for name in names[:2]]
    admin.delete(f"/streams/{names[1]}")
    add_stream(admin, names[2], fresh("s"))
    assert bits[0] < bits[1] < bit(names[2])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"event_time": "symbol"}, "not a required timestamp"),
        ({"schema": "nosuchschema"}, "there is no schema"),
        ({"partitions": 0}, "partitions"),
        ({"name": "a.b"}, "not a usable object name"),
        ({"surprise": 1}, "surprise"),
        (
            {
                "declared_aggregate": {
                    "window_ms": 1000,
                    "keys": ["nosuch"],
                    "functions": ["avg"],
                    "minimum": 5,
                }
            },
            "not an attribute",
        ),
        (
            {
                "declared_aggregate": {
                    "window_ms": 1000,
                    "keys": [],
                    "functions": ["max"],
                    "minimum": 5,
                }
            },
            "functions to declare",
        ),
    ],
)
def test_a_wrong_stream_is_refused_with_words_that_help(
    admin: Api, fresh: Fresh, change: dict[str, object], words: str
) -> None:
    schema = fresh("s")
    admin.post("/schemas", name=schema, attributes=ATTRIBUTES)
    body = {"name": fresh("in"), "schema": schema, "event_time": "ts"} | change
    response = admin.call("POST", "/streams", json=body)
    assert response.status_code in (404, 422)
    assert words in response.json()["detail"]


def test_a_name_is_taken_once(admin: Api, fresh: Fresh) -> None:
    name, schema = fresh("in"), fresh("s")
    add_stream(admin, name, schema)
    again = admin.call("POST", "/streams", json={"name": name, "schema": schema})
    assert again.status_code == 409


def test_a_schema_in_use_stays(admin: Api, fresh: Fresh) -> None:
    name, schema = fresh("in"), fresh("s")
    add_stream(admin, name, schema)
    assert admin.call("DELETE", f"/schemas/{schema}").status_code == 409


def test_who_adds_a_query_must_view_what_it_names(
    admin: Api, new_user: NewUser, fresh: Fresh
) -> None:
    stream, schema, role = fresh("in"), fresh("s"), fresh("R")
    add_stream(admin, stream, schema)
    admin.post("/roles", name=role)
    bob = new_user(role)
    body = {"name": fresh("q"), "language": "sql", "text": f"SELECT * FROM {stream}"}
    assert bob.call("POST", "/queries", json=body).status_code == 403
    admin.post("/grants", role=role, permissions=["ADD QUERY"], kind="system")
    unknown = bob.call("POST", "/queries", json=body)
    assert unknown.status_code == 422
    assert (unknown.json()["line"], unknown.json()["column"]) == (1, 15)
    admin.post("/grants", role=role, permissions=["VIEW OBJECT"], kind="stream", name=stream)
    assert bob.call("POST", "/queries", json=body).status_code == 403, "the schema is hidden yet"
    admin.post("/grants", role=role, permissions=["VIEW OBJECT"], kind="schema", name=schema)
    assert bob.post("/queries", **body)["outputs"][0]["name"] == body["name"]


def test_nothing_that_is_shown_names_what_is_hidden(
    admin: Api, new_user: NewUser, fresh: Fresh
) -> None:
    stream, schema, role = fresh("in"), fresh("s"), fresh("R")
    query, output = fresh("q"), fresh("o")
    add_stream(admin, stream, schema)
    text = f"SELECT symbol FROM {stream}"
    admin.post("/queries", name=query, language="sql", text=text, output=output)
    viewer = new_user(role)

    def may_view(kind: str, name: str, change: str = "/grants") -> None:
        admin.post(change, role=role, permissions=["VIEW OBJECT"], kind=kind, name=name)

    may_view("query", query)
    shown = viewer.get(f"/queries/{query}")
    assert (shown["text"], shown["outputs"]) == ("", [])
    plan = viewer.call("GET", f"/queries/{query}/plan")
    assert plan.status_code == 403
    assert stream not in plan.text
    may_view("query", query, "/revocations")
    may_view("output", output)
    assert viewer.get(f"/outputs/{output}")["query"] is None
    may_view("stream", stream)
    assert viewer.get(f"/streams/{stream}")["schema"] is None
    admin.post("/grants", role=role, permissions=["ADD QUERY"], kind="system")
    body = {"name": fresh("q"), "language": "sql", "text": text}
    refused = viewer.call("POST", "/queries", json=body)
    assert refused.status_code == 403
    assert schema not in refused.text
    may_view("schema", schema)
    may_view("query", query)
    assert viewer.get(f"/streams/{stream}")["schema"] == schema
    assert viewer.get(f"/outputs/{output}")["query"] == query
    assert viewer.get(f"/queries/{query}")["outputs"] == [output]


def test_a_query_that_others_read_is_not_removed(admin: Api, fresh: Fresh) -> None:
    stream = fresh("in")
    add_stream(admin, stream, fresh("s"))
    first, second = fresh("q"), fresh("q")
    admin.post("/queries", name=first, language="sql", text=f"SELECT symbol FROM {stream}")
    admin.post("/queries", name=second, language="sql", text=f"SELECT symbol FROM {first}")
    assert admin.call("DELETE", f"/queries/{first}").status_code == 409
    admin.delete(f"/queries/{second}")
    admin.delete(f"/queries/{first}")
    assert admin.call("GET", f"/queries/{first}").status_code == 404


def test_what_is_withheld_is_told_to_who_may_change_the_system(
    admin: Api, new_user: NewUser, platform: Platform, fresh: Fresh
) -> None:
    stream, role, query = fresh("in"), fresh("R"), fresh("q")
    add_stream(admin, stream, fresh("s"))
    admin.post("/queries", name=query, language="sql", text=f"SELECT symbol FROM {stream}")
    viewer = new_user(role)
    admin.post("/grants", role=role, permissions=["VIEW OBJECT"], kind="query", name=query)
    with platform.catalog.read() as session:
        output = session.scalars(
            select(Object).where(Object.name == query, Object.kind == "output")
        )
        name = query_run_name(execution_of(session, output.one().id))

    let_beat(platform)

    def told(state: str, message: str) -> list[tuple[str, Any]]:
        with platform.catalog.bookkeeping() as session:
            report = RunReport(name, state, message, counted={"late": 7})
            report_status(session, report, platform.clock())
        shown = [caller.get(f"/queries/{query}") for caller in (admin, viewer)]
        return [(view["message"], view.get("withheld")) for view in shown]

    assert told("running", "") == [("", {"late": 7}), ("", None)]
    gone = "a topic is not there"
    assert told("failed", gone) == [(gone, {"late": 14}), (gone, None)]
    assert viewer.get(f"/queries/{query}")["text"] == "", "it names a stream that is hidden"
