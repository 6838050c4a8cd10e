"""After reconciliation Kafka allows what is wanted, and what was taken away is fenced."""

from __future__ import annotations

import dataclasses
from collections.abc import Set

import pytest

from secadmin.kafka.acl import Acl, ForeignAcl, TopicAcl, read_acls
from secadmin.kafka.principals import new_principal_name
from secadmin.kafka.reconcile import Reconciler
from tests.integration.kafka.clients import parked_reader, secadmin_producer, write
from tests.integration.kafka.conftest import Parts


def _present(parts: Parts) -> Set[TopicAcl]:
    """What other tests have left is wanted here."""
    return {acl for acl in parts.acls.list_all() if isinstance(acl, TopicAcl)}


def _of(parts: Parts, principal: str) -> Set[Acl]:
    return {acl for acl in parts.acls.list_all() if acl.principal.endswith(principal)}


@pytest.fixture
def intended() -> list[str]:
    """The topics that it said it would fence."""
    return []


@pytest.fixture
def reconciler(parts: Parts) -> Reconciler:
    return Reconciler(parts.acls, parts.topics, parts.access)


def test_a_reader_that_is_not_wanted_is_fenced_off(
    parts: Parts, reconciler: Reconciler, intended: list[str]
) -> None:
    topic = parts.new_topic()
    credentials = parts.new_reader(topic)
    name = credentials.username
    wanted = {acl for acl in _present(parts) if acl.principal != name}
    with parked_reader(parts.settings, credentials, topic, 1) as hostile:
        found = reconciler.reconcile(lambda: wanted, intended.extend)
        write(secadmin_producer(parts.settings), topic, ["later", "f" * 200_000])
        hostile.read_until_refused()
    assert hostile.values == []
    assert found.fence == set(intended) == {topic}
    assert _of(parts, name) == set()


def test_what_is_wanted_and_missing_is_added(
    parts: Parts, reconciler: Reconciler, intended: list[str]
) -> None:
    name, topic = new_principal_name("output"), parts.new_topic()
    acls = read_acls(name, topic)
    wanted = _present(parts) | {acl for acl in acls if isinstance(acl, TopicAcl)}
    reconciler.reconcile(lambda: wanted, intended.extend)
    assert _of(parts, name) == acls
    assert reconciler.reconcile(lambda: wanted, intended.extend).add == frozenset()


def test_what_is_revoked_meanwhile_is_not_added(
    parts: Parts, reconciler: Reconciler, intended: list[str]
) -> None:
    name, topic = new_principal_name("output"), parts.new_topic()
    before = _present(parts)
    own = {acl for acl in read_acls(name, topic) if isinstance(acl, TopicAcl)}
    answers = iter([before | own])
    reconciler.reconcile(lambda: next(answers, before), intended.extend)
    assert _of(parts, name) & own == set()


def test_a_wildcard_is_taken_away(
    parts: Parts, reconciler: Reconciler, intended: list[str]
) -> None:
    name = new_principal_name("output")
    every = ForeignAcl(f"User:{name}", "*", "TOPIC", "out.", "PREFIXED", "READ", "ALLOW")
    denial = dataclasses.replace(every, permission="DENY")
    wanted, topic = _present(parts), parts.new_topic()
    parts.acls.grant([every, denial])
    found = reconciler.reconcile(lambda: wanted, intended.extend)
    assert topic in found.fence
    assert _of(parts, name) == {denial}
    parts.acls.revoke([denial])
