"""From a text to a syntax tree that has every word of the text.

The tree is as sqlglot made it. The readers of the tree check, with `only`, that the language has
each node and each argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from catalog.errors import InvalidInput, Position
from secadmin.languages.expressions.absent import REGULAR_EXPRESSIONS
from secadmin.languages.expressions.dialect import MAX_SYNTAX_NODES, Misread, Sql
from secadmin.languages.expressions.level_words import plain_levels
from secadmin.languages.expressions.match_clause import MatchClause
from secadmin.languages.expressions.match_words import MatchWords, Named, take_matches
from secadmin.languages.expressions.moving_words import MovingWords, take_moving
from secadmin.languages.expressions.nested_values import plain_arrows, plain_lateral
from secadmin.languages.expressions.places import Place, offset, own_offset
from secadmin.languages.expressions.statement import Statement, take_statement
from secadmin.languages.expressions.tokens import (
    check_tokens,
    makes_endless_groups,
    read_as_relations,
)
from secadmin.languages.expressions.window_words import plain_windows

MAX_TREE_DEPTH = 150
# Chains of these are read in a loop, so a long chain does not count as deep.
CHAINED = (exp.And, exp.Or, exp.DPipe, exp.Union)
_CONSTANTS = {TokenType.STRING, TokenType.NUMBER}
_WORDS = {TokenType.VAR, TokenType.IDENTIFIER, *_CONSTANTS}
# The longest beginning of a text in which every quotation and comment is closed.
_CLOSED = re.compile(
    r"""(?:'[^']*'|"[^"]*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?!/\*)[^'"`])*+""", re.DOTALL
)
_UNFINISHED = {TokenType.GROUP_BY, TokenType.HAVING, TokenType.WHERE, TokenType.ON}
_NODE_WORDS = {
    "anonymous": "a function call",
    "tablealias": "an alias",
    "table": "a relation's name",
    "tuple": "a list in parentheses",
}
_REFUSED_NODES: dict[type[exp.Expr], str] = {
    exp.SimilarTo: REGULAR_EXPRESSIONS,
    exp.Subquery: "a query inside an expression is not part of this language; use a join",
    exp.Select: "a query inside an expression is not part of this language; use a join",
    exp.Interval: "INTERVAL may be used only in windows and in the time bound of a join",
    exp.Null: "NULL may be used only as the value of an expression",
    exp.Alias: "AS belongs after a whole item of the SELECT list",
    exp.Star: "* may be used only in the SELECT list and in count(*)",
    exp.Window: (
        "OVER belongs in the SELECT list, and inside of no aggregate and no other OVER: give it a "
        "name with AS there, and use the name in a query around this one"
    ),
}


_SQL = Sql()


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """The syntax tree of a query, and what was taken out of its text before.

    `statement` has the words around it, `moving` the words of CQL. `matches` has each
    MATCH_RECOGNIZE by the position of the relation's name.
    """

    tree: exp.Expr
    statement: Statement
    moving: MovingWords
    matches: Mapping[Position, MatchClause]


def parse_query(
    text: str, place: Place, is_changing: Callable[[str], bool] = lambda _name: False
) -> ParsedQuery:
    """The syntax tree of the query in a statement. Raises InvalidInput.

    `is_changing` says whether what has this name is read as a changing relation.
    """
    tokens = _tokens(text, place)
    statement = take_statement(tokens, place)
    matches = {
        place(start): _match_clause(words, text, place)
        for start, words in take_matches(tokens, place).items()
    }
    plain_windows(tokens)
    plain_levels(tokens, place)
    moving = take_moving(tokens, place)
    _check_end(tokens, text, place)
    changing = bool(moving.windows) or makes_endless_groups(tokens)
    changing = changing or any(map(is_changing, read_as_relations(tokens)))
    check_tokens(tokens, place, moving=changing)
    tree = _parse(tokens, place, lambda parser: parser.parse(tokens, text))
    return ParsedQuery(tree, statement, moving, matches)


def _match_clause(words: MatchWords, text: str, place: Place) -> MatchClause:
    def parsed(each: Named) -> tuple[str, exp.Expr, Position]:
        check_tokens(each.words, place)
        tree = _parse(each.words, place, lambda p: p.parse_condition(each.words, text))
        return each.name.text, tree, place(each.name.start)

    return MatchClause(
        place(words.word.start),
        words.within_ms,
        words.pattern,
        None if words.order is None else (words.order.text, place(words.order.start)),
        words.skip,
        tuple((each.text, place(each.start)) for each in words.partition),
        tuple(map(parsed, words.measures)),
        tuple(map(parsed, words.definitions)),
        words.events,
        words.per_row,
    )


def statement_of(text: str, place: Place) -> Statement:
    """The words around a query. Raises InvalidInput."""
    return take_statement(_tokens(text, place), place)


def _check_end(tokens: list[Token], text: str, place: Place) -> None:
    """Refuse a text that ends where an expression must follow, with the position of the end."""
    if tokens and tokens[-1].token_type in _UNFINISHED:
        words = " ".join(tokens[-1].text.upper().split())
        raise InvalidInput(f"{words} lacks its expression", place(len(text.rstrip("; \t\r\n"))))


def parse_expression(text: str, place: Place) -> exp.Expr:
    """The syntax tree of a single expression. Raises InvalidInput."""
    tokens = _tokens(text, place)
    check_tokens(tokens, place)
    return _parse(tokens, place, lambda parser: parser.parse_condition(tokens, text))


