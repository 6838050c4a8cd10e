"""The one error of this package: something the person at the keyboard can put right."""

from __future__ import annotations

from collections.abc import Collection, Iterable


class DeployError(Exception):
    """A failure that the reader can act on.

    The message is one line that says what is wrong and what to do. The command line prints it
    to stderr and ends with `exit_code`; no stack trace is shown.
    """

    exit_code = 1


def require_known(complaint: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise DeployError for the first name that is not among those known.

    `complaint` is the beginning of the message, such as "there is no measurement".
    """
    for name in names:
        if name not in known:
            raise DeployError(f"{complaint} '{name}': choose among {', '.join(known)}")
