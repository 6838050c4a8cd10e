"""What some tests need beside Python and Java."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip the test because `what` is not here; in CI, which installs everything, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing, and CI needs it: {what}")
    pytest.skip(f"missing: {what}")
