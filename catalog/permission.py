"""Kinds of objects and the permissions that exist on them (OxRBAC, 004 §2 and §3.1)."""

from __future__ import annotations

from enum import StrEnum

from catalog.errors import InvalidInput


class ObjectKind(StrEnum):
    """What an object is. Every object but SYSTEM has an owner."""

    SYSTEM = "system"
    SCHEMA = "schema"
    STREAM = "stream"
    QUERY = "query"
    OUTPUT = "output"
    CONFLICT_CLASS = "conflict-class"


class Permission(StrEnum):
    """What a role can be allowed on an object. ADD is a permission for each kind of object."""

    VIEW_CATALOG = "VIEW CATALOG"
    VIEW_OBJECT = "VIEW OBJECT"
    ADD_SCHEMA = "ADD SCHEMA"
    ADD_STREAM = "ADD STREAM"
    ADD_QUERY = "ADD QUERY"
    ADD_CONFLICT_CLASS = "ADD CONFLICT CLASS"
    SET_QUERY_STATUS = "SET QUERY STATUS"
    SUBSCRIBE = "SUBSCRIBE"
    READ_TUPLE = "READ TUPLE"
    READ_AGGREGATE = "READ AGGREGATE"
    SEND = "SEND"
    CHANGE_PERM = "CHANGE PERM"
    CHANGE_SYSTEM = "CHANGE SYSTEM"


APPLIES: dict[ObjectKind, frozenset[Permission]] = {
    ObjectKind.SYSTEM: frozenset(
        {
            Permission.VIEW_CATALOG,
            Permission.ADD_SCHEMA,
            Permission.ADD_STREAM,
            Permission.ADD_QUERY,
            Permission.ADD_CONFLICT_CLASS,
            Permission.CHANGE_PERM,
            Permission.CHANGE_SYSTEM,
        }
    ),
    ObjectKind.SCHEMA: frozenset({Permission.VIEW_OBJECT, Permission.CHANGE_PERM}),
    ObjectKind.CONFLICT_CLASS: frozenset({Permission.VIEW_OBJECT, Permission.CHANGE_PERM}),
    ObjectKind.STREAM: frozenset(
        {
            Permission.VIEW_OBJECT,
            Permission.READ_TUPLE,
            Permission.READ_AGGREGATE,
            Permission.SEND,
            Permission.CHANGE_PERM,
        }
    ),
    ObjectKind.QUERY: frozenset(
        {Permission.VIEW_OBJECT, Permission.SET_QUERY_STATUS, Permission.CHANGE_PERM}
    ),
    ObjectKind.OUTPUT: frozenset(
        {Permission.VIEW_OBJECT, Permission.SUBSCRIBE, Permission.CHANGE_PERM}
    ),
}

# The owner of an object holds these permissions with any active roles. None gives access to data.
OWNER_HOLDS = frozenset(
    {
        Permission.VIEW_OBJECT,
        Permission.SUBSCRIBE,
        Permission.SET_QUERY_STATUS,
        Permission.CHANGE_PERM,
    }
)


def parse_permission(text: str) -> Permission:
    """The permission with this name ("read tuple", "READ_TUPLE"). Raises InvalidInput."""
    wanted = text.strip().upper().replace("_", " ").replace("-", " ")
    try:
        return Permission(wanted)
    except ValueError:
        known = ", ".join(Permission)
        raise InvalidInput(f"unknown permission {text[:80]!r}; use one of {known}") from None


def check_applies(permission: Permission, kind: ObjectKind) -> None:
    """Raise InvalidInput where the permission does not exist on objects of that kind."""
    if permission not in APPLIES[kind]:
        known = ", ".join(sorted(APPLIES[kind]))
        raise InvalidInput(f"{permission} does not exist on a {kind}; there are: {known}")
