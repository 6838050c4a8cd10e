"""Example 1 of paper 002, act by act: NEA shares its weather with LTA under a policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from deploy.errors import DeployError
from deploy.scenario.listener import Delivery, Listener
from deploy.scenario.person import Person
from deploy.stack import Stack
from deploy.weather.readings import SCHEMA, RainWindow, Reading, expected, readings, write

FOLDER = Path(__file__).parent
POLICY, QUERY = FOLDER / "lta.xml", FOLDER / "lta.sql"
FED_TIMEOUT_S = 180.0
FINE = """SELECT avg(rainrate) AS rain FROM weather
GROUP BY TUMBLE(samplingtime, INTERVAL '1' MINUTE)"""
# What LTA may not ask, and what the platform must say.
REFUSED = (
    ("SELECT temperature FROM weather", "unknown attribute 'temperature'; there are:"),
    ("SELECT rainrate FROM weather", "allow 'rainrate' only as avg(rainrate) over windows"),
    (
        FINE,
        "of 150 seconds or more with a slide of 60 seconds or more",
    ),
)


@dataclass
class Weather:
    """Who is there, what NEA sent, and what LTA hears. `say` tells the audience what happens."""

    stack: Stack
    say: Callable[[str], None]
    people: dict[str, Person] = field(default_factory=dict)
    sent: list[Reading] = field(default_factory=list)
    listener: Listener | None = None

    def close(self) -> None:
        """Stop the listener."""
        if self.listener is not None:
            self.listener.close()

    def admit(self) -> None:
        """The administrator lets NEA add streams, and LTA add queries."""
        admin = Person.at(self.stack, "admin")
        admin.log_in(self.stack.settings.secadmin.first_password_file.read_text().strip())
        for name, right in (("NEA", "ADD SCHEMA, ADD STREAM"), ("LTA", "ADD QUERY")):
            one_time = admin.ask("user", "add", name.lower())["password"]
            admin.run("role", "add", name)
            admin.run("grant", name, right, "system")
            admin.run("user", "assign", name.lower(), name)
            self.people[name] = Person.at(self.stack, name.lower())
            self.people[name].log_in(one_time)
        self.say("NEA may add streams, and LTA may add queries")

    def share(self) -> None:
        """NEA adds its stream, lets LTA read it, and loads the policy."""
        nea = self.people["NEA"]
        nea.run("schema", "add", "reading", *SCHEMA)
        timed = ("--event-time", "samplingtime", "--time", "data")
        nea.run("stream", "add", "weather", "--schema", "reading", *timed)
        nea.run("grant", "NEA", "SEND", "stream", "weather")
        nea.run("policy", "load", str(POLICY))
        nea.run("grant", "LTA", "VIEW OBJECT", "schema", "reading")
        nea.run("grant", "LTA", "VIEW OBJECT", "READ TUPLE", "stream", "weather")
        self.say("NEA shares its weather with LTA, under the policy of example 1 in XACML")

    def ask_too_much(self) -> None:
        """LTA asks for what the policy does not show, and is told what it shows."""
        for text, told in REFUSED:
            line = ("query", "add", "toomuch", "-", "--language", "sql")
            answer = self.people["LTA"].attempt(*line, text=text)
            if not answer.returncode or told not in answer.stderr:
                raise DeployError(f"{text!r} should be refused with {told!r}: {answer.stderr}")
        self.say(
            "LTA asks for the temperature, for single readings and for a finer window: refused"
        )

    def query(self) -> None:
        """LTA adds its own query, with coarser windows, and subscribes to it."""
        lta = self.people["LTA"]
        lta.run("query", "add", "rain", str(QUERY))
        self.listener = Listener(lta.subscribe("rain")).start()
        deadline = time.monotonic() + FED_TIMEOUT_S
        while not all(row["fed"] for row in lta.ask("accesses")):
            if time.monotonic() > deadline:
                raise DeployError("LTA's subscription gets nothing; see the engines' logs")
            time.sleep(0.1)
        self.say("LTA adds a query over windows of five minutes, and subscribes")

    def send(self, first: int, last: int) -> None:
        """NEA sends the readings of these numbers."""
        nea, chosen = self.people["NEA"], readings(first, last)
        nea.run("produce", "weather", str(write(nea.folder / f"{first}.jsonl", chosen)))
        self.sent += chosen
        self.say(f"NEA sends {len(chosen)} readings")

    def tighten(self) -> None:
        """NEA shows LTA only heavy rain, and no wind. LTA's query, which names the wind, ends."""
        options = ("--role", "LTA", "--rows", "rainrate > 20", "--aggregate", "rainrate:avg")
        window = ("--window", "150s/60s", "--replace")
        started = time.monotonic()
        self.people["NEA"].run("policy", "add", "weather", "lta", *options, *window)
        took = time.monotonic() - started
        self.say(f"NEA shows LTA only heavy rain, and no wind: fenced after {took:.2f} s")
        while (shown := self.people["LTA"].ask("query", "show", "rain"))["running"]:
            if time.monotonic() - started > FED_TIMEOUT_S:
                raise DeployError("LTA's query should have stopped")
            time.sleep(0.1)
        if "'windspeed'" not in shown["message"]:
            raise DeployError(f"the message to LTA should name the wind: {shown['message']}")
        self.say(f"LTA's query has ended: {shown['message']}")

    def expected(self) -> list[RainWindow]:
        """What LTA must have by now, computed in plain Python."""
        return expected(self.sent)


def received(deliveries: list[Delivery]) -> list[RainWindow]:
    """What arrived, a repeated record once."""
    found = {delivery.id: _window(delivery) for delivery in deliveries}
    return sorted(found.values())


def _window(delivery: Delivery) -> RainWindow:
    value = delivery.value
    end, last = (datetime.fromisoformat(value[name]) for name in ("window_end", "last"))
    return RainWindow(end, last, round(value["rain"], 6), value["wind"])
