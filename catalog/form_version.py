"""The version in a form that is kept in a file, as in the settings and the mark of a checkpoint.

`catalog.stored_form` has the version of plans and of other values.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalog.errors import InvalidInput


def require_readable(what: str, data: Mapping[str, object], newest: int) -> None:
    """Raise InvalidInput if this program, which reads forms up to `newest`, cannot read the data.

    The first form of each kind has no version.
    """
    version = data.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InvalidInput(f"{what}: version: it must be a number from 1")
    if version > newest:
        raise InvalidInput(
            f"{what} has form {version}, and this program reads forms up to {newest}: "
            "use the program that wrote it, or a newer one"
        )
