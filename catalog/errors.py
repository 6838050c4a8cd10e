"""One error tree. Each error knows its HTTP status and exit code and says what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a query text; line and column count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class PlatformError(Exception):
    """Base of every error that a user can be shown. The message never holds data or a secret."""

    status = 500
    exit_code = 1
    title = "Internal error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class InvalidInput(PlatformError):
    """What was given cannot be used as it stands; `position` points into a query text."""

    status = 422
    exit_code = 2
    title = "Invalid input"

    def __init__(self, detail: str, position: Position | None = None) -> None:
        super().__init__(f"{position}: {detail}" if position else detail)
        self.position = position


class NotAuthenticated(PlatformError):
    """No session, an ended one, or a login that failed (always the same words)."""

    status = 401
    exit_code = 3
    title = "Not authenticated"


class Denied(PlatformError):
    """The subject may see the object, but lacks the permission."""

    status = 403
    exit_code = 4
    title = "Denied"


class NotFound(PlatformError):
    """There is no such object for this subject (absent, or not to be seen: the same words)."""

    status = 404
    exit_code = 5
    title = "Not found"


class Conflict(PlatformError):
    """The request does not fit the present state (a name is taken, an object is in use)."""

    status = 409
    exit_code = 6
    title = "Conflict"


class Unavailable(PlatformError):
    """Kafka or the database cannot be reached; what was decided stands and is retried."""

    status = 503
    exit_code = 7
    title = "Unavailable"
