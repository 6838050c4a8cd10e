"""Who plays in the story of a paper: people with sessions, and what each of them reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from deploy.errors import DeployError
from deploy.scenario.listener import Listener
from deploy.scenario.person import Person
from deploy.stack import Stack

_SETTLE_S = 180.0


@dataclass
class Cast:
    """People by name, and listeners by (person, output)."""

    stack: Stack
    say: Callable[[str], None]
    people: dict[str, Person] = field(default_factory=dict)
    listeners: dict[tuple[str, str], Listener] = field(default_factory=dict)

    def begin(self) -> Person:
        """The administrator logs in."""
        admin = self.people["admin"] = Person.at(self.stack, "admin")
        admin.log_in(self.stack.settings.secadmin.first_password_file.read_text().strip())
        return admin

    def join(self, name: str, roles: Iterable[str]) -> Person:
        """A new user with these roles logs in."""
        admin = self.people["admin"]
        one_time = admin.ask("user", "add", name)["password"]
        for role in roles:
            admin.run("user", "assign", name, role)
        self.people[name] = Person.at(self.stack, name)
        self.people[name].log_in(one_time)
        return self.people[name]

    def produce(self, name: str, stream: str, records: Sequence[dict[str, object]]) -> None:
        """Somebody sends these records."""
        person = self.people[name]
        file = person.folder / f"{stream}.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in records))
        person.run("produce", stream, str(file))

    def listen(self, name: str, output: str, *options: str) -> None:
        """Somebody subscribes to an output and reads it from now on."""
        folder = self.people[name].subscribe(output, *options)
        self.listeners[name, output] = Listener(folder).start()

    def topics(self, name: str, output: str) -> list[str]:
        """The topics of a subscription."""
        rows = self.people[name].ask("accesses")
        found: list[str] = next(row["topics"] for row in rows if row["name"] == output)
        return found

    def await_fed(self) -> None:
        """Wait until results are delivered to all that read."""
        for name in dict.fromkeys(name for name, _ in self.listeners):
            for _ in patiently(f"the results are fed to {name}"):
                if all(row["fed"] for row in self.people[name].ask("accesses")):
                    break

    def close(self) -> None:
        """Everybody stops reading."""
        for listener in self.listeners.values():
            listener.close()


def patiently(what: str) -> Iterator[None]:
    """Turns until the time is over. Raises DeployError then."""
    deadline = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline:
        yield
        time.sleep(0.2)
    raise DeployError(f"it did not happen within {_SETTLE_S:.0f} s that {what}")
