"""MATCH_RECOGNIZE with the syntax trees of its expressions."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import Position
from catalog.pattern import Pattern, Skip
from secadmin.languages.expressions.event_words import EventWords

# A name in the text, and where it is.
PlacedName = tuple[str, Position]


@dataclass(frozen=True, slots=True)
class MatchClause:
    """One MATCH_RECOGNIZE of a query, or PATTERN SEQ. `position` is that of the word.

    If it is `per_row`, each row of a match is a result (ALL ROWS PER MATCH).
    """

    position: Position
    within_ms: int
    pattern: Pattern | None
    order: PlacedName | None
    skip: Skip
    partition: tuple[PlacedName, ...]
    measures: tuple[tuple[str, exp.Expr, Position], ...]
    definitions: tuple[tuple[str, exp.Expr, Position], ...]
    events: EventWords | None
    per_row: bool
