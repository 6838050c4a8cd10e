"""One access to a stream for a user whose policies show it only in windows (002 §3.4, example 2).

`tests/unit/catalog/test_view_windows.py` shows what two windows would reveal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from catalog.plan import WINDOW_START, Filter, walk
from catalog.topics import lab_topic
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import PASSWORD, Api, NewUser, Scene, log_in, topics_of
from tests.integration.service.test_policies import plan_of, query, refused, subscribe

pytestmark = embedded_only
RIGHTS = [{"name": "symbol"}, {"name": "price", "functions": ["sum"]}]
WINDOW = {"size_ms": 3_000, "slide_ms": 1_000}
ONE_AT_A_TIME = "in one window at a time"


@dataclass
class Lab:
    """A stream that Bob's role sees only in windows, and outputs with such windows."""

    scene: Scene
    role: str
    fresh: Callable[[str], str]

    def policy(self, role: str) -> None:
        """Let a role see the stream in windows alone."""
        shown = {"rows": None, "rights": RIGHTS, "window": WINDOW}
        body = {"policy": self.fresh("p"), "role": role, **shown}
        self.scene.admin.post(f"/streams/{self.scene.stream}/policies", **body)

    def sums(self, caller: Api, size: int = 3) -> str:
        """A new query of the caller over windows of that many seconds."""
        name = self.fresh("q")
        query(caller, name, self.text(size))
        return name

    def text(self, size: int) -> str:
        window = f"HOP(ts, INTERVAL '1' SECOND, INTERVAL '{size}' SECOND)"
        return f"SELECT sum(price) AS total FROM {self.scene.stream} GROUP BY {window}"

    def let(self, owner: Api, role: str, permissions: list[str], kind: str, name: str) -> None:
        body = {"role": role, "permissions": permissions, "kind": kind, "name": name}
        owner.post("/grants", **body)

    def may_query(self, role: str) -> None:
        """Let a role see the stream, and add queries."""
        schema = self.scene.admin.get(f"/streams/{self.scene.stream}")["schema"]
        self.let(self.scene.admin, role, ["ADD QUERY"], "system", "system")
        self.let(self.scene.admin, role, ["VIEW OBJECT"], "schema", schema)
        self.let(self.scene.admin, role, ["VIEW OBJECT", "READ TUPLE"], "stream", self.scene.stream)

    def refused(self, caller: Api, output: str) -> str:
        return refused(caller, f"/outputs/{output}/subscriptions", 409)


@pytest.fixture
def lab(scene: Scene, fresh: Callable[[str], str]) -> Lab:
    made = Lab(scene, scene.role, fresh)
    made.may_query(scene.role)
    made.policy(scene.role)
    return made


def test_a_second_output_is_refused(lab: Lab) -> None:
    bob = lab.scene.bob
    first, second = lab.sums(bob, 3), lab.sums(bob, 4)
    principal = subscribe(bob, first)
    told = lab.refused(bob, second)
    assert ONE_AT_A_TIME in told and principal in told and first in told
    assert lab.scene.stream not in told, "who subscribes need not know the stream"
    assert topics_of(lab.scene.platform, subscribe(bob, first)), "the same windows may come twice"


def test_another_session_is_no_way_around(lab: Lab, anonymous: Api) -> None:
    bob = lab.scene.bob
    first, second = lab.sums(bob, 3), lab.sums(bob, 4)
    subscribe(bob, first)
    assert ONE_AT_A_TIME in lab.refused(log_in(anonymous, bob.user, PASSWORD), second)


def test_another_role_is_no_way_around(lab: Lab, anonymous: Api) -> None:
    bob, other = lab.scene.bob, lab.fresh("R")
    lab.scene.admin.post("/roles", name=other)
    lab.scene.admin.post(f"/users/{bob.user}/roles", role=other)
    lab.may_query(other)
    lab.policy(other)
    subscribe(bob, lab.sums(bob, 3))
    again = log_in(anonymous, bob.user, PASSWORD, [other])
    assert ONE_AT_A_TIME in lab.refused(again, lab.sums(again, 4))


