"""The root command. Global options may be anywhere. Each error is one line and an exit code."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from catalog.errors import InvalidInput, PlatformError
from secadmin.cli.context import Cli
from secadmin.cli.safe_text import safe_lines
from secadmin.cli.screen import Screen

_FLAGS = frozenset({"--json"})
_VALUED = frozenset({"--server", "--ca"})


def global_options_first(arguments: list[str]) -> list[str]:
    """The arguments with --json, --server and --ca moved before the command.

    >>> global_options_first(["user", "list", "--json"])
    ['--json', 'user', 'list']
    """
    first: list[str] = []
    rest: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            return [*first, *rest, argument, *left]
        if argument in _FLAGS or argument.startswith(tuple(f"{name}=" for name in _VALUED)):
            first.append(argument)
        elif argument in _VALUED:
            first += [argument, *([value] if (value := next(left, None)) is not None else [])]
        else:
            rest.append(argument)
    return first + rest


class RootGroup(TyperGroup):
    """`secadmin` itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does, with global options anywhere on the line."""
        with _safe_usage_errors():
            return super().parse_args(ctx, global_options_first(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a PlatformError or a file's error becomes a line and an exit code."""
        try:
            with _safe_usage_errors():
                return super().invoke(ctx)
        except PlatformError as error:
            _screen(ctx).error(error, getattr(error, "more", ()))
            raise typer.Exit(error.exit_code) from None
        except UnicodeEncodeError:
            # Arguments are bytes; those that are no text reach a file's name, but no server.
            _screen(ctx).error(InvalidInput("an argument is not text in UTF-8"))
            raise typer.Exit(InvalidInput.exit_code) from None
        except UnicodeDecodeError:
            _screen(ctx).error(InvalidInput("a file is not text in UTF-8"))
            raise typer.Exit(InvalidInput.exit_code) from None
        except OSError as error:
            # A reader such as `head` that has seen enough: Typer ends quietly.
            if error.errno == errno.EPIPE:
                raise
            _screen(ctx).error(InvalidInput(f"{error.filename or 'a file'}: {error.strerror}"))
            raise typer.Exit(InvalidInput.exit_code) from None


@contextmanager
def _safe_usage_errors() -> Iterator[None]:
    """Make Typer's own errors safe: they quote arguments, which may have control characters."""
    try:
        yield
    except TyperException as error:
        error.message = safe_lines(error.message)
        raise


def _screen(ctx: Any) -> Screen:
    found = ctx.find_object(Cli)
    # The options themselves may be what is wrong; then there is no Cli yet.
    return found.screen if found else Screen(json=bool(ctx.params.get("json_output")))
