"""Streams, queries and what runs, against the real service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.secadmin.cli.running import Terminal


def test_what_runs_is_stopped_and_removed_by_id(admin: Terminal, output: str) -> None:
    (row,) = admin.json("execution", "list")
    execution = str(row["id"])
    assert admin.json("stream", "readers", "in1") == [{"id": row["id"], "running": True}]
    assert f"stopped executions {execution}" in admin.ok("stream", "stop-readers", "in1")
    assert "nothing: it had stopped before" in admin.ok("execution", "stop", execution)
    assert "stopped by the owner of a stream" in admin.ok("query", "show", output)
    admin.ok("query", "start", output)
    assert f"stopped executions {execution}" in admin.ok("execution", "stop", execution)
    assert "is weak" in admin.ok("execution", "weak", execution, "on")
    assert f"removed executions {execution}" in admin.ok("execution", "remove", execution)
    assert admin.json("execution", "list") == []


def test_schemas_and_streams(admin: Terminal, stream: str) -> None:
    shown = admin.json("schema", "show", "trades")
    assert [a["required"] for a in shown["attributes"]] == [True, False, False]
    assert admin.json("stream", "show", stream)["lateness_ms"] == 5000
    assert "price" in admin.ok("stream", "show", stream)
    usual = admin.json("stream", "show", stream)
    assert (usual["format"], usual["time_format"], usual["unknown_fields"]) == (
        *("json", "iso", "quarantine"),
    )
    assert admin.run("schema", "remove", "trades").exit_code == 6
    declared = ("--declare-window", "1m", "--declare-key", "symbol", "--declare-function", "avg")
    also = ("--event-time", "ts", "--max-bytes", "1kB", "--max-ahead", "1h")
    written = ("--time-format", "epoch_ms", "--unknown-fields", "ignore")
    minimum = ("--declare-minimum", "5")
    admin.ok(*("stream", "add", "in2", "--schema", "trades"), *declared, *minimum, *also, *written)
    assert admin.json("stream", "show", "in2")["declared_aggregate"]["window_ms"] == 60_000
    own = admin.json("stream", "show", "in2")
    assert (own["time_format"], own["unknown_fields"]) == ("epoch_ms", "ignore")
    assert "epoch_ms" in admin.ok("stream", "show", "in2")
    assert (own["time"], own["lateness_ms"]) == ("broker", 10_000)
    admin.ok("stream", "add", "old", "--schema", "trades", "--event-time", "ts", "--time", "data")
    old = admin.json("stream", "show", "old")
    assert (old["time"], old["lateness_ms"]) == ("data", 0)
    admin.ok("stream", "remove", "in2")
    assert admin.run("stream", "show", "in2").exit_code == 5


def test_each_kind_of_object_has_a_list(admin: Terminal, stream: str) -> None:
    assert [row["name"] for row in admin.json("stream", "list")] == [stream]
    assert [row["kind"] for row in admin.json("schema", "list")] == ["schema"]
    assert admin.json("output", "list") == []


def test_queries(admin: Terminal, output: str) -> None:
    listed = admin.ok("query", "list")
    assert listed.splitlines()[1].startswith("alerts\tadmin\tsql")
    shown = admin.ok("query", "show", "alerts")
    assert "SELECT ts, price FROM in1" in shown
    tree = admin.ok("query", "plan", "alerts")
    assert "filter price > 5" in tree
    assert "stream in1" in tree
    admin.ok("query", "stop", "alerts")
    assert admin.json("query", "show", "alerts")["running"] is False
    admin.ok("query", "start", "alerts")
    admin.ok("output", "weak", output, "on")
    assert admin.json("output", "show", output)["weak"] is True
    assert "retention" in admin.ok("output", "show", output)
    admin.ok("query", "remove", "alerts")
    assert admin.run("output", "show", output).exit_code == 5


def test_a_query_is_checked_and_not_added(admin: Terminal, stream: str, tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    text = "SELECT symbol, count(*) AS n FROM in1 GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol"
    file.write_text(text)
    shown = admin.ok("query", "add", "q", str(file), "--check")
    assert "the query q can be added; nothing was added" in shown
    assert "tasks: 1 (free: 256); sources: 1" in shown
    assert "keeps state" in shown
    assert "shows tuples of stream in1 to each user with READ TUPLE on stream in1" in shown
    assert "users that could get all results: none" in shown
    assert "allowed because role ADMIN holds ADD QUERY on system" in shown
    assert admin.json("query", "list") == []
    assert admin.json("query", "add", "q", str(file), "--check")["outputs"][0]["tasks"] == 1
    file.write_text("SELECT prize FROM in1")
    wrong = admin.run("query", "add", "q", str(file), "--check")
    assert (wrong.exit_code, "      ^^^^^" in wrong.stderr or "^" in wrong.stderr) == (2, True)


def test_a_mistake_is_pointed_at(admin: Terminal, stream: str, tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT price,\n       colour\nFROM in1\n")
    result = admin.run("query", "add", "q", str(file))
    assert result.exit_code == 2
    assert result.stderr.splitlines()[1:] == ["  2 |        colour", "    |        ^"]


def test_names_are_completed_from_the_server(
    admin: Terminal, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SECADMIN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_CWORD", "3")
    for line, offered in (
        ("secadmin stream show i", ["in1"]),
        ("secadmin schema show ", ["trades"]),
        ("secadmin grant R READ", ["READ_TUPLE", "READ_AGGREGATE"]),
        ("secadmin output weak ", []),
    ):
        monkeypatch.setenv("COMP_WORDS", line)
        assert admin.run(prog_name="secadmin").stdout.split() == offered
