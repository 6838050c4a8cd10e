"""Each engine's account, tried with every operation on every kind of topic, and on all else.

What is not in the table is refused. The rights are those that SecAdmin gives when it makes topics.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from catalog.settings import KafkaAccount
from catalog.topics import (
    ECHO_TOPIC,
    RESULT_ECHO_TOPIC,
    in_topic,
    lab_topic,
    out_topic,
    quarantine_topic,
)
from secadmin.kafka.acl import group_prefix
from secadmin.kafka.cluster import Cluster
from secadmin.kafka.principals import Credentials
from secadmin.kafka.topics import DAY_MS, TopicSpec
from secfilter.kafka_options import GROUP_PREFIX
from tests.integration.kafka.attempts import (
    ANY_ACL,
    WAIT_S,
    changes_of,
    code_of,
    of_the_cluster,
    reads,
)
from tests.integration.kafka.clients import (
    DENIED_CLUSTER,
    DENIED_GROUP,
    DENIED_TOPIC,
    DENIED_TRANSACTION,
    client_config,
    fetch_directly,
    produce_one,
    reader,
)
from tests.integration.kafka.conftest import Parts

INGEST, QUERY = "ingest", "query"
READ, WRITE = "read", "write"
# Account -> kind of topic -> what it may do there.
TABLE = {
    INGEST: {
        "in": {READ, WRITE},
        "echo": {READ, WRITE},
        "lab of a stream": {READ, WRITE},
        "quarantine": {WRITE},
    },
    QUERY: {
        "lab of a stream": {READ},
        "lab of an output": {READ, WRITE},
        "out": {WRITE},
        "echo of queries": {READ, WRITE},
    },
}


@dataclass(frozen=True)
class Cast:
    """The engines' users, and a topic of each kind."""

    users: dict[str, Credentials]
    topics: dict[str, str]

    def own(self, who: str) -> set[str]:
        """The topics with which the engine may do something."""
        return {self.topics[kind] for kind in TABLE[who]}


@pytest.fixture(scope="module")
def cast(parts: Parts) -> Iterator[Cast]:
    locks: dict[str, Lock] = defaultdict(Lock)
    cluster = Cluster(parts.settings, lambda topic: locks[topic])
    stream, output = f"s{secrets.token_hex(6)}", f"o{secrets.token_hex(6)}"
    topics = {
        "in": in_topic(stream, "1"),
        "lab of a stream": lab_topic(stream),
        "quarantine": quarantine_topic(stream),
        "echo": ECHO_TOPIC,
        "echo of queries": RESULT_ECHO_TOPIC,
        "lab of an output": lab_topic(output),
        "out": out_topic(output, "1"),
        "audit": f"audit.{output}",
        "of others": f"others-{output}",
        "offsets": "__consumer_offsets",
        "transactions": "__transaction_state",
        "missing": "in.nowhere",
    }
    cluster.create_stream_topics(stream, 1)
    cluster.open_senders({topics["in"]: 1})
    cluster.create_output_topics(output)
    cluster.open_classes({topics["out"]: DAY_MS})
    parts.topics.create([TopicSpec(topics["audit"]), TopicSpec(topics["of others"])])
    accounts = {INGEST: parts.settings.ingest, QUERY: parts.settings.query}
    yield Cast({name: _credentials(account) for name, account in accounts.items()}, topics)
    cluster.delete_topics(list(topics.values())[:8])
    cluster.close()


def _credentials(account: KafkaAccount) -> Credentials:
    return Credentials(account.username, account.password())


@pytest.mark.parametrize("who", TABLE)
def test_reads_and_writes_what_it_needs_and_nothing_else(
    who: str, cast: Cast, parts: Parts, tmp_path: Path
) -> None:
    user, found = cast.users[who], {}
    for kind, topic in cast.topics.items():
        rights = TABLE[who].get(kind, set())
        written = produce_one(parts.settings, user, topic, idempotent=False)
        assert written in (None, DENIED_TOPIC), kind
        # A refusal comes at once, however long it takes; what is let in is parked.
        fetch = fetch_directly(parts.settings, user, topic, tmp_path)
        read = reads(fetch, 1 if READ in rights else WAIT_S)
        found[kind] = {right for right, has in ((READ, read), (WRITE, written is None)) if has}
    assert {kind: rights for kind, rights in found.items() if rights} == TABLE[who]


@pytest.mark.parametrize("who", TABLE)
def test_writes_each_record_once_without_a_right_to_the_cluster(
    who: str, cast: Cast, parts: Parts
) -> None:
    for kind, rights in TABLE[who].items():
        if WRITE in rights:
            assert produce_one(parts.settings, cast.users[who], cast.topics[kind]) is None


@pytest.mark.parametrize("who", TABLE)
def test_sees_its_own_topics_and_changes_none(who: str, cast: Cast, parts: Parts) -> None:
    client = AdminClient(client_config(parts.settings, cast.users[who]))
    own = cast.own(who)
    assert set(client.list_topics(timeout=WAIT_S).topics) & set(cast.topics.values()) == own
    for topic in cast.topics.values():
        described = client.describe_topics(TopicCollection([topic]))[topic]
        assert code_of(described) == (None if topic in own else DENIED_TOPIC), topic
        # The client that is not shown a topic does not find whom to ask to empty it.
        refusals = {DENIED_TOPIC} if topic in own else {DENIED_TOPIC, KafkaError._NOENT}
        for name, future in changes_of(client, topic):
            assert code_of(future) in refusals, f"{name} {topic}"
    for prefix in ("in.", "lab.", "quarantine.", "out.", "audit.", "others-"):
        name = f"{prefix}n{secrets.token_hex(4)}"
        assert code_of(client.create_topics([NewTopic(name, 1, 1)])[name]) == DENIED_TOPIC


@pytest.mark.parametrize("who", TABLE)
def test_has_no_group_no_transaction_and_no_cluster(who: str, cast: Cast, parts: Parts) -> None:
    user, kafka = cast.users[who], parts.settings
    client = AdminClient(client_config(kafka, user))
    names = [account.username for account in cast.users.values()]
    groups = [*(f"{group_prefix(name)}main" for name in names), f"{GROUP_PREFIX}-positions", "main"]
    for group in groups:
        assert code_of(client.describe_consumer_groups([group])[group]) == DENIED_GROUP, group
        assert code_of(client.delete_consumer_groups([group])[group]) == DENIED_GROUP, group
        with reader(kafka, user, group) as member:
            member.consumer.subscribe([cast.topics["lab of a stream"]])
            member.expect_error(DENIED_GROUP)
    for identity in (*names, f"{group_prefix(user.username)}app"):
        with pytest.raises(KafkaException) as caught:
            Producer(client_config(kafka, user) | {"transactional.id": identity}).init_transactions(
                WAIT_S
            )
        assert caught.value.args[0].code() == DENIED_TRANSACTION
    for name, future in of_the_cluster(client, user.username):
        assert code_of(future) == DENIED_CLUSTER, name
    # Here the library keeps the refusal to itself.
    assert client.describe_acls(ANY_ACL).result(WAIT_S) == []
