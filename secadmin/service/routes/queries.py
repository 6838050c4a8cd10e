"""Queries."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from catalog.analysis import analyse
from secadmin.control import queries, query_check, query_views
from secadmin.control.plan_text import Language, plan_text
from secadmin.control.query_definition import QueryDefinition
from secadmin.service.answers import attributes_of, utc
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.plan_form import shown_form
from secadmin.service.requests import QueryBody

router = APIRouter(prefix="/queries", tags=["queries"])


@router.post("", status_code=201)
def add_query(platform: OnPlatform, caller: Authenticated, body: QueryBody) -> dict[str, Any]:
    """Add a query and start it."""
    added = queries.add_query(platform, caller, _definition(body))
    return {
        "name": body.name,
        "outputs": [
            {"name": name, "attributes": attributes_of(schema)}
            for name, schema in added.outputs.items()
        ],
        "notes": list(added.notes),
    }


@router.post("/check")
def check_query(platform: OnPlatform, caller: Authenticated, body: QueryBody) -> dict[str, Any]:
    """Check a query as if it were added, and add nothing.

    The answer says what the query would need, and whom it would reach.
    """
    found = query_check.check_query(platform, caller, _definition(body))
    return {
        "name": body.name,
        "outputs": [_checked(name, each) for name, each in found.outputs.items()],
        "notes": list(found.notes),
        "free_tasks": found.free_tasks,
        "allowed_because": list(found.allowed_because),
    }


def _definition(body: QueryBody) -> QueryDefinition:
    return QueryDefinition(
        *(body.name, body.language, body.text, body.output, tuple(body.as_roles)),
        accept_empty=body.accept_empty,
        level=body.level,
        semantics=body.semantics,
    )


def _checked(name: str, output: query_check.CheckedOutput) -> dict[str, Any]:
    return {
        "name": name,
        "attributes": attributes_of(output.plan.schema),
        "plan": shown_form(output.plan.plan),
        "tasks": output.tasks,
        "reads": output.reads,
        "keeps_state": output.plan.keeps_state,
        "delay_ms": output.delay_ms,
        "rights": [asdict(each) for each in output.rights],
        "reached": None if output.reached is None else asdict(output.reached),
    }


@router.get("")
def list_queries(platform: OnPlatform, caller: Authenticated) -> list[dict[str, Any]]:
    """The queries that the caller may view."""
    return [_answer(view) for view in query_views.list_queries(platform, caller)]


@router.get("/{name}")
def show_query(platform: OnPlatform, caller: Authenticated, name: str) -> dict[str, Any]:
    """One query, with its state as its engine reports it."""
    return _answer(query_views.show_query(platform, caller, name))


@router.get("/{name}/plan")
def show_plan(
    platform: OnPlatform, caller: Authenticated, name: str, language: Language | None = None
) -> dict[str, Any]:
    """The plans of a query's outputs, and their text if a language is named."""
    plans = query_views.show_plans(platform, caller, name)
    bare = {output: shown.plan for output, shown in plans.items()}
    written = {} if language is None else {"text": plan_text(bare, language)}
    return {
        **written,
        "outputs": [
            {
                "name": output,
                "plan": shown_form(shown.plan),
                "attributes": attributes_of(analyse(shown.plan).schema),
                "placement": shown.placement.value,
            }
            for output, shown in plans.items()
        ],
    }


@router.post("/{name}/start", status_code=204)
def start_query(platform: OnPlatform, caller: Authenticated, name: str) -> None:
    """Start a stopped query. It goes on where it stopped, or anew if policies have changed."""
    queries.set_running(platform, caller, name, running=True)


@router.post("/{name}/stop", status_code=204)
def stop_query(platform: OnPlatform, caller: Authenticated, name: str) -> None:
    """Stop a query."""
    queries.set_running(platform, caller, name, running=False)


@router.delete("/{name}", status_code=204)
def remove_query(platform: OnPlatform, caller: Authenticated, name: str) -> None:
    """Remove a query with its outputs."""
    queries.remove_query(platform, caller, name)


def _answer(view: query_views.QueryView) -> dict[str, Any]:
    answer = {**asdict(view), "since": utc(view.since) if view.since else None}
    for of_all in ("withheld", "sharing"):
        if answer[of_all] is None:
            del answer[of_all]
    return answer
