"""Walls: levels of users and the choice that closes the others, on the service (001 §3)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from catalog.audit import Outcome
from catalog.label import Label
from catalog.models import (
    Access,
    AccessTopic,
    AuditEntry,
    Company,
    ConflictClassRow,
    DeliveryClass,
    Withdrawal,
)
from catalog.permission import ObjectKind
from catalog.runs import QueryRun
from catalog.wanted import wanted_runs
from secadmin.control.platform import Platform
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import PASSWORD, Api, NewUser, add_stream, topics_of

pytestmark = embedded_only
COMPANIES = ["Company1", "Company2"]


@dataclass
class Market:
    """A stream whose tuples are of companies, an output over it, and who may read both."""

    admin: Api
    platform: Platform
    new_user: NewUser
    fresh: Callable[[str], str]
    conflict_class: str
    stream: str
    output: str
    role: str

    def user(self) -> Api:
        """A new user that may read everything here, and has no level."""
        return self.new_user(self.role)

    def level(self, user: Api, part: str | None) -> None:
        self.admin.put(f"/conflict-classes/{self.conflict_class}/levels/{user.user}", part=part)

    def choice(self, user: Api) -> str | None:
        (row,) = user.get("/wall")["levels"]
        assert row["conflict_class"] == self.conflict_class and row["by_choice"]
        part = row["part"]
        return None if part is None else str(part)

    def subscribe(self, user: Api, **body: Any) -> str:
        return str(user.post(f"/outputs/{self.output}/subscriptions", **body)["principal"])

    def rights(self, principal: str) -> set[str]:
        """The companies, and T, that the topics of the principal take."""
        with self.platform.catalog.read() as session:
            rows = session.scalars(
                select(DeliveryClass)
                .join(AccessTopic, AccessTopic.class_id == DeliveryClass.id)
                .join(Access, Access.id == AccessTopic.access_id)
                .where(Access.principal == principal, AccessTopic.leaving.is_(False))
            ).all()
            labels = [Label.from_wire(row.clearance) or Label() for row in rows]
            return {
                name
                for name, bit in self.bits().items()
                if any(label.bits >> bit & 1 for label in labels)
            }

    def bits(self) -> dict[str, int]:
        with self.platform.catalog.read() as session:
            own = select(ConflictClassRow).where(ConflictClassRow.name == self.conflict_class)
            row = session.scalars(own).one()
            companies = select(Company).where(Company.class_id == row.object_id)
            return {"T": row.trusted_bit} | {c.name: c.bit for c in session.scalars(companies)}

    def run(self, output: str) -> QueryRun:
        with self.platform.catalog.read() as session:
            for run in wanted_runs(session):
                if isinstance(run, QueryRun) and run.output.name == output:
                    return run
        raise AssertionError(output)


@pytest.fixture
def market(
    admin: Api, platform: Platform, new_user: NewUser, fresh: Callable[[str], str]
) -> Market:
    of, stream, output, role = fresh("COI"), fresh("s"), fresh("o"), fresh("R")
    schema = fresh("schema")
    admin.post("/conflict-classes", name=of, companies=COMPANIES)
    add_stream(admin, stream, schema, company_rules={of: "symbol"})
    text = f"SELECT * FROM {stream}"
    admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    admin.post("/roles", name=role)
    grants = {
        ("conflict-class", of): ["VIEW OBJECT"],
        ("stream", stream): ["VIEW OBJECT", "READ TUPLE"],
        ("output", output): ["VIEW OBJECT", "SUBSCRIBE"],
        ("schema", schema): ["VIEW OBJECT"],
        ("system", "system"): ["ADD QUERY"],
    }
    for (kind, name), permissions in grants.items():
        admin.post("/grants", role=role, permissions=permissions, kind=kind, name=name)
    return Market(admin, platform, new_user, fresh, of, stream, output, role)


def refused(caller: Api, path: str, status: int, method: str = "POST", **body: Any) -> str:
    response = caller.call(method, path, json=body)
    assert response.status_code == status, response.text
    return str(response.json()["detail"])


def test_a_level_says_which_companies_are_read(market: Market) -> None:
    held = {}
    for part in ("Company1", "T", "_", None):
        user = market.user()
        if part is not None:
            market.level(user, part)
        held[part] = market.rights(market.subscribe(user))
    assert held == {"Company1": {"Company1"}, "T": {"T"}, "_": set(), None: set()}


def test_who_has_t_has_companies_that_come_later(market: Market) -> None:
    ann, bob = market.user(), market.user()
    market.level(ann, "T")
    market.level(bob, "Company1")
    principals = [market.subscribe(each) for each in (ann, bob)]
    before = [topics_of(market.platform, each) for each in principals]
    of = market.conflict_class
    market.admin.post(f"/conflict-classes/{of}/companies", company="Company3")
    later = market.bits()["Company3"]
    assert [topics_of(market.platform, each) for each in principals] == before
    fed = {each.topic: each.clearance for each in market.run(market.output).classes}
    covers = [
        {fed[topic].bits >> later & 1 for topic in topics if topic in fed} for topics in before
    ]
    assert covers == [{1}, {0}]
    told = refused(market.admin, f"/conflict-classes/{of}/companies", 409, company="Company3")
    assert "has the company 'Company3' already" in told


def test_a_level_that_is_taken_is_fenced_and_may_be_given_again(market: Market) -> None:
    ann = market.user()
    market.level(ann, "Company1")
    kept = market.subscribe(ann, keep=True)
    before = topics_of(market.platform, kept)
    market.admin.delete(f"/conflict-classes/{market.conflict_class}/levels/{ann.user}")
    assert market.rights(kept) == set() and not before & topics_of(market.platform, kept)
    with market.platform.catalog.read() as session:
        taken = select(Withdrawal).where(Withdrawal.principal == kept)
        rows = session.scalars(taken).all()
        assert rows and all(row.done_at is not None and not row.unproven for row in rows)
    path = f"/conflict-classes/{market.conflict_class}/levels/{ann.user}"
    assert "has no level" in refused(market.admin, path, 404, "DELETE")
    market.level(ann, "Company2")
    assert market.rights(kept) == {"Company2"}


def test_the_first_company_that_is_read_closes_the_others(market: Market) -> None:
    of, path = market.conflict_class, f"/outputs/{market.output}/subscriptions"
    ann = market.user()
    market.level(ann, None)
    told = refused(ann, path, 422)
    assert f"add --company {of}=NAME. It closes the others of {of} to you, for good" in told
    assert market.choice(ann) is None, "what was refused chooses nothing"
    first = market.subscribe(ann, choices={of: "Company1"})
    assert market.choice(ann) == "Company1" and market.rights(first) == {"Company1"}
    assert market.rights(market.subscribe(ann)) == {"Company1"}, "no further word is needed"
    closed = f"you have chosen Company1 in {of}, and that has closed its other companies"
    assert refused(ann, path, 403, choices={of: "Company2"}) == closed
    assert refused(ann, f"/conflict-classes/{of}/choice", 403, choice="Company2") == closed
    unknown = refused(ann, f"/conflict-classes/{of}/choice", 422, choice="Company9")
    assert unknown == f"the conflict class {of} has no company 'Company9'"


def test_nobody_chooses_whose_level_was_set(market: Market) -> None:
    ann, bob = market.user(), market.user()
    market.level(ann, "Company1")
    path = f"/conflict-classes/{market.conflict_class}/choice"
    for user in (ann, bob):
        told = refused(user, path, 403, choice="Company1")
        assert told.endswith("the company is not yours to choose")


def test_of_two_sessions_that_choose_at_once_one_wins(market: Market) -> None:
    of, path = market.conflict_class, f"/outputs/{market.output}/subscriptions"
    for _ in range(5):
        ann = market.user()
        market.level(ann, None)
        with ThreadPoolExecutor(4) as pool:
            calls = [
                pool.submit(ann.call, "POST", path, json={"choices": {of: company}})
                for company in COMPANIES * 2
            ]
            answers = [call.result() for call in calls]
        chosen = market.choice(ann)
        for company, answer in zip(COMPANIES * 2, answers, strict=True):
            assert answer.status_code == (201 if company == chosen else 403), answer.text
        given = [answer.json()["principal"] for answer in answers if answer.is_success]
        assert [market.rights(each) for each in given] == [{chosen}] * 2


def test_an_aggregate_of_companies_counts_as_reading(market: Market) -> None:
    ann, output = market.user(), market.fresh("o")
    text = f"SELECT COUNT(*) AS many FROM {market.stream} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    ann.post("/queries", name=market.fresh("q"), language="sql", text=text, output=output)
    market.level(ann, None)
    assert "you have not chosen one" in refused(ann, f"/outputs/{output}/subscriptions", 422)


def test_only_a_reset_opens_the_wall_again_and_it_ends_all(market: Market) -> None:
    of = market.conflict_class
    ann = market.user()
    market.level(ann, None)
    kept = market.subscribe(ann, keep=True, choices={of: "Company1"})
    path = f"/conflict-classes/{of}/levels/{ann.user}"
    for method, body in (("PUT", {"part": "Company2"}), ("PUT", {"part": None}), ("DELETE", {})):
        response = market.admin.call(method, path, **({"json": body} if body else {}))
        assert response.status_code == 409 and "has chosen Company1" in response.text
    assert refused(ann, f"{path}/reset", 403)
    market.admin.post(f"{path}/reset")
    assert market.choice(ann) is None and topics_of(market.platform, kept) == set()
    with market.platform.catalog.read() as session:
        access = session.scalars(select(Access).where(Access.principal == kept)).one()
        assert access.ended_at is not None
        taken = session.scalars(select(Withdrawal).where(Withdrawal.principal == kept)).all()
        assert taken and all(row.done_at is not None and not row.unproven for row in taken)
        told = select(AuditEntry).where(AuditEntry.action == "reset wall")
        entry = session.scalars(told.order_by(AuditEntry.seq.desc())).first()
    assert entry is not None and entry.outcome == Outcome.CHANGED
    assert entry.detail["was"] == "Company1" and ann.user in entry.object
    ann.post(f"/conflict-classes/{of}/choice", choice="Company2")
    assert market.choice(ann) == "Company2"
    other = path.replace(ann.user, "admin")
    assert "does not choose" in refused(market.admin, f"{other}/reset", 409)


def test_a_query_runs_at_its_level_or_below(market: Market) -> None:
    ann, bits = market.user(), market.bits()
    market.level(ann, "Company1")
    asked = {"language": "sql", "text": f"AT LEVEL [T] SELECT * FROM {market.stream}"}
    told = refused(ann, "/queries", 403, name=market.fresh("q"), **asked)
    assert told == "your level is [Company1], and a query runs at this level or below"
    name = market.fresh("q")
    asked["text"] = f"AT LEVEL [Company1] SELECT symbol, level FROM {market.stream}"
    ann.post("/queries", name=name, **asked)
    run = market.run(name)
    (reach,) = run.reaches.values()
    assert reach.bits >> bits["Company1"] & 1 and not reach.bits >> bits["Company2"] & 1
    assert run.floor == Label.of(bits["Company1"])
    bob = market.user()
    market.level(bob, "Company2")
    grant = {"role": market.role, "permissions": ["VIEW OBJECT", "SUBSCRIBE"], "kind": "output"}
    ann.post("/grants", **grant, name=name)
    principal = str(bob.post(f"/outputs/{name}/subscriptions")["principal"])
    fed = {cls.topic: cls for cls in run.classes}
    own = topics_of(market.platform, principal)
    shown = [fed[topic].clearance.covers(run.floor) for topic in own if topic in fed]
    assert not any(shown), "what runs at a level is for those that dominate it"


def test_a_session_at_a_level_reads_and_asks_at_it_or_below(market: Market, anonymous: Api) -> None:
    """What is kept of it stays at this level, also when it is over."""
    of, bits = market.conflict_class, market.bits()
    ann = market.user()
    market.level(ann, "T")
    at: dict[str, Any] = {"user": ann.user, "password": PASSWORD, "levels": {of: "Company1"}}
    token = anonymous.post("/login", **at)["token"]
    low = Api(anonymous.client, token, ann.user)
    assert low.get("/whoami")["level"] == [f"{of}=Company1"]
    kept = market.subscribe(low, keep=True)
    assert market.rights(kept) == {"Company1"}
    name = market.fresh("q")
    text = f"SELECT symbol FROM {market.stream}"
    low.post("/queries", name=name, language="sql", text=text)
    run = market.run(name)
    (reach,) = run.reaches.values()
    assert run.floor == Label.of(bits["Company1"]), "what it writes is at its level"
    assert reach.bits >> bits["Company1"] & 1 and not reach.bits >> bits["Company2"] & 1
    above = {"name": market.fresh("q"), "language": "sql", "text": f"AT LEVEL [T] {text}"}
    assert "your level is [Company1]" in refused(low, "/queries", 403, **above)
    low.post("/logout")
    assert market.rights(kept) == {"Company1"}
    market.level(ann, "Company2")
    assert market.rights(kept) == set()
    told = refused(anonymous, "/login", 403, **{**at, "levels": {of: "Company1"}})
    assert "does not dominate 'Company1'" in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AT LEVEL [Company9] SELECT * FROM {}", "has no company 'Company9'"),
        ("AT LEVEL [_, T] SELECT * FROM {}", "2 parts, and there are 1 conflict classes"),
        ("AT LEVEL SELECT * FROM {}", "AT LEVEL without a level: write AT LEVEL"),
        ("AT LEVEL [T", "'[' is never closed"),
        ("AT LEVEL [_]", "a SELECT is missing"),
        ("SELECT 'x' AS level FROM {}", "the platform makes the level of a tuple"),
    ],
)
def test_a_wrong_level_is_refused_with_what_to_write(market: Market, text: str, words: str) -> None:
    asked = {"language": "sql", "text": text.format(market.stream), "name": market.fresh("q")}
    assert words in refused(market.admin, "/queries", 422, **asked)


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ({"company_rules": {"{}": "'Company9'"}}, 422, "has no company 'Company9'"),
        ({"company_rules": {"{}": "price"}}, 422, "gives a text"),
        ({"company_rules": {"{}": "HEADER x"}}, 422, "is SENDER, or an SQL expression"),
        ({"company_rules": {"nowhere": "symbol"}}, 404, "there is no conflict class 'nowhere'"),
        ({"company_rules": {"{}": "symbol"}, "public": True}, 422, "of no company"),
        ({"company_rules": {"{}": "SENDER"}, "senders": "shared"}, 422, "nobody knows the sender"),
    ],
)
def test_a_wrong_level_rule_is_refused(
    market: Market, more: dict[str, Any], status: int, words: str
) -> None:
    rules = more["company_rules"]
    named = {name.format(market.conflict_class): rule for name, rule in rules.items()}
    schema = market.admin.get(f"/streams/{market.stream}")["schema"]
    body = {"name": market.fresh("s"), "schema": schema, **more, "company_rules": named}
    assert words in refused(market.admin, "/streams", status, **body)


def test_the_level_of_a_sender_is_what_ingest_stamps(market: Market) -> None:
    ann, stream = market.user(), market.fresh("s")
    schema = market.admin.get(f"/streams/{market.stream}")["schema"]
    rules = {market.conflict_class: "SENDER"}
    market.admin.post("/streams", name=stream, schema=schema, company_rules=rules)
    sending = {"role": market.role, "permissions": ["SEND"], "kind": "stream", "name": stream}
    market.admin.post("/grants", **sending)
    assert market.admin.get(f"/streams/{stream}")["company_rules"] == rules

    def parts() -> set[str | None]:
        with market.platform.catalog.read() as session:
            streams = [s for run in wanted_runs(session) for s in getattr(run, "streams", ())]
        (found,) = [each for each in streams if each.relation.name == stream]
        return {part for sender in found.senders for part in sender.parts}

    assert parts() == {None}, "undecided: what it sends is refused"
    market.level(ann, "Company2")
    assert parts() == {"Company2"}


def test_a_conflict_class_stays_while_a_stream_has_it(market: Market) -> None:
    of = market.conflict_class
    assert "streams still have companies" in refused(
        market.admin, f"/conflict-classes/{of}", 409, "DELETE"
    )
    other = market.fresh("COI")
    market.admin.post("/conflict-classes", name=other, companies=["1", "2"])
    assert market.admin.get(f"/conflict-classes/{other}")["companies"] == ["1", "2"]
    market.admin.put(f"/conflict-classes/{other}/levels/admin", part="1")
    market.admin.delete(f"/conflict-classes/{other}")
    assert all(each["conflict_class"] != other for each in market.admin.get("/wall")["levels"])
    kinds = market.admin.get("/catalog", kind=ObjectKind.CONFLICT_CLASS)
    assert other not in {each["name"] for each in kinds}
