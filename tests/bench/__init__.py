"""Measurements that `python3 -m deploy bench` makes; none of them is a test."""

from tests.bench.run import measure

__all__ = ["measure"]
