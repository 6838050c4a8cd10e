"""Kafka's users outlive a restart, however many went before it: Kafka itself would lose them."""

import itertools
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.broker_clients import can_log_in
from deploy.runtime import Runtime
from secadmin.kafka.connect import AdminClients
from secadmin.kafka.principals import Credentials, Principals, new_principal_name
from tests.integration.brokers import kafka_settings
from tests.lanes import number_of

# Where there is no snapshot, a single removal makes Kafka lose its users three times in four.
KEPT, SOME = 12, 3
GONE = number_of("USERS_GONE", sample=24, long=200)
PLATFORM = ("broker", "secadmin", "secfilter-ingest", "secfilter-query")
_AT_ONCE = 4


@pytest.fixture
def own(runtime: Runtime, tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that the test may stop and kill; not started."""
    broker = EmbeddedBroker(BrokerSettings(tmp_path, 0, runtime.java, runtime.jars.broker))
    yield broker
    broker.stop()


@pytest.fixture
def as_formatted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The broker begins as Kafka's storage tool leaves it; a call, and later starts do not."""
    monkeypatch.setattr("deploy.broker.complete_first_snapshot", lambda _: None)
    return monkeypatch.undo


@pytest.mark.usefixtures("as_formatted")
def test_where_users_are_closed_a_crash_leaves_the_others(own: EmbeddedBroker) -> None:
    """Any Kafka: nothing is known of its snapshots, and there is none."""
    own.start()
    kept, gone = _changes(own, removes=False)
    own.kill()
    own.start()
    _require(own, kept, gone)
    principals = _principals(own, removes=False)
    assert principals.list_names() == {*PLATFORM, *_names(kept)}
    assert principals.count_closed() == GONE
    # What the cluster bears later on, it has done with.
    name = gone[0].username
    removing = _principals(own, removes=True)
    assert name in removing.list_names()
    removing.delete(name)
    assert name not in removing.list_names()


@pytest.mark.long
def test_where_users_are_removed_the_next_start_has_the_others(
    own: EmbeddedBroker, as_formatted: Callable[[], None]
) -> None:
    """Also of a broker whose log holds removals already, and that would let nobody in."""
    own.start()
    kept, gone = _changes(own, removes=True)
    own.stop()
    as_formatted()
    own.start()
    _require(own, kept, gone)
    assert _principals(own, removes=True).list_names() == {
        *PLATFORM,
        *_names(kept),
    }


def _changes(
    broker: EmbeddedBroker, *, removes: bool
) -> tuple[list[Credentials], list[Credentials]]:
    """Additions and removals in a random order; who is left, and who is gone."""
    drawn = random.Random()
    kept: list[Credentials] = []
    gone: list[Credentials] = []

    def change(share: int) -> None:
        principals = _principals(broker, removes=removes)
        to_keep = [True] * (KEPT // _AT_ONCE) + [False] * (GONE // _AT_ONCE)
        drawn.shuffle(to_keep)
        waiting: list[Credentials] = []
        for keep in to_keep:
            made = principals.create(new_principal_name("output" if share % 2 else "send"))
            (kept if keep else waiting).append(made)
            if waiting and drawn.random() < 0.5:
                gone.append(waiting.pop(drawn.randrange(len(waiting))))
                principals.delete(gone[-1].username)
        for left in waiting:
            principals.delete(left.username)
            gone.append(left)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(change, share) for share in range(_AT_ONCE)]:
            done.result()
    return kept, gone


def _principals(broker: EmbeddedBroker, *, removes: bool) -> Principals:
    return Principals(AdminClients.open(kafka_settings(broker)), removes=removes)


def _names(users: list[Credentials]) -> set[str]:
    return {user.username for user in users}


def _require(broker: EmbeddedBroker, kept: list[Credentials], gone: list[Credentials]) -> None:
    """Who is left can log in; who is gone cannot, also with the password that it had."""
    some = [*random.sample(kept, SOME), *random.sample(gone, SOME)]
    with ThreadPoolExecutor(len(some)) as pool:
        configs = (broker.client_config(user.username, user.password) for user in some)
        let_in = list(pool.map(can_log_in, configs))
    assert let_in == list(itertools.chain([True] * SOME, [False] * SOME))
