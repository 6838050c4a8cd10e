"""Outputs and their subscriptions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from catalog.access_kind import AccessKind
from secadmin.control import accesses, outputs, record_explanation
from secadmin.service.answers import access_answer, attributes_of
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import SemanticsBody, SubscriptionBody

# A label has at most 1,024 words.
LabelText = Annotated[str, Query(min_length=1, max_length=22_000)]
router = APIRouter(prefix="/outputs", tags=["outputs"])


@router.get("/{name}")
def show_output(platform: OnPlatform, caller: Authenticated, name: str) -> dict[str, Any]:
    """An output's attributes and semantics."""
    view = outputs.show_output(platform, caller, name)
    return {
        "name": name,
        "execution": view.execution,
        "query": view.query,
        "attributes": attributes_of(view.relation.schema),
        "event_time": view.relation.event_time,
        "weak": view.weak,
        "semantics": view.semantics,
        "retention_ms": view.retention_ms,
    }


@router.get("/{name}/explanation")
def explain_record(
    platform: OnPlatform, caller: Authenticated, name: str, user: str, label: LabelText
) -> dict[str, Any]:
    """Explain why a user gets a record with this label, or does not."""
    return asdict(record_explanation.explain_record(platform, caller, name, user, label))


@router.put("/{name}/semantics", status_code=204)
def set_semantics(
    platform: OnPlatform, caller: Authenticated, name: str, body: SemanticsBody
) -> None:
    """Turn weak semantics on or off."""
    outputs.set_weak(platform, caller, name, body.weak)


@router.post("/{name}/subscriptions", status_code=201)
def subscribe(
    platform: OnPlatform,
    caller: Authenticated,
    request: Request,
    name: str,
    body: SubscriptionBody,
) -> dict[str, Any]:
    """Subscribe to the output."""
    given = accesses.give(platform, caller, AccessKind.OUTPUT, name, body.keep, body.choices)
    return access_answer(platform, given, request)
