"""The SQL dialect: sqlglot's grammar with everything taken out that rewrites what was written.

sqlglot turns many functions into nodes of its own (`YEAR(x)` into a date conversion, `DATE_ADD`
into arithmetic), reads unknown statements as opaque commands, and is lenient about intervals. Here
a function call stays the name and arguments that the user wrote, so that one table
(`functions.py`) decides what it means; only the syntax that looks like no call is left to sqlglot.
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
# Words that are read once more. What is in the language has at most one a character, of 64 KiB:
# coalesce((a),(a),(a),...).
MAX_REREAD = 70_000
START = "start"
_BEHIND_TYPES = {TokenType.COLLATE, TokenType.DEFAULT, TokenType.FORMAT}


class Misread(ParseError):
    """sqlglot could not go on at this offset of the text; `ended` tells that the text was over."""

    def __init__(self, message: str, offset: int, ended: bool) -> None:
        # sqlglot looks into the first of an error's details.
        super().__init__(message, [{}])
        self.offset = offset
        self.ended = ended


class Sql(Dialect):
    """The dialect of `parse_sql`; strings in single quotes, names in double quotes."""

    class Tokenizer(tokens.Tokenizer):
        """No statement's rest is swallowed as the text of a command."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(parser.Parser):
        """Queries only; every leaf of the tree knows where in the text it stands."""

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
            """As sqlglot's, and nothing has been read twice."""
            super().reset()
            self._reread = 0

        def placed(self, kind: type[exp.Expr], operand: Callable[[], exp.Expr | None]) -> exp.Expr:
            """A prefix operator's node, which stands where the operator does."""
            start = self._prev
            return self.expression(kind(this=operand()), start)

        def expression(
            self, instance: E, token: Token | None = None, comments: list[str] | None = None
        ) -> E:
            """As sqlglot's, and leaves get the place of the token that they were made of."""
            place = token or (self._prev if instance.is_leaf() else None)
            return super().expression(instance, place or None, comments)

        def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
            """Raise Misread at the token, or where the text ends."""
            ended = not (token or self._curr)
            place = token or self._curr or self._prev
            raise Misread(message, place.end + 1 if ended else place.start, ended)

        def _retreat(self, index: int) -> None:
            """Go back, but not without end.

            sqlglot reads what may be two things first as the one and then as the other: where such
            things nest, as in STRUCT(STRUCT(...)), the work doubles with each level. Whatever it
            tries begins with going back, so this bounds all of it.
            """
            self._reread += self._index - index
            if self._reread > MAX_REREAD:
                self.raise_error("Too much to try")
            super()._retreat(index)

        def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            start = self._curr
            if (self._prev.token_type, self._next.token_type) == (TokenType.DOT, TokenType.L_PAREN):
                # Of a chain of these sqlglot copies all that came before, at each.
                self.raise_error("A function's name has no dots")
            call = super()._parse_function_call(*args, **kwargs)
            return call if call is None or "start" in call.meta else call.update_positions(start)

        def _parse_cast(self, strict: bool, safe: bool | None = None) -> exp.Expr:
            """As sqlglot's, which reads over a COLLATE, DEFAULT or FORMAT that says nothing."""
            cast = super()._parse_cast(strict, safe)
            if self._prev.token_type in _BEHIND_TYPES:
                self.raise_error("A type and nothing else", self._prev)
            return cast

        def _parse_star_op(self, *keywords: str) -> list[exp.Expr] | None:
            """As sqlglot's, which reads over a REPLACE or RENAME that says nothing."""
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
            """INTERVAL '5' MINUTE and INTERVAL 5 MINUTE, nothing else."""
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
            # Set afterwards: sqlglot would read the unit D as DAY and M as MONTH.
            interval.set("unit", exp.Var(this=self._prev.text).update_positions(self._prev))
            return interval

        def reached(self) -> int:
            """The offset that the parser stands at."""
            return (self._curr or self._prev).start

        def parse_condition(self, raw_tokens: list[Token], text: str) -> list[exp.Expr | None]:
            """Parse an expression that stands alone, as in a Borealis box."""
            return self._parse(Sql.Parser._parse_disjunction, raw_tokens, text)
