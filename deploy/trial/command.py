"""The command `try`: reads the query and the data, runs them, and shows who gets what."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from catalog.checked_plan import CheckedPlan
from catalog.errors import InvalidInput
from catalog.stored_form import to_stored
from deploy.trial.run import Refused, Result, Trial
from deploy.trial.world import World, read_world
from secadmin.cli.caret import caret_lines
from secadmin.cli.plan_explanation import explained
from secadmin.cli.plan_svg import write_images
from secadmin.cli.plan_tree import output_tree
from secadmin.cli.screen import Screen
from secadmin.cli.text_file import text_of
from secadmin.languages import parse_borealis, parse_sql
from secfilter.session import build_session

_MASTER = "local[2]"


def try_query(
    query: Path, data: Path, screen: Screen, *, weak: bool = False, svg: Path | None = None
) -> int:
    """Run the query over the data, and show its plan, its results and each subscriber's results.

    With `svg`, the plan is also written there as an image that says what each node does. Returns
    the exit code. If a file cannot be used, it shows why, and the place in the query.
    """
    try:
        world = read_world(data)
        text = text_of(query)
        outputs, notes = _plans(query, text, world)
    except InvalidInput as error:
        # Only a mistake in the text has a place.
        shown = caret_lines(text, error.position) if error.position else []
        screen.error(error, shown)
        return error.exit_code
    for note in notes:
        screen.note(note)
    if svg is not None:
        write_images(svg, {name: explained(name, plan) for name, plan in outputs.items()})
    with _quiet():
        spark = build_session(_MASTER, None)
    trial = Trial(spark, world)
    refused = trial.refused()
    found = {name: trial.results(name, plan, weak=weak) for name, plan in outputs.items()}
    if screen.json:
        every = {name: asdict(results) for name, results in found.items()}
        screen.answer({"refused": [asdict(each) for each in refused], "outputs": every})
        return 0
    _show_refused(refused, screen)
    for name, results in found.items():
        screen.tree(output_tree(_output(name, outputs[name])))
        _show(screen, f"{name}: {len(results.every)} results", results.every)
        for who, got in results.of.items():
            _show(screen, f"{who} gets {len(got)} of {len(results.every)}", got)
    return 0


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Spark's process says off the terminal: it inherits the error stream."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _plans(query: Path, text: str, world: World) -> tuple[dict[str, CheckedPlan], Sequence[str]]:
    """The plan of each output, and notes on what the platform does not use of the query."""
    match query.suffix.lower():
        case ".sql":
            return {query.stem: parse_sql(text, world)}, ()
        case ".xml":
            diagram = parse_borealis(text, world)
            return dict(diagram.outputs), diagram.notes
    raise InvalidInput(f"cannot tell the language of {query}; name it .sql or .xml")


def _output(name: str, checked: CheckedPlan) -> dict[str, Any]:
    attributes = [{"name": a.name, "type": str(a.type)} for a in checked.schema.attributes]
    return {"name": name, "attributes": attributes, "plan": to_stored(checked.plan)}


def _show_refused(refused: Sequence[Refused], screen: Screen) -> None:
    if refused:
        screen.line(f"records that are no tuples of their stream: {len(refused)}")
        screen.rows([asdict(each) for each in refused], "")
        screen.line("")


def _cells(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a result. A nested one is shown as JSON."""
    return {
        name: json.dumps(each, ensure_ascii=False) if isinstance(each, list | dict) else each
        for name, each in values.items()
    }


def _show(screen: Screen, head: str, results: Sequence[Result]) -> None:
    screen.line("")
    screen.line(head, "bold")
    if results:
        rows = [
            {**_cells(each.value), "label": ", ".join(each.label) or "public"} for each in results
        ]
        screen.rows(rows, "")
