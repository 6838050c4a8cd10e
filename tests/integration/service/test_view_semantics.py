"""Semantics `view` at the service: it is chosen with a query, and what it does not go with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from httpx import Response

from catalog.executions import execution_of, run_names_of
from catalog.placement import Placement
from catalog.plan import sources
from catalog.run_names import query_run_name
from catalog.runs import QueryRun
from catalog.wanted import wanted_runs
from secadmin.control.platform import Platform
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, add_stream, topics_of

pytestmark = embedded_only

Fresh = Callable[[str], str]


@dataclass
class Scene:
    """A query over two streams that counts, with semantics `view`."""

    admin: Api
    platform: Platform
    streams: tuple[str, str]
    output: str

    def grant(self, role: str, kind: str, name: str, *permissions: str) -> None:
        self.admin.post("/grants", role=role, kind=kind, name=name, permissions=[*permissions])

    def run(self) -> QueryRun:
        """What the engine is told to run."""
        output = self.admin.get(f"/outputs/{self.output}")["execution"]
        with self.platform.catalog.read() as session:
            name = query_run_name(execution_of(session, output))
            (found,) = (each for each in wanted_runs(session) if each.name == name)
        assert isinstance(found, QueryRun)
        return found


@pytest.fixture
def scene(admin: Api, platform: Platform, fresh: Fresh) -> Scene:
    streams, output = (fresh("a"), fresh("b")), fresh("out")
    for stream in streams:
        add_stream(admin, stream, fresh("s"))
    both = " UNION ALL ".join(f"SELECT * FROM {stream}" for stream in streams)
    window = "TUMBLE(ts, INTERVAL '1' MINUTE)"
    text = f"SEMANTICS VIEW SELECT count(*) AS n FROM ({both}) GROUP BY {window}"
    admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    return Scene(admin, platform, streams, output)


def test_it_is_chosen_in_the_text_or_beside_it(scene: Scene, fresh: Fresh) -> None:
    assert scene.admin.get(f"/outputs/{scene.output}")["semantics"] == "view"
    assert scene.run().placement is Placement.SOURCES
    plain = {"language": "sql", "text": f"SELECT symbol FROM {scene.streams[0]}"}
    for semantics in ("strong", "view", "exact"):
        name = fresh("q")
        scene.admin.post("/queries", name=name, semantics=semantics, **plain)
        assert scene.admin.get(f"/outputs/{name}")["semantics"] == semantics
    text = f"SEMANTICS VIEW SELECT symbol FROM {scene.streams[0]}"
    body = {**plain, "name": fresh("q"), "semantics": "strong", "text": text}
    refused = scene.admin.call("POST", "/queries", json=body)
    assert (refused.status_code, "name one semantics" in refused.text) == (422, True)


def test_each_class_has_a_view_and_grows_as_a_whole(
    scene: Scene, new_user: NewUser, fresh: Fresh
) -> None:
    role = fresh("R")
    user = new_user(role)
    scene.grant(role, "output", scene.output, "VIEW OBJECT", "SUBSCRIBE")
    scene.grant(role, "stream", scene.streams[0], "READ TUPLE")
    given = user.post(f"/outputs/{scene.output}/subscriptions")
    (first,) = topics_of(scene.platform, given["principal"])
    scene.grant(role, "stream", scene.streams[1], "READ TUPLE")
    (second,) = topics_of(scene.platform, given["principal"]) - {first}
    viewers = {each.topic: each for each in scene.run().viewers or ()}
    assert viewers.keys() == {first, second}
    assert all(each.beyond is None and each.id > 0 for each in viewers.values())
    assert len({each.id for each in viewers.values()}) == 2
    one, both = (viewers[each].clearance.bits for each in (first, second))
    assert one & both == one and one != both


def test_exact_gives_each_role_of_a_class_a_view_where_there_are_windows(
    scene: Scene, new_user: NewUser, fresh: Fresh
) -> None:
    """A class has a view for each of its roles, and what it costs is counted by roles."""
    first, second = scene.streams
    output = fresh("exact")
    window = "TUMBLE(ts, INTERVAL '1' MINUTE)"
    both = f"SELECT * FROM {first} UNION ALL SELECT * FROM {second}"
    text = f"SEMANTICS EXACT SELECT count(*) AS n FROM ({both}) GROUP BY {window}"
    scene.admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    one, two = fresh("R"), fresh("R")
    for role, stream in ((one, first), (two, second)):
        scene.admin.post("/roles", name=role)
        scene.grant(role, "output", output, "VIEW OBJECT", "SUBSCRIBE")
        scene.grant(role, "stream", stream, "READ TUPLE")
    given = new_user(one, two).post(f"/outputs/{output}/subscriptions")
    (topic,) = topics_of(scene.platform, given["principal"])
    run = replace(scene, output=output).run()
    assert run.by_role and not run.labelled
    views = run.viewers or ()
    assert [each.topic for each in views] == [topic, topic]
    assert len({each.id for each in views}) == 2
    low, high = (each.clearance.bits for each in views)
    assert low and high and not low & high, "no role sees what the other one sees"
    above = {"name": fresh("q"), "language": "sql", "text": f"SELECT n FROM {output}"}
    refused = scene.admin.call("POST", "/queries", json=above)
    assert (refused.status_code, "has semantics exact" in refused.text) == (422, True)
    weak = scene.admin.call("PUT", f"/outputs/{output}/semantics", json={"weak": True})
    assert (weak.status_code, "has semantics exact" in weak.text) == (409, True)


def test_exact_is_not_for_results_that_replace_others(scene: Scene, fresh: Fresh) -> None:
    first = scene.streams[0]
    window = "TUMBLE(ts, INTERVAL '1' MINUTE)"
    for text in (
        f"SELECT COUNT(*) AS n FROM {first} GROUP BY {window} EMIT UPDATES",
        f"SELECT symbol, COUNT(*) AS n FROM {first} GROUP BY symbol",
    ):
        body = {"name": fresh("q"), "language": "sql", "text": f"SEMANTICS EXACT {text}"}
        refused = scene.admin.call("POST", "/queries", json=body)
        assert (refused.status_code, "may replace another one" in refused.text) == (422, True)


def test_one_size_for_all_tuples_is_for_view_and_exact(scene: Scene, fresh: Fresh) -> None:
    first = scene.streams[0]
    text = f"SELECT ISTREAM symbol FROM {first} [ROWS 5 OF ALL]"
    for semantics in ("strong", "isolated"):
        body = {"name": fresh("q"), "language": "sql", "text": f"SEMANTICS {semantics} {text}"}
        refused = scene.admin.call("POST", "/queries", json=body)
        assert (refused.status_code, "leave OF ALL out" in refused.text) == (422, True)
    for semantics in ("view", "exact"):
        body = {"name": fresh("q"), "language": "sql", "text": f"SEMANTICS {semantics} {text}"}
        (note,) = scene.admin.post("/queries", **body)["notes"]
        assert "how many tuples come that they may not see" in note


def test_other_queries_read_exact_results_of_single_tuples(scene: Scene, fresh: Fresh) -> None:
    first, second = scene.streams
    joined = (
        f"SEMANTICS EXACT SELECT a.symbol FROM {first} AS a JOIN {second} AS b "
        "ON a.symbol = b.symbol AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"
    )
    name = fresh("q")
    scene.admin.post("/queries", name=name, language="sql", text=joined)
    weak = scene.admin.call("PUT", f"/outputs/{name}/semantics", json={"weak": True})
    assert (weak.status_code, "has semantics exact" in weak.text) == (409, True)
    above = f"SELECT symbol FROM {name}"
    scene.admin.post("/queries", name=fresh("q"), language="sql", text=above)


def test_isolated_classes_have_runs_of_their_own(
    scene: Scene, new_user: NewUser, fresh: Fresh
) -> None:
    """Each begins at the ends of what the query reads, and an output has four of them at most."""
    output, third = fresh("apart"), fresh("c")
    add_stream(scene.admin, third, fresh("s"))
    streams = (*scene.streams, third)
    both = " UNION ALL ".join(f"SELECT * FROM {stream}" for stream in streams)
    text = f"SEMANTICS ISOLATED SELECT symbol FROM ({both})"
    scene.admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    shown = scene.admin.get(f"/outputs/{output}")
    assert shown["semantics"] == "isolated"

    def subscribe(read: Sequence[str]) -> Response:
        role = fresh("R")
        user = new_user(role)
        scene.grant(role, "output", output, "VIEW OBJECT", "SUBSCRIBE")
        for stream in read:
            scene.grant(role, "stream", stream, "READ TUPLE")
        return user.call("POST", f"/outputs/{output}/subscriptions", json={})

    sets = [streams[:1], streams[1:2], streams[:2], streams, streams[:1]]
    given = [subscribe(each).json()["principal"] for each in sets]
    topics = [topics_of(scene.platform, each) for each in given]
    assert topics[0] == topics[4], "users with equal rights share a class"
    assert len(frozenset().union(*topics)) == 4
    full = subscribe(streams[1:])
    assert (full.status_code, "it may have 4" in full.text) == (409, True)
    with scene.platform.catalog.read() as session:
        names = run_names_of(session, shown["execution"])
        runs = [each for each in wanted_runs(session) if each.name in names]
    ends = scene.platform.kafka.end_offsets([f"lab.{stream}" for stream in streams])
    found = {}
    for run in runs:
        assert isinstance(run, QueryRun) and run.starting_offsets == ends
        (own,) = run.classes
        found[own.topic] = [bool(run.reaches[of.object_id].bits) for of in sources(run.plan)]
    (low,), (other,), (two,), (all_,) = topics[:4]
    assert found == {
        low: [True, False, False],
        other: [False, True, False],
        two: [True, True, False],
        all_: [True, True, True],
    }


def test_no_query_reads_its_output_and_it_is_never_weak(scene: Scene, fresh: Fresh) -> None:
    body = {"name": fresh("q"), "language": "sql", "text": f"SELECT n FROM {scene.output}"}
    refused = scene.admin.call("POST", "/queries", json=body)
    assert refused.status_code == 422
    assert "has semantics view" in refused.text
    weak = scene.admin.call("PUT", f"/outputs/{scene.output}/semantics", json={"weak": True})
    assert (weak.status_code, "strong semantics" in weak.text) == (409, True)
    scene.admin.put(f"/outputs/{scene.output}/semantics", weak=False)
    execution = scene.admin.get(f"/outputs/{scene.output}")["execution"]
    again = scene.admin.call("PUT", f"/executions/{execution}/semantics", json={"weak": True})
    assert again.status_code == 409
