"""Levels, walls and rights change from several sessions at once: it is one serial history (001 §3).

The audit log is played into a plain model. What comes out is what the accesses reach, and no entry
contradicts the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

from sqlalchemy import select

from catalog.audit import Outcome, head
from catalog.models import Access, AuditEntry, Object, Withdrawal
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import Api
from tests.integration.service.test_walls import COMPANIES, Market
from tests.integration.service.test_walls import market as market  # noqa: PLC0414 - a fixture
from tests.lanes import number_of

pytestmark = embedded_only
ROUNDS = number_of("RACING_WALLS_ROUNDS", sample=6, long=60)


@dataclass
class Walls:
    """Who has which level, who chooses it, and whose accesses live. All may read in the end."""

    of: str
    levels: dict[str, str | None] = field(default_factory=dict)
    choosing: set[str] = field(default_factory=set)
    accesses: dict[str, str] = field(default_factory=dict)

    def play(self, entry: AuditEntry) -> None:
        """Take the entry up. An entry that does not follow from those before it fails."""
        user = entry.object.removeprefix("user ").partition(": ")[0]
        if entry.outcome != Outcome.CHANGED:
            return
        match entry.action:
            case "set level":
                assert user not in self.choosing or self.levels.get(user) is None
                self.levels[user] = entry.detail["level"]
                self.choosing -= {user}
                self.choosing |= {user} if entry.detail["by_choice"] else set()
            case "reset wall":
                assert user in self.choosing
                assert entry.detail["was"] == self.levels[user]
                self.levels[user] = None
                self._end({name for name, whose in self.accesses.items() if whose == user})
            case "choose company":
                self._choose(entry.actor, entry.detail["chosen"])
            case "access: output":
                if "chosen" in entry.detail:
                    self._choose(entry.actor, entry.detail["chosen"])
                self.accesses[entry.detail["principal"]] = entry.actor
            case "end access":
                self._end({entry.object.removeprefix("access ")})

    def _choose(self, user: str, chosen: dict[str, str]) -> None:
        assert user in self.choosing and self.levels[user] in (None, chosen[self.of])
        self.levels[user] = chosen[self.of]

    def _end(self, principals: set[str]) -> None:
        assert principals <= self.accesses.keys()
        self.accesses = {k: v for k, v in self.accesses.items() if k not in principals}

    def rights(self, principal: str) -> set[str]:
        """What the access shows of companies."""
        part = self.levels.get(self.accesses[principal])
        return {part} if part is not None and part != "⊥" else set()


@dataclass
class Racers:
    """What each thread does in a round. All of it may be refused."""

    market: Market
    users: Sequence[Api]

    def steps(self) -> list[Callable[[Random], None]]:
        """One for each thread."""
        choosers = [self._as(self.choose, user) for user in self.users]
        readers = [self._as(self.subscribe, user) for user in self.users]
        return [self.set_level, self.reset, self.change_right, *choosers, *readers]

    def set_level(self, chance: Random) -> None:
        """Give somebody another level, or let it choose."""
        user, part = chance.choice(self.users), chance.choice(["T", *COMPANIES, "_", None])
        self._call(self.market.admin, "PUT", f"{self._levels}/{user.user}", 409, part=part)

    def reset(self, chance: Random) -> None:
        """End all that somebody reads, and let it choose anew."""
        user = chance.choice(self.users)
        self._call(self.market.admin, "POST", f"{self._levels}/{user.user}/reset", 409)

    def change_right(self, chance: Random) -> None:
        """Let nobody read the stream, or all of them."""
        path = chance.choice(["/grants", "/revocations"])
        right = {"role": self.market.role, "permissions": ["READ TUPLE"], "kind": "stream"}
        self._call(self.market.admin, "POST", path, 409, name=self.market.stream, **right)

    def choose(self, user: Api, chance: Random) -> None:
        """Choose a company."""
        path = f"/conflict-classes/{self.market.conflict_class}/choice"
        self._call(user, "POST", path, 403, choice=chance.choice(COMPANIES))

    def subscribe(self, user: Api, chance: Random) -> None:
        """Read, perhaps with a choice, and end something that is read."""
        chosen = {self.market.conflict_class: chance.choice(COMPANIES)}
        choices = chosen if chance.random() < 0.5 else {}
        path = f"/outputs/{self.market.output}/subscriptions"
        self._call(user, "POST", path, 403, 409, 422, keep=True, choices=choices)
        if chance.random() < 0.3 and (own := user.get("/accesses")):
            principal = chance.choice(own)["principal"]
            self._call(user, "DELETE", f"/accesses/{principal}", 404)

    @property
    def _levels(self) -> str:
        return f"/conflict-classes/{self.market.conflict_class}/levels"

    @staticmethod
    def _as(step: Callable[[Api, Random], None], user: Api) -> Callable[[Random], None]:
        return lambda chance: step(user, chance)

    @staticmethod
    def _call(caller: Api, method: str, path: str, *accepted: int, **body: object) -> None:
        answer = caller.call(method, path, **({"json": body} if body else {}))
        assert answer.is_success or answer.status_code in (*accepted, 503), answer.text


def test_walls_and_rights_that_race_are_one_serial_history(market: Market) -> None:
    users = [market.user() for _ in range(3)]
    with market.platform.catalog.read() as session:
        before = head(session).seq
    for user in users:
        market.level(user, None)
    steps = Racers(market, users).steps()

    def repeat(number: int) -> None:
        chance = Random(number)
        for _ in range(ROUNDS):
            steps[number](chance)

    with ThreadPoolExecutor(len(steps)) as pool:
        for done in [pool.submit(repeat, number) for number in range(len(steps))]:
            done.result()
    right = {"role": market.role, "permissions": ["READ TUPLE"], "kind": "stream"}
    market.admin.post("/grants", name=market.stream, **right)
    market.platform.alignment.align_pending()
    walls = Walls(market.conflict_class)
    assert market.platform.catalog.verify_audit().intact
    with market.platform.catalog.read() as session:
        entries = select(AuditEntry).where(AuditEntry.seq > before).order_by(AuditEntry.seq)
        for entry in session.scalars(entries):
            walls.play(entry)
        undone = (
            select(Withdrawal.id)
            .join(Access, Access.principal == Withdrawal.principal)
            .join(Object, Object.id == Access.object_id)
            .where(Object.name == market.output, Withdrawal.done_at.is_(None))
        )
        assert session.scalars(undone).all() == []
    assert walls.accesses, "a race in which all accesses end shows nothing"
    names = {user.user: user for user in users}
    alive = {access["principal"] for user in names.values() for access in user.get("/accesses")}
    assert alive == walls.accesses.keys()
    for principal in alive:
        assert market.rights(principal) == walls.rights(principal), principal
