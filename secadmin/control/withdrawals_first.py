"""Repeated calls: the first call committed its change, but Kafka could not be reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from catalog.errors import InvalidInput, NotFound
from secadmin.control.platform import Platform


@contextmanager
def carrying_out_first(platform: Platform) -> Iterator[set[str]]:
    """Carry out earlier withdrawals before the block's NotFound reaches the caller.

    The block adds the topics that are concerned. A caller that gets NotFound may rely on it that
    nothing more arrives on these topics. Raises Unavailable if a withdrawal cannot be carried out.
    """
    undone: set[str] = set()
    try:
        yield undone
    except (InvalidInput, NotFound):
        platform.alignment.align(undone)
        raise
