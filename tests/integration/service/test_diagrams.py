"""Borealis diagrams over the API: times in numbers, notes, and plans as texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tests.integration.service.conftest import Api, add_stream

Fresh = Callable[[str], str]


def _diagram(stream: str, outputs: tuple[str, str]) -> str:
    counts, dear = outputs
    return f"""<?xml version="1.0"?>
<!DOCTYPE borealis SYSTEM "../../src/src/borealis.dtd">
<borealis>
  <input  stream="{stream}" schema="s"/>
  <output stream="{counts}"/>
  <output stream="{dear}"/>
  <schema name="s">
    <field name="ts"     type="int"/>
    <field name="symbol" type="string" size="8"/>
    <field name="price"  type="double"/>
  </schema>
  <deploy><node endpoint="127.0.0.1:15000" query="q"/></deploy>
  <box name="count" type="aggregate">
    <in  stream="{stream}"/>
    <out stream="{counts}"/>
    <parameter name="aggregate-function.0" value="count()"/>
    <parameter name="window-size-by" value="VALUES"/>
    <parameter name="window-size" value="60"/>
    <parameter name="advance" value="60"/>
    <parameter name="order-by" value="FIELD"/>
    <parameter name="order-on-field" value="ts"/>
    <parameter name="drop-empty-outputs" value="1"/>
    <parameter name="independent-window-alignment" value="1"/>
  </box>
  <box name="split" type="filter">
    <in  stream="{stream}"/>
    <out stream="cheap"/>
    <out stream="{dear}"/>
    <parameter name="expression.0" value="price &lt; 10"/>
    <parameter name="pass-on-false-port" value="1"/>
  </box>
</borealis>"""


def test_a_diagram_with_times_in_seconds(admin: Api, fresh: Fresh) -> None:
    stream, schema, query = fresh("in"), fresh("s"), fresh("q")
    outputs = (fresh("counts"), fresh("dear"))
    add_stream(admin, stream, schema, time_format="epoch_s")
    text = _diagram(stream, outputs)
    added = admin.post("/queries", name=query, language="borealis", text=text)
    assert [
        (each["name"], [(a["name"], a["type"]) for a in each["attributes"]])
        for each in added["outputs"]
    ] == [
        (outputs[0], [("ts", "timestamp"), ("agg_0", "bigint")]),
        (outputs[1], [("ts", "timestamp"), ("symbol", "string"), ("price", "double")]),
    ]
    (note,) = added["notes"]
    assert note.startswith("line 12: <deploy> is not used")

    plan = admin.get(f"/queries/{query}/plan")
    assert "text" not in plan
    # Streams have numbers within the plan: no id of the catalog.
    assert set(re.findall(r'"object_id": (\d+)', json.dumps(plan))) == {"1"}
    sql = admin.get(f"/queries/{query}/plan", language="sql")
    assert sql["outputs"] == plan["outputs"]
    first, second = sql["text"].split("-- output ")[1:]
    assert first.startswith(f"{outputs[0]}\nSELECT TUMBLE_START() AS ts, count(*) AS agg_0\n")
    again = second.removeprefix(f"{outputs[1]}\n")
    name = fresh("q")
    admin.post("/queries", name=name, language="sql", text=again)
    (mine,) = admin.get(f"/queries/{name}/plan")["outputs"]
    assert mine["attributes"] == plan["outputs"][1]["attributes"]
    diagram = admin.get(f"/queries/{query}/plan", language="borealis")["text"]
    assert diagram.count("<output stream=") == 2
    assert '"1m"' in diagram


def test_a_plan_that_a_language_cannot_say(admin: Api, fresh: Fresh) -> None:
    stream, query = fresh("in"), fresh("q")
    add_stream(admin, stream, fresh("s"))
    text = f"SELECT a.price FROM {stream} a JOIN {stream} b ON a.symbol = b.symbol AND a.ts = b.ts"
    added = admin.post("/queries", name=query, language="sql", text=text)
    assert added["notes"] == []
    refused = admin.call("GET", f"/queries/{query}/plan?language=borealis")
    assert refused.status_code == 422
    assert "called left and right" in refused.json()["detail"]
    assert admin.call("GET", f"/queries/{query}/plan?language=german").status_code == 422
