"""Names for the steps of a text that is written from a plan."""

from __future__ import annotations

from itertools import count


def step_name(steps: int, taken: set[str]) -> str:
    """A name for the step behind so many others, such as s3. It is not in `taken`, but is then."""
    name = next(name for n in count(steps + 1) if (name := f"s{n}") not in taken)
    taken.add(name)
    return name
