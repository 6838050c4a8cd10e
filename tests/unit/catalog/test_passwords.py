"""Passwords: what may be set, and a check that costs the same whatever it finds."""

from unittest import mock

import bcrypt
import pytest

from catalog.errors import InvalidInput
from catalog.passwords import Passwords, check_new_password, one_time_password

GOOD = "correct horse battery"
REFUSED = {
    "empty": ("", "at least 12"),
    "short": ("x" * 11, "at least 12"),
    "long": ("x" * 73, "at most 72 bytes"),
    "long in bytes": ("ä" * 37, "at most 72 bytes"),
    "NUL": ("x" * 12 + "\0", "no NUL"),
    "lone surrogate": ("x" * 12 + "\ud800", "at most 72 bytes"),
}


@pytest.mark.parametrize(("password", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_may_not_be_set(passwords: Passwords, password: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        passwords.hash(password)
    assert password not in str(refusal.value) or not password


@pytest.mark.parametrize("password", ["x" * 12, "x" * 72, "ä" * 36, GOOD])
def test_what_may_be_set_is_recognised(passwords: Passwords, password: str) -> None:
    stored = passwords.hash(check_new_password(password))
    assert passwords.verify(password, stored)
    assert not passwords.verify(password + "x", stored)
    assert not passwords.verify(password[:-1], stored)
    assert not passwords.verify(password, None)
    assert stored != passwords.hash(password)


def test_only_the_first_72_bytes_are_not_enough(passwords: Passwords) -> None:
    stored = passwords.hash("x" * 72)
    assert not passwords.verify("x" * 73, stored)
    assert not passwords.verify("x" * 72 + "\0", stored)


@pytest.mark.parametrize(
    ("password", "known"),
    [
        (GOOD, True),
        ("wrong password", True),
        (GOOD, False),
        ("x" * 100, True),
        ("x" * 100, False),
        ("NUL\0", True),
        ("\ud800", False),
        ("", True),
    ],
)
def test_each_check_is_one_bcrypt_at_the_same_cost(password: str, known: bool) -> None:
    passwords = Passwords(cost=5)
    stored = passwords.hash(GOOD) if known else None
    with mock.patch("bcrypt.checkpw", wraps=bcrypt.checkpw) as check:
        assert passwords.verify(password, stored) == (known and password == GOOD)
    assert check.call_count == 1
    assert check.call_args.args[1].startswith(b"$2b$05$")


def test_a_damaged_hash_fits_nothing(passwords: Passwords) -> None:
    assert not passwords.verify(GOOD, "damaged")
    assert not passwords.verify(GOOD, "")


def test_one_time_passwords_may_be_set_and_differ() -> None:
    made = {check_new_password(one_time_password()) for _ in range(50)}
    assert len(made) == 50
