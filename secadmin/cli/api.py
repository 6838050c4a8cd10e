"""Calls to the HTTP API with JSON. Each failure becomes an error that says what to do."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from catalog.errors import NotAuthenticated, NotFound, PlatformError, Unavailable
from secadmin.cli.problems import error_of

# A revocation answers when its fence is proven. This takes longer if Kafka has problems.
_TIMEOUT = httpx.Timeout(180, connect=10)
# In a URL these are no names: the call would go to another path.
_NAMELESS = frozenset({"", ".", ".."})


class UntrustedServerError(PlatformError):
    """The CA does not vouch for the server's certificate, so nothing was sent."""

    exit_code = 8
    title = "Untrusted server"


@dataclass(frozen=True, slots=True)
class Connection:
    """The target of calls. `ca_name` is for messages. `transport` None means the network."""

    url: httpx.URL
    verify: ssl.SSLContext
    ca_name: str
    through_proxy: bool = True
    transport: httpx.BaseTransport | None = None


class Api:
    """One server. Callers give path segments one by one, and they are quoted here.

    A call that fails raises a PlatformError: the class in `catalog.errors` for the server's problem
    document, Unavailable if nothing answers, UntrustedServerError for a bad certificate.
    """

    def __init__(self, connection: Connection, token: str | None = None) -> None:
        self.connection = connection
        self._has_token = token is not None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(
            base_url=connection.url,
            verify=connection.verify,
            transport=connection.transport,
            timeout=_TIMEOUT,
            headers=headers,
            trust_env=connection.through_proxy,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def get(self, *segments: str, **query: str | int | None) -> Any:
        """GET. Query parameters that are None are left out."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._call("GET", segments, params=given)

    def post(self, *segments: str, body: dict[str, Any] | None = None) -> Any:
        """POST a JSON object."""
        return self._call("POST", segments, json={} if body is None else body)

    def put(self, *segments: str, body: dict[str, Any]) -> Any:
        """PUT a JSON object."""
        return self._call("PUT", segments, json=body)

    def delete(self, *segments: str) -> Any:
        """DELETE."""
        return self._call("DELETE", segments)

    def _call(self, method: str, segments: tuple[str, ...], **content: Any) -> Any:
        for nameless in _NAMELESS.intersection(segments):
            raise NotFound(f"there is nothing with the name {nameless!r}")
        path = "/" + "/".join(quote(segment, safe="") for segment in segments)
        try:
            response = self._client.request(method, path, **content)
        except httpx.HTTPError as error:
            raise _unreached(error, self.connection) from None
        if response.status_code == NotAuthenticated.status and self._has_token:
            raise NotAuthenticated("the session has ended; log in again: secadmin login USER")
        if not response.is_success:
            raise error_of(response)
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            raise error_of(response) from None


def _unreached(error: httpx.HTTPError, connection: Connection) -> PlatformError:
    """The error if there is no answer at all."""
    url = str(connection.url).rstrip("/")
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return UntrustedServerError(
                f"{connection.ca_name} does not vouch for the certificate of {url} "
                f"({cause.verify_message}); name the right CA with --ca FILE or SECADMIN_CA"
            )
        if isinstance(cause, ssl.SSLEOFError):
            return Unavailable(
                f"{url} ended the connection at once: no SecAdmin works behind it yet, or it does "
                "not speak TLS; try again, or check --server"
            )
        if isinstance(cause, ssl.SSLError):
            return Unavailable(f"{url} does not speak TLS as it should; check --server")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Unavailable(
            f"nothing answers at {url}; start the platform (python3 -m deploy up), "
            "or name another server with --server"
        )
    if isinstance(error, httpx.TimeoutException):
        return Unavailable(
            f"{url} took too long; it may have made the change, so check before you retry"
        )
    return Unavailable(f"the connection to {url} broke; check what was done, then try again")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
