"""Policies on the command line, against the real service."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from secadmin.cli import policy_words
from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.xacml import policy_texts as x

TEXT = "SELECT * FROM in1"


def grant(admin: Terminal, role: str) -> None:
    """Let the role query and read the stream."""
    admin.ok("grant", role, "ADD QUERY", "system")
    admin.ok("grant", role, "VIEW OBJECT", "schema", "trades")
    admin.ok("grant", role, "VIEW OBJECT", "READ TUPLE", "stream", "in1")


def test_a_policy_is_added_listed_shown_tried_and_removed(
    admin: Terminal, stream: str, new_user: NewUser
) -> None:
    ann = new_user("ann", "DESK")
    grant(admin, "DESK")
    rights = ("--show", "symbol", "--show", "price when symbol = 'ACME'")
    policy = ("policy", "add", stream, "desk", "--role", "DESK")
    added = admin.ok(*policy, "--rows", "price > 5", *rights)
    assert "added the policy desk of DESK on in1" in added
    (listed,) = admin.json("policy", "list", stream)
    assert (listed["policy"], listed["role"], listed["rows"]) == ("desk", "DESK", "price > 5")
    shown = admin.ok("policy", "show", stream, "desk")
    assert "symbol; price when symbol = 'ACME'" in shown
    record = '{"ts": "2026-01-31T12:00:00Z", "symbol": "BETA", "price": 7}'
    assert 'symbol="BETA", price=null' in admin.ok("policy", "try", stream, record)
    ann.ok("query", "add", "q", "-", "--language", "sql", text=TEXT)
    assert "replaced the policy" in admin.ok(*policy, "--show", "ts", "--replace")
    assert ann.json("query", "show", "q")["running"], "it begins anew by itself"
    assert "removed the policy desk on in1" in admin.ok("policy", "remove", stream, "desk")
    assert admin.json("policy", "list", stream) == []


def test_windows_and_aggregates(admin: Terminal, stream: str) -> None:
    admin.ok("role", "add", "DESK")
    options = ("--aggregate", "price:avg,max", "--window", "5m/1m", "--tumbling", "--minimum", "3")
    admin.ok("policy", "add", stream, "desk", "--role", "DESK", *options)
    shown = admin.ok("policy", "show", stream, "desk")
    assert "avg(price), max(price)" in shown
    assert "5m or more, slide 1m or more, tumbling" in shown
    assert "of 3 independent senders or more" in shown
    assert "ts as the time of windows" in shown


def test_windows_of_tuples(admin: Terminal, stream: str, tmp_path: Path) -> None:
    grant(admin, "DESK") if admin.ok("role", "add", "DESK") else None
    options = ("--aggregate", "price:avg", "--aggregate", "ts:max", "--tuples", "5/2")
    policy = ("policy", "add", stream, "desk", "--role", "DESK")
    admin.ok(*policy, *options, "--tumbling")
    shown = admin.ok("policy", "show", stream, "desk")
    assert "5 tuples or more, slide 2 or more, tumbling" in shown
    record = '{"ts": "2026-01-31T12:00:00Z", "symbol": "BETA", "price": 7}'
    assert "in windows of 5 tuples or more: " in admin.ok("policy", "try", stream, record)
    file = tmp_path / "now.json"
    file.write_text(admin.ok("policy", "show", stream, "desk", "--json"))
    compare = ("policy", "compare", stream, "desk", str(file))
    assert "both versions show the same" in admin.run(*compare).output
    admin.ok(*policy, "--aggregate", "price:avg", "--window", "5m", "--replace")
    changes = {each["part"]: each for each in admin.json(*compare)}
    assert changes["windows"]["new"] == "of 5 tuples or more, slide 2 or more, tumbling"
    assert changes["windows"]["change"] == "other"


@pytest.mark.parametrize(
    "options",
    [
        ("--show", "a b c"),
        ("--aggregate", "price"),
        ("--aggregate", "price:avg,,max"),
        ("--window", "wide", "--aggregate", "price:avg"),
        ("--tumbling", "--aggregate", "price:avg"),
        ("--tuples", "5m", "--aggregate", "ts:max"),
        ("--tuples", "", "--aggregate", "ts:max"),
        ("--tuples", "5/6", "--aggregate", "ts:max"),
        ("--tuples", "5", "--window", "5m", "--aggregate", "ts:max"),
        (),
    ],
)
def test_what_is_no_policy_is_refused(
    admin: Terminal, stream: str, options: tuple[str, ...]
) -> None:
    admin.ok("role", "add", "DESK")
    line = ("policy", "add", stream, "desk", "--role", "DESK", *options)
    assert admin.run(*line).exit_code == 2
    assert admin.json("policy", "list", stream) == []


def test_a_query_is_added_as_a_role(admin: Terminal, stream: str, new_user: NewUser) -> None:
    ann = new_user("ann", "DESK", "BACK")
    for role, name in (("DESK", "symbol"), ("BACK", "price")):
        grant(admin, role)
        admin.ok("policy", "add", stream, role, "--role", role, "--show", name)
    refused = ann.run("query", "add", "q", "-", "--language", "sql", text=TEXT)
    assert (
        refused.exit_code == 4 and "choose one of them with --as ROLE: BACK, DESK" in refused.output
    )
    added = ann.ok("query", "add", "q", "-", "--language", "sql", "--as", "DESK", text=TEXT)
    assert "output q (symbol string)" in added
    ann.ok("query", "add", "BACK.q", "-", "--language", "sql", text=TEXT)
    admin.ok("stream", "add", "in2", "--schema", "trades")
    for role in ("DESK", "BACK"):
        admin.ok("grant", role, "VIEW OBJECT", "READ TUPLE", "stream", "in2")
        admin.ok("grant", role, "VIEW CATALOG", "system")
    both = ("--as", "DESK", "--as", "BACK")
    ann.ok("query", "add", "both", "-", "--language", "sql", *both, text="SELECT ts FROM in2")
    spaces = [ann.json("query", "list", "--role", role) for role in ("DESK", "BACK", "NOBODY")]
    assert [[row["name"] for row in rows] for rows in spaces] == [["q"], ["BACK.q"], []]


def test_a_policy_is_loaded_from_xacml(admin: Terminal, stream: str, tmp_path: Path) -> None:
    admin.ok("role", "add", "DESK")
    rows = x.obligation("filtering", ("filter-condition", "price &gt; 5", "string"))
    inside = f"{x.rule()}<ObligationExpressions>{rows}</ObligationExpressions>"
    file = tmp_path / "desk.xml"
    file.write_text(x.policy(inside, aim=x.role_target("DESK", stream), name="desk"))
    assert "added the policy desk of DESK on in1" in admin.ok("policy", "load", str(file))
    assert "exacml:obligation:stream-filtering" in admin.ok("policy", "show", stream, "desk")
    file.write_text(x.policy(inside, aim=x.target("DESK")))
    refused = admin.run("policy", "load", str(file))
    assert refused.exit_code == 2 and "does not name a stream" in refused.output


@pytest.mark.parametrize("mapped", ["symbol", "symbl"])
@pytest.mark.parametrize("windowed", ["price:avg", "pric:avg"])
def test_a_mistyped_attribute_of_a_window_is_told(
    admin: Terminal, stream: str, tmp_path: Path, mapped: str, windowed: str
) -> None:
    """What the map and the window do not share is hidden, so a mistake would hide an attribute."""
    admin.ok("role", "add", "DESK")
    window = x.obligation(
        "window-aggregation",
        ("window-type", "time", "string"),
        ("window-size", "60", "integer"),
        ("window-step", "60", "integer"),
        ("window-attr", windowed, "string"),
    )
    shown = (("map-attribute", name, "string") for name in ("price", mapped))
    both = f"{window}{x.obligation('mapping', *shown)}"
    inside = f"{x.rule()}<ObligationExpressions>{both}</ObligationExpressions>"
    file = tmp_path / "desk.xml"
    file.write_text(x.policy(inside, aim=x.role_target("DESK", stream), name="desk"))
    result = admin.run("policy", "load", str(file))
    wrong = [name for name in ("pric", "symbl") if name in (windowed.partition(":")[0], mapped)]
    if not wrong:
        assert result.exit_code == 0
    else:
        assert result.exit_code == 2 and f"no attribute '{wrong[0]}'" in result.output


def test_versions_of_a_policy_are_compared(admin: Terminal, stream: str, tmp_path: Path) -> None:
    admin.ok("role", "add", "DESK")
    policy = ("policy", "add", stream, "desk", "--role", "DESK", "--aggregate", "price:avg")
    admin.ok(*policy)
    compare = ("policy", "compare", stream, "desk")
    assert "no role of these policies holds READ TUPLE on in1" in admin.ok(*compare)
    grant(admin, "DESK")
    lines = [line.split("\t") for line in admin.ok(*compare).splitlines()]
    assert ["DESK", "price", "avg(price)", "price", "more"] in lines
    file = tmp_path / "now.json"
    file.write_text(admin.ok("policy", "show", stream, "desk", "--json"))
    assert "both versions show the same" in admin.run(*compare, str(file)).output
    rows = x.obligation("filtering", ("filter-condition", "price &gt; 5", "string"))
    inside = f"{x.rule()}<ObligationExpressions>{rows}</ObligationExpressions>"
    xacml = tmp_path / "desk.xml"
    xacml.write_text(x.policy(inside, aim=x.role_target("DESK", stream), name="desk"))
    answer = admin.json(*compare, str(xacml))
    assert {each["attribute"]: each["change"] for each in answer}["symbol"] == "more"
    record = '{"ts": "2026-01-31T12:00:00Z", "symbol": "BETA", "price": 3}'
    answer = admin.json(*compare, str(xacml), "--record", record)
    assert {each["attribute"]: each["change"] for each in answer}["price"] == "less"
    file.write_text("[1]")
    refused = admin.run(*compare, str(file))
    assert refused.exit_code == 2 and "neither XACML nor a JSON object" in refused.output


def test_doctests() -> None:
    assert doctest.testmod(policy_words).failed == 0
