"""The names of functions in SQL, and the function of the allow-list for each name."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.errors import InvalidInput, Position
from catalog.schema import Type
from secadmin.languages.typed import Typed, call, literal

SCALAR = {
    **{
        name: name
        for name in (
            *("abs", "floor", "ceil", "sqrt", "coalesce", "upper", "lower", "trim", "length"),
            *("concat", "substring", "year", "month", "day", "hour", "minute", "second"),
        )
    },
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "substr": "substring",
    "mod": "%",
}
EXTRACTED = frozenset({"year", "month", "day", "hour", "minute", "second"})
# SUBSTRING(s, start) goes to the end of the string. No string here is longer than this.
_TO_THE_END = 1_000_000_000


def scalar_call(name: str, arguments: Sequence[Typed], position: Position) -> Typed:
    """A call by its SQL name. Raises InvalidInput for a function that is not in the allow-list."""
    function = SCALAR.get(name)
    if function is None:
        known = ", ".join(sorted(SCALAR)).upper()
        raise InvalidInput(f"unknown function {name[:40].upper()}; there are: {known}", position)
    if function == "substring" and len(arguments) == 2:
        arguments = [*arguments, literal(_TO_THE_END, Type.BIGINT, position)]
    return call(function, arguments, position)
