"""The demonstration that `python3 -m deploy demo --paper 003` runs on a fresh platform."""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table

from deploy.fraud.story import Bank
from deploy.stack import Stack

# What would arrive after the change would have arrived by then.
QUIET_S = 10.0


def main(stack: Stack) -> int:
    """Play the story on `stack`, which runs; 0 only if exactly the right matches arrived."""
    console, started = Console(), time.monotonic()

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - started:6.1f} s[/] {text}")

    bank = Bank(stack, say)
    try:
        play(bank)
        return 0 if report(console, bank) else 1
    finally:
        bank.close()


def play(bank: Bank) -> None:
    """All acts."""
    bank.admit()
    bank.share()
    bank.ask_too_much()
    bank.register()
    bank.send(0, 15)
    bank.tighten()
    bank.send(30, 42)
    time.sleep(QUIET_S)


def report(console: Console, bank: Bank) -> bool:
    """Print which role received what, and whether it is right."""
    table = Table("role", "matches received", "expected", "right")
    all_right = True
    for role, expected in bank.expected.items():
        rows = bank.rows(role)
        right = rows == expected and bool(rows) and not (role == "WATCH" and bank.hidden)
        all_right &= right
        table.add_row(role, str(len(rows)), str(len(expected)), "yes" if right else "[bold]NO[/]")
        for row in sorted(rows ^ expected)[:10]:
            console.print(f"{role}: {'received' if row in rows else 'expected'} {row}")
    console.print(table)
    return all_right
