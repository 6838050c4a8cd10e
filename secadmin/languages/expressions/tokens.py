"""Checks of single words, with the exact position, before any parsing.

sqlglot skips doubled commas and missing closing parentheses. It is also recursive, so deep nesting
is a RecursionError. So both are checked here.
"""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import Token, TokenType

from catalog.errors import InvalidInput
from secadmin.languages.expressions.places import Place
from secadmin.languages.expressions.refusals import PLAIN, ranks, refusal, word

# Each level takes 20 to 25 of Python's 1,000 frames.
MAX_NESTING = 30
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_NAMES_AND_CONSTANTS = {
    *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER),
}
_SIGNS = {
    *(TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT, TokenType.SEMICOLON),
    *(TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD),
    *(TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
    *(TokenType.DPIPE, TokenType.DCOLON, TokenType.L_BRACKET, TokenType.R_BRACKET),
}
_KEYWORD = re.compile(r"[A-Za-z_][A-Za-z0-9_ ]*")
_OPENERS = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.CASE: TokenType.END,
}
_CLOSERS = {closer: opener for opener, closer in _OPENERS.items()}
# A comma separates two things, so it must not be next to these.
_NO_COMMA_AFTER = {
    *(TokenType.COMMA, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.SELECT),
    TokenType.GROUP_BY,
}
_NO_COMMA_BEFORE = {TokenType.COMMA, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.FROM}
# Words over relations alone. Over streams the state would not be bounded.
_OF_RELATIONS = {
    *(TokenType.EXCEPT, TokenType.INTERSECT, TokenType.ORDER_BY, TokenType.LIMIT),
}
_OF_WINDOWS = {"TUMBLE", "HOP", "SESSION", "WINDOW", "WINDOW_START", "WINDOW_END", "CUMULATE"}
# The tokens after which an item of a list begins.
_BEFORE_ITEMS = {TokenType.SELECT, TokenType.L_PAREN, TokenType.COMMA}
_NO_SOURCE: set[TokenType | None] = {TokenType.FROM, TokenType.FOR, TokenType.R_PAREN}
# A word has nothing after it if one of these follows. A name follows AS; in CAST a type follows,
# in WITH a query.
_NOTHING: dict[TokenType, set[TokenType | None]] = {
    TokenType.FROM: _NO_SOURCE,
    TokenType.FOR: _NO_SOURCE,
    TokenType.ALIAS: {
        *(None, *_SIGNS - {TokenType.L_PAREN}, TokenType.ALIAS, TokenType.SELECT, TokenType.FROM),
        *(TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.UNION, TokenType.WITH),
        *(TokenType.JOIN, TokenType.ON, TokenType.END),
    },
}


def check_tokens(tokens: list[Token], place: Place, *, moving: bool = False) -> None:
    """Raise InvalidInput, with its position, for words that no query may have.

    `moving` says that the query has moving windows, or reads upserts. Such relations are bounded,
    so some words have a meaning over them only.
    """
    if not tokens:
        raise InvalidInput("there is no query here", place(0))
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        before = tokens[index - 1].token_type if index else None
        over = ranks(tokens, index) or (moving and _over_relations(tokens, index))
        fault = (
            (None if over else refusal(tokens, index))
            or _unknown(token)
            or _misplaced(token, before, word(tokens, index + 1))
        )
        fault = fault or _fault(token, following, moving=moving)
        if fault is not None:
            raise InvalidInput(fault, place(token.start))
    _check_nesting(tokens, place)


def read_as_relations(tokens: list[Token]) -> list[str]:
    """The names behind FROM and JOIN, if some word has a meaning over changing relations only."""
    if not any(_over_relations(tokens, index) or _unites(tokens, index) for index in _all(tokens)):
        return []
    return [
        tokens[index].text
        for index in _all(tokens)
        if index
        and tokens[index - 1].token_type in (TokenType.FROM, TokenType.JOIN)
        and tokens[index].token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    ]


def makes_endless_groups(tokens: list[Token]) -> bool:
    """Whether the query has groups and no window. They are groups of all tuples so far."""
    words = {word(tokens, index) for index in _all(tokens)}
    grouped = any(token.token_type == TokenType.GROUP_BY for token in tokens)
    return grouped and words.isdisjoint(_OF_WINDOWS)


