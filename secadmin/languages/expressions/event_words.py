"""PATTERN SEQ (...), AND (...) and OR (...): patterns over the events of several streams (003 §3).

`FROM PATTERN SEQ(trades a, NOT quotes b, trades c) WITHIN INTERVAL '5' MINUTE`, perhaps with
MATCH_RECOGNIZE (...) behind it, is taken out of the tokens of a query. In its place stays the name
of the first stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlglot.tokenizer_core import Token, TokenType

from catalog.errors import InvalidInput
from secadmin.languages.expressions.places import Place
from secadmin.languages.expressions.refusals import word

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_FORM = "write PATTERN SEQ(trades a, NOT quotes b, trades c) WITHIN INTERVAL '5' MINUTE"


class Kind(StrEnum):
    """How the events follow each other: in this order, in any order, or one of them."""

    SEQ = "SEQ"
    AND = "AND"
    OR = "OR"


@dataclass(frozen=True, slots=True)
class Event:
    """A stream, and the variable of its event. If it is `absent`, there must be none."""

    stream: Token
    variable: Token
    absent: bool


@dataclass(frozen=True, slots=True)
class EventWords:
    """The events of a pattern. `end` is the index of the parenthesis behind them."""

    kind: Kind
    events: tuple[Event, ...]
    end: int


def events_at(tokens: list[Token], index: int, place: Place) -> EventWords | None:
    """The events of a pattern that begins at this word of FROM, or None."""
    named = word(tokens, index - 1) == "FROM" and word(tokens, index) == "PATTERN"
    kind = word(tokens, index + 1)
    if not named or kind not in {*Kind} or word(tokens, index + 2) != "(":
        return None
    events: list[Event] = []
    at = index + 3
    while True:
        absent = word(tokens, at) == "NOT"
        at += absent
        pair = tokens[at : at + 2]
        if len(pair) < 2 or any(each.token_type not in _NAMES for each in pair):
            wrong = tokens[min(at, len(tokens) - 1)]
            raise InvalidInput(f"a stream and a variable belong here: {_FORM}", place(wrong.start))
        events.append(Event(pair[0], pair[1], absent))
        at += 2
        if word(tokens, at) == ")":
            return EventWords(Kind(kind), tuple(events), at)
        if word(tokens, at) != ",":
            wrong = tokens[min(at, len(tokens) - 1)]
            raise InvalidInput(f"a comma or ) belongs here: {_FORM}", place(wrong.start))
        at += 1
