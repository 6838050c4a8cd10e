"""A broker shows that it has applied a deletion by what was made after it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from confluent_kafka.admin import AclBinding

from catalog.errors import Unavailable
from secadmin.kafka.acl import ForeignAcl
from secadmin.kafka.acls import Acls
from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.milestones import NOBODY
from tests.integration.brokers import embedded_only
from tests.integration.kafka.conftest import Parts

pytestmark = embedded_only


@pytest.fixture
def acls(parts: Parts) -> Acls:
    """As with several brokers."""
    return Acls(parts.admins, parts.connections, replication=3)


def milestones(parts: Parts) -> set[str]:
    """The names of those that Kafka has."""
    found = (acl for acl in parts.acls.list_all() if isinstance(acl, ForeignAcl))
    return {acl.name for acl in found if acl.principal == NOBODY}


def test_each_proof_has_its_own_and_one_is_left_in_the_end(parts: Parts, acls: Acls) -> None:
    topic = parts.new_topic()
    left = []
    for _ in range(2):
        reader = parts.new_reader(topic)
        proven = acls.revoke_topics({topic: [reader.username]})
        assert proven == live_brokers(parts.connections)
        left.append(milestones(parts))
    assert [len(each) for each in left] == [1, 1]
    assert left[0] != left[1]


def test_a_broker_that_does_not_list_it_is_not_proven(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = parts.new_topic()
    reader = parts.new_reader(topic)
    monkeypatch.setattr("secadmin.kafka.acls.APPLIED_TIMEOUT_S", 0.5)

    def not_yet_applied(_self: Acls, bindings: Sequence[AclBinding]) -> list[Exception | None]:
        return [None for _ in bindings]

    monkeypatch.setattr(Acls, "_send_creations", not_yet_applied)
    late = Acls(parts.admins, parts.connections, replication=3)
    with pytest.raises(Unavailable, match="does not apply changes of ACLs"):
        late.revoke_topics({topic: [reader.username]})
    assert topic not in {getattr(acl, "topic", "") for acl in parts.acls.list_all()}
