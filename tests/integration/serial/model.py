"""Who may see which record, after the entries of an audit log that were played.

It knows no categories: a role expression is a set of alternatives (000 §4), a level is compared as
001 §3 says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tests.integration.service.racing.history import NotSerial, pair_in, rights_in
from tests.integration.service.racing.role_rights import RoleRights
from tests.oracle.levels import BOTTOM, T, dominated
from tests.oracle.role_sets import Allowed, satisfies

STREAM, OUTPUT, CONFLICT_CLASS = "vitals", "each", "COI"
COMPANIES = ("A", "B")
# Its role is there from the beginning.
ADMINISTRATOR = "admin"
DOCTOR, NURSE = frozenset({"doctor"}), frozenset({"nurse"})
EXPRESSIONS: Mapping[str, Allowed] = MappingProxyType(
    {
        "doctor": frozenset({DOCTOR}),
        "nurse": frozenset({NURSE}),
        "doctor | nurse": frozenset({DOCTOR, NURSE}),
        "doctor & nurse": frozenset({DOCTOR | NURSE}),
    }
)


@dataclass(frozen=True)
class Mark:
    """What a record says of itself: the roles that may see it, and the company that it is of."""

    expression: str
    company: str


MARKS = tuple(Mark(each, part) for part in (*COMPANIES, T, BOTTOM) for each in EXPRESSIONS)


def mark_of(number: int) -> Mark:
    """The mark of the record with that number."""
    return MARKS[number % len(MARKS)]


@dataclass(frozen=True)
class Entry:
    """An entry of the audit log of something that was changed, with its time in seconds."""

    seq: int
    at: float
    actor: str
    action: str
    object: str
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class Held:
    """An access: whose it is, with which roles, by which session if it ends with it, at which level
    if its session had one.
    """

    user: str
    roles: frozenset[str]
    session: int | None
    part: str | None


@dataclass
class OpenSession:
    """A session: whose it is, the roles that are active, and its level if it has one."""

    user: str
    roles: set[str]
    part: str | None


@dataclass
class Model(RoleRights):
    """Who holds what. An entry that does not follow from those before it is NotSerial.

    `chosen` has the company of who may choose, or None before the choice. `sessions` and `tokens`
    go by the number of a session; who calls with which token is no part of the log.
    """

    levels: dict[str, str] = field(default_factory=dict)
    chosen: dict[str, str | None] = field(default_factory=dict)
    sessions: dict[int, OpenSession] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    accesses: dict[str, Held] = field(default_factory=dict)

    def play(self, entry: Entry, token: str = "") -> None:
        """Take the entry up. `token` is that of the call: for a login the one that it gave."""
        what = entry.object.partition(" ")[2]
        match entry.action:
            case "grant":
                self.grants.update(rights_in(entry.object))
            case "revoke":
                self.grants.difference_update(rights_in(entry.object))
            case "add junior role":
                self.juniors.add(pair_in(what))
            case "remove junior role":
                _require(pair_in(what) in self.juniors, entry)
                self.juniors.remove(pair_in(what))
            case "assign role":
                self.members.add(pair_in(what))
            case "unassign role":
                _require(pair_in(what) in self.members, entry)
                self._unassign(*pair_in(what))
            case "set level" | "take level" | "reset wall" | "choose company":
                self._change_wall(entry, what)
            case "login":
                self._log_in(entry, what, token)
            case "logout" | "end session":
                _require(entry.detail["session"] in self.sessions, entry)
                del self.sessions[entry.detail["session"]]
                self._drop(lambda access: access.session == entry.detail["session"])
            case "deactivate role":
                self._deactivate(entry, what)
            case "access: output":
                self._give(entry, token)
            case "end access":
                _require(what in self.accesses, entry)
                del self.accesses[what]

    def shown(self, principal: str) -> frozenset[Mark]:
        """The marks of the records that the access shows."""
        access = self.accesses.get(principal)
        if access is None:
            return frozenset()
        roles, level = self.closure(access.roles), self._level(access)
        may = self.holds(roles, OUTPUT, "VIEW OBJECT", "SUBSCRIBE")
        if not may or not self.holds(roles, STREAM, "READ TUPLE"):
            return frozenset()
        return frozenset(
            mark
            for mark in MARKS
            if satisfies(roles, EXPRESSIONS[mark.expression])
            and dominated((mark.company,), (level,))
        )

    def _level(self, access: Held) -> str:
        """The greatest level that the user's and the session's dominate."""
        own = self.levels.get(access.user, BOTTOM)
        if access.part is None or access.part in (own, T):
            return own
        return access.part if own == T else BOTTOM

    def _change_wall(self, entry: Entry, what: str) -> None:
        user = entry.actor if entry.action == "choose company" else pair_in(what)[0]
        free = self.chosen.get(user) is None
        match entry.action:
            case "choose company":
                self._choose(entry)
            case "reset wall":
                _require(user in self.chosen and entry.detail["was"] == self.chosen[user], entry)
                self.chosen[user] = None
                self.levels.pop(user, None)
                self._drop(lambda access: access.user == user)
            case "take level":
                _require(free and (user in self.levels or user in self.chosen), entry)
                self.chosen.pop(user, None)
                self.levels.pop(user, None)
            case "set level":
                _require(free, entry)
                self.chosen.pop(user, None)
                self.levels.pop(user, None)
                if entry.detail["by_choice"]:
                    self.chosen[user] = None
                else:
                    self.levels[user] = entry.detail["level"]

    def _choose(self, entry: Entry) -> None:
        user, company = entry.actor, entry.detail["chosen"][CONFLICT_CLASS]
        _require(user in self.chosen and self.chosen[user] in (None, company), entry)
        self.chosen[user] = self.levels[user] = company

    def _log_in(self, entry: Entry, user: str, token: str) -> None:
        active = set(entry.detail["roles"])
        held = all((user, role) in self.members for role in active)
        _require(held or user == ADMINISTRATOR, entry)
        parts = dict(each.split("=") for each in entry.detail.get("level", ()))
        made = OpenSession(user, active, parts.get(CONFLICT_CLASS))
        self.sessions[entry.detail["session"]] = made
        self.tokens[token] = entry.detail["session"]

    def _deactivate(self, entry: Entry, role: str) -> None:
        number = entry.detail["session"]
        _require(role in self.sessions[number].roles, entry)
        self.sessions[number].roles.remove(role)
        self._drop(lambda access: access.session == number and role in access.roles)

    def _unassign(self, user: str, role: str) -> None:
        self.members.remove((user, role))
        for session in self.sessions.values():
            if session.user == user:
                session.roles.discard(role)
        self._drop(lambda access: access.user == user and role in access.roles)

    def _give(self, entry: Entry, token: str) -> None:
        if "chosen" in entry.detail:
            self._choose(entry)
        number = self.tokens[token]
        _require(number in self.sessions, entry)
        session = self.sessions[number]
        roles = frozenset(session.roles)
        held = self.closure(roles)
        _require(self.holds(held, OUTPUT, "VIEW OBJECT", "SUBSCRIBE"), entry)
        _require(self.chosen.get(entry.actor, "") is not None, entry)
        kept = None if entry.detail["keep"] else number
        self.accesses[entry.detail["principal"]] = Held(entry.actor, roles, kept, session.part)

    def _drop(self, ended: Callable[[Held], bool]) -> None:
        self.accesses = {name: row for name, row in self.accesses.items() if not ended(row)}


def _require(holds: bool, entry: Entry) -> None:
    if not holds:
        raise NotSerial(f"entry {entry.seq}: {entry.actor}: {entry.action} {entry.object}")
