"""Each node of a query is looked at once, from its text to the checked plan."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from catalog import plan_check
from catalog.analysis import analyse
from catalog.plan import Filter, Plan, Union
from catalog.stored_form import from_stored, to_stored
from secadmin.languages import parse_borealis
from tests.plans import whole
from tests.unit.catalog.plans import SOURCE, call, ref
from tests.unit.secadmin.languages.streams import Streams
from tests.unit.secadmin.languages.test_borealis import TRADE

BOXES = 128
# On a slow machine that does other things as well.
MOST_SECONDS = 1.0


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the nodes whose schema was computed, as often as it was."""
    found: list[str] = []
    schema_of = plan_check._schema

    def counting(node: Any, given: Any) -> Any:
        found.append(type(node).__name__)
        return schema_of(node, given)

    monkeypatch.setattr(plan_check, "_schema", counting)
    yield found


def _diagram(boxes: int) -> str:
    """One filter after another."""
    made = "".join(
        f'<box name="b{n}" type="filter"><in stream="{"trades" if n == 0 else f"s{n}"}"/>'
        f'<out stream="{"last" if n == boxes - 1 else f"s{n + 1}"}"/>'
        f'<parameter name="expression.0" value="price &gt; {n}"/></box>'
        for n in range(boxes)
    )
    arcs = f'<input stream="trades" schema="Trade"/><output stream="last"/>{TRADE}'
    return f'<borealis>{arcs}<query name="q">{made}</query></borealis>'


def _as_in_files(boxes: int) -> str:
    """Unions of one input, maps, and filters with an else output, all in turn."""
    made, last = [], "trades"
    for n in range(boxes):
        ends = [f"s{n}", f"e{n}"] if n % 3 == 2 else [f"s{n}"]
        kind = ("union", "map", "filter")[n % 3]
        parameters = {
            "union": "",
            "map": "".join(
                f'<parameter name="expression.{i}" value="{name}"/>'
                f'<parameter name="output-field-name.{i}" value="{name}"/>'
                for i, name in enumerate(("ts", "symbol", "price", "volume"))
            ),
            "filter": f'<parameter name="expression.0" value="price &gt; {n}"/>'
            '<parameter name="pass-on-false-port" value="1"/>',
        }[kind]
        outs = "".join(f'<out stream="{end}"/>' for end in ends)
        made.append(f'<box name="b{n}" type="{kind}"><in stream="{last}"/>{outs}{parameters}</box>')
        last = ends[-1]
    arcs = f'<input stream="trades" schema="Trade"/><output stream="{last}"/>{TRADE}'
    return f"<!DOCTYPE borealis SYSTEM 'borealis.dtd'><borealis>{arcs}{''.join(made)}</borealis>"


def test_a_diagram_as_in_files_is_fast() -> None:
    begin = time.perf_counter()
    ((_, checked),) = parse_borealis(_as_in_files(BOXES), Streams()).outputs
    assert time.perf_counter() - begin < MOST_SECONDS
    assert checked.root.depth == 1 + BOXES - -(-BOXES // 3)


def test_a_chain_of_filters_is_analysed_once(looked_at: list[str]) -> None:
    node: Any = SOURCE
    for _ in range(BOXES):
        node = Filter(node, call("is_null", ref("size")))
    checked = analyse(whole(node))
    assert len(looked_at) == BOXES + 1
    assert checked.root.depth == checked.root.nodes == BOXES + 1


def test_a_diagram_is_analysed_while_it_is_read_and_never_again(looked_at: list[str]) -> None:
    begin = time.perf_counter()
    ((_, checked),) = parse_borealis(_diagram(BOXES), Streams()).outputs
    read = len(looked_at)
    stored = json.loads(json.dumps(to_stored(checked.plan)))
    again = analyse(from_stored(Plan, stored))
    assert time.perf_counter() - begin < MOST_SECONDS
    assert (read, len(looked_at)) == (BOXES + 1, 2 * (BOXES + 1))
    assert again == checked


def test_a_box_that_several_others_read_is_looked_at_once(looked_at: list[str]) -> None:
    shared: Any = Filter(SOURCE, call("is_null", ref("size")))
    checked = analyse(whole(Union((shared, shared, shared))))
    assert sorted(looked_at) == ["Filter", "Source", "Union"]
    assert checked.root.nodes == 7
