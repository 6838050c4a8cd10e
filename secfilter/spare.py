"""A spare engine: a process with a warm Spark that becomes the engine which needs one.

To start Spark and to plan its first queries takes tens of seconds of CPU. A spare has done that
before. It has no name, no lock and no connection to the catalog, so it runs nothing. An engine that
is about to start Spark looks whether there is a spare. If so, it asks for it and ends. Then the
supervisor gives the spare the engine's name. The spare goes on like any process of that engine: it
takes the engine's locks, and reads from the catalog what it runs.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event

from catalog.private_file import write_private
from secfilter.life import READY_FILE

# Names a file that exists while there is a spare.
SPARE_FILE = "SECFILTER_SPARE_FILE"
# The folder of the spare, beside those of engines.
SPARE = "spare"
_LOOK_S = 0.1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Given:
    """What a spare is told: the engine that it becomes, and the file in which it gives signs."""

    engine: str
    ready: str


def name_file(ready: Path) -> Path:
    """Where the spare with that file is told its name."""
    return ready.with_suffix(".name")


def asking_file(ready: Path) -> Path:
    """The file by which an engine asks for the spare. `ready` is its own file of signs."""
    return ready.with_suffix(".asks")


def give(ready: Path, given: Given) -> None:
    """Tell the spare with that file its name. From now on nobody else asks for it."""
    ready.unlink(missing_ok=True)
    write_private(name_file(ready), json.dumps(asdict(given)))


def await_name(stop: Event) -> Given | None:
    """Say that this process is ready, and wait until it is told its name; None on `stop`."""
    ready = Path(os.environ[READY_FILE])
    name_file(ready).unlink(missing_ok=True)
    ready.touch(mode=0o600)
    while not stop.wait(_LOOK_S):
        if name_file(ready).exists():
            given = Given(**json.loads(name_file(ready).read_text()))
            name_file(ready).unlink()
            os.environ[READY_FILE] = given.ready
            return given
    ready.unlink(missing_ok=True)
    return None


def ask_for_spare() -> bool:
    """Ask for the spare to take this engine's place. Returns False if there is none."""
    spare, own = os.environ.get(SPARE_FILE), os.environ.get(READY_FILE)
    if not spare or not own or not Path(spare).exists():
        return False
    asking_file(Path(own)).touch(mode=0o600)
    _log.info("the spare engine takes the place of this process")
    return True
