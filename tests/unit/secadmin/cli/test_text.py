"""What is printed: nothing that a terminal would obey, and the place of a mistake."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import Position
from secadmin.cli.caret import caret_lines
from secadmin.cli.safe_text import is_safe, json_text, safe_lines, safe_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zürich 流 [red]x[/red]", "Zürich 流 [red]x[/red]"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb\nc\x07\x7f\x9b", "a\\rb\\nc\\x07\\x7f\\x9b"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
    ],
)
def test_unsafe_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@given(st.text())
def test_no_text_comes_through_unsafe(text: str) -> None:
    assert all(map(is_safe, safe_text(text)))
    assert all(c == "\n" or is_safe(c) for c in safe_lines(text))


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_json_is_safe_and_reads_back(value: dict[str, object]) -> None:
    written = json_text(value)
    assert all(map(is_safe, written))
    assert json.loads(written) == value


CARETS = [
    ("SELECT *\nFROM in9", (2, 6), ["  2 | FROM in9", "    |      ^"]),
    ("a\tb", (1, 3), ["  1 | a b", "    |   ^"]),
    ("流流x", (1, 3), ["  1 | 流流x", "    |     ^"]),
    ("\x1b[2Jx", (1, 5), ["  1 | \\x1b[2Jx", "    |        ^"]),
    ("ab", (1, 99), ["  1 | ab", "    |   ^"]),
    ("ab", (2, 1), []),
    ("", (1, 1), []),
]


@pytest.mark.parametrize(("text", "at", "lines"), CARETS)
def test_the_caret_stands_under_the_column(
    text: str, at: tuple[int, int], lines: list[str]
) -> None:
    assert caret_lines(text, Position(*at)) == lines


def test_a_long_line_is_cut_around_the_caret() -> None:
    line, caret = caret_lines("x" * 500 + "!" + "y" * 500, Position(1, 501))
    assert line[caret.index("^")] == "!"
    assert len(line) < 120
