"""Every kind of topic, with every right, tried by Kafka users of every kind: refused, save its own.

Kinds of topics are those of `catalog.topics`, kinds of Kafka users those that accesses have, and
what is a user's own the catalog says.
"""

from __future__ import annotations

import inspect
import secrets
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
)

from catalog import topics
from catalog.access_kind import AccessKind
from catalog.settings import Settings
from secadmin.control.platform import Platform
from secadmin.control.wanted_access import WantedState, wanted_state
from secadmin.kafka.acl import group_prefix
from secadmin.kafka.principals import Credentials, new_principal_name
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
    client_config,
    fetch_directly,
    produce_one,
)
from tests.integration.service.conftest import Api, NewUser, add_stream

KINDS = {name: made for name, made in vars(topics).items() if name.endswith("_topic")}
PATHS = {"output": "subscriptions", "quarantine": "quarantine", "send": "senders"}
RIGHTS = {
    "output": ["VIEW OBJECT", "SUBSCRIBE"],
    "stream": ["VIEW OBJECT", "READ TUPLE", "SEND"],
}
STRANGER = "stranger"


@dataclass(frozen=True)
class Cast:
    """Kafka users by kind, twice each on other things, and all topics."""

    users: dict[str, Credentials]
    own: WantedState
    topics: tuple[str, ...]

    def others(self, who: str) -> list[str]:
        """The names of all other users."""
        return [user.username for name, user in self.users.items() if name != who]


@pytest.fixture(scope="module")
def cast(admin: Api, new_user: NewUser, platform: Platform, service_settings: Settings) -> Cast:
    tail = secrets.token_hex(4)
    streams, output = [f"one{tail}", f"two{tail}"], f"both{tail}"
    for stream in streams:
        add_stream(admin, stream, f"{stream}schema")
    for stream in (f"three{tail}", f"four{tail}"):
        # These park records, which nobody outside the platform reads or writes.
        add_stream(admin, stream, f"{stream}schema", label_rule="HEADER roles")
    text = " UNION ALL ".join(f"SELECT symbol FROM {stream}" for stream in streams)
    admin.post("/queries", name=output, language="sql", text=text)
    users = {}
    for number, stream in enumerate(streams):
        role = f"R{stream}"
        user = new_user(role)
        names = {"output": output, "stream": stream}
        for object_kind, rights in RIGHTS.items():
            body = {"role": role, "permissions": rights, "kind": object_kind}
            admin.post("/grants", **body, name=names[object_kind])
        for kind in AccessKind:
            object_kind, _ = kind.needed
            path = f"/{object_kind}s/{names[object_kind]}/{PATHS[kind]}"
            given = user.post(path, keep=True)
            users[f"{kind} {number}"] = Credentials(given["principal"], given["secret"])
    name = new_principal_name("output")
    users[STRANGER] = Credentials(name, platform.kafka.create_principal(name))
    own = wanted_state(platform.catalog)
    ours = sorted(topic for topic in own.stream_topics | own.output_topics if tail in topic)
    return Cast(users, own, (*ours, "__consumer_offsets", "__transaction_state", "in.nowhere"))


def test_the_cast_is_complete(cast: Cast) -> None:
    for name, made in KINDS.items():
        prefix = made(*["x"] * len(inspect.signature(made).parameters)).partition(".")[0]
        assert sum(topic.startswith(f"{prefix}.") for topic in cast.topics) >= 2, name
    assert {who.split()[0] for who in cast.users} == {*AccessKind, STRANGER}
    reached = {topic for _, topic in cast.own.readers | cast.own.writers}
    assert len({t for t in cast.topics if t.startswith("out.")}) == 2, "two classes"
    assert {t for t in cast.topics if t.startswith("out.")} <= reached


WHO = [f"{kind} {number}" for kind in AccessKind for number in (0, 1)] + [STRANGER]


@pytest.mark.parametrize("who", WHO)
def test_reads_and_writes_what_is_its_own_and_nothing_else(
    who: str, cast: Cast, service_settings: Settings, tmp_path: Path
) -> None:
    user, kafka = cast.users[who], service_settings.kafka
    found, own = {}, {}
    for topic in cast.topics:
        pair = (user.username, topic)
        own[topic] = (pair in cast.own.readers, pair in cast.own.writers)
        # A refusal comes at once, however long it takes; what is let in is parked.
        wait_s = 1 if own[topic][0] else WAIT_S
        written = produce_one(kafka, user, topic, idempotent=False)
        assert written in (None, DENIED_TOPIC), topic
        read = reads(fetch_directly(kafka, user, topic, tmp_path), wait_s)
        found[topic] = (read, written is None)
    assert found == own
    assert sum(any(rights) for rights in found.values()) == (who != STRANGER)


@pytest.mark.parametrize("who", WHO)
def test_sees_its_own_topic_and_changes_none(
    who: str, cast: Cast, service_settings: Settings
) -> None:
    user = cast.users[who]
    client = AdminClient(client_config(service_settings.kafka, user))
    reached = cast.own.readers | cast.own.writers
    own = {topic for topic in cast.topics if (user.username, topic) in reached}
    assert set(client.list_topics(timeout=WAIT_S).topics) & set(cast.topics) == own
    for topic in cast.topics:
        described = client.describe_topics(TopicCollection([topic]))[topic]
        assert code_of(described) == (None if topic in own else DENIED_TOPIC), topic
        # The client that is not shown a topic does not find whom to ask to empty it.
        refusals = {DENIED_TOPIC} if topic in own else {DENIED_TOPIC, KafkaError._NOENT}
        for name, future in changes_of(client, topic):
            assert code_of(future) in refusals, f"{name} {topic}"
    for made in KINDS.values():
        count = len(inspect.signature(made).parameters)
        name = made(*[f"n{secrets.token_hex(4)}"] * count)
        assert code_of(client.create_topics([NewTopic(name, 1, 1)])[name]) == DENIED_TOPIC


@pytest.mark.parametrize("who", WHO)
def test_has_no_group_of_others_no_transaction_and_no_cluster(
    who: str, cast: Cast, service_settings: Settings
) -> None:
    user, kafka = cast.users[who], service_settings.kafka
    client = AdminClient(client_config(kafka, user))
    groups = [*(f"{group_prefix(name)}main" for name in cast.others(who)), "secfilter-1", "main"]
    if not any(user.username == reader for reader, _ in cast.own.readers):
        groups.append(f"{group_prefix(user.username)}main")
    for group in groups:
        assert code_of(client.describe_consumer_groups([group])[group]) == DENIED_GROUP, group
        assert code_of(client.delete_consumer_groups([group])[group]) == DENIED_GROUP, group
    for identity in (user.username, cast.others(who)[0]):
        config = client_config(kafka, user) | {"transactional.id": identity}
        with pytest.raises(KafkaException) as caught:
            Producer(config).init_transactions(WAIT_S)
        assert caught.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    for name, future in of_the_cluster(client, user.username):
        assert code_of(future) == DENIED_CLUSTER, name
    # Here the library keeps the refusal to itself.
    assert client.describe_acls(ANY_ACL).result(WAIT_S) == []
    everybodys = AdminClient(kafka.client_config(kafka.secadmin))
    assert len(everybodys.describe_acls(ANY_ACL).result(WAIT_S)) > 0
