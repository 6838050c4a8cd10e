"""IS [NOT] DISTINCT FROM: a comparison in which NULL is a value like another."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.errors import Position
from secadmin.languages.typed import Typed, call


def null_safe(same: bool, values: Sequence[Typed], place: Position) -> Typed:
    """Whether two values are the same, or are not, if NULL is the same as NULL.

    It is never NULL. Raises InvalidInput if the values cannot be compared.
    """
    bare = [index for index, value in enumerate(values) if value.type is None]
    if bare:
        is_null = call("is_null", [values[1 - bare[0]]], place)
        return is_null if same else call("not", [is_null], place)
    operator = "=" if same else "<>"
    nulls = [call("is_null", [value], place) for value in values]
    # The first is NULL only if a value is NULL. Then the second decides.
    return call("coalesce", [call(operator, values, place), call(operator, nulls, place)], place)
