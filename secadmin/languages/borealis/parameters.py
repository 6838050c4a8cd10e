"""The parameters of a box, and checks of them: unknown and missing ones, gaps in numbered ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.errors import InvalidInput, Position
from secadmin.languages.borealis.tree import Value


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as the text has it."""

    name: str
    value: Value
    position: Position

    @property
    def text(self) -> str:
        """The value."""
        return self.value.text

    def place(self) -> Position:
        """The position of the value in the text."""
        return self.value.place()


@dataclass(frozen=True, slots=True)
class Parameters:
    """All parameters of a box. `position` is the position of the box."""

    by_name: dict[str, Parameter]
    position: Position

    @classmethod
    def of(cls, parameters: Iterable[Parameter], position: Position) -> Parameters:
        """The parameters of a box. Raises InvalidInput if a name is there twice."""
        found: dict[str, Parameter] = {}
        for parameter in parameters:
            if parameter.name in found:
                raise InvalidInput(
                    f"parameter {parameter.name[:80]!r} is there twice", parameter.position
                )
            found[parameter.name] = parameter
        return cls(found, position)

    def check(self, *single: str, series: Iterable[str] = ()) -> None:
        """Raise InvalidInput for a parameter that is not one of these and not of these series."""
        numbered = {f"{prefix}.{i}" for prefix in series for i in range(len(self.by_name))}
        for name, parameter in self.by_name.items():
            if name not in single and name not in numbered:
                known = ", ".join([*single, *(f"{prefix}.N" for prefix in series)])
                raise InvalidInput(
                    f"unknown parameter {name[:80]!r}; this box takes: {known or 'none'}"
                    " (N counts from 0 without gaps)",
                    parameter.position,
                )

    def get(self, name: str) -> Parameter | None:
        """The parameter, or None."""
        return self.by_name.get(name)

    def need(self, name: str) -> Parameter:
        """The parameter. Raises InvalidInput if it is missing."""
        found = self.by_name.get(name)
        if found is None:
            raise InvalidInput(f"parameter {name!r} is missing", self.position)
        return found

    def choice(self, name: str, *allowed: str, required: bool = True) -> None:
        """Raise InvalidInput unless the parameter has one of these values."""
        found = self.need(name) if required else self.get(name)
        if found is not None and found.text not in allowed:
            raise InvalidInput(f"{name} is {' or '.join(allowed)}", found.place())

    def series(self, prefix: str) -> list[Parameter]:
        """The parameters of a numbered series, at least one. Raises InvalidInput for a gap."""
        count = sum(name.startswith(f"{prefix}.") for name in self.by_name)
        return [self.need(f"{prefix}.{index}") for index in range(max(1, count))]

    def pairs(self, first: str, second: str) -> list[tuple[Parameter, Parameter]]:
        """The pairs of two numbered series, at least one. Raises InvalidInput for a gap."""
        count = sum(name.startswith((f"{first}.", f"{second}.")) for name in self.by_name)
        return [
            (self.need(f"{first}.{index}"), self.need(f"{second}.{index}"))
            for index in range(max(1, (count + 1) // 2))
        ]
