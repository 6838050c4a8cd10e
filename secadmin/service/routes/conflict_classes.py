"""Conflict classes with their companies, and the levels of users."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from secadmin.control import conflict_classes, walls
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import ChoiceBody, CompanyBody, ConflictClassBody, LevelBody

router = APIRouter(tags=["conflict classes"])


@router.post("/conflict-classes", status_code=201)
def add_class(
    platform: OnPlatform, caller: Authenticated, body: ConflictClassBody
) -> dict[str, Any]:
    """Add a conflict class with its companies."""
    conflict_classes.add_class(platform, caller, body.name, body.companies)
    return {"name": body.name, "companies": body.companies}


@router.get("/conflict-classes/{name}")
def show_class(platform: OnPlatform, caller: Authenticated, name: str) -> dict[str, Any]:
    """The companies of a conflict class."""
    companies = conflict_classes.show_class(platform, caller, name)
    return {"name": name, "companies": list(companies)}


@router.post("/conflict-classes/{name}/companies", status_code=204)
def add_company(platform: OnPlatform, caller: Authenticated, name: str, body: CompanyBody) -> None:
    """Add a company to a conflict class."""
    conflict_classes.add_company_to(platform, caller, name, body.company)


@router.delete("/conflict-classes/{name}", status_code=204)
def remove_class(platform: OnPlatform, caller: Authenticated, name: str) -> None:
    """Remove a conflict class that no stream uses."""
    conflict_classes.remove_class(platform, caller, name)


@router.put("/conflict-classes/{name}/levels/{user}", status_code=204)
def set_level(
    platform: OnPlatform, caller: Authenticated, name: str, user: str, body: LevelBody
) -> None:
    """Set the level of a user in the class. After the answer, nothing more arrives beyond it."""
    walls.set_level(platform, caller, name, user, body.part)


@router.delete("/conflict-classes/{name}/levels/{user}", status_code=204)
def take_level(platform: OnPlatform, caller: Authenticated, name: str, user: str) -> None:
    """Take the level of a user in the class away."""
    walls.take_level(platform, caller, name, user)


@router.post("/conflict-classes/{name}/levels/{user}/reset", status_code=204)
def reset_wall(platform: OnPlatform, caller: Authenticated, name: str, user: str) -> None:
    """Let a user that has chosen choose again. All accesses of the user end."""
    walls.reset_wall(platform, caller, name, user)


@router.post("/conflict-classes/{name}/choice", status_code=204)
def choose(platform: OnPlatform, caller: Authenticated, name: str, body: ChoiceBody) -> None:
    """Choose the company that the caller reads. It closes the others of the class for good."""
    walls.choose(platform, caller, name, body.choice)


@router.get("/wall")
def show_own_wall(platform: OnPlatform, caller: Authenticated) -> dict[str, Any]:
    """The level of the caller, class by class."""
    return asdict(walls.show_own_wall(platform, caller))


@router.get("/users/{user}/wall")
def show_wall(platform: OnPlatform, caller: Authenticated, user: str) -> dict[str, Any]:
    """The level of another user, class by class."""
    return asdict(walls.show_wall(platform, caller, user))
