"""What each measurement gave last: `figures.json` has it, with the code and the machine's speed."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.figure import Figure
from tests.commits import commit_of_code

FILE = Path(__file__).parent / "figures.json"
_COUNT = 10_000_000


@dataclass(frozen=True, slots=True)
class Kept:
    """The figures of one measurement, when it ended, on which commit, and on how fast a machine.

    `count_s` is how many seconds Python took to count to ten million just after it.
    """

    figures: tuple[Figure, ...]
    ended: str
    commit: str
    count_s: float


def last_figures(file: Path = FILE) -> dict[str, Kept]:
    """What each measurement gave last, by its name."""
    if not file.exists():
        return {}
    return {name: _read(each) for name, each in json.loads(file.read_text()).items()}


def keep(name: str, figures: Sequence[Figure], file: Path = FILE) -> None:
    """Keep what a measurement gave in place of what it gave before."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    kept[name] = {
        "ended": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": commit_of_code(FILE),
        "count_s": round(_count_s(), 2),
        "figures": [each.as_json() for each in figures],
    }
    file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def _read(kept: dict[str, object]) -> Kept:
    rows = kept["figures"]
    assert isinstance(rows, list)
    figures = (Figure(row["name"], row["value"], row["unit"], row["target"]) for row in rows)
    return Kept(
        tuple(figures), str(kept["ended"]), str(kept["commit"]), float(str(kept["count_s"]))
    )


def _count_s() -> float:
    began = time.perf_counter()
    for _ in range(_COUNT):
        pass
    return time.perf_counter() - began
