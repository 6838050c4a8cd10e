"""A pool of subscribers whose rights come from one role, and all the ways of taking them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from tests.integration.service.conftest import (
    PASSWORD,
    Api,
    add_stream,
    let_take_the_aggregate,
    log_in,
)

DECLARED = {"window_ms": 60_000, "keys": [], "functions": ["avg"], "minimum": 5}
SENDING = "a role that sends"
LEVEL, NO_LEVEL, WALL = "a level", "a level that is taken", "a wall"
POLICY = "a policy"
COMPANIES = ("Company1", "Company2")
_numbers = count()


@dataclass(frozen=True)
class Objects:
    """What is shared: `one` is an output of the first stream, `both` of the two together.

    `mean` is the declared aggregate of the third. The tuples of the fourth are of companies of two
    conflict classes, and `walled` is its output. Everybody has a level in the first class, and has
    chosen a company in the second one.
    """

    first: str
    second: str
    third: str
    fourth: str
    one: str
    both: str
    mean: str
    walled: str
    levels: str
    choices: str

    @property
    def outputs(self) -> tuple[str, ...]:
        """All that can be subscribed to."""
        return self.one, self.both, self.mean, self.walled

    @property
    def rights(self) -> tuple[tuple[str, str, str], ...]:
        """(permission, kind of object, name): what it takes to read the outputs."""
        streams = (
            ("READ TUPLE", "stream", self.first),
            ("READ TUPLE", "stream", self.second),
            ("READ AGGREGATE", "stream", self.third),
            ("READ TUPLE", "stream", self.fourth),
        )
        outputs = (
            (permission, "output", name)
            for name in self.outputs
            for permission in ("VIEW OBJECT", "SUBSCRIBE")
        )
        return (*streams, *outputs)

    def opened_by(self, permission: str, name: str) -> frozenset[str]:
        """The outputs of which something is lost with that permission."""
        of_streams = {
            self.first: {self.one, self.both},
            self.second: {self.both},
            self.third: {self.mean},
            self.fourth: {self.walled},
        }
        return frozenset(of_streams.get(name, {name}))


def new_objects(admin: Api) -> Objects:
    """New streams, an output of the first, one of two, the declared aggregate of the third, and one
    of the fourth.
    """
    new = secrets.token_hex(4)
    streams, outputs = ("ina", "inb", "inc", "ind"), ("one", "both", "mean", "walled")
    made = Objects(*(f"{kind}{new}" for kind in (*streams, *outputs, "COIa", "COIb")))
    for stream in (made.first, made.second):
        add_stream(admin, stream, f"s{stream}")
    add_stream(admin, made.third, f"s{made.third}", declared_aggregate=DECLARED)
    let_take_the_aggregate(admin, made.third)
    for name in (made.levels, made.choices):
        admin.post("/conflict-classes", name=name, companies=COMPANIES)
    rules = {made.levels: "symbol", made.choices: "symbol"}
    add_stream(admin, made.fourth, f"s{made.fourth}", company_rules=rules)
    one = f"SELECT ts, symbol FROM {made.first}"
    both = f"{one} UNION ALL SELECT ts, symbol FROM {made.second}"
    mean = f"SELECT avg(price) AS mean FROM {made.third} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    walled = f"SELECT ts, symbol FROM {made.fourth}"
    texts = zip(made.outputs, (one, both, mean, walled), strict=True)
    for output, text in texts:
        admin.post("/queries", name=f"q{output}", language="sql", text=text, output=output)
    return made


@dataclass
class Member:
    """A user with a role of its own, which is senior to the team's, and one subscription."""

    admin: Api
    objects: Objects
    team: str
    name: str = ""
    role: str = ""
    password: str = PASSWORD
    session: Api = field(default_factory=lambda: Api(None))  # type: ignore[arg-type]
    output: str = ""
    principal: str = ""

    def join(self) -> None:
        """Become a user with the team's rights, with a level in one class and a choice in the
        other, and log in.
        """
        self.name = f"u{secrets.token_hex(4)}"
        one_time = self.admin.post("/users", name=self.name)["password"]
        log_in(self.admin, self.name, one_time).post("/password", old=one_time, new=self.password)
        self.take_new_role()
        self.set_level("T")
        self.admin.put(self.level_in(self.objects.choices), part=None)
        self.choose()

    def level_in(self, conflict_class: str) -> str:
        """Where the level of this user in a conflict class is set."""
        return f"/conflict-classes/{conflict_class}/levels/{self.name}"

    def set_level(self, part: str) -> None:
        """Get that level."""
        self.admin.put(self.level_in(self.objects.levels), part=part)

    def choose(self) -> None:
        """Choose a company, which closes the others."""
        path = f"/conflict-classes/{self.objects.choices}/choice"
        self.session.post(path, choice=COMPANIES[0])

    def take_new_role(self) -> None:
        """Get a role of one's own, senior to the team's, and a session with it."""
        self.role = f"M{secrets.token_hex(4)}"
        self.admin.post("/roles", name=self.role)
        self.admin.post(f"/roles/{self.role}/juniors", role=self.team)
        self.be_assigned()

    def be_assigned(self) -> None:
        """Get the role, and a session with it."""
        self.admin.post(f"/users/{self.name}/roles", role=self.role)
        self.log_in()

    def log_in(self) -> None:
        """Open a new session."""
        self.session = log_in(self.admin, self.name, self.password)

    def be_unlocked(self) -> None:
        """Be let in again."""
        self.admin.post(f"/users/{self.name}/unlock")
        self.log_in()

    def change_password(self) -> None:
        """Change the password in another session, which ends this one."""
        old, self.password = self.password, f"{PASSWORD} {next(_numbers)}"
        log_in(self.admin, self.name, old).post("/password", old=old, new=self.password)


