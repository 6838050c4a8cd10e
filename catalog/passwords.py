"""Passwords: bcrypt hashes, and a check that takes the same time for an unknown user.

bcrypt is slow by design, so never call it inside a transaction that writes.
"""

from __future__ import annotations

import os
import secrets
from functools import cached_property
from threading import BoundedSemaphore

import bcrypt

from catalog.errors import InvalidInput

MIN_LENGTH = 12
# bcrypt reads no more bytes. Only a part of a longer password would count.
MAX_BYTES = 72
# This takes 60 to 100 ms, the least that OWASP's cheat sheet on storing passwords recommends. It
# is enough, because five wrong guesses stop logins and passwords are not short.
DEFAULT_COST = 10


def one_time_password() -> str:
    """A random password of 24 characters. Its user must change it at the first login."""
    return secrets.token_urlsafe(18)


def check_new_password(password: str) -> str:
    """Return the password if it is allowed. Raises InvalidInput that says what is wrong with it."""
    if len(password) < MIN_LENGTH:
        raise InvalidInput(f"a password has at least {MIN_LENGTH} characters")
    encoded = _encode(password)
    if encoded is None:
        raise InvalidInput(
            f"a password has at most {MAX_BYTES} bytes in UTF-8 and no NUL; choose another one"
        )
    return password


class Passwords:
    """Hashes and checks passwords. `cost` is bcrypt's exponent: each step doubles the work."""

    def __init__(self, cost: int = DEFAULT_COST) -> None:
        self._cost = cost
        # A flood of logins waits here, so that it does not take the processor from other requests.
        self._turns = BoundedSemaphore(max(1, (os.cpu_count() or 2) // 2))

    def hash(self, password: str) -> str:
        """The hash of a password. Raises InvalidInput if the password is not allowed."""
        encoded = check_new_password(password).encode()
        with self._turns:
            return bcrypt.hashpw(encoded, bcrypt.gensalt(self._cost)).decode()

    def verify(self, password: str, password_hash: str | None) -> bool:
        """Whether the password fits the hash. The hash is None for an unknown user.

        The work is the same for a right, a wrong and an unusable password, and for an unknown user.
        """
        encoded, nobody = _encode(password), self._nobody
        known = password_hash.encode() if password_hash else nobody
        with self._turns:
            try:
                fits = bcrypt.checkpw(encoded if encoded is not None else b"unusable", known)
            except ValueError:
                # This is not a bcrypt hash, so nothing fits it. The work must still be the same.
                bcrypt.checkpw(b"unusable", nobody)
                return False
        return fits and encoded is not None and password_hash is not None

    @cached_property
    def _nobody(self) -> bytes:
        """A hash whose password nobody knows."""
        return bcrypt.hashpw(secrets.token_bytes(32).hex().encode(), bcrypt.gensalt(self._cost))


def _encode(password: str) -> bytes | None:
    """The password as bytes for bcrypt, or None if bcrypt would not read all of them."""
    try:
        encoded = password.encode()
    except UnicodeEncodeError:
        return None
    return None if len(encoded) > MAX_BYTES or b"\0" in encoded else encoded
