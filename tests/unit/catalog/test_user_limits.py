"""The limits of a user, as the settings give them."""

from typing import Any

import pytest

from catalog.errors import InvalidInput
from catalog.limits import read_limits
from catalog.user_limits import UserLimits


def read(given: dict[str, Any]) -> UserLimits:
    return read_limits(UserLimits, given, "limits.user")


def test_what_is_not_given_is_as_it_is_by_default() -> None:
    assert read({}) == UserLimits()
    assert read({"reads": 3}) == UserLimits(reads=3)


@pytest.mark.parametrize("given", [{"reads": 0}, {"reads": 1.5}, {"reads": True}, {"raeds": 3}])
def test_what_limits_nothing_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"limits.user.{next(iter(given))}"):
        read(given)
