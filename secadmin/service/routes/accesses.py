"""The caller's own accesses."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC
from typing import Any

from fastapi import APIRouter, Request

from secadmin.control import accesses, backfills
from secadmin.service.answers import handle_of, utc
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import BackfillBody

router = APIRouter(prefix="/accesses", tags=["accesses"])


@router.get("")
def list_accesses(
    platform: OnPlatform, caller: Authenticated, request: Request
) -> list[dict[str, Any]]:
    """The caller's live accesses."""
    views = accesses.list_accesses(platform, caller)
    return [_answer(view, request) for view in views]


@router.get("/{principal}")
def show_access(
    platform: OnPlatform, caller: Authenticated, request: Request, principal: str
) -> dict[str, Any]:
    """One of the caller's live accesses, which its handle names."""
    return _answer(accesses.show_access(platform, caller, principal), request)


@router.delete("/{principal}", status_code=204)
def end_access(platform: OnPlatform, caller: Authenticated, principal: str) -> None:
    """End one of the caller's accesses."""
    accesses.end(platform, caller, principal)


@router.post("/{principal}/backfills", status_code=201)
def begin_backfill(
    platform: OnPlatform, caller: Authenticated, principal: str, body: BackfillBody
) -> dict[str, Any]:
    """Give one of the caller's subscriptions results of what came before it."""
    since = None if body.since is None else body.since.astimezone(UTC).replace(tzinfo=None)
    return _backfill(backfills.begin(platform, caller, principal, since))


def _answer(view: accesses.AccessView, request: Request) -> dict[str, Any]:
    since = utc(view.fed_since) if view.fed_since is not None else None
    handle = handle_of(view.principal, request)
    return {
        **asdict(view),
        "backfills": [_backfill(each) for each in view.backfills],
        "fed_since": since,
        "created_at": utc(view.created_at),
        "handle": handle,
    }


def _backfill(view: accesses.BackfillView) -> dict[str, Any]:
    return {"topic": view.topic, "since": utc(view.since), "state": view.state.value}
