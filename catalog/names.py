"""Names of users, roles and objects."""

from __future__ import annotations

import re

from catalog.errors import InvalidInput

# Names of objects are parts of topic names. With a dot, one name could match another's topics.
_OBJECT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
# Names of roles are for people ("INFO PROVIDER"). They are never part of a topic.
_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,62}(?<! )")
_USER = re.compile(r"[A-Za-z][A-Za-z0-9_.@-]{0,62}")


def _check(pattern: re.Pattern[str], kind: str, rule: str, name: str) -> str:
    if not pattern.fullmatch(name):
        raise InvalidInput(f"{name[:80]!r} is not a usable {kind} name: {rule}, at most 63")
    return name


def check_object_name(name: str) -> str:
    """Return the name of a schema, stream, query or output. Raises InvalidInput if unusable."""
    return _check(_OBJECT, "object", "a letter, then letters, digits, _ and -", name)


def check_role_name(name: str) -> str:
    """Return the name of a role. Raises InvalidInput if it is not usable."""
    return _check(_ROLE, "role", "a letter, then letters, digits, spaces, _ and -", name)


def check_user_name(name: str) -> str:
    """Return the name of a user. Raises InvalidInput if it is not usable."""
    return _check(_USER, "user", "a letter, then letters, digits and . _ @ -", name)
