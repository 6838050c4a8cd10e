"""What rights cost where there are many: Kafka looks at all ACLs of a topic, or of the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest

from secadmin.kafka.acl import Operation, TopicAcl, to_binding
from secadmin.kafka.connect import REQUEST_TIMEOUT_S, all_finished
from secadmin.kafka.principals import Credentials
from tests.integration.brokers import embedded_only
from tests.integration.kafka.conftest import Parts
from tests.integration.service.revocations.raw_fetch import (
    FetchLimits,
    connect,
    read_fetch,
    send_fetch,
)
from tests.lanes import number_of

pytestmark = [embedded_only, pytest.mark.long, pytest.mark.slow]

ACLS = number_of("MANY_ACLS", sample=2_000, long=20_000)
AT_ONCE, REVOKED, FETCHES = 1_000, 10, 200
NO_WAIT = FetchLimits(0, 1)


@pytest.fixture
def crowded(parts: Parts) -> Iterator[str]:
    """A topic that so many principals may read."""
    topic = parts.new_topic()
    acls = [TopicAcl(f"crowd-{number}", topic, Operation.READ) for number in range(ACLS)]
    for start in range(0, ACLS, AT_ONCE):
        bindings = [to_binding(acl) for acl in acls[start : start + AT_ONCE]]
        made = parts.admins.changes.create_acls(bindings, request_timeout=60.0)
        all_finished(made.values(), "make many ACLs")
    yield topic
    parts.acls.revoke(acls)


def median_ms(act: Callable[[], object], times: int) -> float:
    """How long it takes."""
    taken = []
    for _ in range(times):
        began = time.monotonic()
        act()
        taken.append(time.monotonic() - began)
    return median(taken) * 1_000


def fetch_ms(parts: Parts, credentials: Credentials, topic: str, folder: Path) -> float:
    """How long a fetch takes that does not wait."""
    connection = connect(parts.settings, credentials, folder)

    def fetch() -> None:
        send_fetch(connection, topic, 0, NO_WAIT)
        answer = connection.receive(REQUEST_TIMEOUT_S)
        assert answer is not None
        assert read_fetch(answer, 0).error == 0

    try:
        return median_ms(fetch, FETCHES)
    finally:
        connection.close()


def revoke_ms(parts: Parts) -> float:
    """How long it takes to take a topic from a reader, with a fence."""

    def revoke() -> None:
        parts.access.withdraw(topic, [next(readers)])

    topic = parts.new_topic()
    readers = iter([parts.new_reader(topic).username for _ in range(REVOKED)])
    return median_ms(revoke, REVOKED)


def test_what_many_acls_cost(parts: Parts, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    quiet = parts.new_topic()
    alone = fetch_ms(parts, parts.new_reader(quiet), quiet, tmp_path)
    before = revoke_ms(parts)
    topic = request.getfixturevalue("crowded")
    among = fetch_ms(parts, parts.new_reader(topic), topic, tmp_path)
    after = revoke_ms(parts)
    print(
        f"with {ACLS} ACLs: a fetch takes {among:.2f} ms (alone {alone:.2f} ms), "
        f"a revocation {after:.0f} ms (before {before:.0f} ms)"
    )
    assert after < REQUEST_TIMEOUT_S * 1_000
