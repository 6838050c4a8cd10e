"""Roles and their hierarchy."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from secadmin.control import people
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import NameBody, RoleBody

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
