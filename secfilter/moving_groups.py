"""The groups of a changing relation, and their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from secfilter.moving_rows import Row, Tuples
from secfilter.moving_window import Labels, Words, united

# The number of a side, and a partition in it: of a window, or the key of a row of a relation below.
Partition = tuple[int, str]


# What is between the values in the key of a row and the rest, which does not have it.
BEHIND = "\x1d"
# The text of a group's key. If these tell groups apart: the label of its rows, and the times and
# lineages of their subject.
Key = tuple[str, Words, tuple[tuple[int, str], ...]]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A row of a relation with its label."""

    text: str
    label: Words


@dataclass(frozen=True, slots=True)
class Replaced:
    """A row that an instant replaces by another one. Either may be None.

    `key` is what both have in common: no other row of the relation has it. The old row depends on
    the partitions `before`, and the new one on those `now`.
    """

    key: str
    old: Labelled | None
    new: Labelled | None
    before: AbstractSet[Partition] = frozenset()
    now: AbstractSet[Partition] = frozenset()

    @property
    def partitions(self) -> AbstractSet[Partition]:
        """All partitions on which the rows depend."""
        return self.before | self.now


class Grouping(Protocol):
    """Makes the rows of a relation from several rows below."""

    def apply(self, left: Collection[Row], came: Collection[Row]) -> Iterator[Replaced]:
        """Note rows that leave and come. Gives what they change, which must all be read."""

    def rows(self) -> Iterator[Labelled]:
        """All rows."""

    def standing(self) -> Iterator[Replaced]:
        """All rows, as if something had changed each of them."""


class Summary(Protocol):
    """Makes the rows of groups."""

    @property
    def computes(self) -> bool:
        """Whether there is any aggregate."""

    @property
    def by_order(self) -> bool:
        """Whether the order of a group's rows decides."""

    def read(self, arguments: str) -> tuple[Any, ...]:
        """The values of a row's arguments."""

    def row(self, key: str, group: Collection[tuple[Any, ...]]) -> str:
        """The row of a group with this key, and these values of its rows."""


def place_of(subject: Tuples) -> list[tuple[int, int, str]]:
    """The place of a row in the order of its tuples: by event time, and then by origin."""
    return [
        (side, each.time, each.lineage) for side, each in enumerate(subject) if each is not None
    ]


def partitions_of(row: Row) -> list[Partition]:
    """The partitions in which the tuples of a row are."""
    return [(side, each.partition) for side, each in enumerate(row.tuples) if each is not None]


def key_text(key: Key) -> str:
    """The text of a group's whole key. It begins with the values of the key."""
    text, *others = key
    return f"{text}{BEHIND}{others}" if any(others) else text


def name_of(subject: Tuples) -> str:
    """A text that no row of other tuples has."""
    return repr(place_of(subject))


@dataclass(slots=True)
class Group:
    """The rows of a group, and what is known of them together. `text` is the group's own row.

    `values` has those of each subject, and `rows` how many rows it has.
    """

    values: dict[Tuples, tuple[Any, ...]] = field(default_factory=dict)
    rows: Counter[Tuples] = field(default_factory=Counter)
    labels: Labels = field(default_factory=Labels)
    partitions: Counter[Partition] = field(default_factory=Counter)
    text: str = ""

    def add(self, row: Row, values: tuple[Any, ...]) -> None:
        """Add a row with the values of its arguments."""
        self.values[row.subject] = values
        self.rows[row.subject] += 1
        self.labels.add(row.label)
        for each in partitions_of(row):
            self.partitions[each] += 1

    def labelled(self) -> Labelled:
        """The group's own row, with the labels of all its rows."""
        return Labelled(self.text, united(self.labels.counts))

    def remove(self, row: Row) -> None:
        """Remove a row that was added."""
        self.rows[row.subject] -= 1
        if not self.rows[row.subject]:
            del self.rows[row.subject], self.values[row.subject]
        self.labels.remove(row.label)
        for each in partitions_of(row):
            self.partitions[each] -= 1
            if not self.partitions[each]:
                del self.partitions[each]


@dataclass
class Groups:
    """The groups that have rows.

    If the summary computes nothing (DISTINCT), rows of different labels are in different groups. So
    who may see one of the rows gets its values, whatever other rows there are. With `by_subject`,
    rows of different subjects are in different groups too.
    """

    summary: Summary
    by_subject: bool = False
    found: dict[Key, Group] = field(default_factory=dict)

    def key_of(self, row: Row) -> Key:
        """The group to which a row belongs."""
        if self.summary.computes:
            return row.text, (), ()
        if not self.by_subject:
            return row.text, row.label, ()
        places = ((0, "") if each is None else (each.time, each.lineage) for each in row.subject)
        return row.text, row.label, (*places,)

    def without_witness(self, came: Iterable[Row]) -> dict[str, Row]:
        """By the keys of their groups, the rows of a semi join's relation that have no witness.

        An outer join over the semi join has such rows. Each is the only row of its group.
        """
        if self.summary.computes or not self.by_subject:
            return {}
        return {key_text(self.key_of(row)): row for row in came if row.subject == row.tuples}

    def apply(self, left: Collection[Row], came: Collection[Row]) -> Iterator[Replaced]:
        """Note rows that leave and come. Gives the rows of the groups that they change."""
        changed: dict[Key, tuple[list[Row], list[Row]]] = {}
        for place, rows in enumerate((left, came)):
            for row in rows:
                changed.setdefault(self.key_of(row), ([], []))[place].append(row)
        for key, (gone, there) in sorted(changed.items()):
            old, before = self._known(key)
            self.change(key, gone, there)
            new, now = self._known(key)
            yield Replaced(key_text(key), old, new, before, now)

    def _known(self, key: Key) -> tuple[Labelled | None, frozenset[Partition]]:
        """The row of a group, and the partitions of which its rows are."""
        group = self.found.get(key)
        return (
            (None, frozenset())
            if group is None
            else (group.labelled(), frozenset(group.partitions))
        )

    def rows(self) -> Iterator[Labelled]:
        """The rows of all groups."""
        return (group.labelled() for group in self.found.values())

    def standing(self) -> Iterator[Replaced]:
        """The rows of all groups, as if something had changed each of them."""
        for key, group in self.found.items():
            now = frozenset(group.partitions)
            yield Replaced(key_text(key), None, group.labelled(), now=now)

    def group(self, key: Key) -> Group:
        """The group of a key. It may be empty, and is then not kept."""
        group = self.found.get(key)
        return Group() if group is None else group

    def change(self, key: Key, left: Iterable[Row], came: Iterable[Row]) -> None:
        """Take rows from the group of a key and add others to it."""
        group = self.group(key)
        for row in left:
            group.remove(row)
        for row in came:
            group.add(row, self.summary.read(row.arguments))
        if group.values:
            values: Collection[tuple[Any, ...]] = group.values.values()
            if self.summary.by_order:
                values = [group.values[each] for each in sorted(group.values, key=place_of)]
            group.text = self.summary.row(key[0], values)
            self.found[key] = group
        else:
            self.found.pop(key, None)
