"""What reconciliation takes away, fences and adds, as a pure function."""

from __future__ import annotations

import pytest

from secadmin.kafka.acl import (
    Acl,
    ForeignAcl,
    GroupAcl,
    Operation,
    TopicAcl,
    TransactionAcl,
    platform_acls,
    read_acls,
    send_acls,
    write_acls,
)
from secadmin.kafka.reconcile import OF_NOBODY, Difference, compare

SENDER = f"send-{'0f' * 12}"
TOPICS = {"in.s", "lab.s", "quarantine.s", "out.o.a", "out.o.b"}
DATA_PLANE = "secfilter"
READ_A = TopicAcl("p", "out.o.a", Operation.READ)


def _foreign(name: str, pattern: str = "LITERAL", **other: str) -> ForeignAcl:
    fields = {"resource": "TOPIC", "operation": "READ", "permission": "ALLOW"} | other
    return ForeignAcl("User:p", "*", name=name, pattern=pattern, **fields)


def test_nothing_to_do() -> None:
    found = read_acls("p", "out.o.a")
    wanted = {acl for acl in found if isinstance(acl, TopicAcl)}
    difference = compare(wanted, found, TOPICS, DATA_PLANE)
    assert difference == Difference(frozenset(), {}, frozenset())


def test_readers_get_their_group() -> None:
    assert compare({READ_A}, set(), TOPICS, DATA_PLANE).add == {READ_A, GroupAcl("p", "p.")}
    write = TopicAcl("p", "in.s", Operation.WRITE)
    added = compare({write}, set(), TOPICS, DATA_PLANE).add
    assert added == send_acls("p", "in.s") == {write, TransactionAcl("p", "p.")}


def test_a_move_from_one_class_to_another() -> None:
    wanted = {acl for acl in read_acls("p", "out.o.b") if isinstance(acl, TopicAcl)}
    difference = compare(wanted, read_acls("p", "out.o.a"), TOPICS, DATA_PLANE)
    assert difference.fence == {"out.o.a": {"p"}}
    assert difference.remove == {READ_A}
    assert difference.add == wanted


@pytest.mark.parametrize(
    ("acl", "fenced"),
    [
        (READ_A, {"out.o.a"}),
        (TopicAcl("p", "quarantine.s", Operation.READ), {"quarantine.s"}),
        (TopicAcl("p", "lab.s", Operation.READ), set()),
        (TopicAcl("p", "out.gone.a", Operation.READ), set()),
        (*write_acls("p", "in.s"), set()),
        (GroupAcl("p", "p."), set()),
        (TransactionAcl(SENDER, f"{SENDER}."), set()),
        (_foreign("*"), {"out.o.a", "out.o.b", "quarantine.s"}),
        (_foreign("out.", "PREFIXED"), {"out.o.a", "out.o.b"}),
        (_foreign("o", "PREFIXED"), {"out.o.a", "out.o.b"}),
        (_foreign("out.later.", "PREFIXED"), set()),
        (_foreign("out.o.a", operation="ALL"), {"out.o.a"}),
        (_foreign("out.o.a", operation="DESCRIBE"), set()),
        (_foreign("out.o.a", operation="ALTER_CONFIGS"), set()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_wanted_goes(acl: Acl, fenced: set[str]) -> None:
    difference = compare(set(), {acl}, TOPICS, DATA_PLANE)
    assert difference.remove == {acl}
    assert difference.fence.keys() == fenced


@pytest.mark.parametrize(
    "acl",
    [
        TopicAcl("p", "others", Operation.READ),
        GroupAcl("p", "others"),
        TransactionAcl("flink", "flink."),
        _foreign("others."),
        _foreign("others.", "PREFIXED"),
        _foreign("*", permission="DENY"),
        _foreign("kafka-cluster", resource="BROKER"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_ours_stays(acl: Acl) -> None:
    assert compare(set(), {acl}, TOPICS, DATA_PLANE).remove == set()


@pytest.mark.parametrize("topic", ["in.s", "lab.s", "quarantine.s", "out.o.a", "out.gone.a"])
def test_what_the_data_plane_has_goes_with_its_topic_alone(topic: str) -> None:
    own = platform_acls(DATA_PLANE, topic)
    assert compare(set(), own, TOPICS, DATA_PLANE).remove == set()
    assert compare(set(), own, TOPICS, "another").remove == own


def test_the_data_plane_reads_nothing_that_subscribers_read() -> None:
    reading = TopicAcl(DATA_PLANE, "out.o.a", Operation.READ)
    assert compare(set(), {reading}, TOPICS, DATA_PLANE).fence == {"out.o.a": {OF_NOBODY}}
