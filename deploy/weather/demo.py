"""The demonstration that `python3 -m deploy demo --paper 002` runs on a fresh platform."""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table

from deploy.errors import DeployError
from deploy.stack import Stack
from deploy.weather.readings import RainWindow
from deploy.weather.story import Weather, received

# What would arrive after the change would have arrived by then.
QUIET_S = 10.0


def main(stack: Stack) -> int:
    """Play example 1 on `stack`, which runs; 0 only if exactly the right windows arrived."""
    console = Console()
    started = time.monotonic()

    def say(text: str) -> None:
        line = Table.grid(padding=(0, 1))
        line.add_row(f"[dim]{time.monotonic() - started:6.1f} s[/]", text)
        console.print(line)

    story = Weather(stack, say)
    try:
        wanted, got = play(story)
    finally:
        story.close()
    return 0 if report(console, wanted, got) else 1


def play(story: Weather) -> tuple[list[RainWindow], list[RainWindow]]:
    """All acts; what LTA has to have received at the end, and what it received."""
    story.admit()
    story.share()
    story.ask_too_much()
    story.query()
    story.send(0, 240)
    wanted, listener = story.expected(), story.listener
    if listener is None:
        raise DeployError("nobody listens")
    listener.wait_for(len(wanted))
    story.tighten()
    story.send(240, 300)
    time.sleep(QUIET_S)
    return wanted, received(listener.deliveries)


def report(console: Console, wanted: list[RainWindow], got: list[RainWindow]) -> bool:
    """Print what LTA received and whether it is right."""
    right = got == wanted
    table = Table("who", "windows received", "expected", "after the change", "right")
    after = len(set(got) - set(wanted))
    table.add_row("LTA", str(len(got)), str(len(wanted)), str(after), "yes" if right else "NO")
    for window in sorted(set(got) ^ set(wanted))[:10]:
        console.print(f"LTA: {'received' if window in got else 'expected'} {window}")
    console.print(table)
    return right
