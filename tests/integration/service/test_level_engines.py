"""Level engines on the service: who gets one, who is refused, and who waits (001 §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from catalog.engines import FIRST
from catalog.models import DeliveryClass
from catalog.pulse import heartbeat_of
from catalog.spaces import Spaces
from secadmin.control.open_classes import give_level_engines
from secadmin.control.platform import Platform
from secadmin.service.app import create_app
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, add_stream

pytestmark = embedded_only
SPACES = Spaces(3, {}, 2)
_APART = (DeliveryClass.execution_id.is_not(None), DeliveryClass.removed_at.is_(None))
Fresh = Callable[[str], str]


@dataclass
class Place:
    """Two streams and an isolated query over both, on a service with two level engines."""

    admin: Api
    platform: Platform
    new_user: NewUser
    fresh: Fresh
    streams: tuple[str, str]
    output: str

    def grant(self, role: str, kind: str, name: str, *permissions: str) -> None:
        body = {"role": role, "permissions": list(permissions), "kind": kind, "name": name}
        self.admin.post("/grants", **body)

    def reader(self, *streams: str) -> tuple[Api, str]:
        """A new user that may read these streams, and its role."""
        role = self.fresh("R")
        user = Api(self.admin.client, self.new_user(role).token)
        self.grant(role, "output", self.output, "VIEW OBJECT", "SUBSCRIBE")
        for stream in streams:
            self.grant(role, "stream", stream, "READ TUPLE")
        return user, role

    def subscribe(self, user: Api) -> str:
        """What is refused, or nothing."""
        answer = user.call("POST", f"/outputs/{self.output}/subscriptions", json={})
        assert answer.status_code in (201, 409), answer.text
        return "" if answer.is_success else str(answer.json()["detail"])

    def engines(self) -> list[str]:
        """The engines that run the query, or would."""
        of = self.admin.get(f"/outputs/{self.output}")["execution"]
        (row,) = (each for each in self.admin.get("/executions") if each["id"] == of)
        return str(row["engine"]).split(", ")


@pytest.fixture
def place(admin: Api, platform: Platform, new_user: NewUser, fresh: Fresh) -> Iterator[Place]:
    streams, output = (fresh("a"), fresh("b")), fresh("apart")
    for stream in streams:
        add_stream(admin, stream, fresh("s"))
    own = replace(platform, spaces=SPACES)
    with TestClient(create_app(own), raise_server_exceptions=False) as client:
        boss = Api(client, admin.token, admin.user)
        both = " UNION ALL ".join(f"SELECT symbol FROM {stream}" for stream in streams)
        text = f"SEMANTICS ISOLATED {both}"
        boss.post("/queries", name=output, language="sql", text=text)
        yield Place(boss, own, new_user, fresh, streams, output)
        boss.delete(f"/queries/{output}")
    # No other test waits for engines that never began, or for topics that no upkeep deletes here.
    with platform.catalog.bookkeeping() as session:
        session.execute(update(DeliveryClass).values(removed_at=platform.clock()).where(*_APART))
        for engine in SPACES.engines:
            if engine != FIRST:
                heartbeat_of(session, engine).ended = True


def test_two_levels_have_engines_and_a_third_one_is_refused(place: Place) -> None:
    first, second = place.streams
    readers = [place.reader(first), place.reader(second), place.reader(first)]
    assert [place.subscribe(user) for user, _ in readers] == ["", "", ""]
    assert place.engines() == ["query-2", "query-3"]
    both, _ = place.reader(first, second)
    told = place.subscribe(both)
    assert told.startswith("no engine is free for the level of another delivery class of")
    assert "end the subscriptions of another level" in told and "there are 2" in told
    assert place.engines() == ["query-2", "query-3"], "what is refused changes nothing"
    place.admin.post(f"/queries/{place.output}/stop")
    place.admin.post(f"/queries/{place.output}/start")
    assert place.engines() == ["query-2", "query-3"], "it goes on where it was"


def test_what_a_revocation_leaves_waits_and_the_revocation_is_not_refused(place: Place) -> None:
    first, second = place.streams
    (both, role), (other, _) = place.reader(first, second), place.reader(second)
    assert [place.subscribe(both), place.subscribe(other)] == ["", ""]
    body = {"role": role, "permissions": ["READ TUPLE"], "kind": "stream", "name": second}
    place.admin.post("/revocations", **body)
    # The old class has no subscription now. It is closed, and its engine is free once its topic is
    # gone.
    assert "levels" in place.engines()
    give_level_engines(place.platform)
    assert "levels" in place.engines()
    rows = both.get("/accesses")
    assert [(row["active"], row["fed"]) for row in rows] == [(True, False)]
    shown = place.admin.get(f"/queries/{place.output}")
    assert shown["state"] != "running"


def test_a_query_needs_no_room_before_somebody_reads_it(place: Place) -> None:
    text = f"SEMANTICS ISOLATED SELECT symbol FROM {place.streams[0]}"
    asked = {"language": "sql", "text": text, "name": place.fresh("q")}
    checked = place.admin.post("/queries/check", **asked)
    assert [each["tasks"] for each in checked["outputs"]] == [0]
    assert place.engines() == ["levels"]
