"""The regular expression of PATTERN (...), from its words."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from catalog.errors import InvalidInput
from catalog.pattern import (
    Pattern,
    PatternChoice,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
)
from secadmin.languages.expressions.places import Place

_FORMS = (
    "write variables, ( ), |, and behind a part *, +, ?, {n}, {n,m} or {n,}, each perhaps with ?"
)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_MAX_NESTING = 20
_TIMES: dict[TokenType, tuple[int, int | None]] = {
    TokenType.STAR: (0, None),
    TokenType.PLUS: (1, None),
    TokenType.PLACEHOLDER: (0, 1),
}


def read_pattern(tokens: list[Token], place: Place, end: int) -> Pattern:
    """The pattern of these words. `end` is the offset behind them. Raises InvalidInput."""
    reader = _PatternReader(tokens, place, end)
    found = reader.choice(1)
    if reader.at < len(tokens):
        raise reader.wrong()
    return found


@dataclass
class _PatternReader:
    tokens: list[Token]
    place: Place
    end: int
    at: int = 0

    def wrong(self) -> InvalidInput:
        """The error at the next word."""
        token = self._next()
        offset = self.end if token is None else token.start
        what = "the pattern ends too early" if token is None else f"{token.text[:20]!r} is not here"
        return InvalidInput(f"{what}: {_FORMS}", self.place(offset))

    def choice(self, depth: int) -> Pattern:
        """Parts between |."""
        if depth > _MAX_NESTING:
            raise InvalidInput(
                f"a pattern has at most {_MAX_NESTING} parentheses in each other",
                self.place(self.tokens[self.at - 1].start),
            )
        parts = [self._sequence(depth)]
        while self._take(TokenType.PIPE):
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else PatternChoice(tuple(parts))

    def _sequence(self, depth: int) -> Pattern:
        parts = [self._part(depth)]
        while (token := self._next()) is not None and token.token_type in (
            *_NAMES,
            TokenType.L_PAREN,
        ):
            parts.append(self._part(depth))
        return parts[0] if len(parts) == 1 else PatternSequence(tuple(parts))

    def _part(self, depth: int) -> Pattern:
        if self._take(TokenType.L_PAREN):
            inner = self.choice(depth + 1)
            if not self._take(TokenType.R_PAREN):
                raise self.wrong()
        else:
            token = self._next()
            if token is None or token.token_type not in _NAMES:
                raise self.wrong()
            self.at += 1
            inner = PatternVariable(token.text)
        return self._repeated(inner)

    def _repeated(self, part: Pattern) -> Pattern:
        if self._take(TokenType.DQMARK):
            return PatternRepeat(part, 0, 1, greedy=False)
        token = self._next()
        if token is not None and token.token_type in _TIMES:
            self.at += 1
            times = _TIMES[token.token_type]
        elif self._take(TokenType.L_BRACE):
            times = self._counted()
        else:
            return part
        return PatternRepeat(part, *times, greedy=not self._take(TokenType.PLACEHOLDER))

    def _counted(self) -> tuple[int, int | None]:
        """What {n}, {n,}, {n,m} or {,m} says."""
        least = self._number()
        most = least
        if self._take(TokenType.COMMA):
            most = self._number()
        elif least is None:
            raise self.wrong()
        if not self._take(TokenType.R_BRACE):
            raise self.wrong()
        return least or 0, most

    def _number(self) -> int | None:
        token = self._next()
        if token is None or token.token_type != TokenType.NUMBER:
            return None
        if not (token.text.isascii() and token.text.isdecimal() and len(token.text) < 9):
            raise self.wrong()
        self.at += 1
        return int(token.text)

    def _next(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _take(self, kind: TokenType) -> bool:
        token = self._next()
        taken = token is not None and token.token_type == kind
        self.at += taken
        return taken
