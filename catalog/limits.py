"""How much one deployment carries: what is more is refused when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from catalog.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Limits:
    """The defaults suit the default engine: local[256], 1 GB of heap.

    `sources` is how often one query may read streams and outputs, a stream that is read twice
    counted twice. `window_copies` is in how many windows of one query a tuple may be (size ÷
    slide, summed over its windows): each is state. `slots` are the engine's tasks: each source of
    each running query takes one for each partition, and so does ingest for each of a sender's
    topic; a stream counts for one sender at least. So many `senders` with topics of their own may
    one stream have.
    """

    sources: int = 64
    window_copies: int = 60
    slots: int = 256
    senders: int = 16


def limits_of(data: Mapping[str, object]) -> Limits:
    """The limits that a settings file gives. Raises InvalidInput for any other name or value."""
    known = [field.name for field in fields(Limits)]
    own: dict[str, int] = {}
    for name, value in data.items():
        if name not in known:
            raise InvalidInput(f"there is no limit {name!r}; there are {', '.join(known)}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidInput(f"the limit {name} is {value!r}, and not a number from 1")
        own[name] = value
    return Limits(**own)
