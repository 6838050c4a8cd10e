"""Names and secrets of principals; which topics are ours and which are fenced."""

from __future__ import annotations

import pytest

from catalog.access_kind import AccessKind
from secadmin.control.settlement import is_access_principal
from secadmin.kafka.acl import group_prefix
from secadmin.kafka.principals import Credentials, new_principal_name
from secadmin.kafka.topics import TopicSpec, is_fenced_topic, is_platform_topic, topic_config


def test_names_of_principals() -> None:
    names = {new_principal_name("output") for _ in range(1000)}
    assert len(names) == 1000
    assert not any("." in name for name in names)
    prefixes = [group_prefix(name) for name in names]
    assert not any(a != b and b.startswith(a) for a in prefixes[:50] for b in prefixes)


@pytest.mark.parametrize(
    "name", ["send-gateway", "output-metrics", "send-0123456789abcdef0123456", "secadmin", "send-"]
)
def test_users_of_somebody_else_are_not_taken_for_ours(name: str) -> None:
    assert not is_access_principal(name)
    assert all(is_access_principal(new_principal_name(kind)) for kind in AccessKind)
    assert not is_access_principal(new_principal_name("output") + "-spare")
    assert not is_access_principal(new_principal_name("metrics"))


def test_a_password_is_not_shown() -> None:
    assert "hidden" not in repr(Credentials("output-1", "hidden"))


@pytest.mark.parametrize(
    ("topic", "ours", "fenced"),
    [
        ("in.s", True, False),
        ("lab.s", True, False),
        ("quarantine.s", True, True),
        ("out.o.a", True, True),
        ("outer", False, False),
        ("__consumer_offsets", False, False),
    ],
)
def test_whose_a_topic_is(topic: str, ours: bool, fenced: bool) -> None:
    assert (is_platform_topic(topic), is_fenced_topic(topic)) == (ours, fenced)


def test_a_fence_can_be_stamped_ahead_wherever_there_is_one() -> None:
    for name in ("out.o.a", "quarantine.s"):
        config = topic_config(TopicSpec(name), replication=3)
        assert config["message.timestamp.type"] == "CreateTime"
        assert config["message.timestamp.after.max.ms"] == str(2**63 - 1)
        assert config["cleanup.policy"] == "delete"
        assert config["min.insync.replicas"] == "2"
        assert "segment.ms" not in config
