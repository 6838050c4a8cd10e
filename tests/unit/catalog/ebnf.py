"""Says whether a text is what a grammar in EBNF allows. It knows nothing of the product's readers.

A grammar has rules `name = … ;` with `,` `|` `{ }` `( )`, marks in quotes, and regular expressions
between slashes, which take as much as they can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

# Where a text may go on behind a part of the grammar that begins at this place.
Part = Callable[[str, int], Iterator[int]]

_COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
_TOKEN = re.compile(r'\s*("[^"]*"|/(?:[^/\\]|\\.)*/|[A-Za-z]+|[=;,|{}()])')
_BLANKS = re.compile(r"[ \t]*")


class Grammar:
    """The rules of a grammar by their names."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(_COMMENT.sub("", text))
        self.rules: dict[str, Part] = {}
        while self._tokens:
            name = self._next()
            assert self._next() == "="
            self.rules[name] = self._choice()
            assert self._next() == ";"

    def allows(self, rule: str, text: str) -> bool:
        """Whether the whole text is what the rule says, with blanks around it."""
        return len(text) in {_behind_blanks(text, at) for at in self.rules[rule](text, 0)}

    def _next(self) -> str:
        return str(self._tokens.pop(0))

    def _choice(self) -> Part:
        parts = [self._sequence()]
        while self._tokens[0] == "|":
            self._next()
            parts.append(self._sequence())

        def any_of_them(text: str, at: int) -> Iterator[int]:
            for part in parts:
                yield from part(text, at)

        return any_of_them

    def _sequence(self) -> Part:
        parts = [self._item()]
        while self._tokens[0] == ",":
            self._next()
            parts.append(self._item())

        def one_after_the_other(text: str, at: int, number: int = 0) -> Iterator[int]:
            if number == len(parts):
                yield at
                return
            for behind in parts[number](text, at):
                yield from one_after_the_other(text, behind, number + 1)

        return one_after_the_other

    def _item(self) -> Part:
        token = self._next()
        if token in ("{", "("):
            inner = self._choice()
            assert self._next() == {"{": "}", "(": ")"}[token]
            return _repeated(inner) if token == "{" else inner
        if token[0] == '"':
            return _matching(re.compile(re.escape(token[1:-1])))
        if token[0] == "/":
            return _matching(re.compile(token[1:-1]))
        return partial(self._named, token)

    def _named(self, rule: str, text: str, at: int) -> Iterator[int]:
        """What a rule says, which may come later in the grammar."""
        return self.rules[rule](text, at)


def _matching(pattern: re.Pattern[str]) -> Part:
    def part(text: str, at: int) -> Iterator[int]:
        if found := pattern.match(text, _behind_blanks(text, at)):
            yield found.end()

    return part


def _repeated(inner: Part) -> Part:
    def part(text: str, at: int) -> Iterator[int]:
        yield at
        for behind in inner(text, at):
            yield from part(text, behind)

    return part


def _behind_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    assert found is not None
    return found.end()
