"""Ends an access that a command made for itself, even if it has already ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from catalog.errors import NotAuthenticated, NotFound, PlatformError
from secadmin.cli.api import Api


@contextmanager
def ended_after(api: Api, answer: Mapping[str, Any], note: Callable[[str], None]) -> Iterator[None]:
    """End the access from the server's answer after the block."""
    try:
        yield
    finally:
        end_own(api, answer, note)


def end_own(api: Api, answer: Mapping[str, Any], note: Callable[[str], None]) -> None:
    """End the access from the server's answer. If that fails, `note` gets a message.

    It raises no PlatformError, which would hide the result or the error of the command.
    """
    principal = str(answer.get("principal"))
    try:
        api.delete("accesses", principal)
    except (NotFound, NotAuthenticated):
        # It has ended already, by itself or with its session.
        return
    except PlatformError as error:
        again = f"try secadmin unsubscribe {principal}"
        note(f"the access {principal} was not ended: {error.detail}; {again}")
