"""The event patterns of paper 003 on the whole platform: what `deploy demo --paper 003` plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.fraud.demo import play
from deploy.fraud.story import Bank
from deploy.runtime import Runtime
from deploy.scenario.story import BATCH_MS
from deploy.stack import Stack, StackOptions


@pytest.mark.long
def test_each_role_gets_the_matches_of_what_it_may_see(runtime: Runtime, tmp_path: Path) -> None:
    options = StackOptions(tmp_path / "state", broker_port=0, secadmin_port=0, batch_ms=BATCH_MS)
    with Stack(options, runtime) as stack:
        bank = Bank(stack, print)
        try:
            play(bank)
            received = {role: bank.rows(role) for role in bank.expected}
            hidden = bank.hidden
        finally:
            bank.close()
    assert received == bank.expected
    assert not hidden, "WATCH got what it may not read any more"
    assert all(len(rows) > 5 for rows in received.values())
