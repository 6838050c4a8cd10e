"""Ends an access that a command made for itself, whatever has become of it meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from catalog.errors import NotAuthenticated, NotFound, PlatformError
from secadmin.cli.api import Api


@contextmanager
def ended_after(api: Api, answer: Mapping[str, Any], note: Callable[[str], None]) -> Iterator[None]:
    """End the access that the server answered behind the block."""
    try:
        yield
    finally:
        end_own(api, answer, note)


def end_own(api: Api, answer: Mapping[str, Any], note: Callable[[str], None]) -> None:
    """End the access that the server answered; `note` is told where that fails.

    Raises no PlatformError: it would stand in the place of what the command did or failed by.
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
