"""Topics, principals and ACLs, as the broker has them afterwards."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from catalog.errors import Conflict
from secadmin.kafka.acl import ForeignAcl, GroupAcl, group_prefix, read_acls, write_acls
from secadmin.kafka.principals import Credentials, new_principal_name
from secadmin.kafka.topics import _UNKNOWN_TOPIC_ID, TopicSpec, topic_config, topic_id
from secadmin.kafka.wire.topic_deletion import TopicId, delete_topics
from tests.integration.kafka.clients import fetch_directly
from tests.integration.kafka.conftest import Parts


@pytest.mark.parametrize("prefix", ["in.", "lab.", "quarantine.", "out.o."])
def test_a_topic_has_the_settings_of_its_use(parts: Parts, prefix: str) -> None:
    spec = TopicSpec(prefix + secrets.token_hex(6), partitions=2, retention_ms=60_000)
    parts.topics.create([spec])
    resource = ConfigResource(ResourceType.TOPIC, spec.name)
    found = parts.admins.reads.describe_configs([resource])[resource].result(10)
    wanted = topic_config(spec, replication=1)
    assert {name: found[name].value for name in wanted} == wanted
    assert parts.topics.end_offsets([spec.name]) == {spec.name: {0: 0, 1: 0}}


def test_creating_again_changes_nothing(parts: Parts) -> None:
    name = parts.new_topic("in.", partitions=2)
    parts.topics.create([TopicSpec(name, 2)])
    with pytest.raises(Conflict, match="2 partitions"):
        parts.topics.create([TopicSpec(name, 3)])


def test_deleting_twice(parts: Parts) -> None:
    name = parts.new_topic()
    assert name in parts.topics.list_names()
    parts.topics.delete([name])
    parts.topics.delete([name])
    assert name not in parts.topics.list_names()


def test_a_principal_can_log_in_at_once_and_its_password_is_not_shown(
    parts: Parts, tmp_path: Path
) -> None:
    topic = parts.new_topic()
    for _ in range(5):
        credentials = parts.principals.create(new_principal_name("output"))
        assert credentials.password not in repr(credentials)
        fetch_directly(parts.settings, credentials, topic, tmp_path)


def test_deleting_a_principal_twice(parts: Parts) -> None:
    credentials = parts.principals.create(new_principal_name("output"))
    assert credentials.username in parts.principals.list_names()
    parts.principals.delete(credentials.username)
    parts.principals.delete(credentials.username)
    assert credentials.username not in parts.principals.list_names()


def test_the_platforms_account_has_the_password_of_its_file(parts: Parts, tmp_path: Path) -> None:
    account = parts.settings.query
    parts.principals.ensure(account)
    assert account.username in parts.principals.list_names()
    credentials = Credentials(account.username, account.password())
    fetch_directly(parts.settings, credentials, parts.new_topic(), tmp_path)


def test_acls_come_back_as_the_values_that_were_granted(parts: Parts) -> None:
    reader, writer, topic = new_principal_name("output"), new_principal_name("send"), "out.no.topic"
    granted = read_acls(reader, topic) | write_acls(writer, topic)
    parts.acls.grant(granted)
    parts.acls.grant(granted)
    assert parts.acls.list_all() >= granted
    parts.acls.revoke_topics({topic: [reader]})
    left = {acl for acl in parts.acls.list_all() if acl.principal in {reader, writer}}
    assert left == write_acls(writer, topic) | {GroupAcl(reader, group_prefix(reader))}
    for principal in (reader, writer):
        parts.acls.delete_of_principal(principal)
    assert not {acl for acl in parts.acls.list_all() if acl.principal in {reader, writer}}


def test_an_acl_of_another_form_is_listed_and_can_be_revoked(parts: Parts) -> None:
    principal = f"User:{new_principal_name('output')}"
    place = ("*", "TOPIC", "*", "LITERAL")
    acl = ForeignAcl(principal, *place, operation="READ", permission="ALLOW")
    parts.acls.grant([acl])
    assert acl in parts.acls.list_all()
    parts.acls.revoke([acl])
    assert acl not in parts.acls.list_all()


def test_a_deletion_that_comes_late_leaves_the_next_topic_of_the_name(parts: Parts) -> None:
    name = parts.new_topic("lab.s")
    ids = [_id_of(parts, name)]
    parts.topics.delete([name])
    assert name not in parts.topics.list_names()
    parts.topics.delete([name])
    parts.topics.create([TopicSpec(name)])
    assert _id_of(parts, name) not in ids
    codes = parts.connections.ask("delete it again", lambda broker: delete_topics(broker, ids))
    assert codes == [_UNKNOWN_TOPIC_ID]
    parts.topics.create([TopicSpec(name)])
    assert name in parts.topics.list_names()


def _id_of(parts: Parts, name: str) -> TopicId:
    return topic_id(parts.topics.describe([name])[name])
