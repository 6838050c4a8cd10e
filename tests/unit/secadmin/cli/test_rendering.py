"""How answers look."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from catalog.expression import AttributeRef, Call, Literal
from catalog.pattern import (
    Definition,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
    Reading,
    Skip,
    SkipTo,
)
from catalog.plan import (
    Aggregation,
    Change,
    Column,
    Emission,
    Enough,
    Filter,
    Join,
    JoinKind,
    Match,
    Moving,
    MovingJoin,
    MovingWindow,
    Neighbour,
    Node,
    OrderKey,
    Plan,
    Project,
    Ranked,
    SessionWindow,
    Source,
    ToStream,
    Union,
    Window,
)
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.stored_form import to_stored
from secadmin.cli.main import app
from tests.plans import grouped
from tests.unit.secadmin.cli.running import Terminal, answering, problem

HOSTILE = "a\x1b]0;x\x07[bold]b[/bold]:smile:"


def server(folder: Path, answer: object, status: int = 200) -> Terminal:
    """A server that always answers the same."""
    return answering(folder / "p", lambda _: httpx.Response(status, json=answer)).with_session()


def test_a_table_for_pipes_has_tabs(tmp_path: Path) -> None:
    rows = [{"name": "alice", "locked": False, "roles": ["A", "B"]}]
    assert server(tmp_path, rows).ok("user", "list") == "name\tlocked\troles\nalice\tno\tA, B\n"


def test_a_table_for_people_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    name = "x" * 63
    shown = server(tmp_path, [{"kind": "stream", "name": name, "owner": "bob"}]).ok("catalog")
    assert shown.count("x") == 63


def test_json_is_the_servers_answer(tmp_path: Path) -> None:
    rows = [{"name": HOSTILE, "juniors": []}]
    terminal = server(tmp_path, rows)
    for arguments in (("--json", "role", "list"), ("role", "list", "--json")):
        shown = terminal.ok(*arguments)
        assert json.loads(shown) == rows
        assert "\x1b" not in shown


def test_nothing_to_show_is_said_on_stderr(tmp_path: Path) -> None:
    result = server(tmp_path, []).run("accesses")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no accesses" in result.stderr


def test_counts_are_named_numbers(tmp_path: Path) -> None:
    some = {"late": 3, HOSTILE: 1}
    for counts, shown in (({}, "none"), (some, "late 3, a\\x1b]0;x\\x07[bold]b")):
        fields = server(tmp_path, {"name": "q", "withheld": counts}).ok("query", "show", "q")
        assert f"withheld  {shown}" in fields


def test_a_type_in_the_help_is_whole() -> None:
    shown = CliRunner().invoke(app, ["schema", "add", "--help"]).output
    for type_ in ("ARRAY<type>", "MAP<STRING, type>", "STRUCT<name type, ...>", "ARRAY<STRING>"):
        assert type_ in " ".join(shown.split())


@pytest.mark.parametrize("colour", ["", "1"])
def test_names_are_shown_as_they_are(
    tmp_path: Path, colour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No escape sequence, no markup, no emoji of somebody else's making."""
    if colour:
        monkeypatch.setenv("FORCE_COLOR", colour)
        monkeypatch.setenv("COLUMNS", "200")
    shown = server(tmp_path, [{"kind": "stream", "name": HOSTILE, "owner": HOSTILE}]).ok("catalog")
    assert shown.count("a\\x1b]0;x\\x07[bold]b[/bold]:smile:") == 2
    assert "\x1b]" not in shown
    fields = server(tmp_path, {"user": HOSTILE, "roles": [HOSTILE]}).ok("whoami")
    assert fields.count("[bold]b[/bold]:smile:") == 2
    assert "\x1b]" not in fields


def test_an_error_is_shown_as_it_is(tmp_path: Path) -> None:
    terminal = answering(tmp_path / "p", lambda _: problem(404, HOSTILE)).with_session()
    assert terminal.run("catalog").stderr == f"error: a\\x1b]0;x\\x07{HOSTILE[7:]}\n"


