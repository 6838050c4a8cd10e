"""Policies and requests as XML, written short."""

from __future__ import annotations

from secadmin.xacml.data_types import BY_NAME, XSD
from secadmin.xacml.tree import XACML

ROLE, SUBJECT = "role", "urn:oasis:names:tc:xacml:1.0:subject-category:access-subject"
ACTION = "urn:oasis:names:tc:xacml:3.0:attribute-category:action"
RESOURCE = "urn:oasis:names:tc:xacml:3.0:attribute-category:resource"
ENVIRONMENT = "urn:oasis:names:tc:xacml:3.0:attribute-category:environment"
CURRENT_TIME = "urn:oasis:names:tc:xacml:1.0:environment:current-time"
ONE = "urn:oasis:names:tc:xacml:1.0:function:"
RULES = "urn:oasis:names:tc:xacml:3.0:rule-combining-algorithm:"
POLICIES = "urn:oasis:names:tc:xacml:3.0:policy-combining-algorithm:"


def _uri(kind: str) -> str:
    """The identifier of a type, which may be none of the platform's."""
    return BY_NAME[kind].uri if kind in BY_NAME else f"{XSD}{kind}"


def literal(text: str, kind: str = "string") -> str:
    """A constant."""
    return f'<AttributeValue DataType="{_uri(kind)}">{text}</AttributeValue>'


def attribute(
    name: str = ROLE, kind: str = "string", *, needed: bool = False, category: str = SUBJECT
) -> str:
    """A bag of the subject, or of another category."""
    return (
        f'<AttributeDesignator Category="{category}" AttributeId="{name}" '
        f'DataType="{_uri(kind)}" MustBePresent="{str(needed).lower()}"/>'
    )


def call(function: str, *arguments: str) -> str:
    """A call of a function."""
    name = function if ":" in function else ONE + function
    return f'<Apply FunctionId="{name}">{"".join(arguments)}</Apply>'


def target(value: str | None = None, *, needed: bool = False, name: str = ROLE) -> str:
    """A target for a role, or another value of the subject, or for all."""
    if value is None:
        return "<Target/>"
    match = literal(value) + attribute(name, needed=needed)
    return (
        f'<Target><AnyOf><AllOf><Match MatchId="{ONE}string-equal">{match}</Match></AllOf>'
        "</AnyOf></Target>"
    )


def rule(effect: str = "Permit", condition: str = "", inside: str = "") -> str:
    """A rule."""
    when = f"<Condition>{condition}</Condition>" if condition else ""
    return f'<Rule RuleId="r" Effect="{effect}">{inside}{when}</Rule>'


def policy(
    inside: str, *, algorithm: str = "deny-overrides", aim: str = "", name: str = "p"
) -> str:
    """A policy."""
    which = algorithm if ":" in algorithm else RULES + algorithm
    return (
        f'<Policy xmlns="{XACML}" PolicyId="{name}" Version="1" RuleCombiningAlgId="{which}">'
        f"{aim or target()}{inside}</Policy>"
    )


def policy_set(inside: str, algorithm: str = "deny-overrides", *, aim: str = "") -> str:
    """A policy set."""
    which = algorithm if ":" in algorithm else POLICIES + algorithm
    return (
        f'<PolicySet xmlns="{XACML}" PolicySetId="s" Version="1" PolicyCombiningAlgId="{which}">'
        f"{aim or target()}{inside}</PolicySet>"
    )


def request(**values: str) -> str:
    """A request with string attributes of the subject."""
    inside = "".join(
        f'<Attribute AttributeId="{name}" IncludeInResult="false">{literal(value)}</Attribute>'
        for name, value in values.items()
    )
    return (
        f'<Request xmlns="{XACML}" ReturnPolicyIdList="false" CombinedDecision="false">'
        f'<Attributes Category="{SUBJECT}">{inside}</Attributes></Request>'
    )


def role_target(role: str, stream: str, more: str = "") -> str:
    """A target that names a role and a stream, as a role's policy has it."""
    ids = "urn:oasis:names:tc:xacml:1.0:resource:resource-id"
    resource = (
        f'<AttributeDesignator Category="{RESOURCE}" AttributeId="{ids}" '
        f'DataType="{XSD}string" MustBePresent="false"/>'
    )
    pairs = ((role, attribute()), (stream, resource))
    matches = "".join(
        f'<Match MatchId="{ONE}string-equal">{literal(value)}{of}</Match>' for value, of in pairs
    )
    return f"<Target><AnyOf><AllOf>{matches}{more}</AllOf></AnyOf></Target>"


def action(name: str = "read") -> str:
    """What a target says of the action."""
    action_id = "urn:oasis:names:tc:xacml:1.0:action:action-id"
    given = attribute(action_id, category=ACTION)
    return f'<Match MatchId="{ONE}string-equal">{literal(name)}{given}</Match>'


def obligation(name: str, *values: tuple[str, str, str]) -> str:
    """An obligation of paper 002."""
    inside = "".join(
        f'<AttributeAssignmentExpression AttributeId="exacml:obligation:stream-{key}-id">'
        f"{literal(value, kind)}</AttributeAssignmentExpression>"
        for key, value, kind in values
    )
    return (
        f'<ObligationExpression ObligationId="exacml:obligation:stream-{name}" FulfillOn="Permit">'
        f"{inside}</ObligationExpression>"
    )


def window(size: int, step: int, *functions: str, kind: str = "time") -> str:
    """The obligation of a window."""
    return obligation(
        "window-aggregation",
        ("window-type", kind, "string"),
        ("window-size", str(size), "integer"),
        ("window-step", str(step), "integer"),
        *(("window-attr", each, "string") for each in functions),
    )
