"""Whether the platform is well: in public only whether, to administrators what is not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from catalog.engines import INGEST
from catalog.models import Object
from catalog.runs import NOT_ENDED, RunReport
from catalog.store import Catalog
from catalog.wanted import report_faults, report_status
from secadmin.control.anchors import Anchors
from secadmin.control.health import Health, _problems
from secadmin.control.platform import Platform
from tests.heartbeat import let_beat


@pytest.fixture
def platform(catalog: Catalog) -> Platform:
    parts: Any = (catalog, None, None, None, "", "", catalog.clock, Anchors([]))
    return Platform(*parts)


def problems(platform: Platform) -> list[tuple[str, str]]:
    with platform.catalog.read() as session:
        found = _problems(platform, session)
        return [(problem.what, problem.reason) for problem in found]


def is_well(platform: Platform) -> bool:
    return Health(platform).is_well()


def add_stream(catalog: Catalog, name: str, *, removed: bool = False) -> None:
    now = catalog.clock()
    made = {"namespace": "relation", "name": name, "kind": "stream", "created_at": now}
    with catalog.bookkeeping() as session:
        session.add(Object(**made, removed_at=now if removed else None))


def report(catalog: Catalog, name: str, state: str, why: str, topics: Collection[str] = ()) -> None:
    with catalog.bookkeeping() as session:
        told = RunReport(name, state, why, topics=frozenset(topics))
        report_status(session, told, catalog.clock())


def test_without_its_engines_nothing_is_well(platform: Platform) -> None:
    assert not is_well(platform)
    assert [what for what, _ in problems(platform)] == [
        "engine ingest",
        "engine query-1",
        "engine probation",
    ]
    let_beat(platform)
    assert is_well(platform) and problems(platform) == []


def test_a_topic_at_fault_is_told_with_its_stream(platform: Platform) -> None:
    let_beat(platform)
    add_stream(platform.catalog, "one")
    with platform.catalog.bookkeeping() as session:
        report_faults(session, INGEST, {"in.one": "the topic was deleted"}, platform.clock())
    assert not is_well(platform)
    assert problems(platform) == [("stream one", "in.one: the topic was deleted")]


def test_ingest_that_fails_is_told(platform: Platform) -> None:
    let_beat(platform)
    report(platform.catalog, "ingest-1", "restarting", "Kafka did not answer")
    assert problems(platform) == [("ingest-1", "restarting: Kafka did not answer")]


def test_a_removed_stream_is_told_when_its_run_does_not_end(platform: Platform) -> None:
    let_beat(platform)
    add_stream(platform.catalog, "one", removed=True)
    report(platform.catalog, "ingest-1", "running", "", ["lab.one"])
    assert problems(platform) == [], "its batch may be about to end"
    report(platform.catalog, "ingest-1", "running", NOT_ENDED, ["lab.one"])
    assert problems(platform) == [("stream one", f"removed, but {NOT_ENDED}")]


def test_the_public_answer_is_looked_up_once_a_second(platform: Platform) -> None:
    now = 0.0
    health = Health(platform, lambda: now)
    assert not health.is_well()
    let_beat(platform)
    assert not health.is_well()
    now = 1.0
    assert health.is_well()
