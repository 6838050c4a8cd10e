"""Flink's and Spark's words around windows, in the form in which sqlglot reads all windows.

Flink writes `TABLE(TUMBLE(TABLE trades, ...))` where RisingWave writes `TUMBLE(trades, ...)`. Spark
calls its window `window`, which is a keyword elsewhere, and so is SESSION. The keys of a session,
`SESSION(trades PARTITION BY symbol, ts, ...)`, become arguments behind the relation.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from secadmin.languages.expressions.refusals import word

TABLE_FUNCTIONS = frozenset({"TUMBLE", "HOP", "SESSION", "CUMULATE"})


def plain_windows(tokens: list[Token]) -> None:
    """Take TABLE off the window functions of FROM, and read `window(...)` as a function's name."""
    _take_tables(tokens)
    _open_partitions(tokens)
    for index, token in enumerate(tokens):
        called = token.token_type == TokenType.WINDOW and word(tokens, index + 1) in {"(", "."}
        # The end of Spark's window: window(ts, '1 hour').end
        ending = token.token_type == TokenType.END and word(tokens, index - 1) == "."
        session = token.token_type == TokenType.SESSION and word(tokens, index + 1) == "("
        if called or ending or session:
            token.token_type = TokenType.VAR


def _open_partitions(tokens: list[Token]) -> None:
    """Make PARTITION BY a comma, if it is in the parentheses of SESSION."""
    opened: list[bool] = []
    for index, token in enumerate(tokens):
        now = word(tokens, index)
        if now == "(":
            opened.append(word(tokens, index - 1) == "SESSION")
        elif now == ")" and opened:
            opened.pop()
        elif token.token_type == TokenType.PARTITION_BY and opened and opened[-1]:
            token.token_type = TokenType.COMMA


def _take_tables(tokens: list[Token]) -> None:
    taken: set[int] = set()
    # For each open parenthesis: the index of the TABLE before it, or None.
    opened: list[int | None] = []
    for index in range(len(tokens)):
        now = word(tokens, index)
        if now == "(":
            wraps = word(tokens, index - 1) == "TABLE"
            wraps = wraps and word(tokens, index + 1) in TABLE_FUNCTIONS
            opened.append(index if wraps else None)
        elif now == ")" and opened:
            opening = opened.pop()
            taken |= set() if opening is None else {opening - 1, opening, index}
        elif now == "TABLE" and word(tokens, index - 1) == "(":
            taken |= {index} if word(tokens, index - 2) in TABLE_FUNCTIONS else set()
    tokens[:] = [token for index, token in enumerate(tokens) if index not in taken]
