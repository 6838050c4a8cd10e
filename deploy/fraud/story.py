"""The story of paper 003: roles register event patterns over a bank's logins and transfers.

`python3 -m deploy demo --paper 003` plays it. Each role has other rights to the attributes of the
events (003 §2): FRAUD reads some of them (ξ) and is denied others (ψ), WATCH reads large transfers
only (φ), and STATS gets means (Ω). A pattern that asks for more is refused with the list of what
it may not read (algorithm 1). Then the rights of WATCH change while its pattern runs, and the
pattern goes on with what WATCH may read now.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from deploy.errors import DeployError
from deploy.fraud.events import (
    SCHEMAS,
    WATCHED_ABOVE,
    WATCHED_LATER,
    Event,
    Row,
    clock,
    events,
    means,
    rising,
    suspicious,
    write,
)
from deploy.scenario.listener import Listener
from deploy.scenario.person import Person
from deploy.stack import Stack

_SETTLE_S = 240.0
POLICIES: dict[str, dict[str, tuple[str, ...]]] = {
    "FRAUD": {
        "logins": ("--show", "ts", "--show", "account", "--show", "ok"),
        "transfers": ("--show", "ts", "--show", "account", "--show", "amount"),
    },
    "WATCH": {"transfers": ("--rows", f"amount > {WATCHED_ABOVE}")},
    "STATS": {"transfers": ("--show", "account", "--aggregate", "amount:avg,count")},
}
STRICTER = ("--rows", f"amount > {WATCHED_LATER}", "--replace")
PATTERNS = {
    "FRAUD": """SELECT account, amount, minute(began) AS minute
FROM PATTERN SEQ(logins f, NOT logins g, transfers t) WITHIN INTERVAL '5' MINUTE
MATCH_RECOGNIZE (
  PARTITION BY account
  MEASURES t.amount AS amount, f.ts AS began
  DEFINE f AS ok = FALSE, g AS ok = TRUE, t AS amount > 1000
)""",
    "WATCH": """SELECT account, low, high
FROM transfers MATCH_RECOGNIZE (
  PARTITION BY account ORDER BY ts
  MEASURES a.amount AS low, b.amount AS high
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (a b) WITHIN INTERVAL '5' MINUTE
  DEFINE b AS amount > a.amount
)""",
    "STATS": """SELECT account, mean, n