def only(node: exp.Expr, *allowed: str, place: Place) -> None:
    """Raise InvalidInput if a node has an argument that its reader does not know."""
    for name, value in node.args.items():
        if name in allowed or value is None or value is False or value == []:
            continue
        part = value[0] if isinstance(value, list) else value
        where = part if isinstance(part, exp.Expr) else node
        raise InvalidInput(
            f"this form of {_word(node)} is not part of this language ({name.strip('_')})",
            place(offset(where)),
        )


def refused(node: exp.Expr, place: Place) -> InvalidInput:
    """The error for a node that the language does not allow at its place."""
    words = _REFUSED_NODES.get(type(node), f"{_word(node)} is not part of this language here")
    return InvalidInput(words, place(offset(node)))


def chain(node: exp.Expr, *allowed: str, place: Place) -> list[exp.Expr]:
    """The operands of a chain of one operator, such as a AND b AND c.

    Raises InvalidInput if a link has arguments that are neither operands nor allowed.
    """
    operands: list[exp.Expr] = []
    rest = [node]
    while rest:
        part = rest.pop()
        if type(part) is type(node):
            only(part, "this", "expression", *allowed, place=place)
            rest += [part.expression, part.this]
        else:
            operands.append(part)
    return operands


def conditions(node: exp.Expr, place: Place) -> list[exp.Expr]:
    """The conditions that AND connects, without parentheses around them. Raises InvalidInput."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.And):
        return [node]
    return [inner for part in chain(node, place=place) for inner in conditions(part, place)]


def _word(node: exp.Expr) -> str:
    return _NODE_WORDS.get(node.key, node.key.upper())


def _tokens(text: str, place: Place) -> list[Token]:
    try:
        tokens: list[Token] = _SQL.tokenize(text)
    except TokenError:
        raise _unreadable_string(text, place) from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    plain_arrows(tokens)
    plain_lateral(tokens)
    return tokens


def _parse(
    tokens: list[Token], place: Place, parse: Callable[[Sql.Parser], list[exp.Expr | None]]
) -> exp.Expr:
    parser = Sql.Parser(dialect=_SQL, max_nodes=MAX_SYNTAX_NODES)
    try:
        trees = parse(parser)
    except Misread as error:
        raise _misread(error, tokens, place) from None
    except RecursionError:
        raise InvalidInput(
            "the query is nested too deeply; use WITH to name a part", place(0)
        ) from None
    except Exception as error:  # sqlglot's grammar is large; no text may bring the service down
        raise InvalidInput("the query cannot be read here", place(parser.reached())) from error
    if len(trees) != 1 or trees[0] is None:
        raise InvalidInput("there is no query here", place(0))
    _check_depth(trees[0], place)
    _check_complete(trees[0], tokens, place)
    return trees[0]


def _unreadable_string(text: str, place: Place) -> InvalidInput:
    """The error for a failed tokenizer. It fails only if a quotation or comment is not closed."""
    opened = _CLOSED.match(text)
    where = opened.end() if opened else 0
    return InvalidInput("a quotation or comment that opens here is never closed", place(where))


def _misread(error: Misread, tokens: list[Token], place: Place) -> InvalidInput:
    if error.ended:
        return InvalidInput("the query ends here, but is not complete", place(error.offset))
    token = next((t for t in tokens if t.start == error.offset), None)
    near = f"cannot read the query from {token.text[:40]!r} on" if token else "cannot read this"
    return InvalidInput(near, place(error.offset))


def _check_depth(tree: exp.Expr, place: Place) -> None:
    rest = [(tree, 1)]
    while rest:
        node, depth = rest.pop()
        if depth > MAX_TREE_DEPTH:
            raise InvalidInput("the query is nested too deeply; use WITH to name a part", place(0))
        for child in node.iter_expressions():
            same = isinstance(child, CHAINED) and type(child) is type(node)
            rest.append((child, depth if same else depth + 1))


def _check_complete(tree: exp.Expr, tokens: list[Token], place: Place) -> None:
    """Check that the tree has every name and constant, and that CASE and BETWEEN are complete.

    sqlglot skips some words, and no other code would see them.
    """
    nodes = list(tree.walk())
    seen = {own_offset(node) for node in nodes}
    constants = {own_offset(node) for node in nodes if isinstance(node, exp.Literal)}
    for token in tokens:
        known = constants if token.token_type in _CONSTANTS else seen
        if token.token_type in _WORDS and token.start not in known:
            raise InvalidInput(f"cannot read {token.text[:40]!r} here", place(token.start))
    counted = {
        (TokenType.THEN, TokenType.WHEN): sum(isinstance(n, exp.If) for n in nodes),
        (TokenType.AND, TokenType.BETWEEN): sum(
            isinstance(n, exp.And | exp.Between) for n in nodes
        ),
        (TokenType.SELECT, TokenType.FROM): sum(isinstance(n, exp.Select) for n in nodes),
    }
    for kinds, count in counted.items():
        if sum(token.token_type == kinds[0] for token in tokens) != count:
            where = next((token.start for token in tokens if token.token_type in kinds), 0)
            raise InvalidInput(
                f"{kinds[0].name} is missing, or there is one too many", place(where)
            )
