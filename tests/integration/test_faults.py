"""The scenario while its parts are killed: all arrives, and nothing that should not."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from catalog.engines import INGEST
from deploy.runtime import Runtime
from deploy.scenario.story import BATCH_MS, Story
from deploy.stack import Stack, StackOptions
from tests.integration.results import Result, expected, last_day_sent, only, received
from tests.integration.sending import Sending

PROGRESS, TIMEOUT_S = 30, 180.0


@pytest.fixture
def story(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A platform of this test's own: its parts are killed."""
    folder = tmp_path_factory.mktemp("faults")
    options = StackOptions(folder, broker_port=0, secadmin_port=0, batch_ms=BATCH_MS)
    with Stack(options, runtime) as stack:
        told = Story(stack, print)
        try:
            yield told
        finally:
            told.close()


def kill_engines(story: Story) -> None:
    story.stack.kill_engines()
    story.stack.start_engines(story.stack.engines)


def kill_ingest(story: Story) -> None:
    story.stack.engines[INGEST].kill()
    story.stack.start_engines([INGEST])


def kill_secadmin(story: Story) -> None:
    story.stack.secadmin.kill()
    wait_for_more(story)  # what is granted flows on while nobody decides
    story.stack.start_secadmin()


def kill_broker(story: Story) -> None:
    broker = story.stack.broker
    assert broker is not None
    broker.kill()
    broker.start()


def kill_all(story: Story) -> None:
    broker = story.stack.broker
    assert broker is not None
    for kill in (story.stack.kill_engines, broker.kill, story.stack.secadmin.kill):
        kill()
    for start in (broker.start, story.stack.start_secadmin):
        start()
    story.stack.start_engines(story.stack.engines)


KILLS: tuple[Callable[[Story], None], ...] = (
    kill_engines,
    kill_ingest,
    kill_secadmin,
    kill_broker,
    kill_all,
)


def wait_for_more(story: Story) -> None:
    """Wait until both listeners have received more than they have now."""
    deadline = time.monotonic() + TIMEOUT_S
    for name, listener in story.listeners.items():
        if name == "parked":
            continue
        before = listener.results
        while listener.results < before + PROGRESS:
            assert time.monotonic() < deadline, f"nothing more arrives for {name}"
            time.sleep(0.1)


def assert_received(story: Story, al: Counter[Result], bob: Counter[Result]) -> None:
    """Both have all of theirs, and nobody has more; what waits at the broker may come or not."""
    arrived = {name: received(each.deliveries) for name, each in story.listeners.items()}
    assert arrived["al"] == al
    assert arrived["bob"] == bob
    assert arrived["parked"] <= bob


@pytest.mark.long
@pytest.mark.slow
def test_what_is_killed_loses_nothing_and_leaks_nothing(story: Story) -> None:
    story.admit()
    story.define()
    story.query()
    story.share()
    sending = Sending(story, pause_s=0.04).start()
    # Engines and SecAdmin are killed one by one in `test_process.py` and `test_killed.py`, too.
    for kill in KILLS:
        wait_for_more(story)
        story.say(f"{kill.__name__}: {len(story.sent['in1'])} quotes of in1 are sent")
        kill(story)
    wait_for_more(story)
    sending.finish()

    al = expected(last_day_sent(story))
    bob = only("1", al)
    story.listeners["al"].wait_for(al.total(), TIMEOUT_S)
    story.listeners["bob"].wait_for(bob.total(), TIMEOUT_S)
    assert_received(story, al, bob)

    # A broker that came up again may have refused, too.
    for name in ("bob", "parked"):
        story.listeners[name].refusals = 0
    story.people["joe"].run("revoke", "CUSTOMER2", "READ TUPLE", "stream", "in1")
    for name in ("bob", "parked"):
        story.listeners[name].wait_for_refusal()
    # Once more: what is too much may come later than what is awaited.
    assert_received(story, al, bob)
    assert story.people["joe"].ask("audit", "verify")["intact"] is True
