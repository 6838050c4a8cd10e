"""ACLs as values, to the client library and back."""

from __future__ import annotations

import pytest

from secadmin.kafka.acl import (
    Acl,
    ForeignAcl,
    GroupAcl,
    Operation,
    TopicAcl,
    TransactionAcl,
    from_binding,
    platform_acls,
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


@pytest.mark.parametrize(
    ("topic", "operations"),
    [
        ("in.s", {"READ"}),
        ("lab.s", {"READ", "WRITE"}),
        ("quarantine.s", {"WRITE"}),
        ("out.o.a", {"WRITE"}),
        ("others", set()),
    ],
)
def test_what_the_platforms_account_may_do(topic: str, operations: set[str]) -> None:
    acls = platform_acls("secfilter", topic)
    assert {acl.operation for acl in acls if isinstance(acl, TopicAcl)} == operations
    assert {acl.topic for acl in acls if isinstance(acl, TopicAcl)} <= {topic}
