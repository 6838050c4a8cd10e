"""Policies: what a role sees of a stream (002 and 003), on the service over the real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select

from catalog.audit import Outcome
from catalog.models import AuditEntry, Object, OutputRow, Withdrawal
from catalog.permission import ObjectKind
from catalog.plan import Aggregate, Enough, Filter, Moving, Plan, Project, Source, walk
from catalog.stored_form import from_stored
from catalog.topics import lab_topic
from secadmin.control.platform import Platform
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api, NewUser, Scene, add_stream, topics_of
from tests.unit.secadmin.xacml import policy_texts as x

pytestmark = embedded_only


@pytest.fixture
def role(scene: Scene) -> str:
    """The role of Bob, who may also add queries over the stream."""
    scene.grant("ADD QUERY", "system", "system")
    schema = scene.admin.get(f"/streams/{scene.stream}")["schema"]
    scene.grant("VIEW OBJECT", "schema", schema)
    return scene.role


def policy(scene: Scene, role: str, **parts: Any) -> Any:
    """Add a policy of the role on the scene's stream."""
    body = {"policy": "p", "role": role, "rows": "price > 5"} | parts
    return scene.admin.post(f"/streams/{scene.stream}/policies", **body)


def refused(caller: Api, path: str, status: int, **body: Any) -> str:
    """The words with which a call is refused."""
    response = caller.call("POST", path, json=body)
    assert response.status_code == status, response.text
    return str(response.json()["detail"])


def query(caller: Api, name: str, text: str, **more: Any) -> Any:
    return caller.post("/queries", name=name, language="sql", text=text, **more)


def plan_of(platform: Platform, output: str) -> Plan:
    with platform.catalog.read() as session:
        own = select(Object.id).where(Object.kind == ObjectKind.OUTPUT, Object.name == output)
        row = session.get_one(OutputRow, session.scalars(own).one())
        return from_stored(Plan, row.plan)


def subscribe(caller: Api, output: str) -> str:
    return str(caller.post(f"/outputs/{output}/subscriptions")["principal"])


