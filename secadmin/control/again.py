"""A call that is made again, after its change was committed but Kafka could not be told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from catalog.errors import InvalidInput, NotFound
from secadmin.control.platform import Platform


@contextmanager
def carrying_out_first(platform: Platform) -> Iterator[set[str]]:
    """Before the block's answer that there is nothing to take, carry out what was taken earlier.

    The block adds the topics that this concerns. Who is told that something is not there relies on
    it that nothing arrives by it any more. Raises Unavailable where it cannot be carried out.
    """
    undone: set[str] = set()
    try:
        yield undone
    except (InvalidInput, NotFound):
        platform.alignment.align(undone)
        raise
