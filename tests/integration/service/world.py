"""One object of every kind, under names of its own, and somebody who may do everything to them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from catalog.audit_head import GENESIS
from catalog.models import AuditEntry
from catalog.permission import APPLIES, ObjectKind
from secadmin.control.platform import Platform
from tests.integration.service.conftest import ATTRIBUTES, Api, NewUser, add_stream
from tests.unit.secadmin.xacml import policy_texts as texts

_COLLECTIONS = {
    "schemas": "schema",
    "streams": "stream",
    "queries": "query",
    "outputs": "output",
    "users": "user",
    "roles": "role",
    "accesses": "principal",
    "conflict-classes": "conflict-class",
}
PASSWORD_OF_THEIRS = "a password of theirs"
DECLARED = {"window_ms": 60_000, "keys": ["symbol"], "functions": ["avg"], "minimum": 5}


@dataclass(frozen=True)
class World:
    """`names` by what they are; those that begin with "lone" nothing else depends on."""

    names: dict[str, str]
    owner: Api
    execution: int

    def values(self, kind: str) -> dict[str, Any]:
        """A value for every part of every request; `kind` is that of the object it is about."""
        permission = sorted(APPLIES[ObjectKind(kind)])[0]
        fresh = f"n{secrets.token_hex(6)}"
        return {
            "name": fresh,
            "object": self.names[kind],
            "kind": kind,
            "permission": permission,
            "permissions": [permission],
            "user": self.names["user"],
            "role": self.names["other role"],
            "roles": [self.names["role"]],
            "password": PASSWORD_OF_THEIRS,
            "old": PASSWORD_OF_THEIRS,
            "new": "other password of theirs",
            "keep": True,
            "weak": True,
            "schema": self.names["schema"],
            "attributes": ATTRIBUTES,
            "event_time": "ts",
            "time": "data",
            "lateness_ms": 1_000,
            "max_ahead_ms": 1_000,
            "max_bytes": 1_000,
            "partitions": 1,
            "senders": "own",
            "time_format": "iso",
            "unknown_fields": "quarantine",
            "label_rule": "HEADER roles",
            "company_rules": {self.names["used conflict-class"]: "SENDER"},
            "companies": ["Company1"],
            "company": fresh,
            "levels": {self.names["conflict-class"]: "_"},
            "choice": "Company1",
            "choices": {self.names["conflict-class"]: "Company1"},
            "part": None,
            "level": "[_]",
            "label": "1",
            "expression": self.names["role"],
            "public": False,
            "declared_aggregate": DECLARED,
            "language": "sql",
            "accept_empty": True,
            "semantics": "view",
            "as_roles": [self.names.get("own role", self.names["role"])],
            "floored": True,
            "rate": 1_000,
            "policy": fresh,
            "rows": "price > 5",
            "rights": [{"name": "price", "functions": ["avg"]}],
            "window": {"size_ms": 1_000, "slide_ms": 1_000},
            "minimum": 2,
            "replace": True,
            "operators": ["aggregate", "window"],
            "window_ms": 60_000,
            "slide_ms": 1_000,
            "windows": 10,
            "window_rows": 10,
            "xacml": _xacml(fresh, self.names["other role"], self.names["stream"]),
            "record": {"ts": "2026-01-31T12:00:00Z"},
            "old_version": {"stored": self.names["policy"]},
            "new_version": {"xacml": _xacml(fresh, self.names["other role"], self.names["stream"])},
            "text": f"SELECT * FROM {self.names['stream']}",
            "output": f"o{fresh}",
            "after": 0,
            "head": f"0:{GENESIS}",
            "limit": 10,
            "since": (datetime.now(UTC) - timedelta(hours=1)).isoformat(),
        }

    def in_path(self, method: str, path: str, parameter: str) -> str:
        """The value of a path's parameter: what is deleted is what nothing depends on."""
        if parameter == "execution":
            return str(self.execution)
        collection = path.split("/")[1]
        what = parameter if parameter != "name" else _COLLECTIONS[collection]
        if path.endswith("/sender-policy"):
            return self.names["ruled stream"]
        if "/floors" in path:
            return self.names["floored stream" if parameter == "name" else parameter]
        if method == "DELETE" and f"lone {what}" in self.names:
            what = f"lone {what}"
        return self.names[what]

    def objects(self) -> list[tuple[ObjectKind, str]]:
        """All objects that permissions can be granted on."""
        kinds = [name for name in self.names if name.split()[-1] in set(ObjectKind)]
        return [(ObjectKind(name.split()[-1]), self.names[name]) for name in kinds]


