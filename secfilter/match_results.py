"""The rows of a pattern from their texts, and the texts of its matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.match_expressions import ReadValue
from catalog.pattern import FIRST, LAST
from catalog.schema import Type
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.match_partition import Found, PatternRow
from secfilter.match_values import added, empty, result
from secfilter.moving_values import text_of, value_of
from secfilter.moving_window import Arrival


@dataclass(frozen=True, slots=True)
class MatchTexts:
    """Reads and writes the values of rows, whose types are `types`.

    The text of a match has the attributes of its partition, if there are any, and `measures`.
    """

    types: Sequence[Type]
    variables: Sequence[str]
    measures: Sequence[ReadValue]
    is_partitioned: bool

    def row(self, arrival: Arrival) -> PatternRow:
        """A row with the values that the engine computed for it."""
        texts = arrival.arguments.split(SEPARATOR) if self.types else []
        values = [value_of(text, kind) for text, kind in zip(texts, self.types, strict=True)]
        return PatternRow(arrival, texts, values)

    def text(self, found: Found) -> str:
        """The text of a match."""
        keys = [found.rows[0].arrival.partition] if self.is_partitioned else []
        return SEPARATOR.join([*keys, *(self._measure(each, found) for each in self.measures)])

    def _measure(self, each: ReadValue, found: Found) -> str:
        rows = found.rows
        if each.variable is not None:
            wanted = self.variables.index(each.variable)
            pairs = zip(found.rows, found.variables, strict=True)
            rows = [row for row, variable in pairs if variable == wanted]
        if each.argument is not None and each.function in (FIRST, LAST):
            # The text stays as the engine made it.
            row = rows[0 if each.function == FIRST else -1] if rows else None
            return NULL_MARK if row is None else row.texts[each.argument]
        so_far = empty(each)
        for row in rows:
            so_far = added(each, so_far, row.values)
        whole = each.argument is not None and self.types[each.argument] is Type.BIGINT
        return text_of(result(each, so_far, whole=whole))
