"""The names of the processes of a platform."""

from __future__ import annotations

from catalog.engines import all_engines

SUPERVISOR = "supervisor"
CLASS_ARCHIVE = "class-archive"
SPARE = "spare"
ENGINE_PREFIX = "secfilter-"


def part_names(engines: int = 1) -> tuple[str, ...]:
    """The names of the processes with so many query engines, in the order of stopping them."""
    names = sorted((f"{ENGINE_PREFIX}{name}" for name in all_engines(engines)), reverse=True)
    return (*names, "secadmin", "broker")
