"""LIKE in the engine: time goes by the text's length times the pattern's, whatever stands in them.

A regular expression with a `.*` for each % would try all ways to share a text among them. Each part
between two % is instead taken where it stands first, and never again elsewhere (an atomic group):
what comes behind it has the most room then. The last part has one place, the end.
"""

from __future__ import annotations

from pyspark.sql import Column


def like(text: Column, pattern: str) -> Column:
    """Whether all of the text fits: % stands for any characters, _ for one (a code point).

    There are no escapes. NULL where the text is.
    """
    return text.rlike(regular_expression(pattern))


def regular_expression(pattern: str) -> str:
    """The same as a regular expression of Java's."""
    first, *others = [_part(part) for part in pattern.split("%")]
    if not others:
        return rf"(?s)\A{first}\z"
    *between, last = others
    # Behind another %, a % finds nothing of its own.
    found = "".join(rf"(?>.*?{part})" for part in between if part)
    return rf"(?s)\A{first}{found}" + (rf".*{last}\z" if last else "")


def _part(part: str) -> str:
    return "".join("." if c == "_" else rf"\x{{{ord(c):x}}}" for c in part)
