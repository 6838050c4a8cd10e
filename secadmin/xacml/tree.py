"""XML as a tree of elements with positions. Document types, entities and outside files are refused.

Size, depth and the number of elements are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.etree.ElementTree import ParseError  # only the class of error that defusedxml raises

from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml.ElementTree import DefusedXMLParser  # type: ignore[import-untyped]

from catalog.errors import InvalidInput, Position

MAX_CHARACTERS = 1024 * 1024
MAX_DEPTH = 60
MAX_ELEMENTS = 50_000
XACML = "urn:oasis:names:tc:xacml:3.0:core:schema:wd-17"


@dataclass(frozen=True, slots=True)
class Element:
    """An element with its text (that before its first child), attributes and children."""

    tag: str
    attributes: dict[str, str]
    position: Position
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text directly inside the element."""
        return "".join(self.texts)

    def refused(self, why: str) -> InvalidInput:
        """The error for this element, with its place and its name."""
        return InvalidInput(f"<{self.tag}>: {why}", self.position)

    def attribute(self, name: str) -> str:
        """An attribute's value. Raises InvalidInput if it is missing."""
        if name not in self.attributes:
            raise self.refused(f"the attribute {name} is missing")
        return self.attributes[name]

    def flag(self, name: str) -> bool:
        """A true or false attribute, false if it is missing. Raises InvalidInput for others."""
        value = self.attributes.get(name, "false")
        if value not in ("true", "false", "1", "0"):
            raise self.refused(f"{name} must be true or false")
        return value in ("true", "1")

    def only(self) -> Element:
        """The only child. Raises InvalidInput if there are none or several."""
        if len(self.children) != 1:
            raise self.refused("exactly one element must be inside")
        return self.children[0]


def parse_tree(text: str, namespace: str = XACML) -> Element:
    """The root element. Raises InvalidInput, with the position, for ill-formed or unsafe XML.

    Every element must be in `namespace` (empty: in none).
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"the text is longer than {MAX_CHARACTERS} characters")
    builder = _Builder(f"{{{namespace}}}" if namespace else "")
    parser = DefusedXMLParser(
        target=builder, forbid_dtd=True, forbid_entities=True, forbid_external=True
    )
    builder.expat = parser.parser
    try:
        parser.feed(text)
        root: Element = parser.close()
    except ParseError as error:
        line, column = error.position
        fault = str(error).partition(":")[0]
        raise InvalidInput(f"not well-formed XML: {fault}", Position(line, column + 1)) from None
    except DefusedXmlException:
        raise InvalidInput("document types and entities are not allowed", builder.here()) from None
    except (ValueError, LookupError):
        raise InvalidInput("not readable as XML", builder.here()) from None
    return root


class _Builder:
    """Collects elements. `expat` is the parser, which knows its position."""

    def __init__(self, prefix: str) -> None:
        self.expat: object = None
        self._prefix = prefix
        self._open: list[Element] = []
        self._root: Element | None = None
        self._count = 0

    def here(self) -> Position:
        """The position of the parser in the text."""
        line = int(getattr(self.expat, "CurrentLineNumber", 1))
        return Position(line, int(getattr(self.expat, "CurrentColumnNumber", 0)) + 1)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element opens."""
        name = tag.removeprefix(self._prefix)
        if not tag.startswith(self._prefix) or "{" in name:
            raise InvalidInput(f"the element {tag} is of another namespace", self.here())
        self._count += 1
        if self._count > MAX_ELEMENTS or len(self._open) >= MAX_DEPTH:
            raise InvalidInput(
                f"more than {MAX_ELEMENTS} elements, or more than {MAX_DEPTH} inside each other",
                self.here(),
            )
        element = Element(name, attributes, self.here())
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def end(self, _tag: str) -> None:
        """An element closes."""
        self._open.pop()

    def data(self, text: str) -> None:
        """Text inside the innermost element."""
        if self._open:
            self._open[-1].texts.append(text)

    def close(self) -> Element:
        """The root."""
        if self._root is None:
            raise InvalidInput("the text has no element", self.here())
        return self._root
