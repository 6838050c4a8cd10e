"""Policies from XML (XACML 3.0). What cannot be evaluated is refused, with its place and element.

Refused by name: AttributeSelector and XPath, CombinerParameters, PolicyIssuer, versions in
references. Variables and references may not form circles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from secadmin.xacml.combining import FOR_POLICIES, FOR_RULES, ONLY_ONE, D, Decision, P
from secadmin.xacml.expression_reader import Expressions, check_constant
from secadmin.xacml.functions import BOOLEAN
from secadmin.xacml.policies import DutyExpression, Policy, Rule
from secadmin.xacml.target import Match, Target
from secadmin.xacml.target_index import index_of
from secadmin.xacml.tree import Element, parse_tree

MAX_POLICIES = 10_000
_IGNORED = ("Description", "PolicyDefaults", "PolicySetDefaults")
_EFFECTS = {"Permit": P, "Deny": D}


def read_policy(text: str, others: Mapping[str, Policy] | None = None) -> Policy:
    """The Policy or PolicySet of an XML text; references name one of `others`, by its id.

    Others are read before, so references have no circles. Raises InvalidInput, with the position.
    """
    return policy_of(parse_tree(text), others)


def policy_of(root: Element, others: Mapping[str, Policy] | None = None) -> Policy:
    """As `read_policy`, for the root element of the text."""
    try:
        return _Reader(dict(others or {})).policy_or_set(root)
    except RecursionError:
        raise root.refused("expressions and variables are inside each other too deep") from None


def _effect(element: Element, name: str) -> Decision:
    value = element.attribute(name)
    if value not in _EFFECTS:
        raise element.refused(f"{name} must be Permit or Deny")
    return _EFFECTS[value]


@dataclass(slots=True)
class _Reader:
    others: dict[str, Policy]

    def policy_or_set(self, element: Element) -> Policy:
        if element.tag == "Policy":
            return self._policy(element)
        if element.tag == "PolicySet":
            return self._set(element)
        raise element.refused("a Policy or a PolicySet is expected")

    def _policy(self, element: Element) -> Policy:
        algorithm = element.attribute("RuleCombiningAlgId")
        if algorithm not in FOR_RULES:
            raise element.refused(f"the combining algorithm {algorithm} is not supported")
        _once(element, "Target", needed=True)
        expressions = Expressions.of_policy(element)
        target, duties, rules = Target(), [], []
        for part in element.children:
            if part.tag == "Target":
                target = _target(part)
            elif part.tag == "Rule":
                rules.append(_rule(part, expressions))
            elif part.tag in _DUTIES:
                duties += _duties(part, expressions)
            elif part.tag != "VariableDefinition" and part.tag not in _IGNORED:
                raise part.refused("not supported in a Policy")
        policy_id = element.attribute("PolicyId")
        index = index_of([one.target for one in rules])
        return Policy(policy_id, target, FOR_RULES[algorithm], tuple(rules), tuple(duties), index)

    def _set(self, element: Element) -> Policy:
        algorithm = element.attribute("PolicyCombiningAlgId")
        if algorithm != ONLY_ONE and algorithm not in FOR_POLICIES:
            raise element.refused(f"the combining algorithm {algorithm} is not supported")
        _once(element, "Target", needed=True)
        target, duties, policies = Target(), [], []
        for part in element.children:
            if part.tag == "Target":
                target = _target(part)
            elif part.tag in ("Policy", "PolicySet"):
                policies.append(self.policy_or_set(part))
            elif part.tag in ("PolicyIdReference", "PolicySetIdReference"):
                policies.append(self._referenced(part))
            elif part.tag in _DUTIES:
                duties += _duties(part, Expressions())
            elif part.tag not in _IGNORED:
                raise part.refused("not supported in a PolicySet")
        if len(policies) > MAX_POLICIES:
            raise element.refused(f"more than {MAX_POLICIES} policies")
        return Policy(
            element.attribute("PolicySetId"),
            target,
            FOR_POLICIES.get(algorithm),
            tuple(policies),
            tuple(duties),
            index_of([one.target for one in policies]),
        )

    def _referenced(self, element: Element) -> Policy:
        if element.attributes:
            raise element.refused("a reference with a version is not supported")
        name = element.text.strip()
        if name not in self.others:
            raise element.refused(f"there is no policy {name}; load it first")
        return self.others[name]


def _once(element: Element, tag: str, *, needed: bool) -> None:
    """Raises InvalidInput if the element has two parts of that name, or lacks one it needs."""
    count = sum(part.tag == tag for part in element.children)
    if count > 1 or (needed and not count):
        raise element.refused(f"{'exactly' if needed else 'at most'} one {tag} is expected")


def _target(element: Element) -> Target:
    def all_of(part: Element) -> tuple[Match, ...]:
        return tuple(_match(one) for one in _parts(part, "Match"))

    return Target(
        tuple(
            tuple(all_of(each) for each in _parts(one, "AllOf"))
            for one in _parts(element, "AnyOf", empty=True)
        )
    )


def _parts(element: Element, tag: str, *, empty: bool = False) -> list[Element]:
    for part in element.children:
        if part.tag != tag:
            raise part.refused(f"{tag} is expected here")
    if not element.children and not empty:
        raise element.refused(f"at least one {tag} is expected")
    return element.children


def _match(element: Element) -> Match:
    if len(element.children) != 2:
        raise element.refused("an AttributeValue and an AttributeDesignator are expected")
    expressions = Expressions()
    literal = expressions.literal(element.children[0])
    attribute = expressions.designator(element.children[1])
    function = expressions.function(element, "MatchId")
    wanted = (literal.kind, type(literal.kind)(attribute.kind.name))
    if function.gives != BOOLEAN or not function.fits(wanted):
        raise element.refused("the function does not compare values of these types")
    check_constant(element, function, (literal,))
    return Match(function, literal.value, attribute)


def _rule(element: Element, expressions: Expressions) -> Rule:
    _once(element, "Target", needed=False)
    _once(element, "Condition", needed=False)
    target, condition, duties = Target(), None, []
    for part in element.children:
        if part.tag == "Target":
            target = _target(part)
        elif part.tag == "Condition":
            condition = expressions.expression(part.only())
            if condition.kind != BOOLEAN:
                raise part.refused("a condition must be a boolean")
        elif part.tag in _DUTIES:
            duties += _duties(part, expressions)
        elif part.tag not in _IGNORED:
            raise part.refused("not supported in a Rule")
    effect = _effect(element, "Effect")
    return Rule(element.attribute("RuleId"), effect, target, condition, tuple(duties))


def _duties(element: Element, expressions: Expressions) -> list[DutyExpression]:
    tag, name, when, advice = _DUTIES[element.tag]
    return [
        DutyExpression(
            one.attribute(name),
            _effect(one, when),
            tuple(
                (each.attribute("AttributeId"), expressions.expression(each.only()))
                for each in _parts(one, "AttributeAssignmentExpression", empty=True)
            ),
            advice,
        )
        for one in _parts(element, tag)
    ]


_DUTIES = {
    "ObligationExpressions": ("ObligationExpression", "ObligationId", "FulfillOn", False),
    "AdviceExpressions": ("AdviceExpression", "AdviceId", "AppliesTo", True),
}
