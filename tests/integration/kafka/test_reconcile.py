"""After reconciliation Kafka allows what is wanted, and what was taken away is fenced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from secadmin.kafka.access import PrincipalsOf
from secadmin.kafka.acl import (
    Acl,
    EngineAccounts,
    ForeignAcl,
    GroupAcl,
    Operation,
    TopicAcl,
    TransactionAcl,
    group_prefix,
    read_acls,
)
from secadmin.kafka.principals import new_principal_name
from secadmin.kafka.reconcile import OF_NOBODY, Reconciler
from tests.integration.kafka.clients import parked_reader, secadmin_producer, write
from tests.integration.kafka.conftest import Parts


def _present(parts: Parts) -> Set[TopicAcl]:
    """What other tests have left is wanted here."""
    return {acl for acl in parts.acls.list_all() if isinstance(acl, TopicAcl)}


def _of(parts: Parts, principal: str) -> Set[Acl]:
    return {acl for acl in parts.acls.list_all() if acl.principal.endswith(principal)}


@dataclass
class Kept:
    """What reconciliation kept before it took anything away, and the locks that it held."""

    unknown: set[Acl] = field(default_factory=set)
    fence: dict[str, Collection[str]] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    before: Callable[[], object] = lambda: None

    @contextmanager
    def hold(self, topics: Collection[str]) -> Iterator[None]:
        self.before()
        self.held = frozenset(topics)
        yield
        self.held = frozenset()

    def intend(self, unknown: Collection[Acl], fence: PrincipalsOf) -> None:
        assert self.held >= fence.keys(), "nobody else fences them meanwhile"
        assert self.held >= {acl.topic for acl in unknown if isinstance(acl, TopicAcl)}
        self.unknown.update(unknown)
        self.fence.update(fence)

    def carry_out(
        self, principals_of: PrincipalsOf, create: Callable[[PrincipalsOf], bool]
    ) -> None:
        create(principals_of)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def reconciler(parts: Parts) -> Reconciler:
    engines = EngineAccounts(parts.settings.ingest.username, parts.settings.query.username)
    return Reconciler(parts.acls, parts.topics, parts.access, engines)


def test_a_reader_that_is_not_wanted_is_fenced_off(
    parts: Parts, reconciler: Reconciler, kept: Kept
) -> None:
    topic = parts.new_topic()
    credentials = parts.new_reader(topic)
    name = credentials.username
    wanted = {acl for acl in _present(parts) if acl.principal != name}
    with parked_reader(parts.settings, credentials, topic, 1) as hostile:
        reconciler.reconcile(lambda: wanted, kept, kept)
        parts.access.withdraw_locked(kept.fence)
        write(secadmin_producer(parts.settings), topic, ["later", "f" * 200_000])
        hostile.read_until_refused()
    assert hostile.values == []
    assert kept.fence == {topic: {name}}
    assert TopicAcl(name, topic, Operation.READ) in kept.unknown
    assert _of(parts, name) == set()


def test_a_reader_without_topics_keeps_its_groups(
    parts: Parts, reconciler: Reconciler, kept: Kept
) -> None:
    """Its client waits for the next topic: it does not end with an error."""
    name = parts.new_reader(parts.new_topic()).username
    groups = GroupAcl(name, group_prefix(name))
    wanted = {acl for acl in _present(parts) if acl.principal != name}
    reconciler.reconcile(lambda: wanted | {groups}, kept, kept)
    assert _of(parts, name) == {groups}


def test_what_is_wanted_and_missing_is_added(
    parts: Parts, reconciler: Reconciler, kept: Kept
) -> None:
    name, topic = new_principal_name("output"), parts.new_topic()
    acls = read_acls(name, topic)
    wanted = _present(parts) | {acl for acl in acls if isinstance(acl, TopicAcl)}
    reconciler.reconcile(lambda: wanted, kept, kept)
    assert _of(parts, name) == acls


def test_what_is_revoked_meanwhile_is_not_added(
    parts: Parts, reconciler: Reconciler, kept: Kept
) -> None:
    name, topic = new_principal_name("output"), parts.new_topic()
    before = _present(parts)
    own = {acl for acl in read_acls(name, topic) if isinstance(acl, TopicAcl)}
    answers = iter([before | own])
    reconciler.reconcile(lambda: next(answers, before), kept, kept)
    assert _of(parts, name) & own == set()


def test_what_is_granted_meanwhile_stays(parts: Parts, reconciler: Reconciler, kept: Kept) -> None:
    """Until its turn comes, with the topic's lock, it is wanted again."""
    topic = parts.new_topic()
    name = parts.new_reader(topic).username
    own = _of(parts, name)
    wanted = {acl for acl in _present(parts) if acl.principal != name}
    kept.before = lambda: wanted.update(acl for acl in own if isinstance(acl, TopicAcl))
    reconciler.reconcile(lambda: wanted, kept, kept)
    assert _of(parts, name) == own
    assert kept.fence == {}


@pytest.mark.parametrize("account", ["ingest", "query"])
def test_what_an_engine_has_beside_its_rights_is_taken_away(
    parts: Parts, reconciler: Reconciler, kept: Kept, account: str
) -> None:
    name = {"ingest": parts.settings.ingest, "query": parts.settings.query}[account].username
    engines = EngineAccounts(parts.settings.ingest.username, parts.settings.query.username)
    lab = parts.new_topic("lab.")
    rights = engines.stream_acls(lab) if account == "query" else engines.output_acls(lab)
    parts.acls.grant(rights)
    wanted = _present(parts)
    before = _of(parts, name)
    others = {TopicAcl(name, lab, operation) for operation in Operation} - rights
    more: set[Acl] = {
        *others,
        TopicAcl(name, f"others-{lab}", Operation.READ),
        GroupAcl(name, "any"),
        TransactionAcl(name, f"{name}."),
        ForeignAcl(f"User:{name}", "*", "BROKER", "kafka-cluster", "LITERAL", "ALTER", "ALLOW"),
    }
    parts.acls.grant(more)
    assert _of(parts, name) == before | more
    reconciler.reconcile(lambda: wanted, kept, kept)
    assert _of(parts, name) == before
    assert {acl for acl in kept.unknown if isinstance(acl, TopicAcl)} >= others


def test_a_wildcard_is_taken_away(parts: Parts, reconciler: Reconciler, kept: Kept) -> None:
    name = new_principal_name("output")
    every = ForeignAcl(f"User:{name}", "*", "TOPIC", "out.", "PREFIXED", "READ", "ALLOW")
    denial = dataclasses.replace(every, permission="DENY")
    wanted, topic = _present(parts), parts.new_topic()
    parts.acls.grant([every, denial])
    reconciler.reconcile(lambda: wanted, kept, kept)
    assert kept.fence[topic] == {OF_NOBODY}
    assert _of(parts, name) == {denial}
    parts.acls.revoke([denial])
