"""A late subscriber asks for what came before, on the whole platform, and loses its right to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.runtime import Runtime
from tests.integration.flowing import Reader, Typist, await_that
from tests.integration.test_without_gaps import (
    EACH,
    OF_VIEWS,
    VIEWS,
    Exchange,
    exchanging,
)

ROLES = {"still": ("one", "two"), "bob": ("one",)}
# So many records come before anybody but `still` subscribes: several windows of a second.
BEFORE = 200
# Windows that are open when the flow begins, or at a place in it.
EDGE = 80


@pytest.fixture
def exchange(runtime: Runtime, tmp_path: Path) -> Iterator[Exchange]:
    with exchanging(runtime, tmp_path / "state", ROLES, OF_VIEWS) as made:
        made.subscribe("still", "still")
        await_that(made.readers["still"].is_fed, "its class is fed")
        made.flow.start()
        yield made


def state(reader: Reader) -> str:
    """The state of the reader's one backfill."""
    (found,) = reader.access()["backfills"]
    return str(found["state"])


@pytest.mark.long
def test_what_came_before_comes_on_request(exchange: Exchange) -> None:
    admin, flow, still = exchange.admin, exchange.flow, exchange.readers["still"]
    await_that(lambda: still.has("one", 0, BEFORE), "records flow")
    bob = exchange.subscribe("bob", "bob")
    person = bob.person
    assert isinstance(person, Typist)
    exchange.of_windows["bob"] = windows = Reader.begin(person, VIEWS)
    for reader in (bob, windows):
        await_that(reader.is_fed, "its class is fed")
    begun = flow.count("one")
    await_that(lambda: bob.has("one", begun + EDGE, begun + 2 * EDGE), "new records come")
    assert min(bob.numbers("one")) > 0, "a class begins empty"

    person.run("backfill", bob.access()["principal"])
    person.run("backfill", windows.access()["principal"], "--since", "1h")
    await_that(lambda: bob.has("one", 0, begun), "what came before, of the strong output")
    await_that(lambda: state(bob) == "complete", "it ends by itself")
    # Its class saw the first records of a window that was open only in part.
    await_that(lambda: windows.has("one", EDGE, begun + EDGE), "whole windows of before")
    assert bob.numbers("two") == windows.numbers("two") == set(), "what bob may not see"
    assert state(windows) == "running", "its first windows may still be cut"

    admin.run("revoke", "bob", "READ TUPLE", "stream", "one")
    returned = flow.count("one")
    assert bob.access()["topics"] == windows.access()["topics"] == []
    await_that(lambda: flow.count("one") > returned + BEFORE, "more is sent")
    flow.close()
    await_that(lambda: still.has("one", 0, flow.count("one")), "others get it")
    for reader in (bob, windows):
        assert max(reader.numbers("one")) < returned
    # With the right it gets its new results again, and nothing of the old backfill.
    admin.run("grant", "bob", "READ TUPLE", "stream", "one")
    assert len(bob.access()["topics"]) == 1
    assert bob.access()["name"] == EACH and bob.access()["backfills"] == []