def test_a_mistake_in_a_query_is_pointed_at(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT price\nFROM\tin9\n")
    detail = "line 2, column 6: there is no 'in9'"
    terminal = answering(tmp_path / "p", lambda _: problem(422, detail, line=2, column=6))
    result = terminal.with_session().run("query", "add", "q", str(file))
    assert result.exit_code == 2
    assert result.stderr == f"error: {detail}\n  2 | FROM in9\n    |      ^\n"


def test_the_language_is_told_by_the_extension(tmp_path: Path) -> None:
    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        attributes = [{"name": "price", "type": "double", "required": False}]
        return httpx.Response(
            201, json={"name": "q", "outputs": [{"name": "o", "attributes": attributes}]}
        )

    terminal = answering(tmp_path / "p", answer).with_session()
    for name in ("q.sql", "q.xml", "q.txt"):
        (tmp_path / name).write_text("text")
    assert "output o (price double)" in terminal.ok("query", "add", "q", str(tmp_path / "q.sql"))
    terminal.ok("query", "add", "q", str(tmp_path / "q.xml"), "--output", "o")
    terminal.ok("query", "add", "q", "-", "--language", "sql", text="SELECT")
    assert terminal.run("query", "add", "q", str(tmp_path / "q.txt")).exit_code == 2
    assert [body["language"] for body in sent] == ["sql", "borealis", "sql"]
    assert (sent[1]["output"], sent[2]["text"]) == ("o", "SELECT")


def _plan(*, updates: bool = False) -> object:
    schema = Schema((Attribute("ts", Type.TIMESTAMP, True), Attribute("price", Type.DOUBLE)))
    relation = Relation(1, "in1", RelationKind.STREAM, schema, "ts", 5000)
    dear = Call(">", (AttributeRef("price"), Literal(5.0, Type.DOUBLE)))
    known = Call("not", (Call("is_null", (AttributeRef("price"),)),))
    left = Project(
        Filter(Source(relation), Call("and", (dear, known))),
        (Column("ts", AttributeRef("ts")), Column("it's", Literal("it's", Type.STRING))),
    )
    joined = Join(
        Union((left, left)), Source(relation), ((AttributeRef("ts"), AttributeRef("ts")),), 0, 1000
    )
    total = Aggregation("total", "sum", AttributeRef("price"))
    keys = (Column("ts", AttributeRef("ts")),)
    count = Aggregation("n", "count", None)
    root = grouped(joined, Window(60_000, 30_000), keys, (total, count))
    return to_stored(Plan(root, Emission.UPDATES if updates else Emission.CLOSED))


def test_a_plan_is_a_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    attributes = [{"name": "total", "type": "double", "required": False}]
    answer = {"outputs": [{"name": "o", "plan": _plan(), "attributes": attributes}]}
    lines = server(tmp_path, answer).ok("query", "plan", "q").splitlines()
    assert [line.rstrip() for line in lines] == [
        "output o (total double)",
        "└── aggregate sum(price) AS total, count(*) AS n by ts",
        "    └── windows of 1m every 30s",
        "        └── join ts = ts, right's event time 0s to 1s after left's",
        "            ├── union",
        "            │   ├── project ts, 'it''s' AS it's",
        "            │   │   └── filter (price > 5.0) AND (NOT (price IS NULL))",
        "            │   │       └── stream in1, event time ts, lateness 5s",
        "            │   └── project ts, 'it''s' AS it's",
        "            │       └── filter (price > 5.0) AND (NOT (price IS NULL))",
        "            │           └── stream in1, event time ts, lateness 5s",
        "            └── stream in1, event time ts, lateness 5s",
    ]


OF_ALL = MovingWindow(rows=9, slide_rows=3, of_all=True)


def test_a_plan_of_moving_windows_is_a_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    schema = Schema((Attribute("ts", Type.TIMESTAMP), Attribute("price", Type.DOUBLE)))
    source = Source(Relation(1, "in1", RelationKind.STREAM, schema, "ts", 5000))
    names = [Column("price", AttributeRef("price"))]
    sides = [
        Project(Moving(source, window), tuple(names))
        for window in (MovingWindow(rows=2, partition=(AttributeRef("price"),)), OF_ALL)
    ]
    both = (AttributeRef("price"), AttributeRef("price"))
    dear = Call(">", (AttributeRef("price"), Literal(5.0, Type.DOUBLE)))
    root = ToStream(MovingJoin(sides[0], sides[1], (both,), dear), Change.RSTREAM)
    plan = to_stored(Plan(root))
    answer = {"outputs": [{"name": "o", "plan": plan, "attributes": []}]}
    lines = server(tmp_path, answer).ok("query", "plan", "q").splitlines()
    assert [line.rstrip() for line in lines[1:]] == [
        "└── to stream rstream",
        "    └── join of moving windows price = price, price > 5.0",
        "        ├── project price",
        "        │   └── moving window of 2 rows for each price",
        "        │       └── stream in1, event time ts, lateness 5s",
        "        └── project price",
        "            └── moving window of 9 rows every 3, hidden tuples counted",
        "                └── stream in1, event time ts, lateness 5s",
    ]


def test_a_pattern_is_shown_in_the_words_of_its_author(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    schema = Schema((Attribute("ts", Type.TIMESTAMP), Attribute("price", Type.DOUBLE)))
    source = Source(Relation(1, "in1", RelationKind.STREAM, schema, "ts", 5000))
    price = AttributeRef("price")
    few = PatternRepeat(PatternVariable("b"), 1, None, greedy=False)
    root = Match(
        source,
        (price,),
        (Reading("low", "last", "a", price), Reading("n", "count", None, None)),
        PatternSequence((PatternVariable("a"), few)),
        60_000,
        (Definition("b", Call(">", (price, AttributeRef("row.0")))),),
        (Reading("row.0", "last", None, price, moved=-2),),
        Skip(SkipTo.LAST, "b"),
        ("in1",),
    )
    per_row = replace(
        root,
        measures=(
            Reading("part", "classifier", None, None),
            Reading("next_low", "first", "a", price, 1, 2, final=True),
            Reading("behind", "last", None, price, moved=1),
        ),
        per_row=True,
    )
    answer = {"outputs": [{"name": "o", "plan": to_stored(Plan(per_row)), "attributes": []}]}
    told = " ".join(server(tmp_path, answer).ok("query", "plan", "q").split())
    assert "within 1m, each row of a match, for each price" in told
    assert "classifier() AS part, final next(first(a: price, 1), 2) AS next_low" in told
    assert "next(price) AS behind" in told
    answer = {"outputs": [{"name": "o", "plan": to_stored(Plan(root)), "attributes": []}]}
    lines = server(tmp_path, answer).ok("query", "plan", "q").splitlines()
    assert " ".join(line.strip(" └─│") for line in lines[1:]) == (
        "pattern a b+? within 1m, for each price, b AS price > prev(price, 2), last(a: price) AS "
        "low, count(*) AS n, skip to last b, no tuple of in1 between "
        "stream in1, event time ts, lateness 5s"
    )


def test_an_order_and_other_joins_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    schema = Schema((Attribute("ts", Type.TIMESTAMP), Attribute("price", Type.DOUBLE)))
    relation = Relation(1, "in1", RelationKind.STREAM, schema, "ts", 5000)
    window, price = Moving(Source(relation), MovingWindow(range_ms=0)), AttributeRef("price")
    equal = ((price, AttributeRef("p")),)
    other = Project(window, (Column("p", price),))
    joined = MovingJoin(window, other, equal, None, JoinKind.ANTI, nulls_equal=True)
    order = (OrderKey(price, descending=True), OrderKey(AttributeRef("ts")))
    root = Ranked(joined, (price,), order, 3, "rn", (Neighbour("before", price, 1),))
    plan = to_stored(Plan(ToStream(root, Change.ISTREAM)))
    answer = {"outputs": [{"name": "o", "plan": plan, "attributes": []}]}
    lines = server(tmp_path, answer).ok("query", "plan", "q").splitlines()
    ordered, below = (line.strip(" └─") for line in lines[2:4])
    shown = "by price descending, ts for each price, the first 3, numbered as rn"
    assert ordered == f"in an order {shown}, price of the row 1 back as before"
    assert below == "anti join of moving windows price = p, NULL equal to NULL"


def test_sessions_and_an_outer_join_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    schema = Schema((Attribute("ts", Type.TIMESTAMP), Attribute("price", Type.DOUBLE)))
    source = Source(Relation(1, "in1", RelationKind.STREAM, schema, "ts", 5000))
    price = AttributeRef("price")
    last = (Aggregation("closed", "last", price),)
    joined = Join(source, source, ((price, price),), 0, 1000, kind=JoinKind.LEFT)
    counting = replace(
        grouped(source, Window(60_000, 60_000), (), last), enough=Enough(2, ("price",))
    )
    roots: tuple[Node, ...] = (grouped(source, SessionWindow(90_000), (), last), joined, counting)
    outputs = [
        {"name": f"o{number}", "plan": to_stored(Plan(root)), "attributes": []}
        for number, root in enumerate(roots)
    ]
    shown = server(tmp_path, {"outputs": outputs}).ok("query", "plan", "q")
    assert "aggregate last(price) AS closed" in shown
    assert "windows of sessions, until nothing comes for 90s" in shown
    assert "AS closed, where 2 or more independent senders sent values of price" in shown
    assert "left join price = price, right's event time 0s to 1s after left's" in shown


@pytest.mark.parametrize(("option", "language"), [("--sql", "sql"), ("--xml", "borealis")])
def test_a_query_is_shown_in_a_language(tmp_path: Path, option: str, language: str) -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.path.removeprefix("/"), dict(request.url.params)))
        return httpx.Response(200, json={"outputs": [], "text": f"{HOSTILE}\n"})

    terminal = answering(tmp_path / "p", answer).with_session()
    assert terminal.ok("query", "show", "q", option) == f"a\\x1b]0;x\\x07{HOSTILE[7:]}\n"
    assert asked[0][0].endswith("queries/q/plan")
    assert asked[0][1] == {"language": language}


