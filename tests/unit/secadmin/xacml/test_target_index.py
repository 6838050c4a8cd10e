"""The index of targets changes no decision."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from secadmin.xacml import decide, read_policy, request_of_xml
from secadmin.xacml.combining import ONLY_ONE
from tests.unit.secadmin.xacml import policy_texts as x

VALUES = st.sampled_from("abc")


@st.composite
def targets(draw: st.DrawFn) -> str:
    """Targets of up to two AnyOfs over two attributes, some of which must be present."""
    inside = ""
    for _ in range(draw(st.integers(0, 2))):
        alternatives = ""
        for _ in range(draw(st.integers(1, 2))):
            matches = ""
            for _ in range(draw(st.integers(1, 2))):
                name, needed = draw(st.sampled_from(("role", "team"))), draw(st.booleans())
                function = draw(st.sampled_from(("string-equal", "string-greater-than")))
                matches += (
                    f'<Match MatchId="{x.ONE}{function}">{x.literal(draw(VALUES))}'
                    f"{x.attribute(name, needed=needed)}</Match>"
                )
            alternatives += f"<AllOf>{matches}</AllOf>"
        inside += f"<AnyOf>{alternatives}</AnyOf>"
    return f"<Target>{inside}</Target>"


CHILDREN = st.lists(
    st.tuples(targets(), st.sampled_from(("Permit", "Deny"))), min_size=8, max_size=10
)
ALGORITHMS = st.sampled_from(
    ("deny-overrides", "permit-overrides", "deny-unless-permit", "permit-unless-deny", ONLY_ONE)
)


@given(CHILDREN, ALGORITHMS, st.dictionaries(st.sampled_from(("role", "team")), VALUES))
def test_the_index_changes_no_decision(
    children: list[tuple[str, str]], algorithm: str, values: dict[str, str]
) -> None:
    inside = "".join(x.policy(x.rule(effect), aim=aim) for aim, effect in children)
    policy = read_policy(x.policy_set(inside, algorithm))
    request = request_of_xml(x.request(**values))
    assert decide(policy, request) == decide(replace(policy, index=None), request)


def test_the_index_leaves_out_what_does_not_match() -> None:
    inside = "".join(x.policy(x.rule(), aim=x.target(f"r{number}")) for number in range(1000))
    policy = read_policy(x.policy_set(inside + x.policy(x.rule())))
    assert policy.index is not None
    assert policy.index.by_value["r7"] == (7,)
    assert policy.index.others == (1000,)
