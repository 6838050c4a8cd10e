"""`deploy try`: the example of docs/try.md as it is there, and files that cannot be used."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog.errors import InvalidInput
from deploy.environment import ROOT
from deploy.trial.command import try_query
from deploy.trial.world import read_world
from secadmin.cli.screen import Screen


def _block(kind: str) -> str:
    [text] = re.findall(rf"```{kind}\n(.*?)```", (ROOT / "docs/try.md").read_text(), re.DOTALL)
    return str(text)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The query and the data of the page."""
    query, data = tmp_path / "volume.sql", tmp_path / "trades.json"
    query.write_text(_block("sql"))
    data.write_text(_block("json"))
    return query, data


def test_the_example(
    spark: SparkSession, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    image = files[0].with_name("plan.svg")
    assert try_query(*files, Screen(), svg=image) == 0
    assert "aggregate" in image.read_text()
    printed = capsys.readouterr().out
    assert _block("text").rstrip() in printed
    assert "price: expected double" in printed
    assert "└── aggregate sum(quantity) AS total by symbol" in printed.replace("    ", "")


def test_as_json(
    spark: SparkSession, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    query, data = files
    query.write_text(
        "SELECT l.symbol FROM london AS l JOIN newyork AS n ON l.symbol = n.symbol "
        "AND n.ts BETWEEN l.ts AND l.ts + INTERVAL '1' MINUTE"
    )
    world = json.loads(data.read_text())
    world["streams"]["london"]["records"] = "london.csv"
    data.with_name("london.csv").write_text("ts,symbol\n2026-11-20T10:00:00Z,VOD\nnever,VOD\n")
    data.write_text(json.dumps(world))
    found: dict[bool, dict[str, Any]] = {}
    for weak in (False, True):
        assert try_query(query, data, Screen(json=True), weak=weak) == 0
        found[weak] = json.loads(capsys.readouterr().out)
    pair = {"value": {"symbol": "VOD"}, "label": ["london", "newyork"]}
    strong, weakly = found[False]["outputs"]["volume"], found[True]["outputs"]["volume"]
    assert strong == {"every": [pair], "of": {"ann": [], "bob": [pair]}}
    assert weakly["of"] == {"ann": [pair], "bob": [pair]}
    [refused] = found[False]["refused"]
    assert refused["stream"] == "london"
    assert refused["reason"].startswith("line 3: ts: ")


def test_a_mistake_in_the_query_shows_its_place(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files[0].write_text("SELECT symbol\nFROM paris")
    assert try_query(*files, Screen()) == InvalidInput.exit_code
    shown = capsys.readouterr().err.splitlines()
    assert "line 2, column 6: no stream or output 'paris'" in shown[0]
    assert shown[-1].endswith("^")


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"\xff", "volume.sql is not text in UTF-8"), (b"", "volume.sql is empty")],
)
def test_a_query_without_a_text_is_told(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], content: bytes, told: str
) -> None:
    files[0].write_bytes(content)
    assert try_query(*files, Screen()) == InvalidInput.exit_code
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (["streams"], {}, "streams: name at least one"),
        (["streams", "london", "attributes"], ["ts"], "'ts' is not an attribute"),
        (["streams", "london", "attributes"], "ts:timestamp", "write name:type"),
        (
            ["streams", "london", "attributes"],
            ["a:bigit"],
            "london.attributes: unknown type 'bigit'",
        ),
        (["streams", "london", "event_time"], "symbol", "no timestamp attribute"),
        (["streams", "london", "public"], 1, "write true or false"),
        (["streams", "london", "lateness"], 1, "unknown field 'lateness'; there are attributes,"),
        (["streams", "london", "time_format"], "roman", "streams.london"),
        (["streams", "london", "records"], 7, "write a list of objects, or the name of a file"),
        (["streams", "bad name"], {}, "bad name"),
        (["subscribers", "ann"], ["paris"], "subscribers.ann: there is no stream 'paris'"),
        (["subscribers"], [], "subscribers: write an object"),
    ],
)
def test_what_does_not_fit_is_named(
    files: tuple[Path, Path], path: Sequence[str], value: Any, problem: str
) -> None:
    data = json.loads(files[1].read_text())
    place = data
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    files[1].write_text(json.dumps(data))
    with pytest.raises(InvalidInput, match=re.escape(problem)):
        read_world(files[1])


def test_what_is_no_json_is_said(files: tuple[Path, Path]) -> None:
    files[1].write_text("{")
    with pytest.raises(InvalidInput, match=r"trades\.json is not JSON"):
        read_world(files[1])
