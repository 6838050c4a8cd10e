"""Says of an error that nobody foresaw what kind it is and where it came up, and never its text.

The text may quote a value: what a sender sent, or what a user asked for. A log is read by more
people than may see that.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator

_CAUSES, _PLACES = 8, 12


def places_of(error: BaseException) -> str:
    """The kinds of an error and its causes, each with the calls that led there, innermost first."""
    return "; because of ".join(_place(each) for each in _causes(error))


class KindsAlone(logging.Filter):
    """For a logger that is not the platform's own: of an error it writes what `places_of` says."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record. It is written in any case."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            record.msg = f"{record.getMessage().strip()}: {places_of(error)}"
            record.args = ()
        record.exc_info = record.exc_text = None
        return True


def _place(error: BaseException) -> str:
    calls = [
        f"{frame.f_globals.get('__name__', '-')}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return " < ".join([type(error).__name__, *reversed(calls[-_PLACES:])])


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return
        yield cause
        hidden = cause.__cause__ is None and cause.__suppress_context__
        cause = None if hidden else cause.__cause__ or cause.__context__