def test_a_query_is_shown_in_one_language(tmp_path: Path) -> None:
    result = server(tmp_path, {}).run("query", "show", "q", "--sql", "--xml")
    assert (result.exit_code, result.stderr) == (2, "error: give one of --sql and --xml\n")


def test_notes_on_a_diagram_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "q.xml"
    file.write_text("<borealis/>")
    added = {"name": "q", "outputs": [], "notes": ["line 3: <node> is not used"]}
    result = server(tmp_path / "p", added).run("query", "add", "q", str(file))
    assert (result.exit_code, result.stdout) == (0, "added the query q\n")
    assert result.stderr == "line 3: <node> is not used\n"


def test_a_plan_tells_that_it_gives_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    answer = {"outputs": [{"name": "o", "plan": _plan(updates=True), "attributes": []}]}
    lines = server(tmp_path, answer).ok("query", "plan", "q").splitlines()
    assert lines[0].rstrip() == "output o (), emit updates"


def test_a_plan_of_another_version_is_shown_as_json(tmp_path: Path) -> None:
    output = {"name": "o", "plan": {"node": "Novelty"}, "attributes": []}
    result = server(tmp_path, {"outputs": [output]}).run("query", "plan", "q")
    assert (result.exit_code, json.loads(result.stdout)) == (0, output)


