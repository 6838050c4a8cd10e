"""Waits until a subscription is fed. From then on it gets all new results."""

from __future__ import annotations

import time
from contextlib import nullcontext

from catalog.errors import NotFound
from secadmin.cli.api import Api
from secadmin.cli.context import Cli

_ASK_EVERY_S = 0.5
_INTERRUPTED = "the subscription exists and will be fed; `secadmin accesses` shows when"


class Feeding:
    """Watches one subscription until results are delivered to it."""

    def __init__(self, cli: Cli, principal: str) -> None:
        self._cli = cli
        self._principal = principal

    def wait(self, at_most_s: float) -> bool:
        """Wait until it is fed, and say whether it is. Ctrl-C does not end the subscription."""
        note, console = self._cli.screen.note, self._cli.screen.err
        begun = time.monotonic()
        with self._cli.api() as api:
            if (row := self._row(api))["fed"]:
                return self._said(row, 0.0)
            if not console.is_terminal and at_most_s:
                note(f"waiting until it is fed, at most {at_most_s:.0f} s")
            spinner = console.status(self._progress(0, at_most_s))
            try:
                with spinner if console.is_terminal else nullcontext():
                    while (waited := time.monotonic() - begun) < at_most_s:
                        spinner.update(self._progress(waited, at_most_s))
                        time.sleep(min(_ASK_EVERY_S, at_most_s - waited))
                        if (row := self._row(api))["fed"]:
                            return self._said(row, time.monotonic() - begun)
            except KeyboardInterrupt:
                note(_INTERRUPTED)
                raise
        note(f"not fed after {at_most_s:.0f} s; {_INTERRUPTED}")
        return False

    def _row(self, api: Api) -> dict[str, bool]:
        rows = {row["principal"]: row for row in api.get("accesses")}
        if self._principal not in rows:
            raise NotFound(f"{self._principal} has ended meanwhile; subscribe again")
        found: dict[str, bool] = rows[self._principal]
        return found

    def _said(self, row: dict[str, bool], waited: float) -> bool:
        if row["active"]:
            self._cli.screen.note(f"it is fed, after {waited:.1f} s")
            return True
        self._cli.screen.note(
            "there is nothing yet that you may read: that needs READ TUPLE on what the query reads"
        )
        return False

    @staticmethod
    def _progress(waited: float, at_most_s: float) -> str:
        return f"waiting until it is fed: {waited:.0f} s of at most {at_most_s:.0f} s"
