"""A broker that hangs with a change of ACLs carries it out late, as Kafka does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from catalog.errors import Unavailable
from catalog.settings import KafkaAccount, KafkaSettings
from secadmin.kafka.acl import read_acls, send_acls
from secadmin.kafka.acls import Acls
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection
from secadmin.kafka.wire.connections import BrokerConnections, Unanswered
from secadmin.kafka.wire.encoding import Reader, int8, int16, int32, string

A, B = BrokerAddress("a", 9094), BrokerAddress("b", 9094)
METADATA, DESCRIBE, CREATE, DELETE = 3, 29, 30, 31
ANY, ALL, READ, WRITE, DENY, ALLOW, PREFIXED = 1, 2, 3, 4, 2, 3, 4
TOPIC, TRANSACTION = 2, 5
READER, SENDER, OUT, IN = "output-1", "send-1", "out.o.1", "in.s.1"


class Acl(NamedTuple):
    """An ACL, or a filter of them, with the numbers of Kafka's protocol."""

    resource: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def accepts(self, other: Acl) -> bool:
        return all(own in (None, ANY, its) for own, its in zip(self, other, strict=True))


@dataclass
class Kafka:
    """Two brokers of one cluster. Those that hang keep changes, and carry them out later."""

    acls: dict[Acl, None] = field(default_factory=dict)
    hanging: set[BrokerAddress] = field(default_factory=set)
    held: list[tuple[int, bytes]] = field(default_factory=list)
    largest: int = 0

    def request(self, at: BrokerAddress, api: int, body: bytes) -> Reader:
        if at in self.hanging:
            if api in (CREATE, DELETE):
                self.held.append((api, body))
            raise TimeoutError("the broker did not answer")
        return Reader(int32(0) + self._answer(api, body))

    def go_on(self) -> None:
        """Carry out what brokers that hung were asked for."""
        self.hanging.clear()
        assert self.held
        for api, body in self.held:
            self._answer(api, body)
        self.held.clear()

    def lets_in(self, principal: str, resource: int, name: str, operation: int) -> bool:
        """Kafka's rule: a denial goes before all that allows."""
        found = {
            acl.permission
            for acl in self.acls
            if acl.resource == resource
            and acl.principal == f"User:{principal}"
            and acl.operation in (ALL, operation)
            and (name.startswith(str(acl.name)) if acl.pattern == PREFIXED else name == acl.name)
        }
        return found == {ALLOW}

    def _answer(self, api: int, body: bytes) -> bytes:
        reader = Reader(body)
        if api == METADATA:
            brokers = ((number, each) for number, each in enumerate((A, B)))
            return (
                int32(2)
                + b"".join(
                    int32(n) + string(b.host) + int32(b.port) + string(None) for n, b in brokers
                )
                + string("cluster")
                + int32(0)
                + int32(0)
            )
        if api == DESCRIBE:
            matching = _acl(reader)
            found = [acl for acl in self.acls if matching.accepts(acl)]
            return int16(0) + string(None) + int32(len(found)) + b"".join(map(_listed, found))
        wanted = [_acl(reader) for _ in range(reader.int32())]
        self.largest = max(self.largest, len(wanted))
        for each in wanted:
            if api == CREATE:
                self.acls[each] = None
            else:
                self.acls = {acl: None for acl in self.acls if not each.accepts(acl)}
        one = int16(0) + string(None) + (int32(0) if api == DELETE else b"")
        return int32(len(wanted)) + one * len(wanted)


def _acl(reader: Reader) -> Acl:
    resource, name, pattern = reader.int8(), reader.string(), reader.int8()
    principal, host = reader.string(), reader.string()
    return Acl(resource, name, pattern, principal, host, reader.int8(), reader.int8())


def _listed(acl: Acl) -> bytes:
    place = int8(acl.resource) + string(acl.name) + int8(acl.pattern) + int32(1)
    right = int8(acl.operation) + int8(acl.permission)
    return place + string(acl.principal) + string(acl.host) + right


@dataclass
class Connection:
    """A connection to a broker of that Kafka."""

    kafka: Kafka
    address: BrokerAddress

    def request(self, api: int, _version: int, body: bytes) -> Reader:
        return self.kafka.request(self.address, api, body)


