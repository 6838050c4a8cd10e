"""Role expressions: who may see a tuple, as its data owner writes it (000 §4.2 and §5).

Their grammar is in `role_expression.ebnf`, beside this file.

An expression is kept in conjunctive form: a set of clauses, each a set of roles. A user who has one
role of each clause satisfies it. A clause that contains another one says nothing more, and is
dropped (the redundancy law of 000 §5.2.1). So two expressions mean the same exactly if their
clauses are equal, and both hold exactly if the union of their clauses does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from itertools import chain

from catalog.errors import InvalidInput, Position

MAX_CHARACTERS = 1_000
MAX_CLAUSES = 64
_NESTED = 32
_PLAIN = re.compile(r"[A-Za-z0-9_\-.:/]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_BLANKS = re.compile(r"[ \t]*")

Clause = frozenset[str]
"""The names of roles of which one is enough."""


@dataclass(frozen=True, slots=True)
class RoleExpression:
    """An expression in conjunctive form. No clause contains another one, and none is empty."""

    clauses: frozenset[Clause]

    @classmethod
    def of(cls, clauses: Iterable[Clause]) -> RoleExpression:
        """The expression of these clauses, without those that another one makes superfluous.

        Raises InvalidInput for more than MAX_CLAUSES clauses.
        """
        kept: list[Clause] = []
        for clause in sorted(set(clauses), key=len):
            if not any(each <= clause for each in kept):
                kept.append(clause)
                if len(kept) > MAX_CLAUSES:
                    raise InvalidInput(
                        f"the role expression has more than {MAX_CLAUSES} conditions when it is "
                        "written as conditions joined by &; write it with fewer"
                    )
        return cls(frozenset(kept))

    def __and__(self, other: RoleExpression) -> RoleExpression:
        """Who satisfies both. Raises InvalidInput as `of`."""
        return self.of(self.clauses | other.clauses)

    def __or__(self, other: RoleExpression) -> RoleExpression:
        """Who satisfies one of both. Raises InvalidInput as `of`."""
        return self.of(one | two for one in self.clauses for two in other.clauses)

    def allows(self, roles: Set[str]) -> bool:
        """Whether somebody with these roles satisfies it."""
        return all(not clause.isdisjoint(roles) for clause in self.clauses)

    @property
    def roles(self) -> frozenset[str]:
        """The roles that decide. Roles of dropped clauses are not among them."""
        return frozenset(chain.from_iterable(self.clauses))

    def __str__(self) -> str:
        """The canonical text: equal for all expressions that mean the same."""
        clauses = sorted(sorted(_written(role) for role in clause) for clause in self.clauses)
        texts = [" | ".join(clause) for clause in clauses]
        if len(texts) == 1:
            return texts[0]
        return " & ".join(f"({text})" if " | " in text else text for text in texts)


def read_role_expression(text: str, position: Position | None = None) -> RoleExpression:
    """Read an expression. Raises InvalidInput that says what is wrong, and at which character.

    `position` is where the text is in a larger text.

    >>> str(read_role_expression("doctor & (nurse | doctor)"))
    'doctor'
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(
            f"a role expression has at most {MAX_CHARACTERS} characters, and this one has "
            f"{len(text)}",
            position,
        )
    reader = _Reader(text, position)
    found = reader.expression(0)
    if not reader.at_end():
        raise reader.error("is not expected; join roles by & or |")
    return found


def _written(role: str) -> str:
    if _PLAIN.fullmatch(role):
        return role
    return '"{}"'.format(role.replace("\\", "\\\\").replace('"', '\\"'))


@dataclass(slots=True)
class _Reader:
    """Reads a text from left to right. `at` is never at a blank."""

    text: str
    position: Position | None
    at: int = 0

    def __post_init__(self) -> None:
        self._skip(self.at)

    def at_end(self) -> bool:
        return self.at >= len(self.text)

    def error(self, what: str) -> InvalidInput:
        found = self.text[self.at : self.at + 1]
        where = f"'{found}' at character {self.at + 1}" if found else "its end"
        return InvalidInput(f"in the role expression, {where} {what}", self.position)

    def expression(self, depth: int) -> RoleExpression:
        if depth > _NESTED:
            raise self.error(f"is more than {_NESTED} parentheses deep")
        found = self.operand(depth)
        mark = self.text[self.at : self.at + 1]
        while mark in ("&", "|") and self._take(mark):
            operand = self.operand(depth)
            found = found & operand if mark == "&" else found | operand
            other = {"&": "|", "|": "&"}[mark]
            if self.text.startswith(other, self.at):
                raise self.error("is beside the other operator; write parentheses")
        return found

    def operand(self, depth: int) -> RoleExpression:
        if self._take("("):
            found = self.expression(depth + 1)
            if not self._take(")"):
                raise self.error("is not expected; a parenthesis is not closed")
            return found
        return RoleExpression(frozenset({frozenset({self._role()})}))

    def _role(self) -> str:
        if plain := _PLAIN.match(self.text, self.at):
            self._skip(plain.end())
            return plain.group()
        quoted = _QUOTED.match(self.text, self.at)
        if quoted is None or not quoted.group(1):
            raise self.error('is not expected; here a role is named, with other marks in "quotes"')
        self._skip(quoted.end())
        return re.sub(r"\\(.)", r"\1", quoted.group(1))

    def _take(self, mark: str) -> bool:
        if not self.text.startswith(mark, self.at):
            return False
        self._skip(self.at + len(mark))
        return True

    def _skip(self, at: int) -> None:
        blanks = _BLANKS.match(self.text, at)
        self.at = at if blanks is None else blanks.end()