def _xacml(policy: str, role: str, stream: str) -> str:
    """A policy that shows the role some rows of the stream."""
    rows = texts.obligation("filtering", ("filter-condition", "price &gt; 5", "string"))
    inside = f"{texts.rule()}<ObligationExpressions>{rows}</ObligationExpressions>"
    return texts.policy(inside, aim=texts.role_target(role, stream), name=policy)


def make_world(owner: Api) -> World:
    """A new world, all of it the owner's."""
    tail = secrets.token_hex(4)
    names = {
        what: f"{what.replace(' ', '')}{tail}"
        for what in (
            *("schema", "lone schema", "stream", "lone stream", "ruled stream", "floored stream"),
            *("query", "output"),
            *("user", "role", "junior", "other role", "policy"),
            *("conflict-class", "lone conflict-class", "used conflict-class"),
        )
    }
    names |= {"system": "system", "principal": "output-0123456789abcdef01234567"}
    for what in ("conflict-class", "lone conflict-class", "used conflict-class"):
        owner.post("/conflict-classes", name=names[what], companies=["Company1"])
    levelled = {names["used conflict-class"]: "'_'"}
    add_stream(owner, names["stream"], names["schema"], company_rules=levelled)
    owner.post("/schemas", name=names["lone schema"], attributes=ATTRIBUTES)
    owner.post("/streams", name=names["lone stream"], schema=names["schema"])
    ruled = {"schema": names["schema"], "label_rule": "SENDER"}
    owner.post("/streams", name=names["ruled stream"], **ruled)
    owner.post("/streams", name=names["floored stream"], schema=names["schema"], floored=True)
    text = f"SELECT * FROM {names['stream']}"
    owner.post("/queries", name=names["query"], language="sql", text=text, output=names["output"])
    for role in ("role", "junior", "other role"):
        owner.post("/roles", name=names[role])
    owner.post(f"/roles/{names['role']}/juniors", role=names["junior"])
    owner.post("/users", name=names["user"], password=PASSWORD_OF_THEIRS)
    owner.post(f"/users/{names['user']}/roles", role=names["role"])
    sending = {"role": names["role"], "permissions": ["SEND"], "kind": "stream"}
    for stream in [names[what] for what in names if what.endswith("stream")]:
        owner.post("/grants", **sending, name=stream)
    owner.post(f"/streams/{names['lone stream']}/independent-senders", user=names["user"])
    for stream in (names["stream"], names["lone stream"]):
        policy = {"policy": names["policy"], "role": names["other role"], "rows": "price > 5"}
        owner.post(f"/streams/{stream}/policies", **policy)
    for what in ("conflict-class", "lone conflict-class"):
        owner.put(f"/conflict-classes/{names[what]}/levels/{names['user']}", part=None)
    execution = owner.get(f"/outputs/{names['output']}")["execution"]
    return World(names, owner, execution)


def all_powerful(world: World, new_user: NewUser) -> tuple[Api, str]:
    """A user who owns nothing and holds every permission on every object, by one role."""
    role = f"ALL{secrets.token_hex(4)}"
    user = new_user(role)
    grant_all(world, role)
    world.names["own role"] = role
    chosen = world.names["conflict-class"]
    world.owner.put(f"/conflict-classes/{chosen}/levels/{user.user}", part=None)
    return user, role


def grant_all(world: World, role: str) -> None:
    """Give the role every permission on every object of the world."""
    for kind, name in world.objects():
        world.owner.post(
            "/grants", role=role, permissions=sorted(APPLIES[kind]), kind=kind, name=name
        )


def changes(platform: Platform, user: str) -> int:
    """How many changes of the catalog the audit log has of the user."""
    with platform.catalog.read() as session:
        made = select(AuditEntry).where(AuditEntry.actor == user, AuditEntry.outcome == "changed")
        return len(list(session.scalars(made)))
