"""The words around a query: AS role (000 §4.1), AT LEVEL, SEMANTICS, CREATE ... AS, EMIT ..."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from sqlglot.tokenizer_core import Token, TokenType

from catalog.errors import InvalidInput, Position
from catalog.names import MOST_ROLES
from secadmin.languages.expressions.level_words import take_level
from secadmin.languages.expressions.places import Place
from secadmin.languages.expressions.refusals import word


class Emit(StrEnum):
    """What EMIT asks for. CHANGES (ksqlDB) asks for updates only where there is a window."""

    UPDATES = "EMIT UPDATES"
    CHANGES = "EMIT CHANGES"
    FINAL = "EMIT FINAL"
    ON_CLOSE = "EMIT ON WINDOW CLOSE"


@dataclass(frozen=True, slots=True)
class Statement:
    """The words that were taken off a query. Offsets count from the beginning of the text.

    `name` is the name that CREATE gives, or None. `emit` is None if there is no EMIT. `roles` are
    those that AS names, in their order. `level` is the level that AT LEVEL names as it is written,
    or None. `semantics` is what SEMANTICS names, in small letters, or None.
    """

    name: str | None = None
    name_offset: int = 0
    emit: Emit | None = None
    emit_offset: int = 0
    roles: tuple[str, ...] = ()
    level: str | None = None
    semantics: str | None = None


_STARTS = ("SELECT", "WITH", "CREATE", "AS", "AT", "SEMANTICS")
_SEMANTICS = ("STRONG", "VIEW", "ISOLATED", "EXACT")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_CREATED = (["MATERIALIZED", "VIEW"], ["VIEW"], ["STREAM"], ["TABLE"])
_FORM = "CREATE MATERIALIZED VIEW name AS SELECT ... (or VIEW, STREAM, TABLE)"


def take_statement(tokens: list[Token], place: Place) -> Statement:
    """Remove the words around a query from its tokens. Raises InvalidInput."""
    if not tokens:
        return Statement()
    _check_start(tokens, place)
    emit, emit_offset = _take_emit(tokens)
    roles = _take_roles(tokens, place)
    level = take_level(tokens, place)
    semantics = _take_semantics(tokens, place)
    if word(tokens, 0) != "CREATE":
        return Statement(None, 0, emit, emit_offset, roles, level, semantics)
    name = _take_create(tokens, place)
    return Statement(name.text, name.start, emit, emit_offset, roles, level, semantics)


def _check_start(tokens: list[Token], place: Place) -> None:
    first = word(tokens, 0)
    if first == "INSERT":
        named = len(tokens) > 2 and tokens[2].token_type in _NAMES
        name = tokens[2].text[:40] if named else "NAME"
        raise InvalidInput(
            "INSERT INTO is not part of this language, because a query has an output of its own: "
            f"write the SELECT alone, and add it with: secadmin query add {name} FILE",
            place(tokens[0].start),
        )
    if first in _STARTS:
        return
    if near := get_close_matches(first, _STARTS, n=1, cutoff=0.75):
        raise InvalidInput(
            f"a query starts with SELECT or WITH; did you mean {near[0]}?", place(tokens[0].start)
        )


def _take_emit(tokens: list[Token]) -> tuple[Emit | None, int]:
    for emit in Emit:
        words = emit.split()
        at = len(tokens) - len(words)
        if at < 0 or [word(tokens, at + i) for i in range(len(words))] != words:
            continue
        # In `FROM emit updates`, `emit` is a relation and `updates` is its alias.
        if at and tokens[at - 1].token_type == TokenType.FROM:
            continue
        offset = tokens[at].start
        del tokens[at:]
        return emit, offset
    return None, 0


def _take_roles(tokens: list[Token], place: Place) -> tuple[str, ...]:
    """Remove AS role[, role] from the beginning. Gives the roles."""
    if word(tokens, 0) != "AS":
        return ()
    roles: list[str] = []
    at = 1
    while at == 1 or word(tokens, at - 1) == ",":
        if at >= len(tokens) or tokens[at].token_type not in _NAMES:
            raise InvalidInput(
                "AS names the roles with which the query reads: AS doctor SELECT ..., or AS "
                'doctor, nurse SELECT ...; a name with other characters is written in "quotes"',
                _place_at(tokens, at, place),
            )
        if tokens[at].text in roles:
            raise InvalidInput(
                f"AS names the role {tokens[at].text[:80]} twice", place(tokens[at].start)
            )
        if len(roles) == MOST_ROLES:
            raise InvalidInput(f"AS names at most {MOST_ROLES} roles", place(tokens[at].start))
        roles.append(tokens[at].text)
        at += 2
    del tokens[: at - 1]
    if not tokens:
        raise InvalidInput("AS role with nothing after it: a SELECT is missing", place(0))
    _check_start(tokens, place)
    return tuple(roles)


def _take_semantics(tokens: list[Token], place: Place) -> str | None:
    """Remove SEMANTICS VIEW (or another one) from the beginning. Gives what it names."""
    if word(tokens, 0) != "SEMANTICS":
        return None
    named = word(tokens, 1)
    if named not in _SEMANTICS:
        raise InvalidInput(
            "SEMANTICS is VIEW (each subscriber gets what the query gives over the tuples that the "
            "subscriber may see), ISOLATED (the same, and each delivery class runs apart), "
            "EXACT (results by one role alone) or STRONG (the usual one): SEMANTICS VIEW SELECT "
            "...; weak delivery is turned on by an administrator: secadmin output weak",
            _place_at(tokens, 1, place),
        )
    del tokens[:2]
    if not tokens:
        raise InvalidInput(
            f"SEMANTICS {named} with nothing after it: a SELECT is missing", place(0)
        )
    _check_start(tokens, place)
    return named.lower()


def _take_create(tokens: list[Token], place: Place) -> Token:
    """Remove the words from CREATE to AS. Gives the token of the name."""
    at = 1
    if [word(tokens, at), word(tokens, at + 1)] == ["OR", "REPLACE"]:
        raise InvalidInput(
            "OR REPLACE is not part of this language; remove the query and add it again",
            place(tokens[at].start),
        )
    for words in _CREATED:
        if [word(tokens, at + i) for i in range(len(words))] == words:
            at += len(words)
            break
    else:
        raise InvalidInput(f"write {_FORM}, or the SELECT alone", place(tokens[0].start))
    if word(tokens, at) == "IF":
        raise InvalidInput("IF NOT EXISTS is not part of this language", place(tokens[at].start))
    if at >= len(tokens) or tokens[at].token_type not in _NAMES:
        raise InvalidInput(f"a name is missing: write {_FORM}", _place_at(tokens, at, place))
    name = tokens[at]
    at += 1
    if word(tokens, at) == "WITH":
        raise InvalidInput(
            "WITH (...) names topics and formats, which the platform does itself; leave it out",
            place(tokens[at].start),
        )
    if at >= len(tokens) or tokens[at].token_type != TokenType.ALIAS:
        raise InvalidInput(f"AS is missing: write {_FORM}", _place_at(tokens, at, place))
    if at + 1 == len(tokens):
        raise InvalidInput("AS with nothing after it: a SELECT is missing", place(tokens[at].start))
    del tokens[: at + 1]
    return name


def _place_at(tokens: list[Token], index: int, place: Place) -> Position:
    """The position of a token, or of the end of the text."""
    return place(tokens[index].start if index < len(tokens) else tokens[-1].end + 1)