@dataclass(frozen=True)
class Revocation:
    """One call that takes, whom it hits, and what brings the right back.

    Attributes:
        name: For messages.
        members: Those that lose their topic.
        take: The call.
        give_back: What undoes it; their subscriptions are gone where it `ends` them.
        ends: Whether the subscriptions end for good.
        moves: Whether some of them get another topic instead.
    """

    name: str
    members: tuple[Member, ...]
    take: Callable[[], object]
    give_back: Callable[[], object]
    ends: bool = False
    moves: bool = False

    def goes_with(self, other: Revocation) -> bool:
        """Whether both can be called at once, with one answer to who loses what."""
        hit_twice = {id(one) for one in self.members} & {id(one) for one in other.members}
        if not hit_twice:
            return True
        personal = len(self.members) == len(other.members) == 1
        return not (personal or self.moves or other.moves or self.name == other.name)


@dataclass
class Team:
    """Members whose rights come from one role."""

    admin: Api
    objects: Objects
    role: str
    senders: str
    members: list[Member]

    @classmethod
    def founded(cls, admin: Api, objects: Objects, size: int) -> Team:
        """A team with its role and its members."""
        role, senders = f"T{secrets.token_hex(4)}", f"S{secrets.token_hex(4)}"
        for name in (role, senders):
            admin.post("/roles", name=name)
        own = {"role": senders, "permissions": ["SEND"], "kind": "stream", "name": objects.third}
        admin.post("/grants", **own)
        team = cls(admin, objects, role, senders, [])
        team.members += [Member(admin, objects, role) for _ in range(size)]
        for right in objects.rights:
            team.change("/grants", *right)
        for name in (objects.levels, objects.choices):
            team.change("/grants", "VIEW OBJECT", "conflict-class", name)
        for member in team.members:
            member.join()
        return team

    def change(self, path: str, permission: str, kind: str, name: str) -> None:
        """Grant to the team's role, or revoke from it."""
        body = {"role": self.role, "permissions": [permission], "kind": kind, "name": name}
        self.admin.post(path, **body)

    def draw(self, random: Random) -> list[Revocation]:
        """One revocation, now and then two for the same time."""
        first = random.choice(list(self._all(random)))
        if random.random() > 0.25:
            return [first]
        fitting = [other for other in self._all(random) if first.goes_with(other)]
        return [first, random.choice(fitting)] if fitting else [first]

    def _all(self, random: Random) -> Iterator[Revocation]:
        for right in self.objects.rights:
            if hit := self._hit_by(*right):
                yield self._of_permission(right, hit)
        if hit := self._hit_by("READ TUPLE", "stream", self.objects.first):
            yield self._by_policy(hit)
        for member in self.members:
            if member.output == self.objects.mean:
                yield self._by_sending(member)
            if member.output == self.objects.walled:
                yield from self._by_levels(member)
        yield from personal(random.choice(self.members))

    def _hit_by(self, permission: str, kind: str, name: str) -> tuple[Member, ...]:
        opened = self.objects.opened_by(permission, name)
        return tuple(member for member in self.members if member.output in opened)

    def _by_policy(self, hit: tuple[Member, ...]) -> Revocation:
        """It hides rows of the first stream. The outputs over it show them, so all is lost."""
        path = f"/streams/{self.objects.first}/policies"
        body = {"policy": self.role, "role": self.role, "rows": "price > 5"}
        return Revocation(
            POLICY,
            hit,
            lambda: self.admin.post(path, **body),
            lambda: self.admin.delete(f"{path}/{self.role}"),
        )

    def _by_sending(self, one: Member) -> Revocation:
        """A call that gives, and takes the aggregate, of a role that is not active."""
        roles = f"/users/{one.name}/roles"
        return Revocation(
            SENDING,
            (one,),
            lambda: self.admin.post(roles, role=self.senders),
            lambda: self.admin.delete(f"{roles}/{self.senders}"),
        )

    @staticmethod
    def _by_levels(one: Member) -> Iterator[Revocation]:
        """What is left comes in another topic."""
        path = one.level_in(one.objects.levels)

        def back() -> None:
            one.set_level("T")

        lower = [partial(one.set_level, COMPANIES[1]), partial(one.admin.delete, path)]
        for name, take in zip((LEVEL, NO_LEVEL), lower, strict=True):
            yield Revocation(name, (one,), take, back, moves=True)

    def _of_permission(self, right: tuple[str, str, str], hit: tuple[Member, ...]) -> Revocation:
        return Revocation(
            " ".join(right),
            hit,
            lambda: self.change("/revocations", *right),
            lambda: self.change("/grants", *right),
            moves=right[0] == "READ TUPLE",
        )


