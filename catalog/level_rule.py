"""Level rules: which companies a tuple of a stream is of (001 §3).

A stream without a level rule has tuples of no company. With one, each tuple gets a part of its
level in each of the rule's conflict classes: a company, T or ⊥.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.label_rule import ByExpression, BySender


@dataclass(frozen=True, slots=True)
class CompanyRule:
    """Where the part of one conflict class comes from.

    It is the level of the sender, or the value of a text expression over the tuple's attributes: a
    constant, an attribute, or a CASE.
    """

    conflict_class: int
    rule: BySender | ByExpression


@dataclass(frozen=True, slots=True)
class LevelRule:
    """One rule for each conflict class, in the order of their ids."""

    companies: tuple[CompanyRule, ...]

    @property
    def conflict_classes(self) -> tuple[int, ...]:
        """The conflict classes in the order of a level."""
        return tuple(each.conflict_class for each in self.companies)

    @property
    def asks_senders(self) -> bool:
        """Whether a part of the level is that of the sender."""
        return any(each.rule == BySender() for each in self.companies)
