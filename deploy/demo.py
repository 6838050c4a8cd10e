"""The demonstration that `python3 -m deploy demo` runs on a fresh platform."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from rich.console import Console
from rich.table import Table

from deploy.scenario.expectation import Week
from deploy.scenario.listener import Delivery
from deploy.scenario.story import Story
from deploy.stack import Stack

CLOSED_BEFORE_BOB = 2003
SETTLE_S = 120.0


def main(stack: Stack) -> int:
    """Play the scenario on `stack`, which runs; 0 only if exactly the right records arrived."""
    console = Console()
    started = time.monotonic()

    def say(text: str) -> None:
        # Two columns: what is longer than a line goes on below itself.
        line = Table.grid(padding=(0, 1))
        line.add_row(f"[dim]{time.monotonic() - started:6.1f} s[/]", text)
        console.print(line)

    story = Story(stack, say)
    try:
        expected = play(story)
    finally:
        story.close()
    right = report(console, story, expected)
    return 0 if right else 1


def play(story: Story) -> dict[str, list[Week]]:
    """All acts; returns what each listener has to have received at the end."""
    story.admit()
    story.define()
    story.query()
    story.send(1999, CLOSED_BEFORE_BOB)
    before_bob = len(story.expected())
    story.listeners["al"].wait_for(before_bob)
    earlier = set(story.expected())
    story.share()
    story.send(2004, 2010)
    for_bob = [week for week in story.expected() if week.label == 1 and week not in earlier]
    story.listeners["bob"].wait_for(len(for_bob))
    story.revoke_while_sending(range(2011, 2015))
    story.listeners["al"].wait_for(len(story.expected()))
    story.restore()
    story.send(2015, 2018)
    everything = story.expected()
    for_bob = [week for week in everything if week.label == 1 and week not in earlier]
    story.listeners["al"].wait_for(len(everything))
    story.listeners["bob"].wait_for(len(for_bob))
    return {"al": everything, "bob": for_bob}


def report(console: Console, story: Story, expected: dict[str, list[Week]]) -> bool:
    """Print who received what and whether it is right."""
    table = Table("who", "label 1 (in1)", "label 2 (in2)", "label 3 (both)", "expected", "right")
    all_right = True
    for name, weeks in expected.items():
        received = weeks_of(story.listeners[name].deliveries)
        right = sorted(received) == sorted(weeks)
        all_right &= right
        counts = Counter(week.label for week in received)
        table.add_row(
            name.capitalize(),
            *(str(counts[label]) for label in (1, 2, 3)),
            str(len(weeks)),
            "yes" if right else "NO",
        )
        for week in sorted(set(received) ^ set(weeks))[:10]:
            console.print(f"{name}: {'received' if week in received else 'expected'} {week}")
    console.print(table)
    return all_right


def weeks_of(deliveries: Iterable[Delivery]) -> list[Week]:
    """What arrived, a repeated record once: it has the id and the content that it had before."""
    return [week for _, week in {(delivery.id, _week(delivery)) for delivery in deliveries}]


def _week(delivery: Delivery) -> Week:
    value = delivery.value
    return Week(
        start=datetime.fromisoformat(value["window_start"].removesuffix("Z")),
        percent=value["percent"],
        days=value["days"],
        volume=value["volume"],
        label=int(delivery.label),
    )
