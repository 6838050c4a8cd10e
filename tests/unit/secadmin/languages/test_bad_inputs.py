"""Naughty strings, SQL injection and XML bombs that others collected, in every place."""

from __future__ import annotations

import json
from contextlib import suppress
from xml.sax.saxutils import quoteattr

import pytest

from catalog.errors import InvalidInput
from catalog.expression import Literal
from catalog.plan import Project
from secadmin.languages import parse_borealis, parse_sql
from tests.bad_inputs import VECTORS, require_vectors, xml_names
from tests.lanes import number_of
from tests.unit.secadmin.languages.streams import Streams

# Read anew for each string and place: small.
DIAGRAM = """
<borealis>
  <input stream="trades" schema="Trade"/>
  <output stream="large"/>
  <schema name="Trade">
    <field name="ts" type="timestamp"/>
    <field name="symbol" type="string" size="8"/>
    <field name="price" type="double"/>
    <field name="volume" type="long"/>
  </schema>
  <query name="market">
    <box name="double" type="map">
      <in stream="trades"/>
      <out stream="doubled"/>
      <parameter name="expression.0" value="2 * volume"/>
      <parameter name="output-field-name.0" value="twice"/>
    </box>
    <box name="filter" type="filter">
      <in stream="doubled"/>
      <out stream="large"/>
      <parameter name="expression.0" value="twice &gt; 1000"/>
    </box>
  </query>
</borealis>
"""
PLACES = ('"twice &gt; 1000"', '"twice"', '"double"', '"doubled"')


@pytest.fixture(autouse=True)
def vectors() -> None:
    """Every test here needs them."""
    require_vectors()


def _strings() -> list[str]:
    found: list[str] = json.loads((VECTORS / "blns.json").read_text())
    for path in sorted(VECTORS.glob("sqli_*.txt")):
        found += path.read_text(errors="replace").splitlines()
    return found[:: number_of("BAD_INPUT_STEP", sample=3, long=1)]


def test_as_sql() -> None:
    for text in _strings():
        with pytest.raises(InvalidInput):
            parse_sql(text, Streams())


def test_behind_a_query() -> None:
    for text in _strings():
        for operand in (text, f"'{text}'"):
            with suppress(InvalidInput):
                parse_sql(f"SELECT price FROM trades WHERE symbol = {operand}", Streams())


def test_as_a_constant() -> None:
    for text in _strings():
        quoted = text.replace("'", "''")
        try:
            plan = parse_sql(f"SELECT '{quoted}' AS x FROM trades", Streams()).plan.root
        except InvalidInput as error:
            assert "control character" in str(error) or "surrogate" in str(error)
            continue
        assert isinstance(plan, Project)
        constant = plan.columns[0].expression
        assert isinstance(constant, Literal)
        assert constant.value == text


def test_as_a_name() -> None:
    for text in _strings():
        quoted = text.replace('"', '""')
        for query in (
            f'SELECT "{quoted}" FROM trades',
            f'SELECT price AS "{quoted}" FROM trades',
            f'SELECT price FROM "{quoted}"',
        ):
            try:
                plan = parse_sql(query, Streams()).plan.root
            except InvalidInput:
                continue
            assert isinstance(plan, Project)
            assert plan.columns[0].name.isidentifier()


def test_in_a_diagram() -> None:
    assert [name for name, _ in parse_borealis(DIAGRAM, Streams()).outputs] == ["large"]
    for text in _strings():
        for place in PLACES:
            with suppress(InvalidInput):
                parse_borealis(DIAGRAM.replace(place, quoteattr(text)), Streams())


@pytest.mark.parametrize(
    "name",
    [name for name in xml_names() if "simple" not in name],
)
def test_bombs_and_external_entities(name: str) -> None:
    with pytest.raises(InvalidInput, match="document types and entities"):
        parse_borealis((VECTORS / name).read_text(), Streams())


@pytest.mark.parametrize("name", ["defusedxml_simple.xml", "defusedxml_simple-ns.xml"])
def test_harmless_xml_is_read_and_is_no_diagram(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"is a <borealis> element|text between elements"):
        parse_borealis((VECTORS / name).read_text(), Streams())
