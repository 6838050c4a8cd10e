"""Sends a file's records to a stream, counts acknowledgements, and shows the progress."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from catalog.errors import InvalidInput, PlatformError
from secadmin.cli.kafka.sending import Sender, Tally
from secadmin.cli.screen import Screen
from secadmin.cli.tuple_file import Read

_SHOWN_MISTAKES = 10
_SHOW_EVERY_S = 0.1
_LAST_WAIT_S = 5.0


@dataclass
class Outcome:
    """The result of an upload. An `error` or Ctrl-C (`interrupted`) may end it early."""

    tally: Tally
    mistakes: int = 0
    interrupted: bool = False
    error: Exception | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def lost(self) -> int:
        """The number of records that were sent and that no broker acknowledged."""
        return self.tally.sent - self.tally.acked

    @property
    def seconds(self) -> float:
        """The time since the start in seconds."""
        return max(time.monotonic() - self.started, 1e-3)


class Upload:
    """Sends records through a sender whose producer is set, with a progress bar on a terminal."""

    def __init__(self, screen: Screen, sender: Sender, size: int) -> None:
        """`size` is the file's, in bytes."""
        self._screen = screen
        self._sender = sender
        self._size = size
        self._outcome = Outcome(sender.tally)

    def run(self, records: Iterator[Read]) -> Outcome:
        """Send all records, and wait for every acknowledgement. Ctrl-C stops early."""
        outcome = self._outcome
        with self._progress() as progress:
            try:
                self._send_all(records, progress)
            except KeyboardInterrupt:
                outcome.interrupted = True
                self._sender.give_up(_LAST_WAIT_S)
            except Exception as error:  # any error is shown after everything is counted
                outcome.error = error
                # Where the rest of the file cannot be read, what was read before is sent all the
                # same; where Kafka takes nothing more, there is nothing to wait for.
                refused = isinstance(error, PlatformError) and not isinstance(error, InvalidInput)
                self._sender.give_up(0 if refused else _LAST_WAIT_S)
        return outcome

    def _progress(self) -> Progress:
        console = self._screen.err
        progress = Progress(
            TextColumn("{task.fields[acked]} acknowledged"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}/s"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        progress.add_task("", total=self._size, acked="0", rate="0")
        return progress

    def _send_all(self, records: Iterator[Read], progress: Progress) -> None:
        shown = 0.0
        for record in records:
            if record.value is None:
                self._mistake(record)
            else:
                self._sender.send(record.value)
            if (now := time.monotonic()) - shown > _SHOW_EVERY_S:
                self._show(progress, record.position)
                shown = now
        while self._sender.wait(_SHOW_EVERY_S):
            self._show(progress, self._size)

    def _show(self, progress: Progress, position: int) -> None:
        acked = self._outcome.tally.acked
        rate = acked / self._outcome.seconds
        task = progress.task_ids[0]
        progress.update(task, completed=position, acked=f"{acked:,}", rate=f"{rate:,.0f}")

    def _mistake(self, record: Read) -> None:
        self._outcome.mistakes += 1
        if self._outcome.mistakes <= _SHOWN_MISTAKES:
            self._screen.note(f"line {record.line}: {record.mistake}")
        elif self._outcome.mistakes == _SHOWN_MISTAKES + 1:
            self._screen.note("more lines are not usable; from here on they are only counted")
