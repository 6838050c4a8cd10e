"""Who changes roles, levels, walls and sessions, each in a thread of its own, all at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from secadmin.kafka.principals import Credentials
from tests.integration.serial.judging import Call
from tests.integration.serial.model import COMPANIES, CONFLICT_CLASS, OUTPUT, STREAM
from tests.oracle.levels import T

_PATIENCE_S = 120.0
_MOST_ACCESSES = 3
READER, VIEWER = "reader", "viewer"
_LEVELS = f"/conflict-classes/{CONFLICT_CLASS}/levels"


@dataclass
class Caller:
    """Somebody with a session, who notes when each call began and returned."""

    client: httpx.Client
    name: str
    password: str
    calls: list[Call]
    token: str = ""

    def do(self, action: str, method: str, path: str, *accepted: int, **body: Any) -> Any:
        """Call until the platform is not busy. It must succeed, or answer one of `accepted`.

        Gives what was answered, None for nothing and for a refusal.
        """
        began, used = time.monotonic(), self.token
        answer = self._answer(method, path, body or None)
        returned = time.monotonic()
        assert answer.is_success or answer.status_code in accepted, f"{path}: {answer.text}"
        given = answer.json() if answer.is_success and answer.content else None
        found = given if isinstance(given, dict) else {}
        token, principal = found.get("token", used), found.get("principal", "")
        self.calls.append(Call(self.name, action, began, returned, token, principal))
        return given

    def ask(self, path: str) -> Any:
        """What a call answers that changes nothing."""
        answer = self._answer("GET", path, None)
        assert answer.is_success, answer.text
        return answer.json()

    def log_in(self, *accepted: int, **wanted: Any) -> bool:
        """Open a session, maybe with some roles and at a level. Says whether it was let."""
        own = {"user": self.name, "password": self.password}
        given = self.do("login", "POST", "/login", *accepted, **own, **wanted)
        if given is not None:
            self.token = given["token"]
        return given is not None

    def _answer(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            late = time.monotonic() > deadline
            try:
                answer = self.client.request(method, path, headers=headers, json=body)
            except httpx.TransportError:
                # It may have been carried out, so the times of the whole call are what counts.
                if late:
                    raise
                continue
            if answer.status_code != 503 or late:
                return answer


Begin = Callable[[str, Credentials], None]
"""Lets clients read by a new access of that user."""


@dataclass
class User:
    """Somebody who reads: in one session that stays, and in one that comes and goes."""

    home: Caller
    other: Caller
    begin: Begin
    live: list[str] = field(default_factory=list)

    @property
    def role(self) -> str:
        """The role that is only this user's."""
        return f"own-{self.home.name}"

    def at_home(self, chance: Random) -> None:
        """Subscribe for good, choose a company, or end an access."""
        match chance.randrange(4):
            case 0:
                self._choose(self.home, chance)
            case 1 if self.live:
                principal = self.live.pop(0)
                self.home.do("end access", "DELETE", f"/accesses/{principal}", 404)
            case _:
                self._subscribe(self.home, chance, keep=True)

    def elsewhere(self, chance: Random) -> None:
        """Log in with other roles or at another level, read, deactivate a role, or log out."""
        if not self.other.token:
            part = chance.choice([None, *COMPANIES, T, "_"])
            wanted: dict[str, Any] = {} if part is None else {"levels": {CONFLICT_CLASS: part}}
            if chance.random() < 0.5:
                wanted["roles"] = [self.role]
            if not self.other.log_in(403, **wanted):
                return
        match chance.randrange(5):
            case 0:
                role = chance.choice([self.role, "doctor", "nurse"])
                self.other.do("deactivate role", "DELETE", f"/whoami/roles/{role}", 404)
            case 1:
                self._choose(self.other, chance)
            case 2:
                self.other.do("logout", "POST", "/logout")
                self.other.token = ""
            case _:
                self._subscribe(self.other, chance, keep=False)

    def _choose(self, caller: Caller, chance: Random) -> None:
        path = f"/conflict-classes/{CONFLICT_CLASS}/choice"
        # Without its role a session does not see the class.
        caller.do("choose company", "POST", path, 403, 404, choice=chance.choice(COMPANIES))

    def _subscribe(self, caller: Caller, chance: Random, *, keep: bool) -> None:
        own = [row["principal"] for row in self.home.ask("/accesses")]
        if len(own) >= _MOST_ACCESSES:
            self.home.do("end access", "DELETE", f"/accesses/{own[0]}", 404)
        choices = {CONFLICT_CLASS: chance.choice(COMPANIES)} if chance.random() < 0.5 else {}
        path = f"/outputs/{OUTPUT}/subscriptions"
        refused = (403, 404, 409, 422)
        given = caller.do("access: output", "POST", path, *refused, keep=keep, choices=choices)
        if given is not None:
            self.live += [given["principal"]] if keep else []
            self.begin(caller.name, Credentials(given["principal"], given["secret"]))


