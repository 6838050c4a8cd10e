"""The demonstration's data: daily quotes of two markets, 1999 to 2018, from the package `arch`.

`arch` (NCSA licence) ships the S&P 500 and the NASDAQ Composite as CSV files. They are read as
files; the package itself is never imported.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from deploy.errors import DeployError

MARKETS = {"in1": ("sp500", "^GSPC"), "in2": ("nasdaq", "^IXIC")}


@dataclass(frozen=True, slots=True)
class Quote:
    """One trading day of one market, as a JSON record of the schema `s` has it."""

    day: str
    symbol: str
    open: float
    high: float
    low: float
    close: float
    volume: int


def load_quotes() -> dict[str, tuple[Quote, ...]]:
    """The quotes of both streams, oldest first. Raises DeployError where the data is missing."""
    return {stream: _read(*market) for stream, market in MARKETS.items()}


def write_json_lines(path: Path, quotes: Iterable[Quote]) -> Path:
    """Write the quotes as JSON lines, for `secadmin produce`."""
    path.write_text("".join(json.dumps(asdict(quote)) + "\n" for quote in quotes))
    return path


def between(quotes: Sequence[Quote], first_year: int, last_year: int) -> tuple[Quote, ...]:
    """The quotes of these years, both included."""
    return tuple(q for q in quotes if first_year <= int(q.day[:4]) <= last_year)


def _read(name: str, symbol: str) -> tuple[Quote, ...]:
    found = find_spec("arch")
    if found is None or found.origin is None:
        raise DeployError("the demonstration's data is missing: delete .venv and run this again")
    path = Path(found.origin).parent / "data" / name / f"{name}.csv.gz"
    with gzip.open(path, "rt", newline="") as lines:
        return tuple(_quote(row, symbol) for row in csv.DictReader(lines))


def _quote(row: dict[str, str], symbol: str) -> Quote:
    day = datetime.strptime(row["Date"], "%m/%d/%Y")  # noqa: DTZ007 - a date, not a moment
    return Quote(
        day=f"{day:%Y-%m-%d}T00:00:00Z",
        symbol=symbol,
        open=float(row["Open"]),
        high=float(row["High"]),
        low=float(row["Low"]),
        close=float(row["Close"]),
        volume=int(float(row["Volume"])),
    )
