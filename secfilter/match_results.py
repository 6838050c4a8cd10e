"""The rows of a pattern from their texts, and the texts of its matches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from catalog.match_expressions import ReadValue
from catalog.pattern import CLASSIFIER
from catalog.schema import AttributeType, Type, held_as
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.match_attempt import PatternRow
from secfilter.match_partition import Found
from secfilter.match_values import Accumulator, added, empty, result, value_in
from secfilter.moving_values import READERS, Value, text_of
from secfilter.moving_window import Arrival


@dataclass(slots=True)
class MatchTexts:
    """Reads and writes the values of rows, whose types are `types`.

    The text of a match has the attributes of its partition, if there are any, and `measures`. If
    each row is a result, its text has the values with the numbers `shown`, and `measures`.
    """

    types: Sequence[AttributeType]
    variables: Sequence[str]
    measures: Sequence[ReadValue]
    shown: Sequence[int] | None
    is_partitioned: bool
    _readers: list[Callable[[str], Value]] = field(init=False)

    def __post_init__(self) -> None:
        self._readers = [READERS[held_as(kind)] for kind in self.types]

    def row(self, arrival: Arrival) -> PatternRow:
        """A row with the values that the engine computed for it."""
        texts = arrival.arguments.split(SEPARATOR) if self.types else []
        values = [
            None if text == NULL_MARK else read(text)
            for text, read in zip(texts, self._readers, strict=True)
        ]
        return PatternRow(arrival, texts, values)

    def texts(self, found: Found) -> Iterator[str]:
        """The texts of a match's results: one, or one for each row."""
        last = len(found.rows) - 1
        (whole,) = deque(self._read(found), maxlen=1)
        if self.shown is None:
            keys = [found.rows[0].arrival.partition] if self.is_partitioned else []
            yield SEPARATOR.join([*keys, *self._measures(found, last, whole, whole)])
            return
        for place, so_far in enumerate(self._read(found)):
            own = found.rows[place].texts
            measures = self._measures(found, place, so_far, whole)
            yield SEPARATOR.join([*(own[number] for number in self.shown), *measures])

    def _read(self, found: Found) -> Iterator[list[Accumulator]]:
        """What the measures have read up to each row."""
        so_far = [empty(each) for each in self.measures]
        for place, row in enumerate(found.rows):
            name = self.variables[found.variables[place]]
            for number, each in enumerate(self.measures):
                if each.function != CLASSIFIER and each.variable in (None, name):
                    # The text of a row's value stays as the engine made it.
                    kept = found.start + place if each.is_of_one_row else value_in(each, row.values)
                    so_far[number] = added(each, so_far[number], kept)
            yield so_far

    def _measures(
        self, found: Found, place: int, so_far: list[Accumulator], whole: list[Accumulator]
    ) -> Iterator[str]:
        """The texts of the measures at a row of the match."""
        for each, running, final in zip(self.measures, so_far, whole, strict=True):
            if each.function == CLASSIFIER:
                yield self.variables[found.variables[place]]
            else:
                yield self._measure(each, found, final if each.final else running)

    def _measure(self, each: ReadValue, found: Found, so_far: Accumulator) -> str:
        whole = each.argument is not None and self.types[each.argument] is Type.BIGINT
        value = result(each, so_far, whole=whole)
        if not each.is_of_one_row:
            return text_of(value)
        row = None if value is None else found.around(value, each.moved)
        return NULL_MARK if row is None or each.argument is None else row.texts[each.argument]
