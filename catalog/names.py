"""Names of users, roles and objects."""

from __future__ import annotations

import re

from catalog.errors import InvalidInput

# Names of objects are parts of topic names. With a dot, one name could match another's topics.
_OBJECT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
# Names of roles are for people ("INFO PROVIDER"). They are never part of a topic.
_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,62}(?<! )")
_LONGEST = 63
_USER = re.compile(r"[A-Za-z][A-Za-z0-9_.@-]{0,62}")


MOST_ROLES = 20
"""How many roles a query may name (000 §4.1)."""


def _check(pattern: re.Pattern[str], kind: str, rule: str, name: str) -> str:
    if not pattern.fullmatch(name):
        raise InvalidInput(f"{name[:80]!r} is not a usable {kind} name: {rule}, at most 63")
    return name


def check_object_name(name: str) -> str:
    """Return the name of a schema, stream, query or output. Raises InvalidInput if unusable."""
    return _check(_OBJECT, "object", "a letter, then letters, digits, _ and -", name)


def check_query_name(name: str) -> str:
    """Return the name of a query: of all roles, or ROLE.NAME. Raises InvalidInput if unusable."""
    role, dot, own = name.rpartition(".")
    if dot:
        check_role_name(role)
    check_object_name(own)
    if len(name) > _LONGEST:
        raise InvalidInput(f"a query's name has at most {_LONGEST} characters, with its role")
    return name


def space_in(query: str) -> str | None:
    """The role in whose space the query of that name is, or None.

    >>> space_in("DESK.rising"), space_in("rising")
    ('DESK', None)
    """
    return query.rpartition(".")[0] or None


def output_of(query: str) -> str:
    """How the only output of a query is named if nobody names it.

    >>> output_of("INFO DESK.rising")
    'INFO-DESK-rising'
    """
    return query.replace(".", "-").replace(" ", "-")


def check_role_name(name: str) -> str:
    """Return the name of a role. Raises InvalidInput if it is not usable."""
    return _check(_ROLE, "role", "a letter, then letters, digits, spaces, _ and -", name)


def check_user_name(name: str) -> str:
    """Return the name of a user. Raises InvalidInput if it is not usable."""
    return _check(_USER, "user", "a letter, then letters, digits and . _ @ -", name)
