"""Streams, with their quarantine and senders."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request

from catalog.access_kind import AccessKind
from catalog.record_format import RecordFormat
from catalog.topic_sharing import Senders
from secadmin.control import (
    accesses,
    executions,
    floors,
    independence,
    new_streams,
    sender_policies,
    stream_rates,
    streams,
)
from secadmin.service.answers import access_answer, attributes_of
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import (
    AccessBody,
    DeclaredAggregateBody,
    RateBody,
    SenderBody,
    SenderPolicyBody,
    StreamBody,
)

router = APIRouter(prefix="/streams", tags=["streams"])


@router.post("", status_code=201)
def add_stream(platform: OnPlatform, caller: Authenticated, body: StreamBody) -> dict[str, str]:
    """Add a stream."""
    wanted = new_streams.StreamDefinition(
        name=body.name,
        schema=body.schema_,
        event_time=body.event_time,
        time=body.time,
        lateness_ms=body.lateness_ms,
        max_ahead_ms=body.max_ahead_ms,
        max_bytes=body.max_bytes,
        partitions=body.partitions,
        public=body.public,
        declaration=_declaration(body.declared_aggregate),
        record_format=RecordFormat(times=body.time_format, unknown_fields=body.unknown_fields),
        shared=body.senders == Senders.SHARED,
        label_rule=body.label_rule,
        company_rules=body.company_rules,
        floored=body.floored,
        rate=body.rate,
    )
    new_streams.add_stream(platform, caller, wanted)
    return {"name": body.name}


@router.get("/{name}")
def show_stream(platform: OnPlatform, caller: Authenticated, name: str) -> dict[str, Any]:
    """A stream's definition."""
    view = streams.show_stream(platform, caller, name)
    relation, declared = view.relation, view.relation.declared
    return {
        "name": name,
        "schema": view.schema,
        "attributes": attributes_of(relation.schema),
        "event_time": relation.event_time,
        "time": relation.time,
        "lateness_ms": relation.lateness_ms,
        "max_ahead_ms": view.max_ahead_ms,
        "max_bytes": view.max_bytes,
        "format": view.record_format.format,
        "time_format": view.record_format.times,
        "unknown_fields": view.record_format.unknown_fields,
        "partitions": view.partitions,
        "senders": Senders.SHARED if view.shared else Senders.OWN,
        "public": relation.public,
        "floored": view.floored,
        "rate": view.rate,
        "problems": list(view.problems),
        **({"refused": view.refused} if view.refused is not None else {}),
        **({"label_rule": view.label_rule} if view.label_rule is not None else {}),
        **({"company_rules": dict(view.company_rules)} if view.company_rules is not None else {}),
        **(
            {"who_sends": [asdict(each) for each in view.senders]}
            if view.senders is not None
            else {}
        ),
        "declared_aggregate": declared
        and {
            "window_ms": declared.window_ms,
            "keys": list(declared.keys),
            "functions": list(declared.functions),
            "minimum": declared.minimum,
        },
    }


@router.delete("/{name}", status_code=204)
def remove_stream(platform: OnPlatform, caller: Authenticated, name: str) -> None:
    """Remove a stream that no query reads."""
    streams.remove_stream(platform, caller, name)


@router.get("/{name}/readers")
def show_readers(platform: OnPlatform, caller: Authenticated, name: str) -> list[dict[str, Any]]:
    """The executions that read the stream."""
    return [asdict(reader) for reader in executions.readers_of_stream(platform, caller, name)]


@router.post("/{name}/readers/stop")
def stop_readers(platform: OnPlatform, caller: Authenticated, name: str) -> dict[str, list[int]]:
    """Stop the queries that read the stream. `stopped` has the ids of their executions."""
    return {"stopped": executions.stop_readers(platform, caller, name)}


@router.post("/{name}/quarantine", status_code=201)
def read_quarantine(
    platform: OnPlatform, caller: Authenticated, request: Request, name: str, body: AccessBody
) -> dict[str, Any]:
    """An access to the stream's quarantine."""
    given = accesses.give(platform, caller, AccessKind.QUARANTINE, name, body.keep)
    return access_answer(platform, given, request)


@router.post("/{name}/senders", status_code=201)
def add_sender(
    platform: OnPlatform, caller: Authenticated, request: Request, name: str, body: AccessBody
) -> dict[str, Any]:
    """An access for sending to the stream."""
    given = accesses.give(platform, caller, AccessKind.SEND, name, body.keep)
    return access_answer(platform, given, request)


@router.post("/{name}/independent-senders", status_code=204)
def mark_independent(
    platform: OnPlatform, caller: Authenticated, name: str, body: SenderBody
) -> None:
    """Let a sender count for the minimum of the stream's declared aggregate."""
    independence.mark(platform, caller, name, body.user)


@router.delete("/{name}/independent-senders/{user}", status_code=204)
def unmark_independent(platform: OnPlatform, caller: Authenticated, name: str, user: str) -> None:
    """Let a sender not count any more."""
    independence.unmark(platform, caller, name, user)


@router.get("/{name}/sender-policy")
def show_sender_policy(platform: OnPlatform, caller: Authenticated, name: str) -> dict[str, Any]:
    """The role expression of all that the caller sends, and whether ingest uses it already."""
    return asdict(sender_policies.show_policy(platform, caller, name))


@router.put("/{name}/sender-policy")
def set_sender_policy(
    platform: OnPlatform, caller: Authenticated, name: str, body: SenderPolicyBody
) -> dict[str, str]:
    """Set the role expression of all that the caller sends to the stream."""
    return {"expression": sender_policies.set_policy(platform, caller, name, body.expression)}


@router.delete("/{name}/sender-policy", status_code=204)
def remove_sender_policy(platform: OnPlatform, caller: Authenticated, name: str) -> None:
    """Remove the caller's policy, so that what it sends is refused."""
    sender_policies.remove_policy(platform, caller, name)


@router.get("/{name}/floors")
def show_floors(platform: OnPlatform, caller: Authenticated, name: str) -> list[dict[str, Any]]:
    """The floors of the stream's senders: what the labels of all that they send get."""
    return [asdict(each) for each in floors.show_floors(platform, caller, name)]


@router.delete("/{name}/floors/{user}", status_code=204)
def lower_floor(platform: OnPlatform, caller: Authenticated, name: str, user: str) -> None:
    """Take the floor of a sender away: what it sends is declassified from then on."""
    floors.lower_floor(platform, caller, name, user)


@router.put("/{name}/rate", status_code=204)
def set_rate(platform: OnPlatform, caller: Authenticated, name: str, body: RateBody) -> None:
    """Declare how many tuples a second come to the stream."""
    stream_rates.set_rate(platform, caller, name, body.rate)


def _declaration(body: DeclaredAggregateBody | None) -> new_streams.Declaration | None:
    if body is None:
        return None
    return new_streams.Declaration(
        body.window_ms, tuple(body.keys), tuple(body.functions), body.minimum
    )
