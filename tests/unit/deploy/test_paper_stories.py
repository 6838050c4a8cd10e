"""The table at the end of the stories of the papers 000 and 001: it is right, or the demo fails."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, cast

import pytest
from rich.console import Console

from deploy.papers import chinese_wall, shared_queries
from deploy.papers.audit_log import Message, all_messages, messages
from deploy.papers.cast import Cast
from deploy.papers.vitals import Row, answers, measured
from deploy.scenario.listener import Delivery, Listener

NOBODY = cast(Any, None)
DANA = ("dana", "cq1")
AUDITOR = ("auditor1", "messages")
OWN, OTHERS = (
    [each for each in messages(0) if each.by == company] for company in ("Company1", "Company2")
)


def came(story: Cast, reader: tuple[str, str], values: Sequence[dict[str, Any]]) -> None:
    """Let a reader have got these values."""
    found = [Delivery(value, "1", str(at), "out", at) for at, value in enumerate(values)]
    story.listeners[reader] = Listener(NOBODY, deliveries=found)


def averages(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        dict(zip(("patID", "pulse", "systolic", "diastolic"), row, strict=True)) for row in rows
    ]


def records(sent: Sequence[Message]) -> list[dict[str, Any]]:
    return [{**each.record(), "level": f"[{each.level[0]}, {each.level[1]}]"} for each in sent]


def ward(rows: Sequence[Row], wanted: Sequence[Row]) -> shared_queries.Ward:
    story = shared_queries.Ward(NOBODY, print, expected={DANA: set(wanted)})
    came(story, DANA, averages(rows))
    return story


def cloud(got: Sequence[Message], wanted: Sequence[Message]) -> chinese_wall.Cloud:
    level = ("Company1", "⊥")
    rows = {row for each in wanted for row in all_messages([each], each.level)}
    story = chinese_wall.Cloud(NOBODY, print, levels={"auditor1": level}, expected={AUDITOR: rows})
    came(story, AUDITOR, records(got))
    return story


def told(console: Console) -> str:
    return cast(io.StringIO, console.file).getvalue()


def table() -> Console:
    return Console(file=io.StringIO(), width=200)


MINE = sorted(answers(measured(1, 0), 1))
HIDDEN = sorted(answers(measured(2, 0), 2))


@pytest.mark.parametrize(
    ("rows", "right"), [(MINE, True), (MINE[1:], False), ([*MINE, HIDDEN[0]], False)]
)
def test_a_doctor_gets_exactly_what_the_patients_allow(rows: Sequence[Row], right: bool) -> None:
    console = table()
    assert shared_queries.report(console, ward(rows, MINE)) is right
    assert ("NO" in told(console)) is not right and "dana" in told(console)


@pytest.mark.parametrize(
    ("got", "right"), [(OWN, True), (OWN[1:], False), ([*OWN, OTHERS[0]], False)]
)
def test_an_auditor_gets_exactly_what_its_level_dominates(
    got: Sequence[Message], right: bool
) -> None:
    console = table()
    assert chinese_wall.report(console, cloud(got, OWN)) is right
    assert ("NO" in told(console)) is not right and "auditor1" in told(console)


@pytest.mark.parametrize("right", [True, False])
def test_a_story_ends_with_an_error_if_the_table_is_not_right(
    monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    rows, got = (MINE, OWN) if right else (MINE[1:], OWN[1:])
    monkeypatch.setattr(shared_queries, "_ward", lambda *_: nullcontext(ward(rows, MINE)))
    monkeypatch.setattr(chinese_wall, "_cloud", lambda *_: nullcontext(cloud(got, OWN)))
    # What the platform would play has been played.
    monkeypatch.setattr(shared_queries, "play", lambda _: None)
    for act in ("admit", "query", "send"):
        monkeypatch.setattr(chinese_wall.Cloud, act, lambda *_: None)
    for story in (shared_queries, chinese_wall):
        assert story.main(NOBODY) == (0 if right else 1)
