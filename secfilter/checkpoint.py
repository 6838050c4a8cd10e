"""Checkpoints of runs: each run has a private folder with numbered generations.

Spark's own checkpoint belongs to one set of topics. When that set changes, a new generation starts
at the end of the last committed batch of the old one. At each start of a run, its generations
before the newest two are deleted.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.form_version import require_readable
from catalog.label_layout import LabelLayout
from catalog.private_file import write_private
from catalog.stored_form import from_stored, to_stored
from secfilter.kafka_options import Offsets

_SAFE = re.compile(r"[A-Za-z0-9_-]{1,80}")
_CURRENT, _START, _SPARK, _LOCK = "current.json", "start.json", "spark", "lock"
_LAYOUT = "layout.json"
# The folder of what is being deleted. No run has a name with a dot.
_DROPPED = ".dropped"
# The version of the form of `current.json`, and of the `start.json` of the generation it names.
_FORM = 1
_FIRST = "1"
_LOGS = ("offsets", "commits")
# The version of Spark's logs, and what they say of the time.
_VERSION, _WATERMARK, _NEXT_WATERMARK = "v1", "batchWatermarkMs", "nextBatchWatermarkMs"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One generation: Spark's folder, and the offsets from which its first batch starts."""

    folder: Path
    start: Offsets | None
    # The id of each topic's owner, because a topic's name may be reused. Empty if it was not noted.
    owners: Mapping[str, int] = field(default_factory=dict)
    # Whether it was made a moment ago because the state of the generation before had no room.
    anew: bool = False

    @property
    def spark(self) -> Path:
        """The folder that Spark uses as the location of its checkpoint."""
        return self.folder / _SPARK

    def layout(self) -> LabelLayout:
        """The layout of the labels in Spark's state. Raises ValueError if it cannot be read."""
        return from_stored(LabelLayout, json.loads((self.folder / _LAYOUT).read_text()))

    def keep_layout(self, layout: LabelLayout) -> None:
        """Keep the layout with the state. Call it before a query starts with the layout."""
        replace_file(self.folder / _LAYOUT, json.dumps(to_stored(layout)))

    def begun(self) -> bool:
        """Whether Spark has written here. If so, the checkpoint says where to continue."""
        return (self.spark / "metadata").exists()

    def narrow(self) -> bool:
        """Whether each topic had one partition when this generation began."""
        return self.start is not None and all(len(parts) == 1 for parts in self.start.values())

    def committed(self) -> Offsets:
        """The offsets at the end of the last committed batch, or `start` if no batch read them."""
        batches = _numbers(self.spark / "commits")
        if not batches:
            return self.start or {}
        read = _read_offsets(self.spark / "offsets" / str(max(batches)))
        return {**(self.start or {}), **read}

    def delivered(self) -> Offsets:
        """As `committed`, but all results are delivered that come by time from what was read.

        Spark gives those in the batch behind the one that moved the time. Until that one is
        committed, it is where the batch before it ended.
        """
        last = self.last_commit()
        if last < 0 or self._due_ms(last) <= self._watermark_ms(last):
            return self.committed()
        if last == 0:
            return self.start or {}
        before = _read_offsets(self.spark / "offsets" / str(last - 1))
        return {**(self.start or {}), **before}

    def _watermark_ms(self, batch: int) -> int:
        _, metadata, *_ = (self.spark / "offsets" / str(batch)).read_text().splitlines()
        return int(json.loads(metadata).get(_WATERMARK, 0))

    def _due_ms(self, batch: int) -> int:
        _, committed = (self.spark / "commits" / str(batch)).read_text().splitlines()
        return int(json.loads(committed).get(_NEXT_WATERMARK, 0))

    def last_commit(self) -> int:
        """The number of the last committed batch, -1 before the first."""
        return max(_numbers(self.spark / "commits"), default=-1)

    def plan_due_batch(self) -> None:
        """Plan the batch that gives what the last one has made due, if it is not planned yet.

        Spark gives the results of a window in the batch behind the one that moved the time. If the
        query ended between the two, Spark would give them with the next tuple only. This batch has
        no tuples of its own. Call it while no query runs here.
        """
        last = self.last_commit()
        offsets, commits = (self.spark / log for log in _LOGS)
        planned = offsets / str(last + 1)
        if last < 0 or planned.exists():
            return
        version, metadata, *sources = (offsets / str(last)).read_text().splitlines()
        _, committed = (commits / str(last)).read_text().splitlines()
        known, due_ms = json.loads(metadata), json.loads(committed).get(_NEXT_WATERMARK, 0)
        if version == _VERSION and due_ms > known.get(_WATERMARK, 0):
            text = json.dumps({**known, _WATERMARK: due_ms}, separators=(",", ":"))
            replace_file(planned, "\n".join([version, text, *sources]))

    def clear_cut_off(self) -> None:
        """Delete the incomplete files of a first batch after a crash or a stop.

        Spark refuses to start at batch 0 as long as there is any file in its logs. Call it while no
        query runs here.
        """
        for log in _LOGS:
            folder = self.spark / log
            if folder.exists() and not _numbers(folder):
                for left in folder.iterdir():
                    left.unlink()


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """All checkpoints of one deployment."""

    root: Path

    def current(self, run: str, shape: str) -> Checkpoint | None:
        """The run's newest generation if it was made for `shape`, on which a checkpoint depends."""
        newest = self._newest(run)
        return newest[0] if newest is not None and newest[1] == shape else None

    def previous(self, run: str) -> Checkpoint | None:
        """The run's newest generation, for any shape."""
        newest = self._newest(run)
        return None if newest is None else newest[0]

    def renew(
        self,
        run: str,
        shape: str,
        start: Offsets | None,
        owners: Mapping[str, int] | None = None,
        layout: LabelLayout | None = None,
    ) -> Checkpoint:
        """Begin a generation that starts at `start`, or at its topics' beginnings.

        That of a query has a `layout` of labels.
        """
        home = _private(self.home(run))
        number = max((int(p.name) for p in home.iterdir() if p.name.isdecimal()), default=0) + 1
        folder = _private(home / str(number))
        replace_file(folder / _START, json.dumps(start))
        if layout is not None:
            Checkpoint(folder, start).keep_layout(layout)
        # Do this last and in one step. So a generation exists only together with its start.
        made = {"generation": number, "shape": shape, "owners": dict(owners or {})}
        replace_file(home / _CURRENT, json.dumps({"version": _FORM, **made}))
        return Checkpoint(folder, _start_of(folder), owners or {})

    def moved(self, run: str, start: Offsets) -> Checkpoint:
        """Begin a generation that is as the newest one, and starts there."""
        newest = self._newest(run)
        if newest is None:
            raise ValueError(f"{run} has no checkpoint that could move")
        checkpoint, shape = newest
        return self.renew(run, shape, start, checkpoint.owners, checkpoint.layout())

    def drop_older(self, run: str) -> None:
        """Delete the generations before the newest two. Call it under the run's lock.

        A thread beside the last query of an ingest run may still look at the second newest. What
        cannot be deleted now is deleted at the run's next start.
        """
        home = self.home(run)
        if not (home / _CURRENT).exists():
            return
        newest = int(_read_current(home / _CURRENT)["generation"])
        for number in sorted(each for each in _numbers(home) if each < newest)[:-1]:
            try:
                shutil.rmtree(home / str(number))
            except OSError as error:
                _log.warning("%s: an old generation is still there: %s", run, error.strerror)

    def copy(self, run: str, other: str) -> None:
        """Let a run begin where this one is, with the same state, if it has not begun.

        Call it while the run does not run. A crash leaves no copy, or a whole one. Spark never
        changes a file of a checkpoint, so both may have the same files.
        """
        source = self.home(run) / _CURRENT
        if self.previous(other) is not None or not source.exists():
            return
        data = _read_current(source)
        home = _private(self.home(other))
        self.forget(other)
        made = home / _FIRST
        shutil.copytree(self.home(run) / str(data["generation"]), made, copy_function=_linked)
        # Spark runs one query of each id.
        for name in ("metadata", ".metadata.crc"):
            (made / _SPARK / name).unlink(missing_ok=True)
        if (made / _SPARK).exists():
            replace_file(made / _SPARK / "metadata", json.dumps({"id": str(uuid.uuid4())}))
        replace_file(home / _CURRENT, json.dumps({**data, "generation": int(_FIRST)}))

    def forget(self, run: str) -> None:
        """Drop all generations of a run that does not run and will begin anew."""
        home = self.home(run)
        (home / _CURRENT).unlink(missing_ok=True)
        for folder in home.iterdir() if home.exists() else ():
            if folder.name.isdecimal():
                shutil.rmtree(folder)

    def runs(self) -> list[str]:
        """The names of all runs that have a folder here."""
        folders = self.root.iterdir() if self.root.exists() else ()
        return sorted(each.name for each in folders if _SAFE.fullmatch(each.name))

    def drop(self, run: str) -> None:
        """Delete all that is kept of a run which never runs again. Call it under the run's lock.

        It goes in one step, so a crash leaves all of it or what `clear_dropped` deletes.
        """
        self.clear_dropped()
        self.home(run).rename(_private(self.root / _DROPPED) / _folder_name(run))
        self.clear_dropped()

    def clear_dropped(self) -> None:
        """Delete what was dropped and is still there. Any engine may do so."""
        dropped = self.root / _DROPPED
        for folder in dropped.iterdir() if dropped.exists() else ():
            shutil.rmtree(folder, ignore_errors=True)

    def home(self, run: str) -> Path:
        """The folder of the run's generations, which is there once it has one."""
        return self.root / _folder_name(run)

    def lock_file(self, run: str) -> Path:
        """The file that an engine locks while it runs the run."""
        return _private(self.home(run)) / _LOCK

    def _newest(self, run: str) -> tuple[Checkpoint, str] | None:
        home = self.home(run)
        current = home / _CURRENT
        if not current.exists():
            return None
        data = _read_current(current)
        folder = home / str(data["generation"])
        return Checkpoint(folder, _start_of(folder), data.get("owners", {})), data["shape"]


