"""The answer of `query add --check` in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from secadmin.cli.durations import duration_words
from secadmin.cli.plan_tree import output_tree
from secadmin.cli.screen import Screen


def show_check(screen: Screen, answer: Mapping[str, Any]) -> None:
    """Show what a query would need and whom it would reach."""
    screen.line(f"the query {answer['name']} can be added; nothing was added")
    for output in answer["outputs"]:
        screen.line("")
        try:
            screen.tree(output_tree(output))
        except (ValueError, TypeError):
            screen.note("this version does not know the form of the plan")
        _show_output(screen, output, answer["free_tasks"])
    screen.line("")
    for reason in answer["allowed_because"]:
        screen.line(f"allowed because {reason}")
    for note in answer["notes"]:
        screen.note(note)


def _show_output(screen: Screen, output: Mapping[str, Any], free: int) -> None:
    screen.line(f"tasks: {output['tasks']} (free: {free}); sources: {output['reads']}")
    if output["keeps_state"]:
        late = duration_words(output["delay_ms"])
        screen.line(f"keeps state, results come up to {late} behind the newest tuple")
    else:
        screen.line("keeps no state, results come at once")
    for right in output["rights"]:
        screen.line(f"shows {right['carries']} to each user with {right['needs']}")
    if not output["rights"]:
        screen.line("shows everything to everybody that may subscribe")
    reached = output["reached"]
    if reached is None:
        return
    screen.line(f"users that could get all results: {_names(reached['all'])}")
    screen.line(f"users that could get some results: {_names(reached['some'])}")
    if reached["more"]:
        screen.note("there are more users, who were not looked at")


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
