"""Passwords from a prompt or from standard input, never from the command's arguments."""

from __future__ import annotations

import sys

import typer

from catalog.errors import InvalidInput


def prompt_password(text: str, confirm: bool = False) -> str:
    """Ask without echo, on stderr, so that stdout holds nothing but the answer."""
    again: bool | str = "Repeat it" if confirm else False
    return str(typer.prompt(text, hide_input=True, confirmation_prompt=again, err=True))


def password_line(what: str = "password") -> str:
    """The next line of standard input. Raises InvalidInput where there is none."""
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise InvalidInput(f"standard input holds no {what}; give it on a line of its own")
    return line
