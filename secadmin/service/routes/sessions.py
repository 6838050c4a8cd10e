"""Login, logout, and calls about the caller's own session."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from secadmin.control import logins
from secadmin.service.answers import utc
from secadmin.service.authentication import AuthenticatedAtAll, OnPlatform
from secadmin.service.hashing import InHashingThread
from secadmin.service.requests import LoginBody, PasswordBody

router = APIRouter(tags=["sessions"])


@router.post("/login")
async def login(platform: OnPlatform, hashing: InHashingThread, body: LoginBody) -> dict[str, Any]:
    """Log in and activate roles, perhaps at a level."""
    password = body.password.get_secret_value()
    made = await hashing.run(logins.login, platform, body.user, password, body.roles, body.levels)
    return {
        "token": made.token,
        "user": made.user,
        "roles": list(made.roles),
        "level": list(made.level),
        "expires_at": utc(made.expires_at),
        "must_change_password": made.must_change_password,
    }


@router.post("/logout", status_code=204)
def logout(platform: OnPlatform, caller: AuthenticatedAtAll) -> None:
    """End the session and its accesses."""
    logins.logout(platform, caller)


@router.get("/whoami")
def whoami(platform: OnPlatform, caller: AuthenticatedAtAll) -> dict[str, Any]:
    """The session's user and active roles."""
    view = logins.whoami(platform, caller)
    return {
        "user": view.user,
        "roles": list(view.roles),
        "level": list(view.level),
        "expires_at": utc(view.expires_at),
        "must_change_password": view.must_change_password,
    }


@router.post("/password", status_code=204)
async def change_password(
    platform: OnPlatform, hashing: InHashingThread, caller: AuthenticatedAtAll, body: PasswordBody
) -> None:
    """Change one's own password."""
    old, new = body.old.get_secret_value(), body.new.get_secret_value()
    await hashing.run(logins.change_password, platform, caller, old, new)


@router.delete("/whoami/roles/{role}", status_code=204)
def deactivate_role(platform: OnPlatform, caller: AuthenticatedAtAll, role: str) -> None:
    """Deactivate a role in this session."""
    logins.deactivate_role(platform, caller, role)