FROM transfers MATCH_RECOGNIZE (
  PARTITION BY account ORDER BY ts
  MEASURES AVG(a.amount) AS mean, COUNT(a.amount) AS n
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (a{3}) WITHIN INTERVAL '5' MINUTE
)""",
}
COLUMNS = {
    "FRAUD": ("account", "amount", "minute"),
    "WATCH": ("account", "low", "high"),
    "STATS": ("account", "mean", "n"),
}
# What a role may not ask, and what the platform must say.
TOO_MUCH = {
    "FRAUD": (
        """SELECT t FROM transfers MATCH_RECOGNIZE (
  PARTITION BY account ORDER BY ts MEASURES LAST(target) AS t
  PATTERN (a b) WITHIN INTERVAL '5' MINUTE DEFINE b AS note = PREV(note)
)""",
        "unknown attributes 'target', 'note'; there are: ts, account, amount",
    ),
    "STATS": (
        PATTERNS["STATS"].replace("AVG(a.amount)", "LAST(a.amount)"),
        "allow 'amount' only as avg(amount), count(amount)",
    ),
}


@dataclass
class Bank:
    """Who is there, what the bank sent, and what each role hears."""

    stack: Stack
    say: Callable[[str], None]
    people: dict[str, Person] = field(default_factory=dict)
    listeners: dict[str, Listener] = field(default_factory=dict)
    expected: dict[str, set[Row]] = field(default_factory=dict)
    watched_above: float = WATCHED_ABOVE
    _before: int = 0

    def admit(self) -> None:
        """The bank may add streams, and each role may add queries."""
        admin = Person.at(self.stack, "admin")
        admin.log_in(self.stack.settings.secadmin.first_password_file.read_text().strip())
        rights = {"BANK": "ADD SCHEMA, ADD STREAM", **dict.fromkeys(POLICIES, "ADD QUERY")}
        for role, right in rights.items():
            one_time = admin.ask("user", "add", role.lower())["password"]
            admin.run("role", "add", role)
            admin.run("grant", role, right, "system")
            admin.run("user", "assign", role.lower(), role)
            self.people[role] = Person.at(self.stack, role.lower())
            self.people[role].log_in(one_time)
        self.say("a bank is there, and the roles FRAUD, WATCH and STATS")

    def share(self) -> None:
        """The bank adds its streams, and gives each role its rights to attributes."""
        bank = self.people["BANK"]
        for stream, attributes in SCHEMAS.items():
            bank.run("schema", "add", f"{stream}_schema", *attributes)
            timed = ("--event-time", "ts", "--time", "data")
            bank.run("stream", "add", stream, "--schema", f"{stream}_schema", *timed)
            bank.run("grant", "BANK", "SEND", "stream", stream)
        for role, policies in POLICIES.items():
            for stream, options in policies.items():
                bank.run("policy", "add", stream, role.lower(), "--role", role, *options)
                bank.run("grant", role, "VIEW OBJECT", "READ TUPLE", "stream", stream)
                bank.run("grant", role, "VIEW OBJECT", "schema", f"{stream}_schema")
        self.say("FRAUD reads some attributes, WATCH large transfers, and STATS means")

    def ask_too_much(self) -> None:
        """Patterns that ask for more than their role may read are refused, with the list."""
        for role, (text, told) in TOO_MUCH.items():
            line = ("query", "add", "toomuch", "-", "--language", "sql")
            answer = self.people[role].attempt(*line, text=text)
            if not answer.returncode or told not in " ".join(answer.stderr.split()):
                raise DeployError(f"{role} should be told {told!r}: {answer.stderr}")
        self.say("FRAUD asks for target and note, and STATS for single amounts: refused")

    def register(self) -> None:
        """Each role registers its pattern, and subscribes."""
        for role, text in PATTERNS.items():
            person = self.people[role]
            person.run("query", "add", role.lower(), "-", "--language", "sql", text=text)
            self.listeners[role] = Listener(person.subscribe(role.lower())).start()
        for role in PATTERNS:
            self._until(f"the matches are fed to {role}", partial(self._is_fed, role))
        self.say("each role has registered its pattern")

    def send(self, first: int, last: int) -> None:
        """The events of some minutes, and what each role gets of them."""
        sent = events(first, last)
        self._produce([*sent, *clock(last + 6)])
        watched = rising(sent, self.watched_above)
        wanted = {"FRAUD": suspicious(sent), "WATCH": watched, "STATS": means(sent)}
        for role, rows in wanted.items():
            self.expected[role] = self.expected.get(role, set()) | rows
            self._until(f"all matches came to {role}", partial(self._is_complete, role))
        self.say(f"the matches of minutes {first} to {last} came to {', '.join(wanted)}")

    def _is_fed(self, role: str) -> bool:
        return all(row["active"] and row["fed"] for row in self.people[role].ask("accesses"))

    def _is_complete(self, role: str) -> bool:
        return self.rows(role) >= self.expected[role]

    def _produce(self, sent: list[Event]) -> None:
        bank = self.people["BANK"]
        for stream, path in write(bank.folder, sent).items():
            bank.run("produce", stream, str(path))

    def tighten(self) -> None:
        """The bank shows WATCH only larger transfers. The pattern of WATCH goes on with these."""
        options = ("--role", "WATCH", *STRICTER)
        started = time.monotonic()
        self.people["BANK"].run("policy", "add", "transfers", "watch", *options)
        took = time.monotonic() - started
        self.watched_above, self._before = WATCHED_LATER, len(self.listeners["WATCH"].deliveries)
        self.say(f"the rights of WATCH change: nothing smaller comes any more, after {took:.2f} s")
        self._until("the new matches are fed to WATCH", partial(self._is_fed, "WATCH"))
        self.say("the pattern of WATCH goes on with what WATCH may read now")

    @property
    def hidden(self) -> set[Row]:
        """What came to WATCH after the change, although WATCH may not read it any more."""
        later = tuple(self.listeners["WATCH"].deliveries)[self._before :]
        rows = {_row("WATCH", each.value) for each in later}
        return {row for row in rows if min(row[1:]) <= self.watched_above}

    def rows(self, role: str) -> set[Row]:
        """What has come to a role."""
        found = tuple(self.listeners[role].deliveries)
        return {_row(role, each.value) for each in found}

    def close(self) -> None:
        """Everybody stops reading."""
        for listener in self.listeners.values():
            listener.close()

    def _until(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _SETTLE_S
        while not done():
            if time.monotonic() > deadline:
                raise DeployError(f"it did not happen within {_SETTLE_S:.0f} s that {what}")
            time.sleep(0.2)


def _row(role: str, value: dict[str, Any]) -> Row:
    account, first, second = (value[name] for name in COLUMNS[role])
    return account, round(float(first), 6), round(float(second), 6)
