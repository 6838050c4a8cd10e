"""The combining algorithms (XACML 3.0, appendix C), also the legacy ones of XACML 1.0 and 1.1.

An algorithm takes the children in order, and evaluates no more of them than it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from secadmin.xacml.functions import PREFIX


class Decision(Enum):
    """A decision. Indeterminate has three forms: what it could have been without the error."""

    PERMIT = "Permit"
    DENY = "Deny"
    NOT_APPLICABLE = "NotApplicable"
    INDETERMINATE_P = "Indeterminate{P}"
    INDETERMINATE_D = "Indeterminate{D}"
    INDETERMINATE_DP = "Indeterminate{DP}"


P, D, NA = Decision.PERMIT, Decision.DENY, Decision.NOT_APPLICABLE
IND_P, IND_D, IND_DP = (
    Decision.INDETERMINATE_P,
    Decision.INDETERMINATE_D,
    Decision.INDETERMINATE_DP,
)
Algorithm = Callable[[Iterable[Decision]], Decision]


def _overrides(strong: Decision, weak: Decision) -> Algorithm:
    """Deny-overrides and permit-overrides of 3.0 (C.2, C.4)."""
    maybe_strong, maybe_weak = (IND_D, IND_P) if strong is D else (IND_P, IND_D)

    def combine(children: Iterable[Decision]) -> Decision:
        seen = set()
        for decision in children:
            if decision is strong:
                return strong
            seen.add(decision)
        if IND_DP in seen:
            return IND_DP
        if maybe_strong in seen:
            return IND_DP if seen & {maybe_weak, weak} else maybe_strong
        if weak in seen:
            return weak
        return maybe_weak if maybe_weak in seen else NA

    return combine


def _unless(wanted: Decision, otherwise: Decision) -> Algorithm:
    """Deny-unless-permit and permit-unless-deny (C.6, C.7)."""
    return lambda children: wanted if any(one is wanted for one in children) else otherwise


def _first_applicable(children: Iterable[Decision]) -> Decision:
    """The first decision that is not NotApplicable (C.8)."""
    return next((one for one in children if one is not NA), NA)


def _legacy_rules(strong: Decision, weak: Decision) -> Algorithm:
    """The overrides of 1.0 for rules (C.10, C.12): an error of a strong rule weighs."""
    maybe_strong, maybe_weak = (IND_D, IND_P) if strong is D else (IND_P, IND_D)

    def combine(children: Iterable[Decision]) -> Decision:
        seen = set()
        for decision in children:
            if decision is strong:
                return strong
            seen.add(decision)
        if seen & {maybe_strong, IND_DP}:
            return IND_DP if seen & {weak, maybe_weak, IND_DP} else maybe_strong
        if weak in seen:
            return weak
        return maybe_weak if maybe_weak in seen else NA

    return combine


def _legacy_deny_policies(children: Iterable[Decision]) -> Decision:
    """Deny-overrides of 1.0 for policies (C.11): an error denies."""
    found = NA
    for decision in children:
        if decision not in (P, NA):
            return D
        found = P if decision is P else found
    return found


def _legacy_permit_policies(children: Iterable[Decision]) -> Decision:
    """Permit-overrides of 1.0 for policies (C.13): a denial hides an error."""
    seen = set()
    for decision in children:
        if decision is P:
            return P
        seen.add(decision)
    if D in seen:
        return D
    return IND_DP if seen - {NA} else NA


_BOTH: dict[str, Algorithm] = {
    "3.0:{}:deny-overrides": _overrides(D, P),
    "3.0:{}:permit-overrides": _overrides(P, D),
    "3.0:{}:ordered-deny-overrides": _overrides(D, P),
    "3.0:{}:ordered-permit-overrides": _overrides(P, D),
    "3.0:{}:deny-unless-permit": _unless(P, D),
    "3.0:{}:permit-unless-deny": _unless(D, P),
    "1.0:{}:first-applicable": _first_applicable,
}
_RULES, _POLICIES = "rule-combining-algorithm", "policy-combining-algorithm"
FOR_RULES: dict[str, Algorithm] = {
    **{PREFIX + key.format(_RULES): algorithm for key, algorithm in _BOTH.items()},
    f"{PREFIX}1.0:{_RULES}:deny-overrides": _legacy_rules(D, P),
    f"{PREFIX}1.1:{_RULES}:ordered-deny-overrides": _legacy_rules(D, P),
    f"{PREFIX}1.0:{_RULES}:permit-overrides": _legacy_rules(P, D),
    f"{PREFIX}1.1:{_RULES}:ordered-permit-overrides": _legacy_rules(P, D),
}
FOR_POLICIES: dict[str, Algorithm] = {
    **{PREFIX + key.format(_POLICIES): algorithm for key, algorithm in _BOTH.items()},
    f"{PREFIX}1.0:{_POLICIES}:deny-overrides": _legacy_deny_policies,
    f"{PREFIX}1.1:{_POLICIES}:ordered-deny-overrides": _legacy_deny_policies,
    f"{PREFIX}1.0:{_POLICIES}:permit-overrides": _legacy_permit_policies,
    f"{PREFIX}1.1:{_POLICIES}:ordered-permit-overrides": _legacy_permit_policies,
}
# It asks for the children's targets too, so the policy set runs it (C.9).
ONLY_ONE = f"{PREFIX}1.0:{_POLICIES}:only-one-applicable"
