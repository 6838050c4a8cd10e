"""Relations of a query that are made of each other: joins of groups, groups of groups, and so on.

A stage makes the rows of one relation. Its sides are windows, or other stages. A row of a stage
below is to it what a tuple is: it comes, it goes, and it has a label. So each instant is computed
from below: a stage takes over what the stages below it replaced, and replaces rows itself.

The labels (catalog/SPEC.md, Nested, has the reasons):

- A row that goes because one below it was replaced also carries the label of the one that is there
  in its place, wherever that is now.
- If a stage is loose, each row of the query carries the labels of all rows of the stages below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from secfilter.moving_first_rows import FirstRows
from secfilter.moving_groups import Grouping, Labelled, Partition, Replaced
from secfilter.moving_rows import Change as RowChange
from secfilter.moving_rows import Row, Rows, Tuples
from secfilter.moving_totals import Totals
from secfilter.moving_window import Arrival, Labels, WindowContent, Words

# These keep what they need of the tuples of windows, so the windows keep none.
OwnRows = Totals | FirstRows
# What a stage reads of a row below it: whether it passes, its row, and its arguments.
Read = Callable[[str], tuple[bool, str, str]]


@dataclass
class Below:
    """A side that is another stage. Its rows are tuples here, each with its key as lineage.

    The texts of all tuples have `most` characters at most. `replaced` has what this instant
    replaces. `labels` are those of all rows.
    """

    stage: Stage
    read: Read
    most: int
    characters: int = 0
    labels: Labels = field(default_factory=Labels)
    replaced: dict[str, Replaced] = field(default_factory=dict)
    _tuples: dict[str, Arrival] = field(default_factory=dict)
    # The label of each row, and the partitions on which it depends.
    _rows: dict[str, tuple[Words, frozenset[Partition]]] = field(default_factory=dict)

    def take(self, each: Replaced) -> tuple[Arrival | None, Arrival | None]:
        """Take a change of the stage. Gives the tuple that goes, and the one that comes."""
        self.replaced[each.key] = each
        old = self.let_go(each.key)
        if each.new is None:
            return old, None
        self.labels.add(each.new.label)
        self._rows[each.key] = each.new.label, frozenset(each.now)
        new = Arrival(0, each.key, each.new.label, each.key, *self.read(each.new.text))
        self._tuples[each.key] = new
        self.characters += new.characters
        return old, new

    def let_go(self, key: str) -> Arrival | None:
        """Let go of a row that the stage has no more, or never changes. Gives its tuple."""
        old, known = self._tuples.pop(key, None), self._rows.pop(key, None)
        if old is not None:
            self.characters -= old.characters
        if known is not None:
            self.labels.remove(known[0])
        return old

    @property
    def has_room(self) -> bool:
        """Whether its tuples are not too long."""
        return self.characters <= self.most

    def leave_out(self, each: Arrival) -> None:
        """Let the stage above have no such tuple, until the row changes."""
        del self._tuples[each.lineage]
        self.characters -= each.characters

    def held(self) -> list[Arrival]:
        """The tuples that are there now."""
        return [*self._tuples.values()]

    def deciding(self, key: str) -> Iterator[Words]:
        """The labels of all that decides about a row, besides those of its own tuples."""
        replaced = self.replaced.get(key)
        if replaced is None:
            _, partitions = self._rows.get(key, ((), frozenset[Partition]()))
            yield from self.stage.deciding(partitions)
            return
        yield from self.stage.deciding(replaced.partitions)
        if replaced.new is not None:
            yield replaced.new.label

    def stayed(self, _each: Arrival, _instant: int) -> bool:
        """True: whatever is below decides about a row, also about one that is new."""
        return True


@dataclass
class Stage:
    """The rows of a relation. `groups` is None if it has neither groups nor an order.

    `came` and `left` are the rows below the groups that an instant adds and takes away.
    """

    sides: Sequence[WindowContent | Below]
    rows: Rows
    groups: Grouping | None
    loose: bool = False
    came: dict[Tuples, Row] = field(default_factory=dict)
    left: dict[Tuples, Row] = field(default_factory=dict)

    def note(self, changes: Iterable[RowChange]) -> None:
        """Note rows that come and go. One that does both at one instant has not changed."""
        for row, sign in changes:
            here, there = (self.came, self.left) if sign > 0 else (self.left, self.came)
            if there.pop(row.tuples, None) is None:
                here[row.tuples] = row

    def below(self) -> Iterator[tuple[int, Below]]:
        """The sides that are stages, with their numbers."""
        for number, side in enumerate(self.sides):
            if isinstance(side, Below):
                yield number, side

    def settle(self) -> int:
        """Take over what the stages below replace at this instant.

        Gives how many of their rows are left out, because they are too long or would make too many
        pairs.
        """
        withheld = 0
        for number, side in self.below():
            withheld += side.stage.settle()
            for each in side.stage.replace():
                withheld += self._take(number, side, each)
        return withheld

    def _take(self, number: int, side: Below, each: Replaced) -> int:
        old, new = side.take(each)
        if old is not None:
            self.note(self.rows.remove(number, old, wanted=True))
        if new is None:
            return 0
        if not self._has_room(number, side, new):
            side.leave_out(new)
            return 1
        self.note(self.rows.place(number, new, wanted=True))
        return 0

    def _has_room(self, number: int, side: Below, each: Arrival) -> bool:
        return side.has_room and self.rows.has_room(number, each)

    def replace(self) -> Iterator[Replaced]:
        """The rows of the groups that this instant replaces. All of them must be read."""
        if self.groups is None:
            raise TypeError("a relation below another one has groups, or an order")
        yield from self.groups.apply(self.left.values(), self.came.values())

    def finish(self) -> None:
        """Forget what belongs to the instant."""
        self.came, self.left = {}, {}
        for _, side in self.below():
            side.replaced = {}
            for key in side.stage.gone():
                side.let_go(key)
            side.stage.finish()

    def gone(self) -> Sequence[str]:
        """The keys of rows that this instant let go of. They stay as they are, and are in no join.

        So what is above has no use for them any more (`StageRules.reach`).
        """
        return self.groups.gone if isinstance(self.groups, FirstRows) else ()

    def deciding(self, partitions: Iterable[Partition]) -> Iterator[Words]:
        """The labels of all that decides who is in these partitions."""
        for number, name in partitions:
            yield from self.sides[number].deciding(name)

    def around_all(self) -> Iterator[Words]:
        """The labels that each row of the query carries because some stage is loose."""
        for _, side in self.below():
            if self.loose:
                yield from side.stage.every_label_below()
                yield from side.labels.counts
            else:
                yield from side.stage.around_all()

    def every_label_below(self) -> Iterator[Words]:
        """The labels of all rows of all stages below."""
        for _, side in self.below():
            yield from side.stage.every_label_below()
            yield from side.labels.counts

    @property
    def more_characters(self) -> int:
        """How much the rows below it, and its pairs, hold: about, in characters."""
        below = sum(side.characters for _, side in self.below())
        return below + self.rows.more_characters

    def held(self) -> list[list[Arrival]]:
        """The tuples of each side."""
        return [side.held() for side in self.sides]

    def stages(self) -> Iterator[Stage]:
        """All stages, those below first."""
        for _, side in self.below():
            yield from side.stage.stages()
        yield self

    def rebuild(self) -> None:
        """Make the rows of what the sides hold, after a state was read.

        `OwnRows` are read already.
        """
        for number, side in enumerate(self.sides):
            if isinstance(side, Below):
                side.stage.rebuild()
                for each in side.stage.standing():
                    _, new = side.take(each)
                    if new is not None and not self._has_room(number, side, new):
                        side.leave_out(new)
                    elif new is not None:
                        self._place(number, new)
            else:
                for tuple_ in side.held():
                    self._place(number, tuple_)
        if self.groups is not None and not isinstance(self.groups, OwnRows):
            for _ in self.groups.apply((), [*self.rows.all(self.held())]):
                pass
        self.finish()

    def _place(self, number: int, each: Arrival) -> None:
        for _ in self.rows.place(number, each, wanted=False):
            pass

    def standing(self) -> Iterator[Replaced]:
        """The rows of the groups that stand."""
        return iter(()) if self.groups is None else self.groups.standing()

    def labelled(self) -> Iterator[Labelled]:
        """All rows of the relation."""
        if self.groups is not None:
            yield from self.groups.rows()
            return
        for row in self.rows.all(self.held()):
            yield Labelled(row.text, row.label)

    def own_rows(self) -> list[Any]:
        """What the stages below keep in JSON's types, one for each, those below first."""
        below = [stage for stage in self.stages() if stage is not self]
        return [each.groups.state() if isinstance(each.groups, OwnRows) else [] for each in below]
