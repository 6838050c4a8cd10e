"""The start of every command: the screen, the profile, the server, and calls to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import typer
from confluent_kafka import Consumer, Producer

from catalog.errors import InvalidInput, NotAuthenticated, PlatformError
from secadmin.cli.api import Api, Connection
from secadmin.cli.profile import Profile, SavedSession
from secadmin.cli.screen import Screen
from secadmin.cli.trust import is_loopback, server_url, tls_context


@dataclass(frozen=True, slots=True)
class Seams:
    """The outside world, which tests replace. `transport` None means the network."""

    transport: httpx.BaseTransport | None = None
    producer: Callable[[dict[str, Any]], Any] = Producer
    consumer: Callable[[dict[str, Any]], Any] = Consumer


@dataclass(frozen=True, slots=True)
class Cli:
    """One run of the command line. `server` and `ca` are None if nothing names them."""

    screen: Screen
    profile: Profile
    server: str | None
    ca: Path | None
    seams: Seams

    def connection(self) -> Connection:
        """The target of the calls. Raises InvalidInput if no server is named."""
        saved = self.profile.load()
        named = self.server or (saved.server if saved else None)
        if named is None:
            raise InvalidInput(
                "no server is named; give --server https://HOST:PORT or SECADMIN_URL"
            )
        url = server_url(named)
        ca = self.ca_file()
        return Connection(
            url=url,
            verify=tls_context(ca),
            ca_name=f"the CA in {ca}" if ca else "the system's CAs",
            through_proxy=not is_loopback(url),
            transport=self.seams.transport,
        )

    def ca_file(self) -> Path | None:
        """The CA that was named, or else the one of the last login."""
        return self.ca or self.profile.ca_file

    def session(self) -> SavedSession:
        """The saved session with the server. Raises NotAuthenticated if there is none."""
        saved = self.profile.load()
        if saved is None:
            raise NotAuthenticated("you are not logged in; log in: secadmin login USER")
        # A token goes only to the server that made it.
        if self.server and server_url(self.server) != server_url(saved.server):
            raise NotAuthenticated(
                f"you are logged in at {saved.server}, not at {self.server}; "
                "log in there: secadmin login USER"
            )
        return saved

    def api(self) -> Api:
        """Calls with the token of the saved session."""
        token = self.session().token
        return Api(self.connection(), token)

    def open_api(self) -> Api:
        """Calls without a session: only login."""
        return Api(self.connection())


def cli_of(ctx: typer.Context) -> Cli:
    """The run of the command line to which a command belongs."""
    found = ctx.find_object(Cli)
    if found is None:
        raise PlatformError("the command line was not set up")
    return found