def personal(one: Member) -> Iterator[Revocation]:
    """What hits one member alone."""
    admin, hit = one.admin, (one,)
    user, role, juniors = f"/users/{one.name}", f"/roles/{one.role}", f"/roles/{one.role}/juniors"

    def ending(
        name: str, take: Callable[[], object], give_back: Callable[[], object]
    ) -> Revocation:
        return Revocation(name, hit, take, give_back, ends=True)

    yield Revocation(
        "a role's junior",
        hit,
        lambda: admin.delete(f"{juniors}/{one.team}"),
        lambda: admin.post(juniors, role=one.team),
    )
    yield ending("a user's role", lambda: admin.delete(f"{user}/roles/{one.role}"), one.be_assigned)
    yield ending("a role", lambda: admin.delete(role), one.take_new_role)
    yield ending("a user", lambda: admin.post(f"{user}/lock"), one.be_unlocked)
    yield ending("a session", lambda: one.session.post("/logout"), one.log_in)
    yield ending(
        "an active role", lambda: one.session.delete(f"/whoami/roles/{one.role}"), one.log_in
    )
    yield ending("a password's sessions", one.change_password, one.log_in)
    reset = f"{one.level_in(one.objects.choices)}/reset"
    yield ending(WALL, lambda: admin.post(reset), one.choose)
    yield ending(
        "a subscription", lambda: one.session.delete(f"/accesses/{one.principal}"), lambda: None
    )
