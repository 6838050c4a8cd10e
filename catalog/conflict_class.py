"""Conflict classes and levels: the Chinese Wall as categories (001 §3, definitions 1 to 4).

A *conflict class* has companies that compete with each other. Each company has a category, and so
has the class itself: that one stands for T, several or all of its companies. The level of a tuple
names for each class no company (⊥), one of them, or T. It is nothing but the tuple's label: the
least upper bound of two levels is the union of their labels, and a level is dominated by another
one if its label is within what the other one clears.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catalog.clearance import Clearance
from catalog.errors import InvalidInput, Position
from catalog.label import PUBLIC, Label, combine
from catalog.role_clauses import RoleClauses

TRUSTED, NOTHING = "T", "\N{UP TACK}"
LEVEL = "level"
"""The name under which a query reads the level of a tuple."""
MAX_COMPANIES = 200
_COMPANY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,62}(?<! )")
# People write ⊥ in ways that their keyboard has.
_NOTHING = frozenset({"_", NOTHING, "\N{PERPENDICULAR}"})


@dataclass(frozen=True, slots=True)
class ConflictClass:
    """A conflict class with the categories of its companies, by their names, and that of T."""

    id: int
    name: str
    trusted: int
    companies: Mapping[str, int] = field(hash=False)

    def label_of(self, part: str) -> Label | None:
        """The label of a part of a level: of a company, T or ⊥. None if it is nothing of these."""
        if part == TRUSTED:
            return Label.of(self.trusted)
        if part in _NOTHING:
            return PUBLIC
        found = self.companies.get(part)
        return None if found is None else Label.of(found)

    def part_of(self, label: Label) -> str:
        """The part of a level that the label has in this class."""
        held = [name for name, at in self.companies.items() if label.bits >> at & 1]
        if len(held) > 1 or label.bits >> self.trusted & 1:
            return TRUSTED
        return held[0] if held else NOTHING

    @property
    def categories(self) -> Label:
        """The categories of all companies, and that of T."""
        return Label.of(self.trusted, *self.companies.values())


def check_company_name(name: str) -> str:
    """Return the name of a company. Raises InvalidInput if it is not usable."""
    if name == TRUSTED or not _COMPANY.fullmatch(name):
        raise InvalidInput(
            f"{name[:80]!r} is not a usable company name: a letter or digit, then letters, digits, "
            "spaces and . _ -, at most 63, and not T alone, which means several companies"
        )
    return name


def level_of(label: Label, classes: Sequence[ConflictClass]) -> str:
    """The level of a label as a text, with a part for each of the classes."""
    return level_text([each.part_of(label) for each in classes])


def level_text(parts: Sequence[str]) -> str:
    """A level as the paper prints it.

    >>> level_text(["1", NOTHING, TRUSTED])
    '[1, \u22a5, T]'
    """
    return f"[{', '.join(parts)}]"


def canonical_level(text: str) -> str | None:
    """A level that somebody has written, as the platform prints it. None if it is no level.

    >>> canonical_level("[1,_]")
    '[1, \u22a5]'
    """
    parts = _parts(text)
    return None if parts is None else level_text(parts)


def _parts(text: str) -> list[str] | None:
    written = text.strip()
    if not (written.startswith("[") and written.endswith("]")):
        return None
    parts = [part.strip().strip("'\"") for part in written[1:-1].split(",")]
    return [NOTHING if part in _NOTHING else part for part in parts]


def read_level(
    text: str, classes: Sequence[ConflictClass], position: Position | None = None
) -> Label:
    """The label of a level that is written as `[1, _, T]`, with a part for each of the classes.

    Raises InvalidInput, with the position.
    """
    parts = _parts(text)
    if parts is None:
        raise InvalidInput("a level is written as [Company1, _, T]", position)
    if len(parts) != len(classes):
        names = ", ".join(each.name for each in classes)
        raise InvalidInput(
            f"the level has {len(parts)} parts, and there are {len(classes)} conflict classes "
            f"here, in this order: {names}"
            if classes
            else "nothing that is read here has a conflict class, so there is no level",
            position,
        )
    found = []
    for part, each in zip(parts, classes, strict=True):
        label = each.label_of(part)
        if label is None:
            raise InvalidInput(
                f"the conflict class {each.name} has no company {part[:80]!r}; T means all of its "
                "companies, and _ none",
                position,
            )
        found.append(label)
    return combine(found)


def narrowed(own: Label, wanted: Mapping[int, str], classes: Mapping[int, ConflictClass]) -> Label:
    """The greatest level that both `own` and the level with the parts `wanted` dominate.

    `wanted` has parts by the ids of classes. Elsewhere it is no narrower than `own`.
    """
    bits = own.bits
    for class_id, part in wanted.items():
        found = classes[class_id]
        held, asked = own.bits & found.categories.bits, found.label_of(part)
        bits &= ~found.categories.bits
        if asked is None:
            continue
        if held >> found.trusted & 1:
            bits |= asked.bits
        elif asked.bits in (held, 1 << found.trusted):
            bits |= held
    return Label(bits)


def dominated(reached: Label, level: Label, clauses: RoleClauses, companies: Label) -> Label:
    """The part of a reach that a level dominates: what a query at the level reads (definition 6).

    `companies` are the categories of all companies and of T. All other categories stay.
    """
    cleared = clauses.cleared(Clearance(level.bits)).bits
    return Label(reached.bits & ~(companies.bits & ~cleared))
