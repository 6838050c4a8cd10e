"""XML as a tree of elements with positions. Entities and outside files are refused.

A DOCTYPE may name an outside DTD, as the diagrams of Borealis do. The DTD is never fetched. A
DOCTYPE with declarations of its own is refused.

An attribute's value keeps the offset of each of its characters. So an error in an expression has
the right column, also if a reference such as `&lt;` comes before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import ParseError  # only the class of error that defusedxml raises

from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml.ElementTree import DefusedXMLParser  # type: ignore[import-untyped]

from catalog.errors import InvalidInput, Position
from secadmin.languages.text import Lines, check_text

MAX_BYTES = 256 * 1024
MAX_DEPTH = 8
_NAMED = re.compile(r"""\s+([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_TAG = re.compile(r"<[^\s/>]+")
# The text of one character of a value: a reference, the end of a line, or the character itself.
_CHARACTER = re.compile(r"&[^;]*;|\r\n|.", re.DOTALL)
# The references that need no DTD. After a DOCTYPE the parser would leave out all others silently.
_REFERENCE = re.compile(r"&(?:lt|gt|amp|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);")
_ROOT = "borealis"
_USER_QUERY = "UserQuery"
_NO_ENTITIES = (
    "document types and entities are not allowed, except <!DOCTYPE borealis SYSTEM ...> without "
    "declarations of its own"
)


@dataclass(frozen=True, slots=True)
class Value:
    """An attribute's value. `starts` has the offset of each character in the text, and the end."""

    text: str
    starts: Sequence[int]
    lines: Lines

    def place(self, offset: int = 0) -> Position:
        """The position in the text of a character of the value."""
        return self.lines.position(self.starts[min(offset, len(self.starts) - 1)])


@dataclass(frozen=True, slots=True)
class Element:
    """An element with its attributes and children."""

    tag: str
    attributes: dict[str, Value]
    position: Position
    children: list[Element] = field(default_factory=list)


def parse_tree(text: str) -> Element:
    """The root element. Raises InvalidInput, with its position, for ill-formed or unsafe XML."""
    lines = check_text(text, MAX_BYTES)
    builder = _Builder(text, lines)
    parser = DefusedXMLParser(
        target=builder, forbid_dtd=False, forbid_entities=True, forbid_external=True
    )
    builder.expat = parser.parser
    parser.parser.StartDoctypeDeclHandler = builder.document_type
    try:
        parser.feed(text)
        return parser.close()  # type: ignore[no-any-return]
    except ParseError as error:
        place = lines.position(builder.offset_of(parser.parser.ErrorByteIndex))
        fault = str(error).partition(":")[0]
        raise InvalidInput(f"not well-formed XML: {fault}", place) from None
    except DefusedXmlException:
        raise InvalidInput(_NO_ENTITIES, builder.here()) from None
    except (ValueError, LookupError):
        raise InvalidInput("not readable as XML", builder.here()) from None


class _Builder:
    """Collects elements. `expat` is the parser, which knows its offset."""

    def __init__(self, text: str, lines: Lines) -> None:
        self.expat: object = None
        self._text = text
        self._bytes = None if text.isascii() else text.encode()
        self._lines = lines
        self._open: list[Element] = []
        self._root: Element | None = None

    def offset_of(self, byte: int) -> int:
        """The offset in the text, given the offset of a byte in its UTF-8 form."""
        return byte if self._bytes is None else len(self._bytes[:byte].decode(errors="ignore"))

    def here(self) -> Position:
        """The position of the parser in the text."""
        return self._lines.position(self._offset())

    def document_type(
        self, name: str, _system: str | None, _public: str | None, has_declarations: int
    ) -> None:
        """A DOCTYPE opens. Raises InvalidInput unless it only names the format."""
        if has_declarations or name != _ROOT:
            raise InvalidInput(_NO_ENTITIES, self.here())

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element opens."""
        offset = self._offset()
        place = self._lines.position(offset)
        if len(self._open) >= MAX_DEPTH:
            raise InvalidInput(f"elements are nested more than {MAX_DEPTH} deep", place)
        raw = self._raw(offset)
        values = {
            name: Value(text, raw.get(name, (offset,)), self._lines)
            for name, text in attributes.items()
        }
        element = Element(tag, values, place)
        if not self._open and tag == _USER_QUERY:
            raise InvalidInput(
                "<UserQuery> is a customised query; add it with --language user-query", place
            )
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def end(self, _tag: str) -> None:
        """An element closes."""
        self._open.pop()

    def data(self, text: str) -> None:
        """Text between elements. Only white space is allowed there."""
        if text.strip():
            raise InvalidInput("text between elements; values belong in attributes", self.here())

    def close(self) -> Element:
        """The root element. The parser calls this at the end of the text."""
        if self._root is None:
            raise InvalidInput("there is no <borealis> element")
        return self._root

    def _offset(self) -> int:
        return self.offset_of(getattr(self.expat, "CurrentByteIndex", 0))

    def _raw(self, offset: int) -> dict[str, Sequence[int]]:
        """For each attribute of the tag that opens at `offset`, the offsets of its characters."""
        found: dict[str, Sequence[int]] = {}
        tag = _TAG.match(self._text, offset)
        at = tag.end() if tag else offset
        while match := _NAMED.match(self._text, at):
            group = 2 if match[2] is not None else 3
            at = match.end()
            found[match[1]] = self._starts(match[group], *match.span(group))
        return found

    def _starts(self, written: str, start: int, end: int) -> Sequence[int]:
        """The offsets of the characters of a value, and of its end. Raises InvalidInput."""
        if "&" not in written and "\r" not in written:
            return range(start, end + 1)
        starts = []
        for character in _CHARACTER.finditer(self._text, start, end):
            if character[0][0] == "&" and not _REFERENCE.fullmatch(character[0]):
                place = self._lines.position(character.start())
                raise InvalidInput(f"undefined entity {character[0][:40]}", place)
            starts.append(character.start())
        return (*starts, end)