def _folder_name(run: str) -> str:
    if not _SAFE.fullmatch(run):
        raise ValueError("a run's name is letters, digits, _ and -")
    return run


def _read_current(file: Path) -> dict[str, Any]:
    """What names a run's newest generation. Raises InvalidInput if a newer program wrote it."""
    data: dict[str, Any] = json.loads(file.read_text())
    require_readable(f"the checkpoint of {file.parent.name}", data, _FORM)
    return data


def _start_of(folder: Path) -> Offsets | None:
    start: Offsets | None = json.loads((folder / _START).read_text())
    return start


def _numbers(folder: Path) -> list[int]:
    if not folder.exists():
        return []
    return [int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()]


def _read_offsets(file: Path) -> Offsets:
    """Read Spark's offset log: a version, metadata, then one line for each source.

    Two sources may read one topic, and one of them may be behind.
    """
    _, _, *sources = file.read_text().splitlines()
    merged: dict[str, dict[str, int]] = {}
    for line in sources:
        for topic, ends in ({} if line == "-" else json.loads(line)).items():
            known = merged.setdefault(topic, {})
            known.update({p: min(end, known.get(p, end)) for p, end in ends.items()})
    return merged


def _linked(source: str, target: str) -> None:
    """Give the file a second name, or copy it where the file system has no such names."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _private(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder


def replace_file(path: Path, text: str) -> None:
    """Replace the file in one step and sync it. A crash leaves the old or the new file."""
    write_private(path, text, synced=True)
