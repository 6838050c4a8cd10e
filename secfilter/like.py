"""LIKE in the engine. Its time is at most the text's length times the pattern's length.

A regular expression with a `.*` for each % would try all ways to divide a text among them. Instead,
each part between two % matches at its first place only (an atomic group), because this leaves the
most room for the next parts. The last part must match at the end of the text.
"""

from __future__ import annotations

from pyspark.sql import Column


def like(text: Column, pattern: str) -> Column:
    """Whether the whole text matches: % matches any characters, and _ matches one code point.

    There are no escapes. The result is NULL if the text is NULL.
    """
    return text.rlike(regular_expression(pattern))


def ilike(text: Column, pattern: str) -> Column:
    """As `like`, but a letter matches both its cases. Letters are compared one by one."""
    return text.rlike(f"(?iu){regular_expression(pattern)}")


def regular_expression(pattern: str) -> str:
    """The pattern as a regular expression of Java."""
    first, *others = [_part(part) for part in pattern.split("%")]
    if not others:
        return rf"(?s)\A{first}\z"
    *between, last = others
    # A % after another % changes nothing.
    found = "".join(rf"(?>.*?{part})" for part in between if part)
    return rf"(?s)\A{first}{found}" + (rf".*{last}\z" if last else "")


def _part(part: str) -> str:
    return "".join("." if c == "_" else rf"\x{{{ord(c):x}}}" for c in part)
