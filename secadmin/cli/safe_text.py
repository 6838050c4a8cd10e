"""Makes foreign text safe to print: a name must not move the cursor or change colours."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

# Controls and escapes; invisible and direction-changing marks; halves of pairs; line separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def is_safe(character: str) -> bool:
    """Say whether a terminal only shows the character, and does nothing else with it."""
    return unicodedata.category(character) not in _UNSAFE


def safe_text(text: str) -> str:
    """The text with every unsafe character as its escape (`\\x1b`, `\\u202e`), newlines too."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if is_safe(c) else c.encode("unicode_escape").decode() for c in text)


def safe_lines(text: str) -> str:
    """As `safe_text`, but newlines stay and a tab becomes four spaces."""
    return "\n".join(safe_text(line.replace("\t", "    ")) for line in text.split("\n"))


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that reads back as `value` and holds no unsafe character."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Outside its strings, JSON has no unsafe character but the newlines of its layout.
    return "".join(c if c == "\n" or is_safe(c) else json.dumps(c)[1:-1] for c in text)
