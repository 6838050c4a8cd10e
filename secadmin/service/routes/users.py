"""Users: list, add, lock, roles."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from secadmin.control import people
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.hashing import InHashingThread
from secadmin.service.requests import RoleBody, UserBody

router = APIRouter(prefix="/users", tags=["users"])


@router.get("")
def list_users(platform: OnPlatform, caller: Authenticated) -> list[dict[str, Any]]:
    """All users with their roles."""
    users = people.list_users(platform, caller)
    return [{"name": name, "locked": locked, "roles": roles} for name, locked, roles in users]


@router.post("", status_code=201)
async def add_user(
    platform: OnPlatform, hashing: InHashingThread, caller: Authenticated, body: UserBody
) -> dict[str, Any]:
    """Add a user. If a one-time password was made, only this answer shows it."""
    given = body.password.get_secret_value() if body.password else None
    made = await hashing.run(people.add_user, platform, caller, body.name, given)
    return {"name": body.name} if made is None else {"name": body.name, "password": made}


@router.post("/{user}/lock", status_code=204)
def lock(platform: OnPlatform, caller: Authenticated, user: str) -> None:
    """Lock a user. Its sessions and accesses end, and its queries stop."""
    people.set_locked(platform, caller, user, locked=True)


@router.post("/{user}/unlock", status_code=204)
def unlock(platform: OnPlatform, caller: Authenticated, user: str) -> None:
    """Let a locked user log in again."""
    people.set_locked(platform, caller, user, locked=False)


@router.post("/{user}/password-reset")
async def reset_password(
    platform: OnPlatform, hashing: InHashingThread, caller: Authenticated, user: str
) -> dict[str, str]:
    """Make a new one-time password, which only this answer shows. The user's sessions end."""
    made = await hashing.run(people.reset_password, platform, caller, user)
    return {"name": user, "password": made}


@router.post("/{user}/roles")
def assign_role(
    platform: OnPlatform, caller: Authenticated, user: str, body: RoleBody
) -> dict[str, list[str]]:
    """Let a user activate a role. `warnings` say what the user does not see any more."""
    return {"warnings": people.assign_role(platform, caller, user, body.role)}


@router.delete("/{user}/roles/{role}", status_code=204)
def unassign_role(platform: OnPlatform, caller: Authenticated, user: str, role: str) -> None:
    """Take a role from a user."""
    people.unassign_role(platform, caller, user, role)
