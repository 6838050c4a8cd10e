"""The key of the audit log, which only SecAdmin has and no database holds."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from catalog.errors import InvalidInput

LEAST_BYTES = 32


class AuditKey:
    """Authenticates entries and heads (HMAC-SHA256). Nobody can make them without the key."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        """`secret` has 32 bytes or more. Raises ValueError if it has fewer."""
        if len(secret) < LEAST_BYTES:
            raise ValueError(f"a key has at least {LEAST_BYTES} bytes")
        self._secret = secret

    @classmethod
    def load(cls, file: Path) -> AuditKey:
        """Read the key from its file, as hexadecimal text.

        Raises InvalidInput if there is no key in the file. The message names the file.
        """
        try:
            return cls(bytes.fromhex(file.read_text().strip()))
        except OSError as error:
            raise InvalidInput(f"cannot read the audit key {file}: {error.strerror}") from None
        except ValueError:
            least = f"{LEAST_BYTES} bytes in hexadecimal or more"
            raise InvalidInput(f"the audit key {file} is not usable: it needs {least}") from None

    def code(self, use: str, text: str) -> str:
        """The authentication code of the text, in hexadecimal. Each `use` has other codes."""
        return hmac.digest(self._secret, f"{use}\n{text}".encode(), hashlib.sha256).hex()

    def fits(self, code: str, use: str, text: str) -> bool:
        """Whether `code` is the authentication code of the text for this use."""
        return hmac.compare_digest(self.code(use, text).encode(), code.encode("utf-8", "replace"))
