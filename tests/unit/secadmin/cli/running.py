"""Running the command line in a test: a profile of its own, and a server behind a transport."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from fastapi import FastAPI
from typer.main import get_command
from typer.testing import CliRunner, Result

from secadmin.cli.context import Seams
from secadmin.cli.main import app
from secadmin.cli.profile import Profile, SavedSession
from secadmin.cli.trust import tls_context

SERVER = "https://localhost:8443"
# Both would be made anew for each call, and take longer than the call itself.
_once = functools.cache(get_command)
_system_cas = functools.cache(ssl.create_default_context)


def _trust(ca: Path | None) -> ssl.SSLContext:
    return _system_cas() if ca is None else tls_context(ca)


@dataclass(frozen=True)
class Terminal:
    """Somebody who types commands: a profile folder and what the commands reach."""

    folder: Path
    seams: Seams

    def run(
        self,
        *arguments: str,
        text: str | None = None,
        server: str = SERVER,
        prog_name: str = "secadmin",
        wait: str = "0s",
    ) -> Result:
        """Run one command; a crash of the command is a crash of the test."""
        environment = {
            "SECADMIN_CONFIG": str(self.folder),
            "SECADMIN_URL": server or None,
            "SECADMIN_CA": None,
            # No runner feeds anything here, but in tests that say so.
            "SECADMIN_WAIT": wait,
        }
        with (
            patch("typer.testing._get_command", _once),
            patch("secadmin.cli.context.tls_context", _trust),
        ):
            result = CliRunner(env=environment).invoke(
                app,
                list(arguments),
                input=text,
                obj=self.seams,
                catch_exceptions=False,
                prog_name=prog_name,
            )
        assert "Traceback" not in result.output
        return result

    def ok(self, *arguments: str, text: str | None = None) -> str:
        """Run a command that must succeed; its stdout."""
        result = self.run(*arguments, text=text)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str, text: str | None = None) -> Any:
        """Run a command that must succeed, with --json; what it answers."""
        return json.loads(self.ok(*arguments, "--json", text=text))

    def with_session(self, user: str = "alice", server: str = SERVER) -> Terminal:
        """The same with a saved session."""
        Profile(self.folder).save(SavedSession(server, user, "token-of-alice"), None)
        return self


def answering(
    folder: Path, answer: Callable[[httpx.Request], httpx.Response], **seams: Any
) -> Terminal:
    """A terminal in front of a made-up server."""
    return Terminal(folder, Seams(transport=httpx.MockTransport(answer), **seams))


def problem(status: int, detail: str, **more: Any) -> httpx.Response:
    """A problem document as the service writes it."""
    body = {"type": "about:blank", "title": "No", "status": status, "detail": detail, **more}
    return httpx.Response(status, json=body)


@dataclass
class AsgiServer(httpx.BaseTransport):
    """An ASGI app as a transport for a client that is not asynchronous."""

    app: FastAPI
    requests: list[httpx.Request] = field(default_factory=list)
    before: Callable[[httpx.Request], None] = lambda _: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Call the app and read the whole answer."""
        self.requests.append(request)
        self.before(request)
        return asyncio.run(self._call(request))

    async def _call(self, request: httpx.Request) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        response = await transport.handle_async_request(request)
        content = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=content)
