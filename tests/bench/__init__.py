"""Measurements that `python3 -m deploy bench` makes; none of them is a test."""

from tests.bench.kept import last_figures
from tests.bench.run import MEASUREMENTS, measure

__all__ = ["MEASUREMENTS", "last_figures", "measure"]
