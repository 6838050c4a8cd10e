"""A policy for one role and one stream: what its obligations show (paper 002, section 2.2).

The target names the role and the stream, and it may name the action, which is to read. The policy
must decide by these alone: what it permits is written down once, and is not decided anew for each
tuple or at another time of day. One that denies shows nothing, whatever the role's other policies
show: they hold together. A policy set is a policy whose parts are combined.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from catalog.errors import Denied
from secadmin.xacml.combining import Decision
from secadmin.xacml.policies import decide
from secadmin.xacml.reader import policy_of
from secadmin.xacml.request import Name, Request
from secadmin.xacml.stream_obligations import Unfulfilled, view_of
from secadmin.xacml.stream_view import StreamView
from secadmin.xacml.tree import Element, parse_tree

_EQUAL = "urn:oasis:names:tc:xacml:1.0:function:string-equal"
_SUBJECT = "urn:oasis:names:tc:xacml:1.0:subject-category:access-subject"
_RESOURCE = "urn:oasis:names:tc:xacml:3.0:attribute-category:resource"
_ROLE_IDS = ("urn:oasis:names:tc:xacml:2.0:subject:role", "role")
_STREAM_IDS = ("urn:oasis:names:tc:xacml:1.0:resource:resource-id", "stream")
_ACTION = "urn:oasis:names:tc:xacml:3.0:attribute-category:action"
_ACTION_IDS = ("urn:oasis:names:tc:xacml:1.0:action:action-id", "action")
_READ = "read"
"""The only action that a policy is about."""


@dataclass(frozen=True, slots=True)
class RolePolicy:
    """What a policy shows a role of a stream. `name` is its PolicyId or PolicySetId."""

    name: str
    role: str
    stream: str
    view: StreamView


@dataclass(frozen=True, slots=True)
class _Watched(Request):
    """A request that notes the attributes that it was asked for and does not have."""

    missing: set[str] = field(default_factory=set)

    def bag(self, name: Name, issuer: str | None) -> tuple[Any, ...]:
        """The values of the attribute."""
        if issuer is not None or name not in self.attributes:
            self.missing.add(name.attribute)
        # `super()` has no class in a dataclass with slots.
        return Request.bag(self, name, issuer)


def read_role_policy(text: str) -> RolePolicy:
    """The policy of an XML text. Raises InvalidInput, with the position, for what has no view."""
    root = parse_tree(text)
    policy = policy_of(root)
    target = next(part for part in root.children if part.tag == "Target")
    named = _named(target)
    for ids, what in ((_ROLE_IDS, "a role"), (_STREAM_IDS, "a stream")):
        if not any(attribute in ids for attribute in named):
            raise target.refused(f"the Target does not name {what}: no Match of {' or '.join(ids)}")
    request = _request(named)
    result = decide(policy, request)
    if request.missing:
        asked = ", ".join(sorted(request.missing))
        raise root.refused(f"the policy depends on more than its role and stream: {asked}")
    try:
        denies = result.decision is Decision.DENY
        view = StreamView(denied=True) if denies else view_of(result)
    except Unfulfilled as error:
        raise _obligation(root, error.obligation).refused(error.detail) from None
    except Denied as error:
        raise root.refused(error.detail) from None
    role, stream = (
        next(value for name, value in named.items() if name in ids)
        for ids in (_ROLE_IDS, _STREAM_IDS)
    )
    return RolePolicy(policy.id, role, stream, view)


def _obligation(root: Element, obligation: str) -> Element:
    """The only element of the obligation of this id; the root if there are several."""
    found, rest = list[Element](), [root]
    while rest:
        element = rest.pop()
        rest += element.children
        if element.attributes.get("ObligationId") == obligation:
            found.append(element)
    return found[0] if len(found) == 1 else root


def _named(target: Element) -> dict[str, str]:
    """The role, the stream and the action that the target names, by their attributes."""
    found: dict[str, str] = {}
    for any_of in target.children:
        if len(any_of.children) != 1:
            raise any_of.refused("exactly one AllOf is expected; write a policy for each role")
        for match in any_of.children[0].children:
            attribute, value = _match(match)
            if attribute in found:
                raise match.refused(f"{attribute} is named twice; write a policy for each role")
            found[attribute] = value
    return found


def _match(match: Element) -> tuple[str, str]:
    if match.attribute("MatchId") != _EQUAL:
        raise match.refused(f"the Target of a role's policy compares with {_EQUAL}")
    value = next(part for part in match.children if part.tag == "AttributeValue")
    designator = next(part for part in match.children if part is not value)
    category, name = designator.attribute("Category"), designator.attribute("AttributeId")
    known = {_SUBJECT: _ROLE_IDS, _RESOURCE: _STREAM_IDS, _ACTION: _ACTION_IDS}
    if name not in known.get(category, ()):
        raise designator.refused(
            "the Target of a role's policy names a role, a stream and the action, no more"
        )
    if category == _ACTION and value.text != _READ:
        raise value.refused(f"a policy says what a role reads: the action is {_READ}")
    return name, value.text


def _request(named: dict[str, str]) -> _Watched:
    """A request of the role to read the stream, under all names that these have."""
    values: dict[Name, tuple[tuple[str | None, Any], ...]] = {}
    parts = ((_SUBJECT, _ROLE_IDS), (_RESOURCE, _STREAM_IDS), (_ACTION, _ACTION_IDS))
    for category, ids in parts:
        value = next((value for name, value in named.items() if name in ids), _READ)
        values |= {Name(category, name, "string"): ((None, value),) for name in ids}
    return _Watched(values)
