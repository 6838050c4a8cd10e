"""ACLs as values, to the client library and back."""

from __future__ import annotations

import pytest

from secadmin.kafka.acl import (
    Acl,
    EngineAccounts,
    ForeignAcl,
    GroupAcl,
    Operation,
    TopicAcl,
    TransactionAcl,
    from_binding,
    to_binding,
)


@pytest.mark.parametrize(
    "acl",
    [
        *(TopicAcl("p", "out.o.a", operation) for operation in Operation),
        GroupAcl("p", "p."),
        TransactionAcl("p", "p."),
        ForeignAcl("User:p", "*", "TOPIC", "*", "LITERAL", "READ", "ALLOW"),
        ForeignAcl("User:p", "*", "TOPIC", "out.", "PREFIXED", "READ", "ALLOW"),
        ForeignAcl("User:p", "10.0.0.1", "TOPIC", "out.o.a", "LITERAL", "READ", "ALLOW"),
        ForeignAcl("User:p", "*", "TOPIC", "out.o.a", "LITERAL", "READ", "DENY"),
        ForeignAcl("User:p", "*", "TOPIC", "out.o.a", "LITERAL", "DESCRIBE", "ALLOW"),
        ForeignAcl("User:p", "*", "TOPIC", "out.o.a", "LITERAL", "ALL", "ALLOW"),
        ForeignAcl("User:p", "*", "GROUP", "p.", "LITERAL", "READ", "ALLOW"),
        ForeignAcl("Group:p", "*", "TOPIC", "out.o.a", "LITERAL", "READ", "ALLOW"),
    ],
    ids=str,
)
def test_there_and_back(acl: Acl) -> None:
    assert from_binding(to_binding(acl)) == acl


ENGINES = EngineAccounts("i", "q")


@pytest.mark.parametrize(
    ("topic", "rights"),
    [
        ("in.s.1", {"i READ", "i WRITE"}),
        ("time.echo", {"i READ", "i WRITE"}),
        ("lab.s", {"i READ", "i WRITE", "q READ"}),
        ("quarantine.s", {"i WRITE"}),
        ("out.s.a", set()),
        ("audit.head", set()),
        ("others", set()),
        ("labelled", set()),
    ],
)
def test_what_engines_may_do_with_topics_of_streams(topic: str, rights: set[str]) -> None:
    acls = ENGINES.stream_acls(topic)
    assert {f"{acl.principal} {acl.operation}" for acl in acls} == rights
    assert {acl.topic for acl in acls} <= {topic}


@pytest.mark.parametrize(
    ("topic", "rights"),
    [
        ("lab.o", {"q READ", "q WRITE"}),
        ("out.o.a", {"q WRITE"}),
        ("time.results", {"q READ", "q WRITE"}),
        ("in.o.1", set()),
        ("quarantine.o", set()),
        ("audit.head", set()),
        ("others", set()),
    ],
)
def test_what_engines_may_do_with_topics_of_outputs(topic: str, rights: set[str]) -> None:
    acls = ENGINES.output_acls(topic)
    assert {f"{acl.principal} {acl.operation}" for acl in acls} == rights
    assert {acl.topic for acl in acls} <= {topic}
