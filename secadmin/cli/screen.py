"""The output of commands: tables and lines for people, JSON for scripts, errors on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from catalog.errors import PlatformError
from secadmin.cli.safe_text import json_text, safe_lines, safe_text


@dataclass(frozen=True, slots=True)
class Screen:
    """The two standard streams; with `json` everything on stdout is JSON."""

    json: bool = False

    @property
    def _out(self) -> Console:
        # Made when used: the streams of a test are not those of the import.
        return Console(file=sys.stdout, highlight=False, emoji=False, soft_wrap=True)

    @property
    def err(self) -> Console:
        """The console on stderr, for progress and notes."""
        return Console(file=sys.stderr, highlight=False, emoji=False, soft_wrap=True)

    def answer(self, value: Any) -> None:
        """The server's answer as JSON, indented."""
        print(json_text(value, indent=2))

    def answered(self, value: Any) -> bool:
        """With `json`, print the answer and return true. Otherwise the command prints words."""
        if self.json:
            self.answer(value)
        return self.json

    def record(self, value: Any) -> None:
        """One value a line as JSON."""
        print(json_text(value), flush=True)

    def line(self, text: str, style: str = "") -> None:
        """One line for people; nothing with `json`."""
        if not self.json:
            self._out.print(Text(safe_text(text), style))

    def text(self, text: str) -> None:
        """Several lines as they are."""
        if not self.json:
            self._out.print(Text(safe_lines(text)))

    def note(self, text: str) -> None:
        """One line on stderr, for a text that is not the command's result."""
        self.err.print(Text(safe_text(text), "dim"))

    def warnings(self, answer: Mapping[str, Any]) -> None:
        """The warnings in the answer, each on a line of stderr."""
        for text in answer["warnings"]:
            self.err.print(Text.assemble(("warning", "bold yellow"), ": ", safe_text(text)))

    def rows(self, rows: Sequence[Mapping[str, Any]], empty: str) -> None:
        """A table of objects. If the output is not a terminal, tabs separate the columns."""
        if self.answered(rows):
            return
        if not rows:
            self.note(empty)
            return
        columns = list(dict.fromkeys(name for row in rows for name in row))
        cells = [[cell(row.get(name)) for name in columns] for row in rows]
        if not self._out.is_terminal:
            for line in ([safe_text(name) for name in columns], *cells):
                print("\t".join(line))
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in columns:
            table.add_column(Text(safe_text(name.replace("_", " "))), overflow="fold")
        for row in cells:
            table.add_row(*(Text(text) for text in row))
        self._out.print(table, soft_wrap=False)

    def fields(self, value: Mapping[str, Any]) -> None:
        """One object, a line for each field."""
        if self.answered(value):
            return
        shown = {name.replace("_", " "): cell(field) for name, field in value.items()}
        width = max(map(len, shown), default=0)
        for name, text in shown.items():
            self.line(f"{name:<{width}}  {text}".rstrip())

    def tree(self, tree: Tree) -> None:
        """A tree whose labels are safe Text already."""
        self._out.print(tree, soft_wrap=False)

    def error(self, error: PlatformError, more: Iterable[str] = ()) -> None:
        """One line that says what is wrong and what to do, then lines that show where."""
        if self.json:
            problem = {"title": error.title, "detail": error.detail, "exit_code": error.exit_code}
            position = getattr(error, "position", None)
            place = {"line": position.line, "column": position.column} if position else {}
            print(json_text({**problem, **place}), file=sys.stderr)
            return
        message = Text.assemble(("error", "bold red"), ": ", safe_text(error.detail))
        self.err.print(message)
        for line in more:
            self.err.print(Text(line))


def cell(value: Any) -> str:
    """A value of an answer as a person reads it, safe to print."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(map(safe_text, value))
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, Mapping) and all(isinstance(each, int) for each in value.values()):
        return ", ".join(f"{safe_text(name)} {number}" for name, number in value.items()) or "none"
    return json_text(value)
