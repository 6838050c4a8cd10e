"""Which results a consumer has shown already.

The platform delivers at least once: a result may come again, with the same id. The updates of one
row of results have one id too, with other values. So a repeat is the same value under an id under
which nothing else was shown since.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

# About 20 MB. A batch that is done again after a crash may hold more results; then the oldest of
# them are shown again.
REMEMBERED = 100_000


class Repeats:
    """Remembers the results that were shown last, so many ids of them at most."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._shown: OrderedDict[str, bytes] = OrderedDict()

    def is_repeat(self, id_: str, *parts: bytes) -> bool:
        """Whether these bytes were the last ones under this id; from now on they are."""
        digest = blake2b(digest_size=16)
        for part in parts:
            digest.update(len(part).to_bytes(8, "big") + part)
        now = digest.digest()
        repeated = self._shown.get(id_) == now
        self._shown[id_] = now
        self._shown.move_to_end(id_)
        if len(self._shown) > self._most:
            self._shown.popitem(last=False)
        return repeated
