"""The client's part of a SCRAM-SHA-512 login (RFC 5802), without channel binding."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

_HASH = "sha512"
_NO_BINDING = "n,,"


class ScramClient:
    """One login: send `first()`, then `final(answer)`, then check the answer with `verify`."""

    def __init__(self, username: str, password: str, nonce: str | None = None) -> None:
        """`nonce` is random unless a test gives one."""
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        """The client's first message."""
        return (_NO_BINDING + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """The proof that the client knows the password. Raises ValueError for a bad answer."""
        fields = _fields(server_first)
        if not {"r", "s", "i"} <= fields.keys():
            raise ValueError("the broker's answer to the login is not one of SCRAM")
        if not fields["r"].startswith(self._nonce):
            raise ValueError("the broker answered a login that was not this one")
        salted = hashlib.pbkdf2_hmac(
            _HASH, self._password, base64.b64decode(fields["s"]), int(fields["i"])
        )
        binding = base64.b64encode(_NO_BINDING.encode()).decode()
        without_proof = f"c={binding},r={fields['r']}"
        signed = ",".join([self._first_bare, server_first.decode(), without_proof]).encode()
        client_key = _hmac(salted, b"Client Key")
        signature = _hmac(hashlib.new(_HASH, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = _hmac(_hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check that the broker knows the password too. Raises ValueError if it does not."""
        signature = base64.b64decode(_fields(server_final).get("v", ""))
        if not self._server_signature or not hmac.compare_digest(signature, self._server_signature):
            raise ValueError("the broker did not prove that it knows the account")


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, _HASH)


def _fields(message: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.decode().split(","))
    return {name: value for name, _, value in pairs}
