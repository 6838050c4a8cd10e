"""Words and signs of SQL and CQL for which there is no operator, each with what to write instead.

They are refused before parsing, because the parser skips some of them. A message names the operator
and the clause. So it depends on the words around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot.tokenizer_core import Token, TokenType

_ONLY_ALL = "because every tuple would have to be kept for ever"
_ONLY_INNER = "only inner joins: write JOIN ... ON"
_MISSING = "an operator that does not exist yet"
_WINDOW = "give both sides a moving window, such as [RANGE 1 HOUR]"
Tokens = Sequence[Token]

PLAIN = {
    TokenType.ORDER_BY: "ORDER BY is not possible: a stream has no end; sort what you receive",
    TokenType.LIMIT: "LIMIT is not possible: the query runs on; stop it instead",
    TokenType.OFFSET: 'OFFSET is not possible on a stream (a name is written "offset")',
    TokenType.FETCH: "FETCH is not possible: the query runs on; stop it instead",
    TokenType.EXCEPT: f"EXCEPT is not possible on a stream, {_ONLY_ALL}; {_WINDOW}",
    TokenType.INTERSECT: f"INTERSECT is not possible on a stream, {_ONLY_ALL}; {_WINDOW}",
    TokenType.HINT: "hints are not part of this language",
    TokenType.TABLE_SAMPLE: "TABLESAMPLE is not part of this language",
    TokenType.QUALIFY: "QUALIFY is not part of this language",
    TokenType.NATURAL: f'{_ONLY_INNER} (a name is written "natural")',
    TokenType.ASOF: f'{_ONLY_INNER} (a name is written "asof")',
    TokenType.VALUES: "VALUES is not part of this language; a query reads streams and outputs",
}

DISTINCT = f"DISTINCT is not possible on a stream, {_ONLY_ALL}; group by a window"
_RELATION_TO_STREAM = {"ISTREAM", "DSTREAM", "RSTREAM", "UPSERT"}
_RANKS = {"RANK", "DENSE_RANK", "NTILE"}
# These go over moving windows, and over all tuples of a stream so far.
RANKED = {"ROW_NUMBER", "LAG", "LEAD"}
_NEIGHBOURS = {"FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"}
_WINDOWS = {
    "CUMULATE": f"CUMULATE windows are {_MISSING}; write TUMBLE with EMIT UPDATES",
}


def refusal(tokens: Tokens, index: int) -> str | None:
    """Why the word at an index is refused, or None if it may be there."""
    kind = tokens[index].token_type
    found = _BY_WORDS_AROUND.get(kind)
    if found is not None:
        return found(tokens, index)
    if kind in PLAIN:
        return PLAIN[kind]
    return _call(tokens, index)


def word(tokens: Tokens, index: int) -> str:
    """The word at an index in capital letters. It is empty for a quotation or outside the text."""
    quoted = (TokenType.IDENTIFIER, TokenType.STRING)
    if not 0 <= index < len(tokens) or tokens[index].token_type in quoted:
        return ""
    return tokens[index].text.upper()


def ranks(tokens: Tokens, index: int) -> bool:
    """Whether the word is the OVER of ROW_NUMBER, LAG or LEAD, or the ORDER BY of such an OVER."""
    if tokens[index].token_type == TokenType.ORDER_BY:
        index = _around(tokens, index) - 1
    closes = word(tokens, index) == "OVER" and word(tokens, index - 1) == ")"
    return closes and word(tokens, _opening(tokens, index - 1) - 1) in RANKED


def _call(tokens: Tokens, index: int) -> str | None:
    if (word(tokens, index), word(tokens, index + 1)) == ("GRACE", "PERIOD"):
        return "GRACE PERIOD is not part of this language: the stream has a lateness; leave it out"
    if word(tokens, index + 1) != "(":
        return None
    name = word(tokens, index)
    if name in _RELATION_TO_STREAM:
        return (
            f"{name} goes around the whole query: write {name}( before its SELECT and ) behind it; "
            f"or around all results of its SELECT"
        )
    if name in _WINDOWS and word(tokens, index - 1) not in {".", "AS"}:
        return _WINDOWS[name]
    return _over(tokens, index) if name == "OVER" else None


def _over(tokens: Tokens, index: int) -> str | None:
    if word(tokens, index - 1) != ")":
        return None
    name = word(tokens, _opening(tokens, index - 1) - 1)
    if name in _RANKS:
        return (
            f"{name}() OVER (places that several rows may share) is {_MISSING}; ROW_NUMBER() gives "
            "each row a place of its own"
        )
    if name in _NEIGHBOURS:
        return f"{name}(...) OVER (the tuple before or behind) is {_MISSING}"
    return (
        f"{name or 'A FUNCTION'}(...) OVER (a running aggregate) is {_MISSING}; "
        "write GROUP BY with TUMBLE or HOP"
    )


def _around(tokens: Tokens, index: int) -> int:
    """The index of the parenthesis that is open before the word at an index, or -1."""
    depth = 0
    for at in range(index - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(word(tokens, at), 0)
        if depth < 0:
            return at
    return -1


def _opening(tokens: Tokens, closing: int) -> int:
    """The index of the parenthesis that the one at `closing` closes, or -1."""
    depth = 0
    for index in range(closing, -1, -1):
        depth += {")": 1, "(": -1}.get(word(tokens, index), 0)
        if depth == 0:
            return index
    return -1


def _distinct(tokens: Tokens, index: int) -> str | None:
    before = word(tokens, index - 1)
    if before == "IS" or (before, word(tokens, index - 2)) == ("NOT", "IS"):
        return None
    if before == "(" and word(tokens, index - 2) == "COUNT":
        return None
    called = tokens[index - 2] if index > 1 and before == "(" else None
    if called is not None and called.token_type == TokenType.VAR:
        name = called.text.upper()
        return (
            f"{name}(DISTINCT ...) is {_MISSING}; put the value into GROUP BY too, and count these "
            "results in a query over this one's output"
        )
    return DISTINCT


def _order(tokens: Tokens, index: int) -> str | None:
    depth = 0
    for at in range(index, len(tokens)):
        depth += {"(": 1, ")": -1}.get(word(tokens, at), 0)
        if depth < 0:
            break
        if depth == 0 and tokens[at].token_type in (TokenType.LIMIT, TokenType.FETCH):
            return (
                "ORDER BY with LIMIT (top-N) needs a moving window, which bounds it, such as FROM "
                "trades [RANGE 1 HOUR]; or leave both out, and sort what you receive"
            )
    return PLAIN[TokenType.ORDER_BY]


def _window(tokens: Tokens, index: int) -> str | None:
    if word(tokens, index + 2) == "AS" and word(tokens, index + 3) == "(":
        return (
            "WINDOW names a window of OVER, which does not exist yet; write GROUP BY with TUMBLE "
            "or HOP"
        )
    return None


def _lateral(tokens: Tokens, index: int) -> str | None:
    if word(tokens, index + 1) == "VIEW":
        return None
    return (
        "LATERAL goes with VIEW EXPLODE(tags) t AS tag, and a query behind it is not part of this "
        "language; for the elements of an array leave it out: CROSS JOIN UNNEST(tags) AS t(tag)"
    )


def _bracket(tokens: Tokens, index: int) -> str | None:
    inside = word(tokens, index + 1)
    if inside in {"NOW", "UNBOUNDED", "RANGE", "ROWS", "PARTITION BY"}:
        return f"[{inside} ...] is written behind the name of a stream in FROM: FROM trades [NOW]"
    return None


_BY_WORDS_AROUND: dict[TokenType, Callable[[Tokens, int], str | None]] = {
    TokenType.DISTINCT: _distinct,
    TokenType.ORDER_BY: _order,
    TokenType.WINDOW: _window,
    TokenType.L_BRACKET: _bracket,
    TokenType.LATERAL: _lateral,
}
