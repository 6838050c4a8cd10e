"""The overrides of 3.0 against their meaning: what could the answer be without the errors?"""

from __future__ import annotations

from itertools import product

import pytest

from secadmin.xacml.combining import FOR_POLICIES, FOR_RULES, Decision
from secadmin.xacml.functions import PREFIX

P, D, NA = Decision.PERMIT, Decision.DENY, Decision.NOT_APPLICABLE
# What a child could have been, had there been no error.
COULD_BE = {
    P: {P},
    D: {D},
    NA: {NA},
    Decision.INDETERMINATE_P: {P, NA},
    Decision.INDETERMINATE_D: {D, NA},
    Decision.INDETERMINATE_DP: {P, D, NA},
}
PERMITS_OR_DENIES = {
    frozenset({P}): Decision.INDETERMINATE_P,
    frozenset({D}): Decision.INDETERMINATE_D,
    frozenset({P, D}): Decision.INDETERMINATE_DP,
}
LISTS = [list(one) for size in range(4) for one in product(Decision, repeat=size)]


def _run(
    name: str, children: list[Decision], kind: str = "policy", version: str = "3.0"
) -> Decision:
    table = FOR_RULES if kind == "rule" else FOR_POLICIES
    return table[f"{PREFIX}{version}:{kind}-combining-algorithm:{name}"](children)


@pytest.mark.parametrize("kind", ["rule", "policy"])
@pytest.mark.parametrize("ordered", ["", "ordered-"])
@pytest.mark.parametrize(("name", "strong"), [("deny-overrides", D), ("permit-overrides", P)])
def test_overrides(name: str, strong: Decision, ordered: str, kind: str) -> None:
    weak = P if strong is D else D
    for children in LISTS:
        answers = {
            strong if strong in sure else weak if weak in sure else NA
            for sure in product(*(COULD_BE[one] for one in children))
        }
        found = _run(ordered + name, children, kind)
        if len(answers) == 1:
            assert {found} == answers
        elif found in (P, D, NA):
            pytest.fail(f"{children} is {found}, and could be {answers}")
        elif Decision.INDETERMINATE_DP not in children:
            assert found is PERMITS_OR_DENIES[frozenset(answers - {NA})]
        else:
            assert found is Decision.INDETERMINATE_DP


def test_unless_and_first() -> None:
    for children in LISTS:
        assert _run("deny-unless-permit", children) is (P if P in children else D)
        assert _run("permit-unless-deny", children) is (D if D in children else P)
        first = next((one for one in children if one is not NA), NA)
        assert _run("first-applicable", children, version="1.0") is first


def test_no_legacy_algorithm_permits_over_a_possible_denial() -> None:
    for children in LISTS:
        doubtful = any(D in COULD_BE[one] for one in children)
        for kind, version, name in (
            ("rule", "1.0", "deny-overrides"),
            ("rule", "1.1", "ordered-deny-overrides"),
            ("policy", "1.0", "deny-overrides"),
            ("policy", "1.1", "ordered-deny-overrides"),
        ):
            if doubtful:
                assert _run(name, children, kind, version) is not P
        assert (_run("permit-overrides", children, "policy", "1.0") is P) == (P in children)
        assert (_run("permit-overrides", children, "rule", "1.0") is P) == (P in children)


def test_legacy_algorithms_for_policies() -> None:
    error = Decision.INDETERMINATE_P
    assert _run("deny-overrides", [P, error], version="1.0") is D
    assert _run("permit-overrides", [error, D], version="1.0") is D
    assert _run("permit-overrides", [error], version="1.0") is Decision.INDETERMINATE_DP
    assert _run("ordered-permit-overrides", [], version="1.1") is NA
