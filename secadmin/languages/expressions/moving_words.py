"""CQL's words: `[ROWS 100]` behind a relation's name, and ISTREAM, DSTREAM, RSTREAM.

They are taken out of the tokens before the text is parsed, because sqlglot would read them as
something else. A window is found again by the position of the relation's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot.tokenizer_core import Token, TokenType

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef
from catalog.plan import Change, MovingWindow
from secadmin.languages.duration import interval_ms
from secadmin.languages.expressions.places import Place
from secadmin.languages.expressions.refusals import word

_FORMS = (
    "write [NOW], [RANGE 5 MINUTES], [ROWS 100], [ROWS 100 SLIDE 10], [ROWS 100 OF ALL] or "
    "[PARTITION BY symbol ROWS 1] behind the relation's name"
)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_CLAUSES = {"SELECT", "FROM", "ON", "WHERE", "GROUP BY", "HAVING", "UNION", "WINDOW", "EMIT"}
_CHANGES = {change.name for change in Change}
_BEFORE_NAMES = {"FROM", ",", "JOIN"}


@dataclass(frozen=True, slots=True)
class MovingWords:
    """The words of CQL in a text.

    `windows` has each window by the position of its relation's name. `change` is what the whole
    query sends of a relation's changes, or None if the text does not say it.
    """

    windows: Mapping[Position, MovingWindow] = field(default_factory=dict)
    change: Change | None = None
    position: Position | None = None


def take_moving(tokens: list[Token], place: Place) -> MovingWords:
    """Remove CQL's words from the tokens of a query. Raises InvalidInput."""
    found = _take_change(tokens)
    change, position = (None, None) if found is None else (found[0], place(found[1].start))
    windows: dict[Position, MovingWindow] = {}
    # For each open parenthesis the clause of the query in it.
    clauses = [""]
    index = 0
    while index < len(tokens):
        _follow(clauses, word(tokens, index), word(tokens, index - 1))
        bracket = tokens[index].token_type == TokenType.L_BRACKET
        named = _named_before(tokens, index) if bracket and clauses[-1] == "FROM" else None
        if named is not None:
            end = _closing(tokens, index, place)
            inner = tokens[index + 1 : end]
            windows[place(named.start)] = _window(inner, place, tokens[index])
            del tokens[index : end + 1]
            continue
        index += 1
    return MovingWords(windows, change, position)


def _take_change(tokens: list[Token]) -> tuple[Change, Token] | None:
    """Take ISTREAM(SELECT ...), SELECT ISTREAM(...) or SELECT ISTREAM ... apart."""
    start = _main_query(tokens)
    around = word(tokens, start) != "SELECT"
    at = start if around else start + 1
    name, follows = word(tokens, at), word(tokens, at + 1)
    # Before these words it is the name of an attribute.
    if name not in _CHANGES or (not around and follows in {"FROM", ",", "AS", ".", ""}):
        return None
    token = tokens[at]
    if follows == "(":
        closing = _parenthesis(tokens, at + 1)
        behind = word(tokens, closing + 1)
        # SELECT ISTREAM(a) AS b is no form of CQL. It is refused as a missing function.
        if closing < 0 or behind != ("" if around else "FROM"):
            return None
        del tokens[closing]
        del tokens[at + 1]
    del tokens[at]
    return Change(name.lower()), token


def _main_query(tokens: list[Token]) -> int:
    """The index at which the query behind WITH begins."""
    if word(tokens, 0) != "WITH":
        return 0
    depth = 0
    for index in range(len(tokens)):
        now = word(tokens, index)
        depth += {"(": 1, ")": -1}.get(now, 0)
        wraps = now in _CHANGES and word(tokens, index + 1) == "("
        if depth == 0 and (now == "SELECT" or (wraps and word(tokens, index + 2) == "SELECT")):
            return index
    return 0


