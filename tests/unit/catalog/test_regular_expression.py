"""Which regular expressions there are; all others are refused, with the place in the pattern."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidInput, Position
from catalog.regular_expression import MAX_STATES, check_group, check_pattern


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [
        ("", 0),
        ("a+b*?c??", 0),
        ("(&|^)channel_id=([^&]*)", 2),
        (r"^\d{1,3}(\.\d{1,3}){3}$", 1),
        (r"[\w.+-]+@[a-z\d-]+(?:\.[a-z]+)+", 0),
        (r"(?i)error|warn|", 0),
        ("((((((((((a))))))))))", 10),
        ("a{128}", 0),
        (r"[a-]|[-a]|[^^]|[$.*]", 0),
    ],
)
def test_a_pattern_of_the_subset(pattern: str, groups: int) -> None:
    assert check_pattern(pattern) == groups


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(a", "ends where it needs a closing parenthesis"),
        ("a)", "')' at character 2 closes no group"),
        ("[a", "ends where it needs ]"),
        ("[]a]", "closes an empty set"),
        ("[z-a]", "'a' at character 4 ends a range"),
        (r"[\d-z]", "ends a range"),
        ("[[:alpha:]]", r"is a mark within a set; write \["),
        ("a**", "repeats a repetition"),
        ("a++", "repeats a repetition"),
        ("(?:a*)|*", "has nothing to repeat"),
        ("a{3", r"write \{"),
        ("a{3,2}", "a count whose end is below its beginning"),
        ("^*a", "repeats ^ or $"),
        ("a}", r"write \}"),
        ("(?=a)", "nothing looks ahead or behind"),
        ("(?<=a)", "nothing looks ahead or behind"),
        ("(?P<n>a)", "what does not exist here"),
        ("(?>a)", "what does not exist here"),
        ("a(?i)b", "what does not exist here"),
        (r"(a)\1", r"begins \1, which does not exist here"),
        (r"\bword", r"begins \b"),
        (r"\p{L}", r"begins \p"),
        ("\\", "ends where it needs a character after the backslash"),
        ("((((((((((((((((((((((a))))))))))))))))))))))", "more than 20 groups deep"),
        ("(a{100}){100}", "at most 128 steps"),
        ("a{9999}", "at most 128 steps"),
        ("((a{9}){9}){9}", "at most 128 steps"),
    ],
)
def test_what_is_outside_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(InvalidInput, match="line 1, column 9: ") as refused:
        check_pattern(pattern, Position(1, 9))
    assert words in refused.value.detail


def test_a_group_must_be_in_the_pattern() -> None:
    check_group("(a)", 0)
    check_group("(a)", 1)
    with pytest.raises(InvalidInput, match="has no group 2"):
        check_group("(a)(?:b)", 2)


@given(st.text(alphabet="ab01()[]{}|*+?^$.,-:i\\\\dwsn", max_size=20))
def test_what_is_accepted_another_reader_accepts_too(pattern: str) -> None:
    """So nothing that is accepted here fails later in the engine."""
    try:
        groups = check_pattern(pattern)
    except InvalidInput:
        return
    assert re.compile(pattern).groups == groups


def test_the_steps_are_those_after_all_repetitions() -> None:
    check_pattern("a" * MAX_STATES)
    with pytest.raises(InvalidInput, match=f"{MAX_STATES} steps, and this one has 129"):
        check_pattern("a" * MAX_STATES + "b")
