"""What is said of each node of a plan, and the image of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element  # only the type

import pytest
from defusedxml.ElementTree import fromstring  # type: ignore[import-untyped]

from catalog.expression import Literal
from catalog.pattern import PatternVariable, Reading
from catalog.placement import Placement
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Enough,
    Filter,
    JoinKind,
    Match,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    OrderKey,
    Project,
    Ranked,
    ToStream,
    Union,
)
from secadmin.cli.plan_explanation import ExplainedNode, explained
from secadmin.cli.plan_svg import MAX_BOXES, plan_svg
from tests.plans import AnyPlan, checked, grouped
from tests.unit.catalog.plans import (
    COUNT,
    JOINED,
    MINUTE,
    OTHER,
    PLACE,
    SOURCE,
    UPDATING,
    WINDOWED,
    S,
    call,
    ref,
    windowed,
)
from tests.unit.secadmin.cli.running import Terminal

_SVG = "{http://www.w3.org/2000/svg}"
RELATION = Moving(SOURCE, MovingWindow(rows=3))
ANTI = MovingJoin(
    RELATION,
    Moving(OTHER, MovingWindow(rows=3)),
    ((ref("symbol"), ref("name")),),
    kind=JoinKind.ANTI,
)
RANKED = Ranked(RELATION, (), (OrderKey(ref("price")),), 3)
GROUPED = Aggregate(
    RELATION, (Column("symbol", ref("symbol")),), (Aggregation("n", "count", None),)
)
MATCH = Match(SOURCE, (ref("symbol"),), (), PatternVariable("A"), 60_000)
LOOKING_AHEAD = replace(MATCH, measures=(Reading("behind", "last", None, ref("price"), moved=2),))


COUNTING = replace(grouped(SOURCE, MINUTE, (), (COUNT,)), enough=Enough(2))


def nodes(node: ExplainedNode) -> Iterator[ExplainedNode]:
    yield node
    for below in node.inputs:
        yield from nodes(below)


def stream(node: Node, change: Change = Change.ISTREAM) -> ToStream:
    return ToStream(node, change)


@pytest.mark.parametrize(
    ("plan", "name", "said"),
    [
        (SOURCE, "output", "fan-out here: each delivery class"),
        (SOURCE, "output", "gives: at TIMESTAMP, symbol STRING or NULL"),
        (SOURCE, "stream", "the one with which the tuple came"),
        (Filter(SOURCE, call("is_null", ref("price"))), "filter", "label: stays"),
        (WINDOWED, "aggregate", "label: of all tuples of the group"),
        (WINDOWED, "aggregate", "when the watermark has passed the window's end"),
        (windowed(4, 1), "aggregate", "a tuple is in 4"),
        (COUNTING, "aggregate", "if enough independent senders took part"),
        (UPDATING, "aggregate", "each time that tuples have come into the group"),
        (UPDATING, "output", "each update of a group"),
        (
            grouped(JOINED, MINUTE, (), (COUNT,)),
            "aggregate",
            "passed the window's end by 2s at most",
        ),
        (JOINED, "join", "the tuples of each side, for 1s and the lateness"),
        (stream(RELATION), "moving window", "200,000 tuples at most"),
        (stream(ANTI), "anti join of moving windows", "all that the other side can carry"),
        (stream(RANKED), "in an order", "of all rows up to its place"),
        (stream(RELATION, Change.DSTREAM), "to stream", "newer ones that made it go"),
        (stream(GROUPED, Change.UPSERT), "to stream", "of a deletion, also of newer ones"),
        (stream(RELATION, Change.RSTREAM), "to stream", "of all tuples in the window"),
        (stream(Filter(RELATION, call("is_null", ref("price")))), "filter", "at each instant"),
        (MATCH, "pattern", "the rows of the last 1m"),
        (replace(MATCH, per_row=True), "pattern", "all rows of a match together"),
        (LOOKING_AHEAD, "pattern", "and of 2 rows behind them (NEXT)"),
        (LOOKING_AHEAD, "pattern", "NEXT waits for later rows, up to 1m"),
    ],
)
def test_what_is_said_of_a_node(plan: AnyPlan, name: str, said: str) -> None:
    found = explained("alerts", checked(plan))
    own = [each for each in nodes(found) if each.name == name]
    assert own
    words = [f"{heading}: {text}" for each in own for heading, text in each.facts()]
    assert any(said.casefold() in text.casefold() for text in words), words


def test_the_fan_out_stands_where_the_semantics_says() -> None:
    found = explained("alerts", checked(WINDOWED), Placement.SOURCES)
    assert found.label.startswith("fan-out above the sources")


def drawn(plan: AnyPlan) -> Element:
    root: Element = fromstring(plan_svg(explained("alerts", checked(plan))))
    return root


@pytest.mark.parametrize("plan", [SOURCE, JOINED, UPDATING, stream(ANTI), MATCH])
def test_an_image_has_boxes_lines_and_text_only(plan: AnyPlan) -> None:
    root = drawn(plan)
    assert {each.tag.removeprefix(_SVG) for each in root.iter()} <= {
        *("svg", "title", "rect", "line", "text"),
    }
    names = {name for each in root.iter() for name in each.attrib}
    assert not {name for name in names if name.startswith("on") or "href" in name}
    found = explained("alerts", checked(plan))
    boxes = [each for each in root.iter(f"{_SVG}rect") if "x" in each.attrib]
    assert len(boxes) == len(list(nodes(found)))
    assert len(list(root.iter(f"{_SVG}line"))) == len(boxes) - 1


def test_boxes_are_in_the_image_and_do_not_overlap() -> None:
    root = drawn(Union((JOINED_ALONE, Union((JOINED_ALONE, JOINED_ALONE)))))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = [
        tuple(float(each.attrib[name]) for name in ("x", "y", "width", "height"))
        for each in root.iter(f"{_SVG}rect")
        if "x" in each.attrib
    ]
    for x, y, w, h in boxes:
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
    for (x, y, w, h), (x2, y2, w2, h2) in itertools.combinations(boxes, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


JOINED_ALONE = Project(JOINED, (Column("symbol", ref("symbol")),))


def test_text_is_only_shown() -> None:
    hostile = "</text><script>alert(1)</script>\x1b\0\ufffe&\u202e]]>"
    plan = Filter(SOURCE, call("=", ref("symbol"), Literal(hostile, S, PLACE)))
    image = plan_svg(explained("alerts", checked(plan)))
    root = fromstring(image)
    assert f"{_SVG}script" not in {each.tag for each in root.iter()}
    assert "script" in "".join(root.itertext())
    assert all(ord(character) >= 32 or character == "\n" for character in image)


def test_the_size_is_bounded() -> None:
    long = Literal("x" * 100_000, S, PLACE)
    wide = Union(tuple(Filter(SOURCE, call("=", ref("symbol"), long)) for _ in range(MAX_BOXES)))
    image = plan_svg(explained("alerts", checked(wide)))
    assert image.count("<rect") <= MAX_BOXES + 1
    assert "the rest of the plan is left out" in image
    assert len(image) < 2_000_000


def test_the_command(admin: Terminal, output: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    shown = admin.ok("query", "explain", output, "--svg", str(file))
    assert "label: fan-out here" in shown
    assert "sends: at once" in shown
    root = fromstring(file.read_text())
    assert output in "".join(root.itertext())
    assert file.stat().st_mode & 0o077 == 0
    assert admin.json("query", "explain", output)[output]["name"] == "output"
