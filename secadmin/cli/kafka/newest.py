"""The newest result of each key, of an output that gives upserts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# An output has so many groups at most (`catalog/SPEC.md`), and a subscription a few classes.
MAX_KEYS = 200_000


@dataclass
class NewestRows:
    """Keeps for each key the record with the highest version. A deletion is kept too.

    A deletion must stay, because an older result of its key may come once more after a crash. At
    most `MAX_KEYS` keys are kept; records of further keys are counted in `left_out`.
    """

    left_out: int = 0
    _kept: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)

    def take(self, record: Mapping[str, Any]) -> None:
        """Take a record as `Follower` gives it. One without a key is left out."""
        version = record.get("version")
        if "key" not in record or not isinstance(version, int):
            self.left_out += 1
            return
        key = json.dumps(record["key"], sort_keys=True)
        if key not in self._kept and len(self._kept) >= MAX_KEYS:
            self.left_out += 1
        elif key not in self._kept or version >= self._kept[key][0]:
            self._kept[key] = (version, record)

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """The newest record of each key that is not deleted, by key."""
        for _, (_, record) in sorted(self._kept.items(), key=lambda item: item[0]):
            if record["value"] is not None:
                yield record
