"""Policies: what a role sees of a stream."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from fastapi import APIRouter

from catalog.errors import InvalidInput
from catalog.role_view import SmallestWindow, TupleWindow
from secadmin.control import policies, policy_comparison, policy_trial, xacml_policies
from secadmin.control.policy_text import WrittenRight, WrittenView, read_view
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import (
    AttributeRightBody,
    PolicyBody,
    PolicyVersionBody,
    PolicyVersionsBody,
    RecordBody,
    SmallestWindowBody,
    TupleWindowBody,
    XacmlPolicyBody,
)

router = APIRouter(prefix="/streams/{name}/policies", tags=["policies"])
xacml_router = APIRouter(tags=["policies"])


@xacml_router.post("/xacml-policies", status_code=201)
def add_xacml_policy(
    platform: OnPlatform, caller: Authenticated, body: XacmlPolicyBody
) -> dict[str, Any]:
    """Add a policy from XACML 3.0, whose target names a role and a stream."""
    added, anew = xacml_policies.add_xacml_policy(
        platform, caller, body.xacml, body.policy, body.replace
    )
    names = {"policy": added.name, "stream": added.stream, "role": added.role}
    return {**names, "begun_anew": anew}


@router.get("")
def list_policies(platform: OnPlatform, caller: Authenticated, name: str) -> list[dict[str, Any]]:
    """The policies on a stream."""
    shown = policies.list_policies(platform, caller, name)
    return [_answer(each) for each in shown]


@router.post("", status_code=201)
def add_policy(
    platform: OnPlatform, caller: Authenticated, name: str, body: PolicyBody
) -> dict[str, Any]:
    """Add a policy. After the answer, nothing more arrives that it does not allow.

    `begun_anew` has the executions that begin anew, because their roles see another part now.
    """
    anew = policies.add_policy(platform, caller, _defined(name, body))
    return {"policy": body.policy, "begun_anew": anew}


@router.post("/try")
def try_record(
    platform: OnPlatform, caller: Authenticated, name: str, body: RecordBody
) -> list[dict[str, Any]]:
    """What each role that reads the stream would see of a record. Nothing is sent."""
    sights = policy_trial.try_record(platform, caller, name, body.record)
    return [
        {
            "role": each.role,
            "seen": each.sight.seen,
            "values": each.sight.values,
            "aggregated": each.sight.aggregated,
            "window_ms": each.window_ms,
            "window_tuples": each.window_tuples,
        }
        for each in sights
    ]


@router.post("/compare")
def compare_policies(
    platform: OnPlatform, caller: Authenticated, name: str, body: PolicyVersionsBody
) -> list[dict[str, Any]]:
    """What two versions of a policy would show, by role and attribute. Nothing is changed."""
    versions = (_version(name, body.old_version), _version(name, body.new_version))
    found = policy_comparison.compare_policies(platform, caller, name, versions, body.record)
    return [asdict(each) for each in found]


@router.get("/{policy}")
def show_policy(
    platform: OnPlatform, caller: Authenticated, name: str, policy: str
) -> dict[str, Any]:
    """One policy."""
    shown = policies.show_policy(platform, caller, name, policy)
    return _answer(shown)


@router.delete("/{policy}")
def remove_policy(
    platform: OnPlatform, caller: Authenticated, name: str, policy: str
) -> dict[str, Any]:
    """Remove a policy. `begun_anew` has the executions that begin anew."""
    return {"begun_anew": policies.remove_policy(platform, caller, name, policy)}


def _defined(stream: str, body: PolicyBody) -> policies.PolicyDefinition:
    return policies.PolicyDefinition(
        body.policy, stream, body.role, partial(read_view, _view(body)), body.replace
    )


def _version(stream: str, body: PolicyVersionBody | None) -> policy_comparison.Version:
    if body is None:
        return None
    if [body.stored, body.xacml, body.written].count(None) != 2:
        raise InvalidInput("a version of a policy is one of: stored, xacml, written")
    if body.xacml is not None:
        return xacml_policies.defined(body.xacml)
    return body.stored if body.written is None else _defined(stream, body.written)


def _view(body: PolicyBody) -> WrittenView:
    rights = None if body.rights is None else tuple(map(_right, body.rights))
    return WrittenView(body.rows, rights, _window(body.window), body.minimum)


def _window(
    body: SmallestWindowBody | TupleWindowBody | None,
) -> SmallestWindow | TupleWindow | None:
    if isinstance(body, TupleWindowBody):
        return TupleWindow(**body.model_dump())
    return None if body is None else SmallestWindow(**body.model_dump())


def _right(body: AttributeRightBody) -> WrittenRight:
    functions = None if body.functions is None else tuple(body.functions)
    return WrittenRight(body.name, body.when, functions)


def _answer(shown: policies.ShownPolicy) -> dict[str, Any]:
    return {
        "policy": shown.name,
        "stream": shown.stream,
        "role": shown.role,
        **asdict(shown.view),
        "xacml": shown.xacml,
    }
