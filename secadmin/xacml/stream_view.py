"""What a policy shows of a stream, or a user asks of it (paper 002, sections 2.2 and 3.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from catalog.errors import InvalidInput
from secadmin.xacml.condition import Condition

WINDOW_TYPES = ("tuple", "time")
FUNCTIONS = ("avg", "sum", "max", "min", "count", "firstvalue", "lastvalue")
_SHORT = {"firstval": "firstvalue", "lastval": "lastvalue"}
_MAX_SIZE = 2**31
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True)
class Window:
    """A window of `size` tuples or units of time, which moves by `step`.

    `functions` has pairs of an attribute and an aggregate function.
    """

    type: str
    size: int
    step: int
    functions: frozenset[tuple[str, str]]

    def __post_init__(self) -> None:
        if self.type not in WINDOW_TYPES:
            raise InvalidInput(f"the type of a window is one of {', '.join(WINDOW_TYPES)}")
        if not (0 < self.size < _MAX_SIZE and 0 < self.step < _MAX_SIZE):
            raise InvalidInput("size and step of a window are at least 1, and below 2^31")
        if not self.functions:
            raise InvalidInput("a window needs at least one attribute with a function")


@dataclass(frozen=True, slots=True)
class StreamView:
    """A filter, then a map, then a window. None: no filter, all attributes, no window.

    If it is `denied`, it shows nothing.
    """

    condition: Condition | None = None
    attributes: frozenset[str] | None = None
    window: Window | None = None
    denied: bool = False

    def usable(self) -> frozenset[str] | None:
        """The attributes that a condition over the view may name. None: all."""
        if self.window is None:
            return self.attributes
        windowed = frozenset(attribute for attribute, _ in self.window.functions)
        return windowed if self.attributes is None else windowed & self.attributes


def attribute_name(text: str) -> str:
    """An attribute's name, in lower case. Raises InvalidInput for what is no name."""
    name = text.strip().lower()
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{text[:40]!r} is not the name of an attribute")
    return name


def function_name(text: str) -> str:
    """The name of an aggregate function. Raises InvalidInput for an unknown one."""
    name = _SHORT.get(text.strip().lower(), text.strip().lower())
    if name not in FUNCTIONS:
        raise InvalidInput(f"{text[:40]!r} is not one of the functions {', '.join(FUNCTIONS)}")
    return name
