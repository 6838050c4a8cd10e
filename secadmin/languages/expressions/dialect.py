"""The SQL dialect: sqlglot's grammar without all that rewrites the user's text.

sqlglot turns many functions into nodes of its own (`YEAR(x)` into a date conversion, `DATE_ADD`
into arithmetic). It reads unknown statements as opaque commands, and accepts odd intervals. Here a
function call keeps the name and the arguments that the user wrote. So one table (`functions.py`)
decides the meaning of a call. sqlglot handles only the syntax that does not look like a call.
"""

from __future__ import annotations

import re
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
_WITH_UNIT = re.compile(r"\s*[0-9]+\s+[A-Za-z]+\s*")
_BEHIND_TYPES = {TokenType.COLLATE, TokenType.DEFAULT, TokenType.FORMAT}


class Misread(ParseError):
    """sqlglot could not go on at this offset. `ended` is true at the end of the text."""

    def __init__(self, message: str, offset: int, ended: bool) -> None:
        # sqlglot reads the first of an error's details, so there must be one.
        super().__init__(message, [{}])
        self.offset = offset
        self.ended = ended


class Sql(Dialect):
    """The dialect of `parse_sql`. Strings have single quotes, names may have others."""

    class Tokenizer(tokens.Tokenizer):
        """Reads every word. No part of a statement becomes the text of a command."""

        COMMANDS: ClassVar[set[TokenType]] = set()
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]

    class Parser(parser.Parser):
        """Parses queries only. Every leaf of the tree knows its offset in the text."""

        STATEMENT_PARSERS: ClassVar[dict[TokenType, Any]] = {}
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": parser.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser.Parser.FUNCTION_PARSERS[name]
            for name in ("CAST", "EXTRACT", "POSITION", "SUBSTRING")
        }

        QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
            **parser.Parser.QUERY_MODIFIER_PARSERS,
            TokenType.WINDOW: lambda self: ("windows", self.window_clause()),
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
                self.raise_error("Nothing is here", self._prev)
            return found

        def _parse_case(self) -> exp.Expr | None:
            start = self._prev
            case = super()._parse_case()
            return case.update_positions(start) if case else None

        def _parse_interval(
            self, require_interval: bool = True, parse_function_unit: bool = True
        ) -> exp.Interval | None:
            """Parse INTERVAL '5' MINUTE, INTERVAL 5 MINUTE, INTERVAL '5 minutes', no other."""
            start = self._curr
            amounts = (TokenType.STRING, TokenType.NUMBER)
            if start.token_type != TokenType.INTERVAL or self._next.token_type not in amounts:
                return None
            self._advance()
            return self._length(start)

        def _length(self, start: Token) -> exp.Interval:
            """Parse an amount and its unit. The interval's position is that of `start`."""
            if self._curr.token_type not in (TokenType.STRING, TokenType.NUMBER):
                self.raise_error("Expecting a length, as in 5 MINUTES")
            self._advance()
            text, quoted = self._prev.text, self._prev.token_type == TokenType.STRING
            amount = exp.Literal(this=text, is_string=True).update_positions(self._prev)
            interval = self.expression(exp.Interval(this=amount), start)
            # The unit is set afterwards, because sqlglot would read D as DAY and M as MONTH.
            if quoted and _WITH_UNIT.fullmatch(text):
                number, unit = text.split()
                interval.set("this", exp.Literal(this=number, is_string=True))
                interval.this.update_positions(self._prev)
                interval.set("unit", exp.Var(this=unit).update_positions(self._prev))
                return interval
            if self._curr.token_type not in self.ID_VAR_TOKENS:
                self.raise_error("Expecting a unit, as in INTERVAL '5' MINUTE")
            self._advance()
            interval.set("unit", exp.Var(this=self._prev.text).update_positions(self._prev))
            return interval

        def _take_word(self, *words: str) -> bool:
            """Read one of the words, which is no keyword, if it comes next."""
            if self._curr.token_type != TokenType.VAR or self._curr.text.upper() not in words:
                return False
            self._advance()
            return True

        def window_clause(self) -> list[exp.Expr]:
            """Parse the windows of ksqlDB: WINDOW TUMBLING (SIZE ...), HOPPING (SIZE ..., ADVANCE
            BY ...) or SESSION (...).

            The result is a call `tumbling(size)`, `hopping(size, advance)` or `sessions(gap)`. The
            argument `words` has the other words, so that no word of the text is without a node.
            """
            self._advance()
            if self._take_word("SESSION"):
                call = exp.Anonymous(this="sessions").update_positions(self._prev)
                self._match_l_paren()
                call.set("expressions", [self._length(self._prev)])
                call.set("words", [])
                self._match_r_paren()
                return [call]
            if not self._take_word("TUMBLING", "HOPPING"):
                self.raise_error("TUMBLING, HOPPING or SESSION")
            call = exp.Anonymous(this=self._prev.text.lower()).update_positions(self._prev)
            self._match_l_paren()
            if not self._take_word("SIZE"):
                self.raise_error("SIZE")
            lengths, others = [self._length(self._prev)], []
            if self._match(TokenType.COMMA):
                if not self._take_word("ADVANCE"):
                    self.raise_error("ADVANCE BY")
                start = self._prev
                if not self._take_word("BY"):
                    self.raise_error("BY")
                others.append(exp.Var(this="BY").update_positions(self._prev))
                lengths.append(self._length(start))
            self._match_r_paren()
            call.set("expressions", lengths)
            call.set("words", others)
            return [call]

        def _is_within(self) -> bool:
            """Say whether WITHIN 1 HOUR or WITHIN (1 HOUR, 2 HOURS) comes next (ksqlDB)."""
            bounded = self._next.token_type in (TokenType.NUMBER, TokenType.L_PAREN)
            is_word = self._curr.token_type == TokenType.VAR
            return bounded and is_word and self._curr.text.upper() == "WITHIN"

        def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
            return None if self._is_within() else super()._parse_table_alias(*args, **kwargs)

        def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            table = super()._parse_table(*args, **kwargs)
            if table is None or not self._is_within():
                return table
            self._advance()
            start = self._prev
            lengths = []
            if self._match(TokenType.L_PAREN):
                lengths.append(self._length(self._curr))
                if self._match(TokenType.COMMA):
                    lengths.append(self._length(self._curr))
                self._match_r_paren()
            else:
                lengths.append(self._length(start))
            within = exp.Tuple(expressions=lengths).update_positions(start)
            table.set("within", within)
            return table

        def reached(self) -> int:
            """The offset in the text that the parser has reached."""
            return (self._curr or self._prev).start

        def parse_condition(self, raw_tokens: list[Token], text: str) -> list[exp.Expr | None]:
            """Parse a single expression, as in a Borealis box."""
            return self._parse(Sql.Parser._parse_disjunction, raw_tokens, text)