@pytest.mark.parametrize(("intact", "code"), [(True, 0), (False, 1)])
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_damaged_audit_log_is_an_exit_code(
    tmp_path: Path, intact: bool, code: int, option: list[str]
) -> None:
    problem = None if intact else [3, "changed"]
    answer = {"entries": 7, "intact": intact, "first_problem": problem, "anchors": []}
    result = server(tmp_path, answer).run("audit", "verify", *option)
    assert result.exit_code == code
    assert ("NOT intact: entry 3: changed" in result.output) == (not intact and not option)


def test_why_a_user_does_not_get_a_record_is_told_category_by_category(tmp_path: Path) -> None:
    held, lacks = (
        {"means": f"tuples of stream {of}", "given_by": f"READ TUPLE on stream {of}", "held": has}
        for of, has in (("in1", True), ("in2", False))
    )
    answer = {"visible": False, "weak": False, "categories": [held, lacks], "obstacles": ["locked"]}
    shown = server(tmp_path, answer).run("output", "explain", "big", "ann", "2,64")
    assert shown.exit_code == 0
    words = [" ".join(line.split()) for line in shown.output.splitlines()]
    assert "tuples of stream in1 READ TUPLE on stream in1 has it" in words
    assert "tuples of stream in2 READ TUPLE on stream in2 does not have it" in words
    assert "ann does not get such a record, with all roles active" in words
    assert any("locked" in line for line in words)
    seen = {"visible": True, "weak": True, "categories": [], "obstacles": []}
    told = server(tmp_path, seen).run("output", "explain", "big", "ann", "none").output
    assert "everybody may see the record" in told and "weak delivery" in told


def test_explanations_list_all_ways(tmp_path: Path) -> None:
    reasons = [{"allowed": False, "reason": "no role"}, {"allowed": True, "reason": "owner"}]
    shown = server(tmp_path, {"allowed": True, "reasons": reasons}).ok(
        "explain", "bob", "view_object", "stream", "in1"
    )
    assert shown.splitlines() == [
        "allowed: VIEW OBJECT on stream in1 for bob",
        "  - no role",
        "  + owner",
    ]
