"""Roles and their hierarchy."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from catalog.operator_limits import OperatorLimits
from secadmin.control import operator_limits, people
from secadmin.control.allowed_operators import written
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import NameBody, OperatorLimitsBody, RoleBody

router = APIRouter(prefix="/roles", tags=["roles"])


@router.get("")
def list_roles(platform: OnPlatform, caller: Authenticated) -> list[dict[str, Any]]:
    """All roles with their direct juniors."""
    roles = people.list_roles(platform, caller)
    return [{"name": name, "juniors": juniors} for name, juniors in roles]


@router.post("", status_code=201)
def add_role(platform: OnPlatform, caller: Authenticated, body: NameBody) -> dict[str, str]:
    """Add a role."""
    people.add_role(platform, caller, body.name)
    return {"name": body.name}


@router.delete("/{role}", status_code=204)
def remove_role(platform: OnPlatform, caller: Authenticated, role: str) -> None:
    """Remove a role with its grants."""
    people.remove_role(platform, caller, role)


@router.post("/{role}/juniors")
def add_junior(
    platform: OnPlatform, caller: Authenticated, role: str, body: RoleBody
) -> dict[str, list[str]]:
    """Let the role hold what another role holds. `warnings` say what users do not see any more."""
    return {"warnings": people.add_seniority(platform, caller, role, body.role)}


@router.delete("/{role}/juniors/{junior}", status_code=204)
def remove_junior(platform: OnPlatform, caller: Authenticated, role: str, junior: str) -> None:
    """Take the junior role's rights from the role."""
    people.remove_seniority(platform, caller, role, junior)


@router.get("/{role}/operator-limits")
def show_operator_limits(platform: OnPlatform, caller: Authenticated, role: str) -> dict[str, Any]:
    """What the role allows in queries. `limits` is null if it has no limits."""
    limits = operator_limits.show_limits(platform, caller, role)
    return {"limits": None if limits is None else written(limits)}


@router.put("/{role}/operator-limits")
def set_operator_limits(
    platform: OnPlatform, caller: Authenticated, role: str, body: OperatorLimitsBody
) -> dict[str, list[int]]:
    """Set what the role allows in queries. `stopped` are the executions that it stopped."""
    operators = None if body.operators is None else frozenset(body.operators)
    limits = OperatorLimits(
        operators, body.window_ms, body.slide_ms, body.windows, body.window_rows
    )
    return {"stopped": operator_limits.set_limits(platform, caller, role, limits)}


@router.delete("/{role}/operator-limits", status_code=204)
def remove_operator_limits(platform: OnPlatform, caller: Authenticated, role: str) -> None:
    """Let the role allow everything in queries."""
    operator_limits.remove_limits(platform, caller, role)