@dataclass
class Bosses:
    """Administrators: of roles, of walls and of permissions."""

    of_roles: Caller
    of_walls: Caller
    of_permissions: Caller
    users: Sequence[User]
    # The changes of roles that come next, so that each kind is among a few of them.
    coming: list[int] = field(default_factory=list)
    # The users, by their places, and the roles that were assigned to them.
    assigned: list[tuple[int, str]] = field(default_factory=list)

    def change_role(self, chance: Random) -> None:
        """Assign a role or take it, or put it below a user's own role or take it from there."""
        place, role = chance.randrange(len(self.users)), chance.choice(["doctor", "nurse"])
        if not self.coming:
            self.coming = chance.sample(range(4), 4)
        change = self.coming.pop()
        if change == 3 and self.assigned:
            place, role = self.assigned.pop(chance.randrange(len(self.assigned)))
        user = self.users[place]
        juniors, held = f"/roles/{user.role}/juniors", f"/users/{user.home.name}/roles"
        match change:
            case 0:
                self.of_roles.do("add junior role", "POST", juniors, 409, role=role)
            case 1:
                path = f"{juniors}/{role}"
                self.of_roles.do("remove junior role", "DELETE", path, 404, 409, 422)
            case 2:
                self.of_roles.do("assign role", "POST", held, 409, role=role)
                self.assigned.append((place, role))
            case _:
                self.of_roles.do("unassign role", "DELETE", f"{held}/{role}", 404)

    def change_wall(self, chance: Random) -> None:
        """Set a level, leave it to the user, take it, or reset the wall of one that chooses."""
        names = [user.home.name for user in self.users]
        path = f"{_LEVELS}/{chance.choice(names)}"
        match chance.randrange(5):
            case 0:
                self.of_walls.do("take level", "DELETE", path, 404, 409)
            case 1:
                choosing = [each for each in names if self._chooses(each)] or names
                reset = f"{_LEVELS}/{chance.choice(choosing)}/reset"
                self.of_walls.do("reset wall", "POST", reset, 409)
            case _:
                part = chance.choice([T, *COMPANIES, "_", None, None])
                self.of_walls.do("set level", "PUT", path, 409, part=part)

    def _chooses(self, name: str) -> bool:
        rows = self.of_walls.ask(f"/users/{name}/wall")["levels"]
        return any(row["by_choice"] for row in rows)

    def change_permission(self, chance: Random) -> None:
        """Take a right from all users, and soon give it back."""
        reads = ("READ TUPLE", "stream", STREAM, READER)
        views = (chance.choice(["SUBSCRIBE", "VIEW OBJECT"]), "output", OUTPUT, VIEWER)
        permission, kind, name, role = chance.choice([reads, views])
        right = {"role": role, "permissions": [permission], "kind": kind, "name": name}
        self.of_permissions.do("revoke", "POST", "/revocations", **right)
        time.sleep(chance.uniform(0, 1))
        self.of_permissions.do("grant", "POST", "/grants", **right)


def steps(users: Sequence[User], bosses: Bosses) -> list[Callable[[Random], None]]:
    """What each thread does once in a while."""
    own = [step for user in users for step in (user.at_home, user.elsewhere)]
    return [bosses.change_role, bosses.change_wall, bosses.change_permission, *own]
