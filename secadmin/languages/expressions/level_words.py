"""The words of levels (001 §3): AT LEVEL [1, T] before a query, and levels in conditions.

They are taken out of the tokens before the text is parsed, because sqlglot would read a bracket as
something else.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from catalog.conflict_class import LEVEL, canonical_level
from catalog.errors import InvalidInput
from secadmin.languages.expressions.places import Place
from secadmin.languages.expressions.refusals import word

_FORM = "write AT LEVEL [Company1, _, T] SELECT ..."
_COMPARES = frozenset({"=", "<>", "!=", "(", ",", "FROM"})


def take_level(tokens: list[Token], place: Place) -> str | None:
    """Remove AT LEVEL [...] from the beginning. Gives the level as it is written."""
    if (word(tokens, 0), word(tokens, 1)) != ("AT", "LEVEL"):
        return None
    if len(tokens) < 3 or tokens[2].token_type != TokenType.L_BRACKET:
        at = tokens[2].start if len(tokens) > 2 else tokens[1].end + 1
        raise InvalidInput(f"AT LEVEL without a level: {_FORM}", place(at))
    end = _closing(tokens, 2, place)
    level = _written(tokens[3:end])
    del tokens[: end + 1]
    if not tokens:
        raise InvalidInput("AT LEVEL with nothing after it: a SELECT is missing", place(0))
    return level


def plain_levels(tokens: list[Token], place: Place) -> None:
    """Write the levels that a condition compares with `level` as texts, as the platform does.

    Both `level = [1, _]` and `level = '[1,_]'` become a text. Raises InvalidInput.
    """
    index = 0
    compares = False
    while index < len(tokens):
        now = word(tokens, index)
        if now == LEVEL.upper():
            compares = True
        elif compares and tokens[index].token_type == TokenType.STRING:
            tokens[index].text = canonical_level(tokens[index].text) or tokens[index].text
        elif compares and _is_level(tokens, index):
            end = _closing(tokens, index, place)
            token = tokens[index]
            token.text = canonical_level(_written(tokens[index + 1 : end])) or ""
            token.token_type = TokenType.STRING
            del tokens[index + 1 : end + 1]
        elif now not in _COMPARES and now not in {"IS", "NOT", "DISTINCT", "IN"}:
            compares = False
        index += 1


def _is_level(tokens: list[Token], index: int) -> bool:
    return tokens[index].token_type == TokenType.L_BRACKET and word(tokens, index - 1) in _COMPARES


def _written(tokens: list[Token]) -> str:
    """The level between the brackets. The words of a name are joined by a blank."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.COMMA:
            parts.append([])
        else:
            parts[-1].append(token.text)
    return f"[{', '.join(' '.join(part) for part in parts)}]"


def _closing(tokens: list[Token], opening: int, place: Place) -> int:
    for index in range(opening + 1, len(tokens)):
        if tokens[index].token_type == TokenType.R_BRACKET:
            return index
    raise InvalidInput("'[' is never closed", place(tokens[opening].start))
