"""Grants: the permissions of roles on objects."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from catalog.permission import ObjectKind, parse_permission
from secadmin.control import grants
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import GrantBody

router = APIRouter(tags=["grants"])


@router.get("/grants")
def show(
    platform: OnPlatform, caller: Authenticated, kind: ObjectKind, name: str = "system"
) -> list[dict[str, str]]:
    """All grants on an object."""
    pairs = grants.grants_on(platform, caller, kind, name)
    return [
        {"role": role, "permission": permission, "kind": kind, "name": name}
        for role, permission in pairs
    ]


@router.post("/grants")
def grant(platform: OnPlatform, caller: Authenticated, body: GrantBody) -> dict[str, Any]:
    """Grant permissions. `warnings` say what some users do not see any more."""
    permissions = [parse_permission(text) for text in body.permissions]
    granted = grants.grant(platform, caller, body.role, permissions, body.kind, body.name)
    return {"changed": granted.added, "warnings": granted.warnings}


@router.post("/revocations")
def revoke(platform: OnPlatform, caller: Authenticated, body: GrantBody) -> dict[str, Any]:
    """Revoke permissions. After the answer, nothing more arrives that they allowed."""
    permissions = [parse_permission(text) for text in body.permissions]
    changed = grants.revoke(platform, caller, body.role, permissions, body.kind, body.name)
    return {"changed": changed, "warnings": []}
