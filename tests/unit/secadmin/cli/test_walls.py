"""conflict-class and wall: companies, levels, the choice of a company, and its reset (001 §3)."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from catalog.audit import Outcome
from catalog.models import AuditEntry
from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service


@pytest.fixture
def companies(admin: Terminal) -> str:
    """A conflict class that everybody with the role READER may view."""
    admin.ok("conflict-class", "add", "COI1", "Company1", "Company2")
    admin.ok("role", "add", "READER")
    admin.ok("grant", "READER", "VIEW OBJECT", "conflict-class", "COI1")
    return "COI1"


def levels(terminal: Terminal, *user: str) -> list[tuple[str, str | None, bool]]:
    """Class, level and whether it is left to the user, as `wall show` tells it."""
    rows = terminal.json("wall", "show", *user)["levels"]
    return [(row["conflict_class"], row["part"], row["by_choice"]) for row in rows]


def test_companies_have_an_owner_who_adds_more(
    admin: Terminal, new_user: NewUser, companies: str
) -> None:
    ann = new_user("ann", "READER")
    assert ann.json("conflict-class", "show", companies)["companies"] == ["Company1", "Company2"]
    assert ann.run("conflict-class", "company", companies, "Company3").exit_code == 4
    assert ann.run("conflict-class", "add", "COI2", "A").exit_code == 4
    assert "has the company" in admin.ok("conflict-class", "company", companies, "Company3")
    assert admin.json("conflict-class", "show", companies)["companies"][-1] == "Company3"
    assert {"kind": "conflict-class", "name": companies, "owner": "admin"} in admin.json("catalog")


def test_a_level_is_set_shown_and_taken(admin: Terminal, new_user: NewUser, companies: str) -> None:
    ann = new_user("ann", "READER")
    assert "there is no level" in ann.run("wall", "show").output
    admin.ok("wall", "set", companies, "ann", "Company1")
    assert levels(ann) == levels(admin, "ann") == [(companies, "Company1", False)]
    assert "Company1" in ann.ok("wall", "show")
    assert "no company 'Company9'" in admin.run("wall", "set", companies, "ann", "Company9").output
    assert "--choice" in admin.run("wall", "set", companies, "ann").output
    for words in (("set", companies, "ann", "T"), ("take", companies, "ann"), ("show", "admin")):
        assert ann.run("wall", *words).exit_code == 4, "levels are for administrators"
    admin.ok("wall", "take", companies, "ann")
    assert levels(ann) == []


def test_who_may_not_view_the_class_is_told_what_a_choice_needs(
    admin: Terminal, new_user: NewUser, companies: str
) -> None:
    admin.ok("schema", "add", "message", "sender:string!")
    admin.ok("stream", "add", "log", "--schema", "message", "--company", "COI1=SENDER")
    admin.ok("grant", "ADMIN", "ADD", "QUERY", "on", "system")
    admin.ok("query", "add", "q", "-", "--language", "sql", text="SELECT sender FROM log")
    admin.ok("role", "add", "OTHER")
    admin.ok("grant", "OTHER", "VIEW OBJECT,", "SUBSCRIBE", "on", "output", "q")
    ann = new_user("ann", "OTHER")
    admin.ok("wall", "set", companies, "ann", "--choice")
    subscribe = ("subscribe", "q", "--dir", str(ann.folder / "d"), "--no-wait")
    told = " ".join(ann.run(*subscribe).output.split())
    assert "ask for VIEW OBJECT on conflict-class COI1, and then add --company COI1=NAME" in told
    admin.ok("grant", "OTHER", "VIEW OBJECT", "on", "conflict-class", companies)
    told = " ".join(ann.run(*subscribe).output.split())
    assert "add --company COI1=NAME" in told and "ask for" not in told
    ann.ok(*subscribe, "--company", "COI1=Company1")


def test_a_choice_closes_the_other_companies_until_a_reset(
    admin: Terminal, service: Service, new_user: NewUser, companies: str
) -> None:
    ann = new_user("ann", "READER")
    admin.ok("wall", "set", companies, "ann", "--choice")
    assert levels(ann) == [(companies, None, True)]
    assert "not chosen yet" in ann.ok("wall", "show")
    assert "and nobody else" in ann.ok("wall", "choose", companies, "Company1")
    closed = ann.run("wall", "choose", companies, "Company2")
    assert closed.exit_code == 4 and "has closed its other companies" in closed.output
    assert ann.run("wall", "reset", companies, "ann").exit_code == 4
    assert levels(ann) == [(companies, "Company1", True)]
    assert "have ended" in admin.ok("wall", "reset", companies, "ann")
    assert levels(ann) == [(companies, None, True)]
    ann.ok("wall", "choose", companies, "Company2")
    with service.catalog.read() as session:
        own = select(AuditEntry).where(AuditEntry.action == "reset wall")
        entries = session.scalars(own.order_by(AuditEntry.seq)).all()
        told = [(each.actor, each.outcome, each.detail.get("was")) for each in entries]
    assert told == [("ann", Outcome.DENIED, None), ("admin", Outcome.CHANGED, "Company1")]
