"""Texts of files that a user names."""

from __future__ import annotations

from pathlib import Path

from catalog.errors import InvalidInput


def text_of(file: Path) -> str:
    """The text of the file. Raises InvalidInput if it is no text in UTF-8, or empty; OSError."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not text in UTF-8") from None
    return not_empty(text, str(file))


def not_empty(text: str, place: str) -> str:
    """The text that was read from the place. Raises InvalidInput if nothing is written there."""
    if not text.strip():
        raise InvalidInput(f"{place} is empty")
    return text
