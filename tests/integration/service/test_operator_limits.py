"""Roles limit the operators of queries; refusals and changes are in the audit log (004 §5.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from catalog.models import AuditEntry
from secadmin.control.platform import Platform
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import PASSWORD, Api, NewUser, add_stream, log_in

pytestmark = embedded_only
HOURLY = "SELECT count(*) AS n FROM {} GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)"
MINUTELY = HOURLY.replace("'1' HOUR", "'1' MINUTE")


@dataclass
class Desk:
    """A stream, and an analyst with two roles that may both add queries."""

    admin: Api
    analyst: Api
    anonymous: Api
    stream: str
    small: str
    large: str

    def limit(self, role: str, **limits: Any) -> list[int]:
        """Set the limits of a role, and give the executions that stopped."""
        stopped = self.admin.put(f"/roles/{role}/operator-limits", **limits)["stopped"]
        return list(stopped)

    def with_roles(self, *roles: str) -> Api:
        """A session of the analyst with these roles active."""
        return log_in(self.anonymous, self.analyst.user, PASSWORD, list(roles))

    def add(self, caller: Api, name: str, text: str) -> Any:
        """Try to add a query over the stream."""
        body = {"name": name, "language": "sql", "text": text.format(self.stream)}
        return caller.call("POST", "/queries", json=body)


@pytest.fixture
def desk(admin: Api, anonymous: Api, new_user: NewUser, fresh: Callable[[str], str]) -> Desk:
    stream, schema, small, large = fresh("in"), fresh("s"), fresh("SMALL"), fresh("LARGE")
    add_stream(admin, stream, schema)
    analyst = new_user(small, large)
    for role in (small, large):
        admin.post("/grants", role=role, kind="system", permissions=["ADD QUERY"])
        for kind, name in (("schema", schema), ("stream", stream)):
            admin.post("/grants", role=role, kind=kind, name=name, permissions=["VIEW OBJECT"])
    return Desk(admin, analyst, anonymous, stream, small, large)


def audited(platform: Platform, action: str, target: str) -> AuditEntry:
    """The newest entry of that action."""
    own = select(AuditEntry).where(AuditEntry.action == action, AuditEntry.object == target)
    with platform.catalog.read() as session:
        found = session.scalar(own.order_by(AuditEntry.seq.desc()).limit(1))
        assert found is not None
        session.expunge(found)
        return found


def test_an_operator_is_refused_by_its_name_clause_role_and_limit(
    desk: Desk, platform: Platform, fresh: Callable[[str], str]
) -> None:
    desk.limit(desk.small, window_ms=60_000)
    narrow, query = desk.with_roles(desk.small), fresh("q")
    refused = desk.add(narrow, query, HOURLY)
    assert refused.status_code == 403
    words = ("operator window (TUMBLE, HOP, SESSION)", f"role {desk.small} allows 60000 ms")
    assert all(each in refused.json()["detail"] for each in words)
    entry = audited(platform, "prepare query", f"query {query}")
    assert entry.outcome == "denied"
    assert f"role {desk.small} allows 60000 ms" in entry.reason
    assert narrow.call("GET", f"/queries/{query}").status_code == 404
    assert desk.add(narrow, query, MINUTELY).is_success
    entry = audited(platform, "add query", f"query {query}")
    assert entry.detail["operators"] == ["aggregate", "window"]
    assert entry.detail["allowed by"] == [desk.small]


def test_one_more_role_allows_what_it_allows(desk: Desk, fresh: Callable[[str], str]) -> None:
    desk.limit(desk.small, operators=[])
    desk.limit(desk.large, operators=["window", "aggregate"], window_ms=3_600_000)
    assert desk.add(desk.with_roles(desk.small), fresh("q"), HOURLY).status_code == 403
    both = desk.with_roles(desk.small, desk.large)
    assert desk.add(both, fresh("q"), HOURLY).is_success
    # A role that the session drops allows nothing any more.
    both.delete(f"/whoami/roles/{desk.large}")
    assert desk.add(both, fresh("q"), HOURLY).status_code == 403


def test_a_change_stops_what_is_not_allowed_any_more(
    desk: Desk, platform: Platform, fresh: Callable[[str], str]
) -> None:
    query, other = fresh("q"), fresh("q")
    for name, text in ((query, HOURLY), (other, MINUTELY)):
        assert desk.add(desk.analyst, name, text).is_success
    execution = desk.analyst.get(f"/outputs/{query}")["execution"]
    assert desk.limit(desk.small, window_ms=60_000) == [], "the other role has no limits"
    assert desk.limit(desk.large, window_ms=60_000) == [execution]
    shown = desk.analyst.get(f"/queries/{query}")
    assert not shown["running"]
    assert "do not allow its operators" in shown["message"]
    assert desk.analyst.get(f"/queries/{other}")["running"]
    entry = audited(platform, "set operator limits", f"role {desk.large}")
    assert (entry.outcome, entry.detail["stopped"]) == ("changed", [execution])
    assert entry.detail["limits"]["window_ms"] == 60_000
    started = desk.analyst.call("POST", f"/queries/{query}/start")
    assert started.status_code == 403
    assert "operator window" in started.json()["detail"]
    desk.admin.delete(f"/roles/{desk.large}/operator-limits")
    desk.analyst.post(f"/queries/{query}/start")
    assert desk.analyst.get(f"/queries/{query}")["running"]


def test_a_user_that_loses_the_wider_role_loses_what_it_allowed(
    desk: Desk, fresh: Callable[[str], str]
) -> None:
    query = fresh("q")
    desk.limit(desk.small, window_ms=60_000)
    assert desk.add(desk.analyst, query, HOURLY).is_success
    desk.admin.delete(f"/users/{desk.analyst.user}/roles/{desk.large}")
    assert not desk.analyst.get(f"/queries/{query}")["running"]
    refused = desk.analyst.call("POST", f"/queries/{query}/start")
    assert refused.status_code == 403
    assert desk.small in refused.json()["detail"]


def test_who_starts_anothers_query_is_not_told_of_its_owners_roles(
    desk: Desk, new_user: NewUser, fresh: Callable[[str], str]
) -> None:
    query, role = fresh("q"), fresh("R")
    assert desk.add(desk.with_roles(desk.small), query, HOURLY).is_success
    desk.limit(desk.small, window_ms=60_000)
    helper = new_user(role)
    rights = ["VIEW OBJECT", "SET QUERY STATUS"]
    desk.analyst.post("/grants", role=role, kind="query", name=query, permissions=rights)
    refused = helper.call("POST", f"/queries/{query}/start")
    assert refused.status_code == 409
    assert desk.small not in refused.text


def test_limits_are_shown_set_and_removed(desk: Desk, fresh: Callable[[str], str]) -> None:
    path = f"/roles/{desk.small}/operator-limits"
    assert desk.admin.get(path) == {"limits": None}
    desk.limit(desk.small, operators=["join", "union"], slide_ms=1_000, windows=5, window_rows=7)
    shown = desk.admin.get(path)["limits"]
    assert shown == {
        "operators": ["join", "union"],
        "window_ms": None,
        "slide_ms": 1_000,
        "windows": 5,
        "window_rows": 7,
    }
    # New limits take the place of the old ones.
    desk.limit(desk.small, window_ms=5)
    assert desk.admin.get(path)["limits"]["operators"] is None
    desk.admin.delete(path)
    assert desk.admin.get(path) == {"limits": None}
    gone = fresh("R")
    desk.admin.post("/roles", name=gone)
    desk.limit(gone, window_ms=5)
    desk.admin.delete(f"/roles/{gone}")
    assert desk.admin.call("GET", f"/roles/{gone}/operator-limits").status_code == 404
