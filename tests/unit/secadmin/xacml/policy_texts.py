"""Policies and requests as XML, written short."""

from __future__ import annotations

from secadmin.xacml.data_types import XSD
from secadmin.xacml.tree import XACML

ROLE, SUBJECT = "role", "urn:oasis:names:tc:xacml:1.0:subject-category:access-subject"
ONE = "urn:oasis:names:tc:xacml:1.0:function:"
RULES = "urn:oasis:names:tc:xacml:3.0:rule-combining-algorithm:"
POLICIES = "urn:oasis:names:tc:xacml:3.0:policy-combining-algorithm:"


def literal(text: str, kind: str = "string") -> str:
    """A constant."""
    return f'<AttributeValue DataType="{XSD}{kind}">{text}</AttributeValue>'


def attribute(name: str = ROLE, kind: str = "string", *, needed: bool = False) -> str:
    """A bag of the subject."""
    return (
        f'<AttributeDesignator Category="{SUBJECT}" AttributeId="{name}" '
        f'DataType="{XSD}{kind}" MustBePresent="{str(needed).lower()}"/>'
    )


def call(function: str, *arguments: str) -> str:
    """A call of a function."""
    name = function if ":" in function else ONE + function
    return f'<Apply FunctionId="{name}">{"".join(arguments)}</Apply>'


def target(role: str | None = None, *, needed: bool = False) -> str:
    """A target for a role, or for all."""
    if role is None:
        return "<Target/>"
    match = literal(role) + attribute(needed=needed)
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


def policy_set(inside: str, algorithm: str = "deny-overrides") -> str:
    """A policy set."""
    which = algorithm if ":" in algorithm else POLICIES + algorithm
    return (
        f'<PolicySet xmlns="{XACML}" PolicySetId="s" Version="1" PolicyCombiningAlgId="{which}">'
        f"{target()}{inside}</PolicySet>"
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
