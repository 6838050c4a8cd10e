"""The errors that users see. Each has an HTTP status and an exit code, and says what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a query text. Line and column count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class PlatformError(Exception):
    """The base of every error that a user may see. The message never holds data or a secret."""

    status = 500
    exit_code = 1
    title = "Internal error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class InvalidInput(PlatformError):
    """The input cannot be used. `position` is the position in a query text, if there is one."""

    status = 422
    exit_code = 2
    title = "Invalid input"

    def __init__(self, detail: str, position: Position | None = None) -> None:
        super().__init__(f"{position}: {detail}" if position else detail)
        self.position = position


class NotAuthenticated(PlatformError):
    """There is no session, it has ended, or a login failed. The words are always the same."""

    status = 401
    exit_code = 3
    title = "Not authenticated"


class Denied(PlatformError):
    """The subject may see the object, but lacks the permission."""

    status = 403
    exit_code = 4
    title = "Denied"


class NotFound(PlatformError):
    """The object is absent or hidden from this subject. The words are the same for both."""

    status = 404
    exit_code = 5
    title = "Not found"


class Conflict(PlatformError):
    """The request does not fit the current state (a name is taken, an object is in use)."""

    status = 409
    exit_code = 6
    title = "Conflict"


class Unavailable(PlatformError):
    """Kafka or the database cannot be reached. A decision that was made holds and is retried."""

    status = 503
    exit_code = 7
    title = "Unavailable"
