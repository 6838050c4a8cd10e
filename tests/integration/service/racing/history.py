"""A plain model of rights and accesses, into which an audit log is played entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from catalog.models import AuditEntry
from tests.integration.service.racing.role_rights import RoleRights


class NotSerial(AssertionError):
    """An entry does not follow from those before it."""


@dataclass(frozen=True)
class HeldAccess:
    """An access to the output: whose it is, the roles that it was made with, its session if any."""

    user: str
    roles: frozenset[str]
    session: int | None


@dataclass
class History(RoleRights):
    """Who holds what, after the entries that were played; an entry that cannot be is NotSerial."""

    sessions: dict[int, tuple[str, set[str]]] = field(default_factory=dict)
    accesses: dict[str, HeldAccess] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)

    def play(self, entry: AuditEntry) -> None:
        """Take the entry up, if it is one that changes what is modelled."""
        what = entry.object.partition(" ")[2]
        match entry.action, entry.outcome:
            case "grant", "changed":
                self.grants.update(rights_in(entry.object))
            case "revoke", "changed":
                self.grants.difference_update(rights_in(entry.object))
            case "add junior role", "changed":
                self.juniors.add(pair_in(what))
            case "remove junior role", "changed":
                _require(pair_in(what) in self.juniors, entry)
                self.juniors.remove(pair_in(what))
            case "assign role", "changed":
                self.members.add(pair_in(what))
            case "unassign role", "changed":
                _require(pair_in(what) in self.members, entry)
                self._unassign(*pair_in(what))
            case "login", "changed":
                self._log_in(entry, what)
            case "login", "denied":
                self._fail(entry, what)
            case (("logout" | "end session"), "changed"):
                _require(entry.detail["session"] in self.sessions, entry)
                self._end_session(entry.detail["session"])
            case "access: output", "changed":
                self._give(entry, what)

    def bits(self, principal: str, output: str, streams: dict[str, dict[str, int]]) -> int | None:
        """The clearance of the topic that the principal may read; None where it may read none.

        `streams` has the bits of those that the output reads, by name and kind.
        """
        access = self.accesses[principal]
        roles = self.closure(access.roles)
        if not self.holds(roles, output, "VIEW OBJECT", "SUBSCRIBE"):
            return None
        seen = [
            bit
            for name, own in streams.items()
            for kind, bit in own.items()
            if self.holds(roles, name, "READ TUPLE")
            or (kind == "aggregated" and self._reads_aggregate(access.user, roles, name))
        ]
        return sum(1 << bit for bit in seen) or None

    def _reads_aggregate(self, user: str, roles: frozenset[str], stream: str) -> bool:
        every = self.closure(frozenset(role for name, role in self.members if name == user))
        may_send = self.holds(every, stream, "SEND")
        return self.holds(roles, stream, "READ AGGREGATE") and not may_send

    def _unassign(self, user: str, role: str) -> None:
        self.members.remove((user, role))
        for owner, active in self.sessions.values():
            if owner == user:
                active.discard(role)
        self._drop(lambda access: access.user == user and role in access.roles)

    def _log_in(self, entry: AuditEntry, user: str) -> None:
        active = set(entry.detail["roles"])
        _require(all((user, role) in self.members for role in active), entry)
        self.sessions[entry.detail["session"]] = (user, active)
        self.failures[user] = 0

    def _fail(self, entry: AuditEntry, user: str) -> None:
        if entry.reason == "the password is wrong":
            self.failures[user] = self.failures.get(user, 0) + 1
            _require(self.failures[user] <= 5, entry)
        else:
            _require(self.failures.get(user, 0) == 5, entry)

    def _end_session(self, session: int) -> None:
        del self.sessions[session]
        self._drop(lambda access: access.session == session)

    def _give(self, entry: AuditEntry, output: str) -> None:
        """Each user here has one session at a time."""
        own = [number for number, (user, _) in self.sessions.items() if user == entry.actor]
        _require(len(own) == 1, entry)
        roles = frozenset(self.sessions[own[0]][1])
        held = self.closure(roles)
        _require(self.holds(held, output, "VIEW OBJECT", "SUBSCRIBE"), entry)
        session = None if entry.detail["keep"] else own[0]
        self.accesses[entry.detail["principal"]] = HeldAccess(entry.actor, roles, session)

    def _drop(self, ended: Callable[[HeldAccess], bool]) -> None:
        self.accesses = {name: row for name, row in self.accesses.items() if not ended(row)}


def _require(holds: bool, entry: AuditEntry) -> None:
    if not holds:
        raise NotSerial(f"entry {entry.seq}: {entry.actor}: {entry.action} {entry.object}")


def rights_in(target: str) -> list[tuple[str, str, str]]:
    """`output o1: VIEW OBJECT, SUBSCRIBE of R` as (role, permission, name)."""
    what, _, rest = target.partition(": ")
    permissions, _, role = rest.rpartition(" of ")
    name = what.partition(" ")[2]
    return [(role, permission, name) for permission in permissions.split(", ")]


def pair_in(text: str) -> tuple[str, str]:
    """`left: right` as a pair."""
    left, _, right = text.partition(": ")
    return left, right
