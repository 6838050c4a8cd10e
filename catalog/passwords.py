"""Passwords: bcrypt hashes, and a check that takes as long for a user who is not there.

bcrypt takes its time by design: never call it inside a transaction that changes.
"""

from __future__ import annotations

import os
import secrets
from functools import cached_property
from threading import BoundedSemaphore

import bcrypt

from catalog.errors import InvalidInput

MIN_LENGTH = 12
# bcrypt reads no further; a longer password would be one of which only a part counts.
MAX_BYTES = 72
# 60 to 100 ms: the least that OWASP's cheat sheet on storing passwords asks for. One guesses at
# most five times, and passwords are not short.
DEFAULT_COST = 10


def one_time_password() -> str:
    """A random password of 24 characters for somebody who will change it at the first login."""
    return secrets.token_urlsafe(18)


def check_new_password(password: str) -> str:
    """Return the password if it may be set. Raises InvalidInput saying what is wrong with it."""
    if len(password) < MIN_LENGTH:
        raise InvalidInput(f"a password has at least {MIN_LENGTH} characters")
    encoded = _encode(password)
    if encoded is None:
        raise InvalidInput(
            f"a password has at most {MAX_BYTES} bytes in UTF-8 and no NUL; choose another one"
        )
    return password


class Passwords:
    """Hashes and checks at one cost (bcrypt's exponent: each step doubles the work)."""

    def __init__(self, cost: int = DEFAULT_COST) -> None:
        self._cost = cost
        # A flood of logins waits in line here, and leaves the other requests their processor time.
        self._turns = BoundedSemaphore(max(1, (os.cpu_count() or 2) // 2))

    def hash(self, password: str) -> str:
        """The hash of a password that may be set. Raises InvalidInput for one that may not."""
        encoded = check_new_password(password).encode()
        with self._turns:
            return bcrypt.hashpw(encoded, bcrypt.gensalt(self._cost)).decode()

    def verify(self, password: str, password_hash: str | None) -> bool:
        """Whether the password is the one that was hashed; None is a user who is not there.

        The work is the same for a right and a wrong password, an unusable one, and no user.
        """
        encoded, nobody = _encode(password), self._nobody
        known = password_hash.encode() if password_hash else nobody
        with self._turns:
            try:
                fits = bcrypt.checkpw(encoded if encoded is not None else b"unusable", known)
            except ValueError:
                # Not a hash of ours: nothing fits it, and it costs as much to say so.
                bcrypt.checkpw(b"unusable", nobody)
                return False
        return fits and encoded is not None and password_hash is not None

    @cached_property
    def _nobody(self) -> bytes:
        """A hash that no password is known for."""
        return bcrypt.hashpw(secrets.token_bytes(32).hex().encode(), bcrypt.gensalt(self._cost))


def _encode(password: str) -> bytes | None:
    """The bytes that bcrypt takes, or None where it would not take all of them."""
    try:
        encoded = password.encode()
    except UnicodeEncodeError:
        return None
    return None if len(encoded) > MAX_BYTES or b"\0" in encoded else encoded