def test_outputs_of_other_users_are_no_way_around(lab: Lab, new_user: NewUser) -> None:
    bob, carol = lab.scene.bob, new_user(lab.role)
    first, second = lab.sums(bob, 3), lab.sums(carol, 4)
    over_it = lab.fresh("q")
    query(carol, over_it, f"SELECT total FROM {second}")
    for output in (second, over_it):
        lab.let(carol, lab.role, ["VIEW OBJECT", "SUBSCRIBE"], "output", output)
    subscribe(bob, first)
    for output in (second, over_it):
        assert ONE_AT_A_TIME in lab.refused(bob, output)
    subscribe(carol, second)
    assert topics_of(lab.scene.platform, subscribe(carol, over_it)), "the same windows again"


def test_an_ended_access_counts_until_the_query_is_newer(lab: Lab) -> None:
    """What an older query delivers holds windows that the ended access had shown."""
    bob = lab.scene.bob
    first, second = lab.sums(bob, 3), lab.sums(bob, 4)
    principal = subscribe(bob, first)
    bob.delete(f"/accesses/{principal}")
    told = lab.refused(bob, second)
    assert told.endswith("; add a new query")
    bob.delete(f"/queries/{first}")
    assert ONE_AT_A_TIME in lab.refused(bob, second), "a removed query's access counts, too"
    newer = lab.sums(bob, 4)
    assert topics_of(lab.scene.platform, subscribe(bob, newer))


def test_a_query_does_not_bring_windows_together(lab: Lab) -> None:
    bob = lab.scene.bob
    first, second = lab.sums(bob, 3), lab.sums(bob, 4)
    both = f"SELECT total FROM {first} UNION ALL SELECT total FROM {second}"
    text = f"{lab.text(3)} UNION ALL SELECT total FROM {second}"
    for each in (both, text):
        told = refused(bob, "/queries", 422, name=lab.fresh("q"), language="sql", text=each)
        assert ONE_AT_A_TIME in told
    # Somebody that sees the whole stream may, and Bob still gets nothing of it.
    output = lab.fresh("q")
    for each in (first, second):
        lab.let(bob, "ADMIN", ["VIEW OBJECT", "SUBSCRIBE"], "output", each)
    query(lab.scene.admin, output, both)
    lab.let(lab.scene.admin, lab.role, ["VIEW OBJECT", "SUBSCRIBE"], "output", output)
    assert "computed from several windows" in lab.refused(bob, output)


def test_a_right_that_is_lost_leaves_one_window(lab: Lab) -> None:
    """Who sees the whole stream may have all windows; when it does not any more, one stays."""
    bob, whole = lab.scene.bob, lab.fresh("R")
    first, second = lab.sums(bob, 3), lab.sums(bob, 4)
    lab.scene.admin.post("/roles", name=whole)
    lab.let(lab.scene.admin, whole, ["VIEW OBJECT", "READ TUPLE"], "stream", lab.scene.stream)
    lab.scene.admin.post(f"/roles/{lab.role}/juniors", role=whole)
    one, two = subscribe(bob, first), subscribe(bob, second)
    assert topics_of(lab.scene.platform, one) and topics_of(lab.scene.platform, two)
    lab.scene.admin.delete(f"/roles/{lab.role}/juniors/{whole}")
    assert topics_of(lab.scene.platform, one)
    assert topics_of(lab.scene.platform, two) == set()


def test_a_query_that_comes_later_gives_whole_windows_alone(lab: Lab) -> None:
    def cuts(output: str) -> list[Filter]:
        nodes = walk(plan_of(lab.scene.platform, output).root)
        return [n for n in nodes if isinstance(n, Filter) and WINDOW_START in str(n.condition)]

    bob = lab.scene.bob
    assert cuts(lab.sums(bob)) == [], "a query over a new stream sees all of it"
    lab.scene.write(lab_topic(lab.scene.stream), "an earlier tuple")
    assert len(cuts(lab.sums(bob))) == 1
