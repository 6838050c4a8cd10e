"""What the tests of SecAdmin's operations share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.bootstrap import ensure_initialised
from catalog.passwords import Passwords
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A catalog that is ready to serve."""
    made = Catalog(f"sqlite:///{tmp_path}/catalog.db", AUDIT_KEY)
    ensure_initialised(made, tmp_path / "first", Passwords(cost=4))
    yield made
    made.close()
