"""What is kept of a side run: which topics it feeds, and how far it has come.

The folder of its checkpoints is beside that of its main run. The file `classes.json` there says
that it has begun and has not done its work: then it goes on after a crash.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from secfilter.checkpoint import Checkpoints, replace_file
from secfilter.kafka_options import Offsets

_FILE, _VERSION = "classes.json", 1


@dataclass(frozen=True, slots=True)
class SideNotes:
    """The notes of all side runs, each by the name of the side run."""

    checkpoints: Checkpoints

    def unfinished(self, name: str) -> frozenset[str]:
        """The topics that it feeds, none where there is nothing to go on with.

        Notes of another version are none: what was delivered stays, and the main run goes on.
        """
        file = self._file(name)
        if not file.exists():
            return frozenset()
        data = json.loads(file.read_text())
        return frozenset(data["topics"]) if data["version"] == _VERSION else frozenset()

    def note(self, name: str, topics: Collection[str]) -> None:
        """Note that it feeds these as well. Call it when its checkpoint is there."""
        noted = sorted(self.unfinished(name).union(topics))
        replace_file(self._file(name), json.dumps({"version": _VERSION, "topics": noted}))

    def reached(self, name: str) -> Offsets:
        """Where the last batch ended that it has delivered as a whole."""
        newest = self.checkpoints.previous(name)
        return {} if newest is None else newest.committed()

    def held(self, name: str) -> frozenset[str]:
        """The topics whose offsets the newest checkpoint of the run holds."""
        newest = self.checkpoints.previous(name)
        return frozenset() if newest is None else frozenset(newest.owners)

    def finish(self, name: str) -> None:
        """Drop what is kept of it, while it does not run."""
        # First the notes: from here on nothing goes on with what is left of the checkpoint.
        self._file(name).unlink(missing_ok=True)
        self.checkpoints.forget(name)

    def _file(self, name: str) -> Path:
        return self.checkpoints.home(name) / _FILE
