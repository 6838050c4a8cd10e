"""The SQL dialect: sqlglot's grammar without all that rewrites the user's text.

sqlglot turns many functions into nodes of its own (`YEAR(x)` into a date conversion, `DATE_ADD`
into arithmetic). It reads unknown statements as opaque commands, and accepts odd intervals. Here a
function call keeps the name and the arguments that the user wrote. So one table (`functions.py`)
decides the meaning of a call. sqlglot handles only the syntax that does not look like a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

E = TypeVar("E", bound=exp.Expr)
MAX_SYNTAX_NODES = 50_000
# How many words may be read again. A valid query needs at most one for each of its characters,
# of which it has up to 64 KiB: coalesce((a),(a),(a),...).
MAX_REREAD = 70_000
START = "start"
_BEHIND_TYPES = {TokenType.COLLATE, TokenType.DEFAULT, TokenType.FORMAT}


class Misread(ParseError):
    """sqlglot could not go on at this offset. `ended` is true at the end of the text."""

    def __init__(self, message: str, offset: int, ended: bool) -> None:
        # sqlglot reads the first of an error's details, so there must be one.
        super().__init__(message, [{}])
        self.offset = offset
        self.ended = ended


class Sql(Dialect):
    """The dialect of `parse_sql`. Strings have single quotes, names may have double quotes."""

    class Tokenizer(tokens.Tokenizer):
        """Reads every word. No part of a statement becomes the text of a command."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(parser.Parser):
        """Parses queries only. Every leaf of the tree knows its offset in the text."""

        STATEMENT_PARSERS: ClassVar[dict[TokenType, Any]] = {}
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": parser.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "EXTRACT", "SUBSTRING")
        }

        UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
            **parser.Parser.UNARY_PARSERS,
            TokenType.NOT: lambda self: self.placed(exp.Not, self._parse_equality),
            TokenType.DASH: lambda self: self.placed(exp.Neg, self._parse_unary),
        }

        def reset(self) -> None:
            """Reset as sqlglot does, and also the count of words that were read again."""
            super().reset()
            self._reread = 0

        def placed(self, kind: type[exp.Expr], operand: Callable[[], exp.Expr | None]) -> exp.Expr:
            """The node of a prefix operator. Its position is that of the operator."""
            start = self._prev
            return self.expression(kind(this=operand()), start)

        def expression(
            self, instance: E, token: Token | None = None, comments: list[str] | None = None
        ) -> E:
            """As sqlglot's. In addition, a leaf gets the offset of the token that it comes from."""
            place = token or (self._prev if instance.is_leaf() else None)
            return super().expression(instance, place or None, comments)

        def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
            """Raise Misread at the token, or where the text ends."""
            ended = not (token or self._curr)
            place = token or self._curr or self._prev
            raise Misread(message, place.end + 1 if ended else place.start, ended)

        def _retreat(self, index: int) -> None:
            """Go back, but only a limited number of times.

            sqlglot tries an ambiguous text first in one way and then in another. If such texts
            nest, as in STRUCT(STRUCT(...)), the work doubles with each level. Each new try begins
            by going back, so a limit here bounds all the work.
            """
            self._reread += self._index - index
            if self._reread > MAX_REREAD:
                self.raise_error("Too much to try")
            super()._retreat(index)

        def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            start = self._curr
            if (self._prev.token_type, self._next.token_type) == (TokenType.DOT, TokenType.L_PAREN):
                # In a chain of such calls, sqlglot copies all earlier ones at each call.
                self.raise_error("A function's name has no dots")
            call = super()._parse_function_call(*args, **kwargs)
            return call if call is None or "start" in call.meta else call.update_positions(start)

        def _parse_cast(self, strict: bool, safe: bool | None = None) -> exp.Expr:
            """As sqlglot's, but a COLLATE, DEFAULT or FORMAT without a value is an error."""
            cast = super()._parse_cast(strict, safe)
            if self._prev.token_type in _BEHIND_TYPES:
                self.raise_error("A type and nothing else", self._prev)
            return cast

        def _parse_star_op(self, *keywords: str) -> list[exp.Expr] | None:
            """As sqlglot's, but a REPLACE or RENAME without a value is an error."""
            start = self._index
            found = super()._parse_star_op(*keywords)
            if not found and self._index != start:
                self.raise_error("Nothing stands here", self._prev)
            return found

        def _parse_case(self) -> exp.Expr | None:
            start = self._prev
            case = super()._parse_case()
            return case.update_positions(start) if case else None

        def _parse_interval(
            self, require_interval: bool = True, parse_function_unit: bool = True
        ) -> exp.Interval | None:
            """Parse INTERVAL '5' MINUTE or INTERVAL 5 MINUTE, and nothing else."""
            start = self._curr
            amounts = (TokenType.STRING, TokenType.NUMBER)
            if start.token_type != TokenType.INTERVAL or self._next.token_type not in amounts:
                return None
            self._advance(2)
            amount = exp.Literal(this=self._prev.text, is_string=True).update_positions(self._prev)
            if self._curr.token_type not in self.ID_VAR_TOKENS:
                self.raise_error("Expecting a unit, as in INTERVAL '5' MINUTE")
            self._advance()
            interval = self.expression(exp.Interval(this=amount), start)
            # The unit is set afterwards, because sqlglot would read D as DAY and M as MONTH.
            interval.set("unit", exp.Var(this=self._prev.text).update_positions(self._prev))
            return interval

        def reached(self) -> int:
            """The offset in the text that the parser has reached."""
            return (self._curr or self._prev).start

        def parse_condition(self, raw_tokens: list[Token], text: str) -> list[exp.Expr | None]:
            """Parse a single expression, as in a Borealis box."""
            return self._parse(Sql.Parser._parse_disjunction, raw_tokens, text)
