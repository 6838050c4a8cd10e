"""Borealis XML becomes plans; what is wrong with a diagram is told with its place."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from catalog.plan import Plan
from catalog.stored_form import from_stored, to_stored
from secadmin.languages import UnknownRelation, parse_borealis
from tests.unit.secadmin.languages.shorthand import show
from tests.unit.secadmin.languages.streams import Streams

DIAGRAM = Path(__file__).with_name("diagram.xml").read_text()
_LARGE = "filter(trades, (and (> volume 1000) (<> symbol 'TEST')))"
TRADE = (
    '<schema name="Trade"><field name="ts" type="timestamp"/><field name="symbol" type="string"/>'
    '<field name="price" type="double"/><field name="volume" type="int"/></schema>'
)


def _errors() -> list[Any]:
    cases = json.loads(Path(__file__).with_name("borealis_errors.json").read_text())
    return [pytest.param(case, id=case["id"]) for case in cases]


def _diagram(boxes: str, output: str) -> str:
    return (
        f'<borealis><input stream="trades" schema="Trade"/><output stream="{output}"/>{TRADE}'
        f'<query name="q">{boxes}</query></borealis>'
    )


def test_plans() -> None:
    outputs = dict(parse_borealis(DIAGRAM, Streams()).outputs)
    assert {name: show(plan) for name, plan in outputs.items()} == {
        "means": f"aggregate(union({_LARGE}, trades), 3600000/600000, "
        "[symbol=symbol, volume=volume], mean=avg(price), n=count(*))",
        "pairs": f"project(project(join(project({_LARGE}, "
        "left.ts=ts, left.symbol=symbol, left.price=price, left.volume=volume), "
        "project(quotes, right.at=at, right.symbol=symbol, right.bid=bid, right.open=open), "
        "left.symbol=right.symbol, -30000..300000, (< left.price right.bid)), "
        "symbol=left.symbol, gain=(- right.bid left.price)), symbol=(upper symbol))",
    }
    for plan in outputs.values():
        assert analyse(plan.plan) == plan


def test_a_window_that_gives_updates() -> None:
    advance = '<parameter name="advance" value="600000"/>'
    text = DIAGRAM.replace(advance, f'{advance}<parameter name="emit" value="UPDATES"/>')
    outputs = dict(parse_borealis(text, Streams()).outputs)
    assert show(outputs["means"]).startswith("updates(union(")


_WINDOW = (
    '<box name="{name}" type="aggregate"><in stream="trades"/><out stream="{name}"/>'
    '<parameter name="aggregate-function.0" value="count(price)"/>'
    '<parameter name="aggregate-function-output-name.0" value="n"/>'
    '<parameter name="window-size-by" value="VALUES"/><parameter name="window-size" value="60"/>'
    '<parameter name="advance" value="60"/><parameter name="order-by" value="ts"/>{emit}</box>'
)


def test_windows_that_give_updates_beside_others_are_refused() -> None:
    emit = '<parameter name="emit" value="UPDATES"/>'
    union = '<box name="u" type="union"><in stream="a"/><in stream="b"/><out stream="both"/></box>'
    for first, second, refused in (("", "", False), (emit, emit, False), (emit, "", True)):
        boxes = _WINDOW.format(name="a", emit=first) + _WINDOW.format(name="b", emit=second)
        text = _diagram(boxes + union, "both")
        if refused:
            with pytest.raises(InvalidInput, match="EMIT UPDATES goes for all windows"):
                parse_borealis(text, Streams())
        else:
            ((_, plan),) = parse_borealis(text, Streams()).outputs
            assert show(plan).count("updates" if first else "aggregate") == 2


def test_a_join_box_reads_an_aggregate_box() -> None:
    text = DIAGRAM
    for old, new in (
        (
            '<in stream="large"/>\n      <in stream="quotes"/>',
            '<in stream="means"/>\n      <in stream="quotes"/>',
        ),
        ('left-order-by" value="ts', 'left-order-by" value="window_end'),
        (" and left.price &lt; right.bid", ""),
        ("right.bid - left.price", "right.bid"),
    ):
        assert old in text
        text = text.replace(old, new)
    outputs = dict(parse_borealis(text, Streams()).outputs)
    assert "join(project(aggregate(union(" in show(outputs["pairs"])


@pytest.mark.parametrize("case", _errors())
def test_error(case: dict[str, Any]) -> None:
    text = DIAGRAM
    for old, new in case["replace"]:
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(InvalidInput) as caught:
        parse_borealis(text, Streams())
    assert str(caught.value) == case["error"]
    assert caught.value.position is not None


def test_places_after_characters_of_several_bytes() -> None:
    text = DIAGRAM.replace("'TEST'", "'\U0001f600&amp;' and \u00fcber = 1")
    line = next(line for line in text.splitlines() if "\u00fcber" in line)
    with pytest.raises(InvalidInput, match="cannot read") as caught:
        parse_borealis(text, Streams())
    assert caught.value.position is not None
    assert caught.value.position.column == line.index("\u00fcber") + 1


_DOCTYPE = '<!DOCTYPE borealis SYSTEM "borealis.dtd">'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"{_DOCTYPE}<borealis>&x;</borealis>", "not well-formed XML: undefined entity"),
        (f'{_DOCTYPE}<borealis><node at="&x;"/></borealis>', "undefined entity &x;"),
        (f"{_DOCTYPE}<borealis><node>&lt;</node></borealis>", "text between elements"),
        ("<!DOCTYPE borealis SYSTEM 'x' []><borealis/>", "document types and entities"),
        ("<!DOCTYPE borealis SYSTEM 'x' %y;><borealis/>", "illegal parameter entity reference"),
        (f"{_DOCTYPE}{_DOCTYPE}<borealis/>", "not well-formed XML"),
        ("<!DOCTYPE aurora SYSTEM 'x'><borealis/>", "document types and entities"),
        (f"{_DOCTYPE}<aurora/>", "the document is a <borealis> element"),
        ("<UserQuery><Filter>a</Filter></UserQuery>", "add it with --language user-query"),
    ],
)
def test_after_a_doctype_nothing_is_left_out(text: str, error: str) -> None:
    """A parser that knows of an outside DTD may drop a reference that only the DTD can explain."""
    with pytest.raises(InvalidInput, match=error):
        parse_borealis(text, Streams())


def test_unknown_input() -> None:
    with pytest.raises(UnknownRelation, match="no stream or output 'nowhere'"):
        parse_borealis(DIAGRAM.replace('"quotes"', '"nowhere"'), Streams())


def _chain(kind: str, parameters: str, count: int, *, also: str = "") -> str:
    names = ["trades", *(f"s{i}" for i in range(count))]
    boxes = "".join(
        f'<box name="b{i}" type="{kind}"><in stream="{names[i]}"/>'
        f"{also.replace('BEFORE', names[i])}"
        f'<out stream="{names[i + 1]}"/>{parameters}</box>'
        for i in range(count)
    )
    return _diagram(boxes, names[-1])


CHAINS = {
    "filters": _chain("filter", '<parameter name="expression.0" value="price &gt; 1"/>', 128),
    "unions": _chain("union", "", 128, also='<in stream="trades"/>'),
}


@pytest.mark.parametrize("name", CHAINS)
def test_128_boxes_in_a_row(name: str) -> None:
    """If each doubled what there is to do, it would never end."""
    (_, plan), *_ = parse_borealis(CHAINS[name], Streams()).outputs
    assert from_stored(Plan, json.loads(json.dumps(to_stored(plan.plan)))) == plan.plan


def test_128_boxes_of_which_each_is_an_output() -> None:
    outputs = "".join(f'<output stream="s{i}"/>' for i in range(127))
    text = CHAINS["filters"].replace("<output", f"{outputs}<output", 1)
    assert len(parse_borealis(text, Streams()).outputs) == 128


def _large_outputs(count: int) -> str:
    names = [f"s{i}" for i in range(count)]
    condition = f"volume IN ({','.join('1' * 1_300)})"
    boxes = "".join(
        f'<box name="{name}" type="filter"><in stream="trades"/><out stream="{name}"/>'
        f'<parameter name="expression.0" value="{condition}"/></box>'
        for name in names
    )
    outputs = "".join(f'<output stream="{name}"/>' for name in names[:-1])
    return _diagram(boxes, names[-1]).replace("<output", f"{outputs}<output", 1)


@pytest.mark.long
def test_outputs_have_so_many_parts_together() -> None:
    assert len(parse_borealis(_large_outputs(12), Streams()).outputs) == 12
    with pytest.raises(InvalidInput, match=r"more than 50000 parts .* together"):
        parse_borealis(_large_outputs(13), Streams())


def _ports(boxes: int, ports: int, first: str) -> str:
    """Filters of so many outputs, which all have `first` in their conditions."""
    made = []
    for box in range(boxes):
        names = [f"p{box}_{port}" for port in range(ports)]
        expressions = [first, *(["TRUE"] * (ports - 1))]
        made.append(
            f'<box name="b{box}" type="filter"><in stream="trades"/>'
            + "".join(f'<out stream="{name}"/>' for name in names)
            + "".join(
                f'<parameter name="expression.{number}" value="{each}"/>'
                for number, each in enumerate(expressions)
            )
            + "</box>"
        )
    outputs = "".join(f'<output stream="p{box}_0"/>' for box in range(boxes))
    head = f'<input stream="trades" schema="Trade"/>{outputs}{TRADE}'
    return f"<borealis>{head}{''.join(made)}</borealis>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_ports(1, 101, "TRUE"), "at most 100 expressions"),
        (_ports(12, 100, f"volume IN ({','.join('1' * 1_100)})"), "more than 200000 parts"),
        (_chain("union", "", 128, also='<in stream="BEFORE"/>'), "more than 1000 boxes"),
        (_chain("filter", '<parameter name="expression.0" value="TRUE"/>', 500), "140 boxes"),
        (_chain("filter", '<parameter name="expression.0" value="TRUE"/>', 1_001), "1000 boxes"),
        (" " * 300_000, "at most 256 KiB"),
        ("<a>" * 20_000, "nested more than 8 deep"),
        (
            _chain("map", f'<parameter name="expression.0" value="{"(" * 99}"/>', 1),
            "output-field-name.0",
        ),
        (
            _chain("filter", f'<parameter name="expression.0" value="{"(" * 99}"/>', 1),
            "nested more than 30 deep",
        ),
    ],
    ids=[
        "ports",
        "long-ports",
        "doubling",
        "row",
        "boxes",
        "long",
        "elements",
        "missing",
        "parentheses",
    ],
)
def test_limits(text: str, words: str) -> None:
    start = time.process_time()
    with pytest.raises(InvalidInput, match=words):
        parse_borealis(text, Streams())
    assert time.process_time() - start < 30  # a hang is what must not be


def test_figure_5_of_the_paper_lacks_the_parameter_s_name() -> None:
    text = _diagram(
        '<box name="myBox" type="aggregate"><input stream="trades"/><output stream="output"/>'
        "<parameter /></box>",
        "output",
    )
    with pytest.raises(InvalidInput, match="<parameter> needs an attribute 'name'"):
        parse_borealis(text, Streams())