def _parenthesis(tokens: list[Token], opening: int) -> int:
    """The index of the parenthesis that closes the one at `opening`, or -1."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(word(tokens, index), 0)
        if depth == 0:
            return index
    return -1


def _follow(clauses: list[str], now: str, before: str) -> None:
    """Go on by one word. Elsewhere than in FROM, a window would be taken and mean nothing."""
    if now == "FROM" and (clauses[-1] != "SELECT" or before == "DISTINCT"):
        # Of a IS DISTINCT FROM b[1], or EXTRACT(YEAR FROM times[1]).
        return
    if now == "(":
        clauses.append("")
    elif now == ")" and len(clauses) > 1:
        clauses.pop()
    elif now in _CLAUSES:
        clauses[-1] = now
    elif now == "JOIN":
        # Behind the ON of another join.
        clauses[-1] = "FROM"


def _named_before(tokens: list[Token], index: int) -> Token | None:
    """The relation's name before a bracket: `trades [`, `trades t [` or `trades AS t [`."""
    if index < 2 or tokens[index - 1].token_type not in _NAMES:
        return None
    for at in (index - 1, index - 2, index - 3):
        named = at > 0 and tokens[at].token_type in _NAMES
        if named and word(tokens, at - 1) in _BEFORE_NAMES:
            is_as = at != index - 3 or word(tokens, index - 2) == "AS"
            return tokens[at] if is_as else None
    return None


def _closing(tokens: list[Token], opening: int, place: Place) -> int:
    for index in range(opening + 1, len(tokens)):
        if tokens[index].token_type == TokenType.R_BRACKET:
            return index
    raise InvalidInput("'[' is never closed", place(tokens[opening].start))


def _window(inner: list[Token], place: Place, bracket: Token) -> MovingWindow:
    at = place(bracket.start)
    of_all = [word(inner, len(inner) - back) for back in (2, 1)] == ["OF", "ALL"]
    window = _sized(inner[:-2] if of_all else inner, at)
    return replace(window, of_all=of_all)


def _sized(inner: list[Token], at: Position) -> MovingWindow:
    words = [word(inner, index) or token.text for index, token in enumerate(inner)]
    texts = [token.text for token in inner]
    match words:
        case ["NOW"]:
            return MovingWindow(range_ms=0)
        case ["ROWS", rows]:
            return MovingWindow(rows=_rows(rows, at))
        case ["ROWS", rows, "SLIDE", slide]:
            return MovingWindow(rows=_rows(rows, at), slide_rows=_rows(slide, at))
        case ["RANGE", "UNBOUNDED"] | ["UNBOUNDED"] | ["ROWS", "UNBOUNDED"]:
            return MovingWindow()
        case ["RANGE", amount, unit] | ["RANGE", "INTERVAL", amount, unit]:
            return MovingWindow(range_ms=interval_ms(amount, unit, at))
        case ["RANGE", amount, unit, "SLIDE", *slide] | [
            "RANGE",
            "INTERVAL",
            amount,
            unit,
            "SLIDE",
            *slide,
        ] if len(slide) in (2, 3):
            slide_ms = interval_ms(slide[-2], slide[-1], at)
            return MovingWindow(range_ms=interval_ms(amount, unit, at), slide_ms=slide_ms)
        case ["PARTITION BY", *_]:
            return _partitioned(texts[1:], at)
    raise InvalidInput(f"this is no window: {_FORMS}", at)


def _partitioned(words: list[str], at: Position) -> MovingWindow:
    slide = None
    if len(words) > 4 and words[-2].upper() == "SLIDE":
        slide = _rows(words[-1], at)
        words = words[:-2]
    if len(words) < 3 or words[-2].upper() != "ROWS":
        raise InvalidInput(f"this is no window: {_FORMS}", at)
    names, commas = words[:-2:2], words[1:-2:2]
    if any(comma != "," for comma in commas) or len(names) != len(commas) + 1:
        raise InvalidInput(f"this is no window: {_FORMS}", at)
    partition = tuple(map(AttributeRef, names))
    return MovingWindow(rows=_rows(words[-1], at), partition=partition, slide_rows=slide)


def _rows(text: str, at: Position) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise InvalidInput(f"ROWS, and SLIDE behind it, take a whole number: {_FORMS}", at)
    return int(text)
