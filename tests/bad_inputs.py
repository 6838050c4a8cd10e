"""Naughty strings, SQL injection and XML bombs that others collected."""

from __future__ import annotations

import json
import os
import random
from functools import cache
from pathlib import Path

from tests.requirements import missing

VECTORS = Path(__file__).parents[2] / "shared" / "vectors" / "bad-inputs"
SEED = int(os.environ.get("BAD_INPUTS_SEED", "1"))

# What belongs to the inside of the platform and never into an answer.
INTERNALS = (
    *("Traceback", 'File "', ".py", "site-packages", "object at 0x"),
    *("sqlalchemy", "sqlite", "psycopg", "pydantic", "starlette", "librdkafka", "org.apache"),
)


def require_vectors() -> None:
    """Skip the test, or in CI fail it, where the vectors are not here."""
    if not VECTORS.is_dir():
        missing("the shared test vectors beside the repository")


@cache
def naughty_strings() -> tuple[str, ...]:
    """Every string of the vectors once, in an order that the seed decides."""
    require_vectors()
    found: list[str] = json.loads((VECTORS / "blns.json").read_text())
    for path in sorted(VECTORS.glob("sqli_*.txt")):
        found += path.read_text(errors="replace").splitlines()
    # Halves of pairs, NUL, direction marks and terminal escapes, should the vectors lack them.
    found += ["\ud800", "a\0b", "\u202egnp", "\x1b]0;title\x07\x1b[2J", "[red]x[/red]", "x" * 5_000]
    strings = list(dict.fromkeys(found))
    random.Random(SEED).shuffle(strings)
    return tuple(strings)


@cache
def xml_files() -> dict[str, str]:
    """The XML files by name."""
    require_vectors()
    return {path.name: path.read_text() for path in sorted(VECTORS.glob("*.xml"))}


def xml_names() -> list[str]:
    """The XML files' names, for a test's parameters: collecting goes on where there are no files.

    A name stands in for them there, so that the test is run and says what is missing.
    """
    return sorted(path.name for path in VECTORS.glob("*.xml")) or ["missing"]


def internals_in(text: str, given: str = "") -> list[str]:
    """What of the platform's inside the text shows, apart from what was given to it."""
    return [mark for mark in INTERNALS if mark in text and mark not in given]
