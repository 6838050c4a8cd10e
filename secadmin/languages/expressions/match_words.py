"""MATCH_RECOGNIZE behind a relation's name: its clauses, as words.

It is taken out of the tokens before the text is parsed, because sqlglot keeps PATTERN as a text and
knows no WITHIN. A clause is found again by the position of the relation's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypedDict

from sqlglot.tokenizer_core import Token, TokenType

from catalog.errors import InvalidInput, Position
from catalog.pattern import NEXT_ROW, PAST_LAST_ROW, Pattern, Skip, SkipTo
from secadmin.languages.duration import interval_ms
from secadmin.languages.expressions.event_words import EventWords, events_at
from secadmin.languages.expressions.pattern_text import read_pattern
from secadmin.languages.expressions.places import Place
from secadmin.languages.expressions.refusals import word

_WORD = "MATCH_RECOGNIZE"
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_BEFORE_NAMES = {"FROM", ",", "JOIN"}
# How each clause begins, in the order of SQL.
_HEADS: dict[str, tuple[str, ...]] = {
    "partition": ("PARTITION BY",),
    "order": ("ORDER BY",),
    "measures": ("MEASURES",),
    "one": ("ONE", "ROW", "PER", "MATCH"),
    "all": ("ALL", "ROWS", "PER", "MATCH"),
    "after": ("AFTER", "MATCH", "SKIP"),
    "pattern": ("PATTERN", "("),
    "within": ("WITHIN",),
    "subset": ("SUBSET",),
    "define": ("DEFINE",),
}
_FORM = (
    "write MATCH_RECOGNIZE (PARTITION BY ... ORDER BY ... MEASURES ... ONE ROW PER MATCH AFTER "
    "MATCH SKIP PAST LAST ROW PATTERN (...) WITHIN INTERVAL '5' MINUTE DEFINE ...)"
)


@dataclass(frozen=True, slots=True)
class Named:
    """Words with a name: `LAST(A.price) AS price`, or `A AS price > 5`."""

    name: Token
    words: list[Token]


@dataclass(frozen=True, slots=True)
class MatchWords:
    """The clauses of one MATCH_RECOGNIZE. `word` is the word itself.

    It has a pattern and an order, or `events` (PATTERN SEQ).
    """

    word: Token
    within_ms: int
    pattern: Pattern | None
    order: Token | None
    skip: Skip = PAST_LAST_ROW
    partition: list[Token] = field(default_factory=list)
    measures: list[Named] = field(default_factory=list)
    definitions: list[Named] = field(default_factory=list)
    events: EventWords | None = None
    per_row: bool = False


def take_matches(tokens: list[Token], place: Place) -> dict[int, MatchWords]:
    """Remove each MATCH_RECOGNIZE from the tokens of a query. Raises InvalidInput.

    The result has them by the offset of the relation's name.
    """
    found: dict[int, MatchWords] = {}
    index = 0
    while index < len(tokens):
        events = events_at(tokens, index, place)
        if events is not None:
            name = events.events[0].stream
            found[name.start], end = _over_events(tokens, index, events, place)
            tokens[index:end] = [name]
            continue
        if word(tokens, index) == _WORD and word(tokens, index + 1) == "(":
            named = tokens[index - 1]
            if named.token_type not in _NAMES or word(tokens, index - 2) not in _BEFORE_NAMES:
                raise InvalidInput(
                    f"{_WORD} is written behind the name of a stream in FROM; give a query a name "
                    "with WITH",
                    place(tokens[index].start),
                )
            end = _closing(tokens, index + 1, place)
            found[named.start] = _read(tokens[index : end + 1], place)
            del tokens[index : end + 1]
            continue
        index += 1
    return found


def _over_events(
    tokens: list[Token], start: int, events: EventWords, place: Place
) -> tuple[MatchWords, int]:
    """The clauses around events, and the index behind them."""
    at = events.end + 1
    behind = at
    while behind < len(tokens) and word(tokens, behind - 1) not in _AFTER_LENGTH:
        behind += 1
    if word(tokens, at) != "WITHIN":
        raise InvalidInput(
            f"PATTERN {events.kind} lacks {_NEEDED['within']}", place(tokens[events.end].start)
        )
    within_ms = _within(tokens[at:behind], place)
    parts: dict[str, list[Token]] = {}
    end = tokens[behind - 1]
    if word(tokens, behind) == _WORD and word(tokens, behind + 1) == "(":
        closing = _closing(tokens, behind + 1, place)
        end = tokens[closing]
        parts = _clauses(tokens[behind + 2 : closing], place)
        behind = closing + 1
    for name, each in parts.items():
        if name not in _WITH_EVENTS:
            raise InvalidInput(
                f"with PATTERN {events.kind}, MATCH_RECOGNIZE has PARTITION BY, MEASURES, AFTER "
                "MATCH and DEFINE only",
                place(each[0].start),
            )
    words = MatchWords(
        tokens[start],
        within_ms,
        None,
        None,
        **_others(parts, NEXT_ROW, place, end),
        events=events,
    )
    return words, behind


_WITH_EVENTS = {"partition", "measures", "one", "after", "define"}
_AFTER_LENGTH = {
    f"{unit}{plural}"
    for unit in ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
    for plural in ("", "S")
}


class _Others(TypedDict):
    skip: Skip
    partition: list[Token]
    measures: list[Named]
    definitions: list[Named]


def _others(parts: dict[str, list[Token]], skip: Skip, place: Place, end: Token) -> _Others:
    """The clauses that may be left out."""
    _check_results(parts, place)
    return {
        "skip": _skip(parts["after"], place) if "after" in parts else skip,
        "partition": [*_names(parts["partition"][1:], place, end)] if "partition" in parts else [],
        "measures": [*_named(parts["measures"][1:], place, end)] if "measures" in parts else [],
        "definitions": [*_defined(parts["define"][1:], place, end)] if "define" in parts else [],
    }


def _check_results(parts: dict[str, list[Token]], place: Place) -> None:
    """Whether a match is one result or its rows are, and nothing else."""
    if "one" in parts and "all" in parts:
        raise InvalidInput("a match is one row or all its rows, not both", _at(parts["all"], place))
    for name in ("one", "all"):
        further = parts.get(name, [])[len(_HEADS[name]) :]
        if further:
            raise InvalidInput(
                "PER MATCH has no option: a match has at least one row, and rows without a "
                "match are left out",
                _at(further, place),
            )


def _closing(tokens: list[Token], opening: int, place: Place) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(word(tokens, index), 0)
        if depth == 0:
            return index
    raise InvalidInput("'(' is never closed", place(tokens[opening].start))


def _read(tokens: list[Token], place: Place) -> MatchWords:
    """The clauses between the parentheses of these tokens."""
    start, end = tokens[0], tokens[-1]
    parts = _clauses(tokens[2:-1], place)
    for name, reason in _REFUSED.items():
        if name in parts:
            raise InvalidInput(reason, place(parts[name][0].start))
    for name, missing in _NEEDED.items():
        if name not in parts:
            raise InvalidInput(f"{_WORD} lacks {missing}: {_FORM}", place(end.start))
    pattern = parts["pattern"]
    if word(pattern, len(pattern) - 1) != ")" or _closing(pattern, 1, place) != len(pattern) - 1:
        raise InvalidInput(
            f"one pair of parentheses is around PATTERN: {_FORM}", _at(pattern, place)
        )
    return MatchWords(
        start,
        _within(parts["within"], place),
        read_pattern(pattern[2:-1], place, pattern[-1].start),
        _single(parts["order"][1:], place, end),
        **_others(parts, PAST_LAST_ROW, place, end),
        per_row="all" in parts,
    )


_REFUSED = {
    "subset": "SUBSET is not part of this language: name the variables one by one",
}
_NEEDED = {
    "order": "ORDER BY with the event time",
    "pattern": "PATTERN (...)",
    "within": "WITHIN, which bounds how long a match may take",
}


def _clauses(tokens: list[Token], place: Place) -> dict[str, list[Token]]:
    """The words of each clause, with those that begin it."""
    found: dict[str, list[Token]] = {}
    depth, current = 0, ""
    for index, token in enumerate(tokens):
        now = word(tokens, index)
        head = _head(tokens, index) if depth == 0 else None
        if head is not None:
            order = list(_HEADS)
            if current and order.index(head) <= order.index(current):
                raise InvalidInput(f"{now} is not here: {_FORM}", place(token.start))
            current = head
        if not current:
            raise InvalidInput(f"cannot read {token.text[:20]!r} here: {_FORM}", place(token.start))
        found.setdefault(current, []).append(token)
        depth += {"(": 1, ")": -1}.get(now, 0)
    return found


def _head(tokens: list[Token], index: int) -> str | None:
    """The clause that begins at an index, or None."""
    if word(tokens, index - 1) in {".", "AS"} and index:
        return None
    for name, words in _HEADS.items():
        if all(word(tokens, index + n) == each for n, each in enumerate(words)):
            return name
    return None


def _at(tokens: list[Token], place: Place) -> Position:
    return place(tokens[0].start)


def _within(tokens: list[Token], place: Place) -> int:
    rest = [token.text for token in tokens[1:] if token.token_type != TokenType.INTERVAL]
    if len(rest) == 1:
        rest = rest[0].split()
    if len(rest) != 2:
        raise InvalidInput("WITHIN takes a length: WITHIN INTERVAL '5' MINUTE", _at(tokens, place))
    return interval_ms(rest[0], rest[1], _at(tokens, place))


def _skip(tokens: list[Token], place: Place) -> Skip:
    words = [word(tokens, index) for index in range(3, len(tokens))]
    match words:
        case ["TO", "NEXT", "ROW"]:
            return NEXT_ROW
        case ["PAST", "LAST", "ROW"]:
            return PAST_LAST_ROW
        case ["TO", "FIRST", _]:
            return Skip(SkipTo.FIRST, tokens[-1].text)
        case ["TO", "LAST", _] | ["TO", _]:
            return Skip(SkipTo.LAST, tokens[-1].text)
    raise InvalidInput(
        "write AFTER MATCH SKIP PAST LAST ROW, TO NEXT ROW, TO FIRST a or TO LAST a",
        _at(tokens, place),
    )


def _single(tokens: list[Token], place: Place, end: Token) -> Token:
    names = [*_names(tokens[:-1] if word(tokens, len(tokens) - 1) == "ASC" else tokens, place, end)]
    if len(names) != 1:
        raise InvalidInput("ORDER BY names the event time alone", place(names[1].start))
    return names[0]


def _names(tokens: list[Token], place: Place, end: Token) -> Iterator[Token]:
    for part in _listed(tokens):
        if len(part) != 1 or part[0].token_type not in _NAMES:
            wrong = part[0] if part else end
            raise InvalidInput("names of attributes belong here", place(wrong.start))
        yield part[0]


def _named(tokens: list[Token], place: Place, end: Token) -> Iterator[Named]:
    """MEASURES: `LAST(A.price) AS price, ...`."""
    for part in _listed(tokens):
        if len(part) < 3 or word(part, len(part) - 2) != "AS" or part[-1].token_type not in _NAMES:
            wrong = part[0] if part else end
            raise InvalidInput(
                "each of MEASURES has a name: LAST(A.price) AS price", place(wrong.start)
            )
        yield Named(part[-1], _as_calls(part[:-2], place))


def _defined(tokens: list[Token], place: Place, end: Token) -> Iterator[Named]:
    """DEFINE: `A AS price > 5, ...`."""
    for part in _listed(tokens):
        if len(part) < 3 or word(part, 1) != "AS" or part[0].token_type not in _NAMES:
            wrong = part[0] if part else end
            raise InvalidInput(
                "DEFINE has a condition for each variable: A AS price > 5", place(wrong.start)
            )
        yield Named(part[0], _as_calls(part[2:], place))


def _as_calls(tokens: list[Token], place: Place) -> list[Token]:
    """The words with RUNNING LAST(a) and FINAL LAST(a) as calls: FINAL(LAST(a))."""
    made: list[Token] = []
    # Where a call ends that is put around another one.
    ends: list[int] = []
    for index, token in enumerate(tokens):
        made.append(token)
        if word(tokens, index) in _WHEN and word(tokens, index + 2) == "(":
            made.append(_parenthesis(TokenType.L_PAREN, "(", tokens[index + 1]))
            ends.append(_closing(tokens, index + 2, place))
        while ends and ends[-1] == index:
            made.append(_parenthesis(TokenType.R_PAREN, ")", token))
            ends.pop()
    return made


_WHEN = {"RUNNING", "FINAL"}


def _parenthesis(kind: TokenType, text: str, near: Token) -> Token:
    return Token(kind, text, near.line, near.col, near.start, near.end)


def _listed(tokens: list[Token]) -> Iterator[list[Token]]:
    """The parts of a list with commas."""
    part: list[Token] = []
    depth = 0
    for index, token in enumerate(tokens):
        now = word(tokens, index)
        depth += {"(": 1, ")": -1}.get(now, 0)
        if now == "," and depth == 0:
            yield part
            part = []
        else:
            part.append(token)
    yield part
