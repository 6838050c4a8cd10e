"""The regular expressions of policies (XACML 3.0, section A.3.13), which are those of queries.

No pattern and no text takes more time than their lengths multiplied (`catalog.regular_expression`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from catalog.errors import InvalidInput
from catalog.regular_expression import check_pattern

MAX_PATTERN = 255
# A call of the engine takes as long as so many steps, and so many characters take one more.
_STEPS, _CHARACTERS = 30, 10


def matches(pattern: str, text: str) -> bool:
    """Whether a part of the text matches. Raises ValueError, as `check`."""
    check(pattern)
    return bool(_engine().match_substring_regex([text], pattern)[0].as_py())


def check(pattern: str) -> None:
    """Raise ValueError, saying why, if the pattern is none that an evaluation could use."""
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a regular expression has more than {MAX_PATTERN} characters")
    try:
        check_pattern(pattern)
    except InvalidInput as refused:
        raise ValueError(refused.detail) from None


def steps(_pattern: str, text: str) -> int:
    """The steps of an evaluation that a call takes, besides one for each value."""
    return _STEPS + len(text) // _CHARACTERS


@cache
def _engine() -> Any:
    """RE2, as Arrow has it. Loaded when a policy first needs it, so that SecAdmin starts soon."""
    return import_module("pyarrow.compute")
