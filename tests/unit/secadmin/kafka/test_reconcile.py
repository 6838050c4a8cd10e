"""What reconciliation takes away, fences and adds, as a pure function."""

from __future__ import annotations

from dataclasses import replace

import pytest

from secadmin.kafka.acl import (
    Acl,
    EngineAccounts,
    ForeignAcl,
    GroupAcl,
    Operation,
    TopicAcl,
    TransactionAcl,
    read_acls,
    send_acls,
    write_acls,
)
from secadmin.kafka.reconcile import OF_NOBODY, Difference, compare

SENDER = f"send-{'0f' * 12}"
TOPICS = {"in.s", "lab.s", "quarantine.s", "out.o.a", "out.o.b"}
ENGINES = EngineAccounts("ingest", "query")
READ_A = TopicAcl("p", "out.o.a", Operation.READ)


def _foreign(name: str, pattern: str = "LITERAL", **other: str) -> ForeignAcl:
    fields = {"resource": "TOPIC", "operation": "READ", "permission": "ALLOW"} | other
    return ForeignAcl("User:p", "*", name=name, pattern=pattern, **fields)


def test_nothing_to_do() -> None:
    found = read_acls("p", "out.o.a")
    wanted = {acl for acl in found if isinstance(acl, TopicAcl)}
    difference = compare(wanted, found, TOPICS, ENGINES)
    assert difference == Difference(frozenset(), {}, frozenset())


def test_readers_get_their_group() -> None:
    assert compare({READ_A}, set(), TOPICS, ENGINES).add == {READ_A, GroupAcl("p", "p.")}
    write = TopicAcl("p", "in.s", Operation.WRITE)
    added = compare({write}, set(), TOPICS, ENGINES).add
    assert added == send_acls("p", "in.s") == {write, TransactionAcl("p", "p.")}


def test_a_move_from_one_class_to_another() -> None:
    wanted = {acl for acl in read_acls("p", "out.o.b") if isinstance(acl, TopicAcl)}
    difference = compare(wanted, read_acls("p", "out.o.a"), TOPICS, ENGINES)
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
    difference = compare(set(), {acl}, TOPICS, ENGINES)
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
    assert compare(set(), {acl}, TOPICS, ENGINES).remove == set()


@pytest.mark.parametrize("topic", ["in.s", "lab.s", "quarantine.s", "out.o.a", "out.gone.a"])
def test_what_engines_have_goes_with_its_topic_alone(topic: str) -> None:
    own = ENGINES.stream_acls(topic) | ENGINES.output_acls(topic)
    assert compare(set(), own, TOPICS, ENGINES).remove == set()
    # So an account of a former version loses all that it had.
    assert compare(set(), own, TOPICS, EngineAccounts("other", "another")).remove == own


def _engines_rights(name: str) -> set[TopicAcl]:
    return {TopicAcl(name, topic, operation) for topic in TOPICS for operation in Operation}


@pytest.mark.parametrize("account", ["ingest", "query"])
def test_engines_have_on_topics_that_are_known_what_they_need_alone(account: str) -> None:
    """Whether lab.s is a stream's or an output's, the catalog knows."""
    of_stream = {acl for t in ("in.s", "lab.s", "quarantine.s") for acl in ENGINES.stream_acls(t)}
    of_outputs = {acl for t in ("out.o.a", "out.o.b") for acl in ENGINES.output_acls(t)}
    found = _engines_rights(account)
    difference = compare(of_stream | of_outputs, found, TOPICS, ENGINES)
    assert difference.remove == found - of_stream - of_outputs
    as_output = ENGINES.output_acls("lab.s")
    on_lab = {acl for acl in found if acl.topic == "lab.s"}
    assert compare(as_output, on_lab, TOPICS, ENGINES).remove == on_lab - as_output


@pytest.mark.parametrize("account", ["ingest", "query"])
@pytest.mark.parametrize(
    "place",
    [
        TopicAcl("p", "others", Operation.READ),
        TopicAcl("p", "audit.head", Operation.WRITE),
        GroupAcl("p", "p."),
        GroupAcl("p", "others"),
        TransactionAcl("p", "p."),
        ForeignAcl("User:p", "*", "TOPIC", "in.s", "LITERAL", "DESCRIBE", "ALLOW"),
        ForeignAcl("User:p", "*", "TOPIC", "others", "PREFIXED", "READ", "ALLOW"),
        ForeignAcl("User:p", "*", "BROKER", "kafka-cluster", "LITERAL", "ALTER", "ALLOW"),
        ForeignAcl("User:p", "*", "GROUP", "*", "LITERAL", "READ", "ALLOW"),
    ],
    ids=str,
)
def test_engines_have_nothing_else_on_whatever_it_is(account: str, place: Acl) -> None:
    is_foreign = isinstance(place, ForeignAcl)
    acl = replace(place, principal=f"User:{account}" if is_foreign else account)
    assert compare(set(), {acl}, TOPICS, ENGINES).remove == {acl}


def test_engines_need_no_group() -> None:
    wanted = {*ENGINES.stream_acls("lab.s"), READ_A}
    assert compare(wanted, set(), TOPICS, ENGINES).add == {*wanted, GroupAcl("p", "p.")}


def test_an_engine_reads_nothing_that_subscribers_read() -> None:
    reading = TopicAcl(ENGINES.query, "out.o.a", Operation.READ)
    assert compare(set(), {reading}, TOPICS, ENGINES).fence == {"out.o.a": {OF_NOBODY}}
