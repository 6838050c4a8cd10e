"""Passwords from a prompt or from standard input, never from the command's arguments."""

from __future__ import annotations

import sys
import warnings
from getpass import GetPassWarning

import typer

from catalog.errors import InvalidInput
from secadmin.cli.safe_text import safe_text


def prompt_password(text: str, confirm: bool = False) -> str:
    """Ask without echo, on stderr, so that stdout holds nothing but the answer.

    Raises InvalidInput if there is no terminal, because the password would be shown.
    """
    again: bool | str = "Repeat it" if confirm else False
    with warnings.catch_warnings():
        warnings.simplefilter("error", GetPassWarning)
        try:
            return str(
                typer.prompt(safe_text(text), hide_input=True, confirmation_prompt=again, err=True)
            )
        except GetPassWarning:
            typer.echo(err=True)  # ends the line of the question
            raise InvalidInput("there is no terminal to ask on; use --password-stdin") from None


def password_line(what: str = "password") -> str:
    """The next line of standard input. Raises InvalidInput if there is none."""
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise InvalidInput(f"standard input holds no {what}; give it on a line of its own")
    return line
