"""A connection to one broker over TLS, under SecAdmin's account."""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from catalog.errors import Unavailable
from catalog.settings import KafkaSettings
from secadmin.kafka.connect import REQUEST_TIMEOUT_S
from secadmin.kafka.wire.encoding import NO_TAGS, Reader, int16, int32, octets, string
from secadmin.kafka.wire.scram import ScramClient

_CLIENT = "secadmin"
_CHUNK = 65536
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36


@dataclass(frozen=True, slots=True, order=True)
class BrokerAddress:
    """The address at which clients reach a broker."""

    host: str
    port: int


class BrokerConnection:
    """Sends requests to one broker, and receives their answers in order. For one thread only.

    A failure of the network or of TLS raises OSError. An invalid answer raises ValueError.
    """

    def __init__(self, address: BrokerAddress, settings: KafkaSettings) -> None:
        """Connect and log in. Raises Unavailable if the broker refuses the account."""
        context = ssl.create_default_context(cafile=str(settings.ca_file))
        plain = socket.create_connection((address.host, address.port), REQUEST_TIMEOUT_S)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = context.wrap_socket(plain, server_hostname=address.host)
        except BaseException:
            plain.close()
            raise
        self._buffer = b""
        self._correlation = 0
        try:
            self._login(settings.secadmin.username, settings.secadmin.password())
        except BaseException:
            self.close()
            raise

    def request(self, api: int, version: int, body: bytes, *, flexible: bool = False) -> Reader:
        """Send a request and wait for its answer, at most `REQUEST_TIMEOUT_S`.

        The headers of a `flexible` version have tagged fields.
        """
        self.send(api, version, NO_TAGS + body if flexible else body)
        answer = self.receive(REQUEST_TIMEOUT_S)
        if answer is None:
            raise TimeoutError("the broker did not answer")
        if flexible:
            answer.tags()
        return answer

    def send(self, api: int, version: int, body: bytes) -> None:
        """Send a request. `receive` gives its answer."""
        self._correlation += 1
        header = int16(api) + int16(version) + int32(self._correlation) + string(_CLIENT)
        self._socket.settimeout(REQUEST_TIMEOUT_S)
        self._socket.sendall(octets(header + body))

    def receive(self, timeout_s: float) -> Reader | None:
        """The answer to the last request, or None if it does not arrive in time."""
        deadline = time.monotonic() + timeout_s
        while (frame := self._frame()) is None:
            # At least a millisecond: zero would make the socket non-blocking.
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._socket.recv(_CHUNK)
            except TimeoutError:
                return None
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._buffer += data
        answer = Reader(frame)
        if answer.int32() != self._correlation:
            raise ValueError("the broker answered another request")
        return answer

    def is_usable(self) -> bool:
        """Say whether the connection is still open, with nothing unexpected received on it."""
        readable, _, _ = select.select([self._socket], [], [], 0)
        return not readable and not self._buffer

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _frame(self) -> bytes | None:
        size = int.from_bytes(self._buffer[:4])
        if len(self._buffer) < 4 or len(self._buffer) < 4 + size:
            return None
        frame, self._buffer = self._buffer[4 : 4 + size], self._buffer[4 + size :]
        return frame

    def _login(self, username: str, password: str) -> None:
        if self.request(_SASL_HANDSHAKE, 1, string("SCRAM-SHA-512")).int16():
            raise Unavailable("the Kafka broker does not offer SCRAM-SHA-512: enable it there")
        scram = ScramClient(username, password)
        scram.verify(self._authenticate(scram.final(self._authenticate(scram.first()))))

    def _authenticate(self, message: bytes) -> bytes:
        answer = self.request(_SASL_AUTHENTICATE, 0, octets(message))
        if answer.int16():
            raise Unavailable(
                "Kafka refused SecAdmin's login: check its password file in the settings"
            )
        answer.string()
        return answer.octets()


@contextmanager
def network_errors(purpose: str) -> Iterator[None]:
    """Raise Unavailable for a failure of the network, of TLS or of the protocol in the block."""
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        reason = str(error) or type(error).__name__
        raise Unavailable(f"cannot {purpose}: {reason}; it is tried again") from None
