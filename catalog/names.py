"""Names of users, roles and objects."""

from __future__ import annotations

import re

from catalog.errors import InvalidInput

# Object names become parts of topic names; a dot would let one name reach into another's topics.
_OBJECT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
# Roles are people's words ("INFO PROVIDER"), never part of a topic.
_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,62}(?<! )")
_USER = re.compile(r"[A-Za-z][A-Za-z0-9_.@-]{0,62}")


def _check(pattern: re.Pattern[str], kind: str, rule: str, name: str) -> str:
    if not pattern.fullmatch(name):
        raise InvalidInput(f"{name[:80]!r} is not a usable {kind} name: {rule}, at most 63")
    return name


def check_object_name(name: str) -> str:
    """Return the name of a schema, stream, query or output if it is usable; else InvalidInput."""
    return _check(_OBJECT, "object", "a letter, then letters, digits, _ and -", name)


def check_role_name(name: str) -> str:
    """Return the role's name if it is usable; else InvalidInput."""
    return _check(_ROLE, "role", "a letter, then letters, digits, spaces, _ and -", name)


def check_user_name(name: str) -> str:
    """Return the user's name if it is usable; else InvalidInput."""
    return _check(_USER, "user", "a letter, then letters, digits and . _ @ -", name)
