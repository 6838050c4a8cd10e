"""An index of targets by the value of one string attribute, for policies with many children."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from secadmin.xacml.expressions import Designator, Evaluation
from secadmin.xacml.functions import FUNCTIONS, PREFIX
from secadmin.xacml.target import Match, Target

MIN_CHILDREN = 8
_EQUAL = FUNCTIONS[f"{PREFIX}1.0:function:string-equal"]


@dataclass(frozen=True, slots=True)
class TargetIndex:
    """The places of the targets that need a value of `attribute`, and of all others."""

    attribute: Designator
    by_value: dict[str, tuple[int, ...]]
    others: tuple[int, ...]

    def places(self, evaluation: Evaluation) -> list[int]:
        """The places, in order, of all targets but those that surely do not match."""
        found = set(self.others)
        for value in self.attribute.evaluate(evaluation):
            found.update(self.by_value.get(value, ()))
        return sorted(found)


def index_of(targets: Sequence[Target]) -> TargetIndex | None:
    """The index by the attribute that most targets need. None if it would not help."""
    needs = [_needs(target) for target in targets]
    counts = Counter(attribute for need in needs for attribute in need)
    if len(targets) < MIN_CHILDREN or not counts:
        return None
    [(attribute, _)] = counts.most_common(1)
    by_value: dict[str, list[int]] = defaultdict(list)
    others = []
    for place, need in enumerate(needs):
        if attribute not in need:
            others.append(place)
        for value in need.get(attribute, ()):
            by_value[value].append(place)
    places = {value: tuple(found) for value, found in by_value.items()}
    return TargetIndex(attribute, places, tuple(others))


def _needs(target: Target) -> dict[Designator, set[str]]:
    """For each attribute the values of which a request must have one, or the target is false.

    That holds if each alternative of one AnyOf compares the attribute with a constant. A
    comparison that may be Indeterminate, because the attribute must be present, does not count.
    """
    found: dict[Designator, set[str]] = {}
    for any_of in target.any_ofs:
        alternatives = [
            {match.attribute: match.value for match in all_of if _is_plain(match)}
            for all_of in any_of
        ]
        for attribute in set.intersection(*(set(one) for one in alternatives)):
            found[attribute] = {one[attribute] for one in alternatives}
    return found


def _is_plain(match: Match) -> bool:
    return match.function is _EQUAL and not match.attribute.must_be_present