class Connections(BrokerConnections):
    """Lends connections to that Kafka. B answered last."""

    def __init__(self, kafka: Kafka) -> None:
        account = KafkaAccount("x", Path("x"))
        super().__init__(
            KafkaSettings("a:9094,b:9094", Path("x"), account, account, account, account)
        )
        self.kafka = kafka

    @contextmanager
    def lent(self, address: BrokerAddress) -> Iterator[BrokerConnection]:
        connection: Any = Connection(self.kafka, address)
        yield connection


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def acls(kafka: Kafka) -> Acls:
    admins: Any = None
    return Acls(admins, Connections(kafka), replication=2)


@pytest.mark.parametrize("is_banned", [True, False], ids=["banned", "not banned"])
def test_a_ban_outlives_a_grant_that_comes_late(kafka: Kafka, acls: Acls, is_banned: bool) -> None:
    kafka.hanging = {A}
    assert not acls.grant(read_acls(READER, OUT)), "A may do it once more"
    assert kafka.lets_in(READER, TOPIC, OUT, READ)
    proven = acls.revoke_topics({OUT: [READER]}, {OUT: [READER]} if is_banned else {})
    assert list(proven.values()) == [B]
    assert not kafka.lets_in(READER, TOPIC, OUT, READ)
    kafka.go_on()
    came = [acl for acl in kafka.acls if (acl.name, acl.permission) == (OUT, ALLOW)]
    assert len(came) == 1, "the ACL is back"
    assert kafka.lets_in(READER, TOPIC, OUT, READ) is not is_banned


def test_a_grant_that_nobody_answers(kafka: Kafka, acls: Acls) -> None:
    kafka.hanging = {A, B}
    with pytest.raises(Unanswered):
        acls.grant(read_acls(READER, OUT))
    kafka.hanging = {A}
    acls.revoke_topics({OUT: [READER]}, {OUT: [READER]})
    kafka.go_on()
    assert not kafka.lets_in(READER, TOPIC, OUT, READ)


def test_a_grant_that_was_answered_once(kafka: Kafka, acls: Acls) -> None:
    assert acls.grant(read_acls(READER, OUT))
    acls.revoke_topics({OUT: [READER]})
    assert [acl for acl in kafka.acls if acl.name == OUT] == []


def test_a_sender_that_is_banned_ends_no_transaction(kafka: Kafka, acls: Acls) -> None:
    kafka.hanging = {A}
    acls.grant(send_acls(SENDER, IN))
    assert kafka.lets_in(SENDER, TRANSACTION, f"{SENDER}.t", WRITE)
    acls.revoke_topics({IN: [SENDER]}, {IN: [SENDER]})
    kafka.go_on()
    assert not kafka.lets_in(SENDER, TRANSACTION, f"{SENDER}.t", WRITE)
    assert not kafka.lets_in(SENDER, TOPIC, IN, WRITE)


def test_nothing_of_ours_deletes_a_ban(kafka: Kafka, acls: Acls) -> None:
    acls.revoke_topics({OUT: [READER]}, {OUT: [READER]})
    for delete in (
        lambda: acls.delete_of_principal(READER),
        lambda: acls.delete_on_topics([OUT]),
        lambda: acls.revoke_topics({OUT: [READER]}),
        lambda: acls.revoke(read_acls(READER, OUT)),
    ):
        delete()
        assert [acl.permission for acl in kafka.acls if acl.name == OUT] == [DENY]


def test_no_request_changes_more_than_kafka_takes(kafka: Kafka, acls: Acls) -> None:
    names = [f"output-{number}" for number in range(1_500)]
    assert acls.grant([acl for name in names for acl in read_acls(name, OUT)])
    assert len(kafka.acls) == 3_000
    assert kafka.largest == 500


def test_a_ban_that_is_not_made_fails_the_call(kafka: Kafka, acls: Acls) -> None:
    kafka.hanging = {A, B}
    with pytest.raises(Unavailable):
        acls.revoke_topics({OUT: [READER]}, {OUT: [READER]})