def _all(tokens: list[Token]) -> range:
    return range(len(tokens))


def _unites(tokens: list[Token], index: int) -> bool:
    """Whether the word is a UNION that gives each row once."""
    return tokens[index].token_type == TokenType.UNION and word(tokens, index + 1) != "ALL"


def _over_relations(tokens: list[Token], index: int) -> bool:
    """Whether the word has a meaning over the relations of moving windows."""
    distinct = tokens[index].token_type == TokenType.DISTINCT
    return tokens[index].token_type in _OF_RELATIONS or (
        distinct and word(tokens, index - 1) == "SELECT"
    )


def _unknown(token: Token) -> str | None:
    """The fault of a sign or quotation of another dialect: |>, ->>, {, ?, N'...' and others."""
    kind = token.token_type
    if kind in PLAIN or kind in _SIGNS or kind in _NAMES_AND_CONSTANTS:
        return None
    quotation = kind.name.endswith("_STRING")
    known = _KEYWORD.fullmatch(token.text) and not quotation
    return None if known else f"{token.text[:20]!r} is not part of this language"


def _fault(token: Token, following: Token | None, *, moving: bool) -> str | None:
    kind = token.token_type
    after = following.token_type if following else None
    if kind == TokenType.SEMICOLON and following:
        return "one statement only"
    if kind == TokenType.UNION and after != TokenType.ALL and not moving:
        return (
            "UNION removes duplicates, which is not possible, because every tuple would have to be "
            "kept for ever; write UNION ALL, or give both sides a moving window such as [RANGE 1 "
            "HOUR]"
        )
    if kind == TokenType.VAR and not _NAME.fullmatch(token.text):
        return f"cannot read {token.text[:20]!r}"
    if kind == TokenType.NUMBER and following and following.start == token.end + 1:
        glued = after in {TokenType.VAR, TokenType.NUMBER, TokenType.IDENTIFIER}
        return f"cannot read the number {token.text[:20]!r}" if glued else None
    if after in _NOTHING.get(kind, ()):
        return f"{token.text.upper()} with nothing after it"
    return _comma_fault(kind, after)


def _misplaced(token: Token, before: TokenType | None, following: str) -> str | None:
    """The fault of a word in a place where sqlglot skips it or reads another kind of query."""
    starts = before in {None, TokenType.L_PAREN, TokenType.ALL}
    if token.token_type == TokenType.FROM and starts:
        return "a query starts with SELECT or WITH"
    leads = starts or before in {*_BEFORE_ITEMS, TokenType.FROM, TokenType.WITH}
    if token.token_type == TokenType.ALIAS and leads:
        return "AS with nothing before it"
    if token.token_type == TokenType.ALL and before in _BEFORE_ITEMS:
        return "ALL belongs after UNION"
    behind = token.token_type == TokenType.WITH and before == TokenType.R_PAREN
    if behind and following != "ORDINALITY":
        return "WITH may be written only once; a comma separates its queries"
    return None


def _comma_fault(kind: TokenType, after: TokenType | None) -> str | None:
    lonely_after = after == TokenType.COMMA and kind in _NO_COMMA_AFTER
    lonely_before = kind == TokenType.COMMA and (after is None or after in _NO_COMMA_BEFORE)
    return "a comma with nothing beside it" if lonely_after or lonely_before else None


def _check_nesting(tokens: list[Token], place: Place) -> None:
    open_: list[Token] = []
    run = 0
    for token in tokens:
        kind = token.token_type
        run = run + 1 if kind in {TokenType.NOT, TokenType.DASH, TokenType.PLUS} else 0
        if kind in _OPENERS:
            open_.append(token)
        elif kind in _CLOSERS:
            if not open_ or open_[-1].token_type != _CLOSERS[kind]:
                raise InvalidInput(f"{token.text!r} closes nothing", place(token.start))
            open_.pop()
        if len(open_) + run > MAX_NESTING:
            raise InvalidInput(
                f"nested more than {MAX_NESTING} deep; use WITH to name a part",
                place(token.start),
            )
    if open_:
        raise InvalidInput(f"{open_[-1].text!r} is never closed", place(open_[-1].start))
