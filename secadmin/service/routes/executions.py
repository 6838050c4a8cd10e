"""Executions, by id."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path

from secadmin.control import executions
from secadmin.service.answers import utc
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import SemanticsBody

router = APIRouter(prefix="/executions", tags=["executions"])
Id = Annotated[int, Path(ge=1, lt=2**63)]


@router.get("")
def list_executions(platform: OnPlatform, caller: Authenticated) -> list[dict[str, Any]]:
    """All executions with their owners and their use of the platform, without names of objects."""
    return [
        {
            **asdict(view),
            "added_at": utc(view.added_at),
            "since": utc(view.since) if view.since else None,
        }
        for view in executions.list_executions(platform, caller)
    ]


@router.post("/{execution}/stop")
def stop_execution(
    platform: OnPlatform, caller: Authenticated, execution: Id
) -> dict[str, list[int]]:
    """Stop the query of the execution. `stopped` has the ids of all executions that stopped."""
    return {"stopped": executions.stop_execution(platform, caller, execution)}


@router.put("/{execution}/semantics", status_code=204)
def set_semantics(
    platform: OnPlatform, caller: Authenticated, execution: Id, body: SemanticsBody
) -> None:
    """Turn weak semantics of the execution's output on or off."""
    executions.set_weak(platform, caller, execution, body.weak)


@router.delete("/{execution}")
def remove_execution(
    platform: OnPlatform, caller: Authenticated, execution: Id
) -> dict[str, list[int]]:
    """Remove the query of the execution. `removed` has the ids of all removed executions."""
    return {"removed": executions.remove_execution(platform, caller, execution)}
