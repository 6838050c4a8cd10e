"""The server to call, and the CA that vouches for it. The check cannot be skipped."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx

from catalog.errors import InvalidInput

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def server_url(text: str) -> httpx.URL:
    """The service's address, https with nothing after the host. Raises InvalidInput."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL("")
    # Passwords and tokens travel there, so plain http is refused even on one machine.
    if url.scheme != "https" or not url.host or url.path != "/" or url.userinfo or url.query:
        raise InvalidInput(f"{text!r} is not a server's address; write https://HOST:PORT")
    return url


def is_loopback(url: httpx.URL) -> bool:
    """Say whether the address is this machine, which no proxy can reach."""
    return url.host in _LOOPBACK


def tls_context(ca: Path | None) -> ssl.SSLContext:
    """Verification against the CA in that file, or the system's CAs. Raises InvalidInput."""
    if ca is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(ca))
    except ssl.SSLError:
        raise InvalidInput(f"{ca} holds no CA certificate in PEM form; check --ca") from None
    except OSError as error:
        raise InvalidInput(f"cannot read the CA {ca}: {error.strerror}; check --ca") from None