def test_a_query_reads_what_the_policies_of_its_roles_show(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    policy(scene, role, rights=[{"name": "symbol"}, {"name": "price", "when": "price > 7"}])
    name = fresh("q")
    answer = query(scene.bob, name, f"SELECT * FROM {scene.stream}")
    assert [each["name"] for each in answer["outputs"][0]["attributes"]] == ["symbol", "price"]
    assert answer["notes"] == [
        f"{scene.stream} is read as the policies of your roles show it",
        f"the query asks for tuples of {scene.stream}; policies show only those with (price > 5)",
        f"price of {scene.stream} is NULL unless (price > 7)",
    ]
    root = plan_of(scene.platform, name).root
    match root:
        case Project(Filter(Source(relation)), columns):
            assert relation.name == scene.stream
            assert [column.name for column in columns] == ["symbol", "price"]
        case _:
            pytest.fail(f"not rewritten at the source: {root}")
    principal = subscribe(scene.bob, name)
    assert topics_of(scene.platform, principal)


def test_an_attribute_without_a_right_is_unknown(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    policy(scene, role, rows=None, rights=[{"name": "symbol"}])
    text = f"SELECT symbol FROM {scene.stream} WHERE price > 5"
    told = refused(scene.bob, "/queries", 422, name=fresh("q"), language="sql", text=text)
    assert "unknown attribute 'price'; there are: symbol" in told


def test_an_output_of_wider_rights_cannot_be_read(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    """The scene's output is the administrator's, whose roles no policy restricts."""
    kept = scene.subscribe().username
    assert topics_of(scene.platform, kept)
    policy(scene, role)
    assert topics_of(scene.platform, kept) == set(), "what was given before is cut"
    told = refused(scene.bob, f"/outputs/{scene.output}/subscriptions", 403)
    assert told.startswith(f"the output {scene.output} may show more of its streams")
    text = f"SELECT * FROM {scene.output}"
    assert told == refused(scene.bob, "/queries", 403, name=fresh("q"), language="sql", text=text)
    with scene.platform.catalog.read() as session:
        taken = select(Withdrawal).where(Withdrawal.principal == kept)
        rows = session.scalars(taken).all()
    assert rows and all(row.done_at is not None and not row.unproven for row in rows), "fenced"


def test_a_handle_shows_at_once_what_a_policy_takes(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    """The handle is a URI (002 §3.2). It shows its owner what the access may do now (§3.3)."""
    policy(scene, role)
    name = fresh("q")
    query(scene.bob, name, f"SELECT * FROM {scene.stream}")
    given = scene.bob.post(f"/outputs/{name}/subscriptions")
    path = urlsplit(given["handle"]).path
    shown = scene.bob.get(path)
    assert (shown["principal"], shown["handle"]) == (given["principal"], given["handle"])
    assert shown["active"] and {*shown["topics"]} == topics_of(scene.platform, given["principal"])
    policy(scene, role, rows="price > 9", replace=True)
    shown = scene.bob.get(path)
    assert (shown["active"], shown["topics"]) == (False, [])
    assert scene.admin.call("GET", path).status_code == 404
    scene.bob.delete(path)
    assert scene.bob.call("GET", path).status_code == 404


def test_roles_that_do_not_add_up_need_a_choice(
    scene: Scene, role: str, new_user: NewUser, fresh: Callable[[str], str]
) -> None:
    other = fresh("R")
    both = new_user(role, other)
    for permission in ("VIEW OBJECT", "READ TUPLE"):
        body = {"role": other, "permissions": [permission], "kind": "stream", "name": scene.stream}
        scene.admin.post("/grants", **body)
    policy(scene, role, rights=[{"name": "symbol"}])
    policy(scene, other, policy="other", rows=None, rights=[{"name": "price"}])
    text = f"SELECT * FROM {scene.stream}"
    told = refused(both, "/queries", 403, name=fresh("q"), language="sql", text=text)
    assert "do not add up; choose one of them with --as ROLE: " in told
    assert role in told and other in told
    name = fresh("q")
    answer = query(both, name, text, as_roles=[other])
    assert [each["name"] for each in answer["outputs"][0]["attributes"]] == ["price"]
    assert topics_of(scene.platform, subscribe(both, name))
    # Bob does not have the role for which the query is, so he gets nothing.
    body = {"role": role, "permissions": ["VIEW OBJECT", "SUBSCRIBE"], "kind": "output"}
    both.post("/grants", **body, name=name)
    assert topics_of(scene.platform, subscribe(scene.bob, name)) == set()
    stranger = fresh("R")
    chosen = {"language": "sql", "text": text, "as_roles": [other, stranger]}
    told = refused(both, "/queries", 403, name=fresh("q"), **chosen)
    assert told.startswith(f"you have not activated a role {stranger!r}; active roles: ")
    # Two roles that do not add up do not do so by being named.
    named = {"language": "sql", "text": f"AS {role}, {other} {text}"}
    assert "do not add up" in refused(both, "/queries", 403, name=fresh("q"), **named)


def test_a_query_for_several_roles_has_what_these_see_together(
    scene: Scene, role: str, new_user: NewUser, fresh: Callable[[str], str]
) -> None:
    """Issue 24: rows add up where attributes and windows are equal. A third role does not count."""
    other, third = fresh("R"), fresh("R")
    user = new_user(role, other, third)
    for each in (other, third):
        for permission in ("VIEW OBJECT", "READ TUPLE"):
            grant = {"role": each, "permissions": [permission], "kind": "stream"}
            scene.admin.post("/grants", **grant, name=scene.stream)
    policy(scene, role)
    policy(scene, other, policy="other", rows="symbol = 'ACME'")
    policy(scene, third, policy="third", rows=None, rights=[{"name": "symbol"}])
    text = f"SELECT * FROM {scene.stream}"
    assert "do not add up" in refused(
        user, "/queries", 403, name=fresh("q"), language="sql", text=text
    )
    name = fresh("q")
    query(user, name, f"AS {role}, {other} {text}")
    plan = str(user.get(f"/queries/{name}/plan", language="sql")["text"])
    assert "symbol = 'ACME'" in plan and " OR " in plan
    assert topics_of(scene.platform, subscribe(user, name))
    body = {"role": third, "permissions": ["VIEW OBJECT", "SUBSCRIBE"], "kind": "output"}
    user.post("/grants", **body, name=name)
    one = new_user(third)
    assert topics_of(scene.platform, subscribe(one, name)) == set(), "its role does not count"
    beside = {"language": "sql", "text": f"AS {role} {text}", "as_roles": [other]}
    assert "name the roles once" in refused(user, "/queries", 422, name=fresh("q"), **beside)


def test_rows_of_roles_add_up(
    scene: Scene, role: str, new_user: NewUser, fresh: Callable[[str], str]
) -> None:
    other = fresh("R")
    both = new_user(role, other)
    for permission in ("VIEW OBJECT", "READ TUPLE"):
        body = {"role": other, "permissions": [permission], "kind": "stream", "name": scene.stream}
        scene.admin.post("/grants", **body)
    policy(scene, role)
    policy(scene, other, policy="other", rows="symbol = 'ACME'")
    name = fresh("q")
    query(both, name, f"SELECT * FROM {scene.stream}")
    shown = both.get(f"/queries/{name}/plan", language="sql")["text"]
    assert "(price > 5) OR (symbol = 'ACME')" in shown
    assert topics_of(scene.platform, subscribe(both, name))


def test_nobody_reads_refused_records_of_what_is_restricted(scene: Scene, role: str) -> None:
    kept = scene.bob.post(f"/streams/{scene.stream}/quarantine")["principal"]
    assert topics_of(scene.platform, kept)
    policy(scene, role)
    assert topics_of(scene.platform, kept) == set()
    told = refused(scene.bob, f"/streams/{scene.stream}/quarantine", 403)
    assert told.startswith(f"refused records of {scene.stream} have all attributes")


def test_windows_are_as_coarse_as_the_policy_says(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    policy(
        scene,
        role,
        rights=[{"name": "price", "functions": ["avg", "count"]}],
        window={"size_ms": 120_000, "slide_ms": 60_000},
    )
    name = fresh("q")
    text = "SELECT avg(price) AS mean FROM {} GROUP BY HOP(ts, INTERVAL '{}' MINUTE, INTERVAL '{}' MINUTE)"  # noqa: E501
    fine = text.format(scene.stream, 1, 1)
    told = refused(scene.bob, "/queries", 422, name=name, language="sql", text=fine)
    assert "windows of event time, of 120 seconds or more with a slide of 60 seconds" in told
    single = f"SELECT price FROM {scene.stream}"
    told = refused(scene.bob, "/queries", 422, name=name, language="sql", text=single)
    assert "allow 'price' only as avg(price), count(price) over windows" in told
    query(scene.bob, name, text.format(scene.stream, 1, 2))
    assert topics_of(scene.platform, subscribe(scene.bob, name))


def test_windows_of_tuples_are_as_coarse_as_the_policy_says(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    """One at a time, and a query that comes later counts from when it was added."""
    time, price = ({"name": n, "functions": [f]} for n, f in (("ts", "max"), ("price", "avg")))
    policy(scene, role, rights=[time, price], window={"size": 5, "slide": 2})
    text = f"SELECT RSTREAM avg(price) AS mean FROM {scene.stream} [ROWS {{}} SLIDE 2]"
    first, second = fresh("q"), fresh("q")
    body = {"name": first, "language": "sql"}
    told = refused(scene.bob, "/queries", 422, **body, text=text.format(4))
    assert "windows of tuples, of 5 tuples or more with a slide of 2 or more" in told
    query(scene.bob, first, text.format(5))
    scene.write(lab_topic(scene.stream), "an earlier tuple")
    query(scene.bob, second, text.format(5))
    for name, begins in ((first, False), (second, True)):
        (moving,) = (n for n in walk(plan_of(scene.platform, name).root) if isinstance(n, Moving))
        assert isinstance(moving.input, Filter) is begins
    assert topics_of(scene.platform, subscribe(scene.bob, first))
    told = refused(scene.bob, f"/outputs/{second}/subscriptions", 409)
    assert "in one window at a time" in told


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"rows": "cost > 5"}, "rows, line 1, column 1: unknown attribute 'cost'"),
        ({"rows": "price"}, "a condition is true or false"),
        ({"rows": "price > 5 GROUP BY x"}, "rows, line 1, column 11"),
        ({"rows": "length(symbol) > 5"}, "it cannot use length"),
        ({"rows": None}, "the policy restricts nothing"),
        ({"rights": [{"name": "cost"}]}, "has no attribute 'cost'; there are: ts, symbol"),
        ({"rights": [{"name": "price"}] * 2}, "names each attribute once"),
        ({"rights": [{"name": "ts", "when": "price > 5"}]}, "is the event time"),
        ({"rights": [{"name": "symbol", "functions": ["avg"]}]}, "avg does not take symbol"),
        ({"rights": [{"name": "price", "functions": ["mode"]}]}, "unknown aggregate 'mode'"),
        ({"window": {"size_ms": 10, "slide_ms": 10}}, "name at least one attribute"),
        ({"window": {"size": 10, "slide": 2}}, "name at least one attribute"),
        ({"window": {"size": 10, "slide": 11}}, "a slide of 1 to its size"),
        ({"window": {"size": 1, "slide": 1}}, "greater than or equal to 2"),
        ({"minimum": 3}, "a minimum goes with"),
        ({"minimum": 65}, "less than or equal to 64"),
        ({"policy": "no name"}, "is not a usable object name"),
    ],
)
def test_a_policy_that_cannot_be_enforced_is_refused(
    scene: Scene, parts: dict[str, Any], told: str
) -> None:
    body = {"policy": "p", "role": scene.role, "rows": "price > 5"} | parts
    assert told in refused(scene.admin, f"/streams/{scene.stream}/policies", 422, **body)
    assert scene.admin.get(f"/streams/{scene.stream}/policies") == []


def test_a_minimum_of_senders_needs_topics_of_their_own(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    stream = fresh("in")
    add_stream(scene.admin, stream, fresh("s"), senders="shared")
    means = {"rows": None, "rights": [{"name": "price", "functions": ["avg"]}], "minimum": 2}
    body = {"policy": "p", "role": role, **means}
    told = refused(scene.admin, f"/streams/{stream}/policies", 422, **body)
    assert "a shared topic is one sender" in told
    policy(scene, role, **means)
    name = fresh("q")
    text = "SELECT avg(price) AS mean FROM {} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    query(scene.bob, name, text.format(scene.stream))
    (aggregate,) = [n for n in walk(plan_of(scene.platform, name).root) if isinstance(n, Aggregate)]
    assert aggregate.enough == Enough(2, ("price",))
    shown = scene.bob.call("GET", f"/queries/{name}/plan", params={"language": "sql"})
    assert shown.status_code == 422 and "a minimum of senders" in shown.text


def test_policies_are_listed_and_shown_to_who_may_change_them(scene: Scene) -> None:
    policy(scene, scene.role, rights=[{"name": "price", "when": "symbol = 'ACME'"}])
    path = f"/streams/{scene.stream}/policies"
    (listed,) = scene.admin.get(path)
    assert listed == scene.admin.get(f"{path}/p")
    assert (listed["role"], listed["rows"]) == (scene.role, "price > 5")
    assert listed["rights"] == [{"name": "price", "when": "symbol = 'ACME'", "functions": None}]
    assert refused(scene.admin, path, 409, policy="p", role=scene.role, rows="price > 6")
    for method, where in (("GET", path), ("GET", f"{path}/p"), ("DELETE", f"{path}/p")):
        assert scene.bob.call(method, where).status_code == 403
    assert scene.admin.call("DELETE", f"{path}/other").status_code == 404


def test_a_policy_in_xacml_is_a_view(scene: Scene, role: str, fresh: Callable[[str], str]) -> None:
    rows = x.obligation("filtering", ("filter-condition", "PRICE &gt; 5", "string"))
    shown = x.obligation("mapping", ("map-attribute", "symbol", "string"))
    text = x.policy(
        f"{x.rule()}<ObligationExpressions>{rows}{shown}</ObligationExpressions>",
        aim=x.role_target(role, scene.stream),
        name="weather",
    )
    answer = scene.admin.post("/xacml-policies", xacml=text)
    assert answer == {"policy": "weather", "stream": scene.stream, "role": role, "begun_anew": []}
    shown_policy = scene.admin.get(f"/streams/{scene.stream}/policies/weather")
    assert (shown_policy["rows"], shown_policy["xacml"]) == ("price > 5", text)
    answer = query(scene.bob, fresh("q"), f"SELECT * FROM {scene.stream}")
    assert [each["name"] for each in answer["outputs"][0]["attributes"]] == ["symbol"]
    # Only who may change the stream's permissions adds one, also in XACML.
    assert refused(scene.bob, "/xacml-policies", 403, xacml=text)
    broken = scene.admin.call("POST", "/xacml-policies", json={"xacml": text[:-3]}).json()
    assert broken["line"] == 1 and broken["column"] > 100


def test_a_policy_in_xacml_that_denies_beats_all_others_of_its_role(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    policy(scene, role)
    name, text = fresh("q"), f"SELECT * FROM {scene.stream}"
    query(scene.bob, name, text)
    principal = subscribe(scene.bob, name)
    assert topics_of(scene.platform, principal)
    denying = x.policy(x.rule("Deny"), aim=x.role_target(role, scene.stream), name="no")
    scene.admin.post("/xacml-policies", xacml=denying)
    assert topics_of(scene.platform, principal) == set()
    told = refused(scene.bob, "/queries", 422, name=fresh("q"), language="sql", text=text)
    assert f"the query gets nothing of {scene.stream}" in told
    scene.admin.delete(f"/streams/{scene.stream}/policies/no")
    query(scene.bob, fresh("q"), text)


def test_a_policy_is_tried_on_a_record(scene: Scene) -> None:
    policy(scene, scene.role, rights=[{"name": "symbol"}, {"name": "price", "functions": ["avg"]}])
    path = f"/streams/{scene.stream}/policies/try"
    record = {"ts": "2026-01-31T12:00:00Z", "symbol": "ACME", "price": 7}
    seen = {each["role"]: each for each in scene.admin.post(path, record=record)}
    assert seen[scene.role] == {
        "role": scene.role,
        "seen": True,
        "values": {"symbol": "ACME"},
        "aggregated": {"ts": [], "price": ["avg"]},
        "window_ms": None,
        "window_tuples": None,
    }
    (hidden,) = scene.admin.post(path, record={**record, "price": 5})
    assert (hidden["seen"], hidden["values"]) == (False, {})
    for wrong in ({}, {**record, "price": "7"}, {**record, "cost": 1}, {**record, "ts": "noon"}):
        assert refused(scene.admin, path, 422, record=wrong)


def test_two_versions_of_a_policy_are_compared(scene: Scene) -> None:
    policy(scene, scene.role, rights=[{"name": "symbol"}, {"name": "price"}])
    path = f"/streams/{scene.stream}/policies/compare"
    stored = {"stored": "p"}
    wider = {
        "policy": "p",
        "role": scene.role,
        "rows": "price > 3 AND price > 2",
        "rights": [{"name": "symbol", "when": "price > 5"}, {"name": "ts"}],
    }
    body = {"old_version": stored, "new_version": {"written": wider}}

    def changed(answer: list[dict[str, Any]]) -> dict[str, tuple[Any, Any, str]]:
        assert {each["role"] for each in answer} == {scene.role}
        return {
            each["attribute"] or each["part"]: (each["old"], each["new"], each["change"])
            for each in answer
            if each["change"] != "same"
        }

    found = changed(scene.admin.post(path, **body))
    # The condition of the symbol is that of the old rows: so it is shown in the same tuples.
    assert found.keys() == {"rows", "ts", "price"}
    assert found["rows"][0] == "price > 5" and found["rows"][2] == "more"
    assert found["ts"] == (None, "ts", "more")
    assert found["price"] == ("price", None, "less")
    record = {"ts": "2026-01-31T12:00:00Z", "symbol": "ACME", "price": 4}
    assert changed(scene.admin.post(path, **body, record=record)) == {
        "rows": (None, "the record", "more"),
        "ts": (None, '"2026-01-31T12:00:00Z"', "more"),
        "symbol": (None, "null", "more"),
    }
    removed = changed(scene.admin.post(path, old_version=stored, new_version=None))
    assert removed["rows"] == ("price > 5", "all", "more")
    # Nothing is changed, and the audit log says so.
    assert scene.admin.get(f"/streams/{scene.stream}/policies/p")["rows"] == "price > 5"
    with scene.platform.catalog.read() as session:
        entries = session.scalars(
            select(AuditEntry.object).where(
                AuditEntry.action == "compare policies", AuditEntry.outcome == Outcome.ALLOWED
            )
        )
        assert [*entries].count(f"stream {scene.stream}") == 3
    assert refused(scene.bob, path, 403, **body)
    for wrong, status in (
        ((None, None), 422),
        ((stored, {}), 422),
        ((stored, {**stored, "written": wider}), 422),
        ((stored, {"stored": "none"}), 404),
        ((stored, {"written": wider | {"rows": "cost > 5"}}), 422),
    ):
        versions = dict(zip(body, wrong, strict=True))
        assert refused(scene.admin, path, status, **versions)
    assert refused(scene.admin, path, 422, **body, record={"cost": 1})


def test_a_public_stream_has_no_policies(admin: Api, fresh: Callable[[str], str]) -> None:
    stream = fresh("in")
    add_stream(admin, stream, fresh("s"), public=True)
    told = refused(
        admin, f"/streams/{stream}/policies", 422, policy="p", role="ADMIN", rows="price > 5"
    )
    assert "is public, so everybody sees all of it" in told


def test_a_query_that_gets_nothing_is_refused_unless_that_is_accepted(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    """NR and PR (002 §3.5): the policy shows prices above 5."""
    policy(scene, role)
    nothing = f"SELECT price FROM {scene.stream} WHERE price < 3 AND symbol = 'A'"
    told = refused(scene.bob, "/queries", 422, name=fresh("q"), language="sql", text=nothing)
    assert f"the query gets nothing of {scene.stream}: (price < 3" in told
    assert "(price > 5" in told and "symbol" not in told
    added = query(scene.bob, fresh("q"), nothing, accept_empty=True)
    assert any("exclude each other" in note for note in added["notes"])
    part = query(scene.bob, fresh("q"), f"SELECT price FROM {scene.stream} WHERE price > 3")
    asked = f"tuples of {scene.stream} with (price > 3); policies show only those with (price > 5)"
    assert any(asked in note for note in part["notes"])
    whole = query(scene.bob, fresh("q"), f"SELECT price FROM {scene.stream} WHERE price > 7")
    assert len(whole["notes"]) == 1


def test_the_papers_customised_query_is_merged_with_the_policy(
    scene: Scene, role: str, fresh: Callable[[str], str]
) -> None:
    """Figure 4a: filter and map of the user, rows and attributes of the policy."""
    policy(scene, role, rights=[{"name": "symbol"}, {"name": "price"}])
    asked = "<Filter><FilterCondition>Price &lt; 9</FilterCondition></Filter>"
    text = f'<UserQuery><Stream name="{scene.stream}"/>{asked}MAP</UserQuery>'
    shown = text.replace("MAP", "<Map><Attribute>price</Attribute></Map>")
    name = fresh("q")
    scene.bob.post("/queries", name=name, language="user-query", text=shown)
    root = plan_of(scene.platform, name).root
    filters = [node for node in walk(root) if isinstance(node, Filter)]
    assert len(filters) == 2, "the user's and the policy's"
    hidden = text.replace("MAP", "<Map><Attribute>ts</Attribute></Map>")
    body = {"name": fresh("q"), "language": "user-query", "text": hidden}
    assert "no attribute 'ts'; there are: symbol, price" in refused(
        scene.bob, "/queries", 422, **body
    )
