"""Changing relations of moving windows, and the stream of their changes (CQL; 001 §3, §4).

This module needs no Spark. It computes instant by instant. At an instant tuples come into a window,
or leave it. The changing relation, here called the relation, is a bag of rows: tuples of a window,
rows of a join, or one row for each group of these. What an instant adds to the bag, and what it
takes away, becomes a stream.

The labels (catalog/SPEC.md has the reasons):

- A row carries the labels of the tuples from which it is derived. A row that tells of the absence
  of a side's tuples carries all that they could carry.
- If a tuple leaves a window of rows, it leaves because others came. So a row that depends on who
  left, or on who has stayed, carries the labels of all tuples that are in the window's partition.
- If equal rows come and go in one instant, what is left of them depends on all of them.
- A row of RSTREAM is sent because something changed. So it carries the labels of all that the
  windows hold, and of all that came or left at this instant.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.plan import Change
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.moving_groups import Grouping, Groups, Partition, partitions_of
from secfilter.moving_rows import Change as RowChange
from secfilter.moving_rows import Row, Rows, Tuples
from secfilter.moving_totals import Totals
from secfilter.moving_window import Arrival, HeldLimits, WindowContent, Words, united

_FORM = 3
# A form without totals: groups were made of the tuples that a window held.
_NO_TOTALS = 2
# A form of one window, whose content is the state itself.
_ONE_WINDOW = 1
# The text of a row, and its label.
Labelled = tuple[str, Words]


@dataclass(frozen=True, slots=True)
class Result:
    """A row that an instant (µs since 1970) adds or takes away. Rows of an instant are numbered."""

    instant: int
    number: int
    row: str
    label: Words


@dataclass(slots=True)
class _Changes:
    """What an instant does: tuples come or leave, and so do rows."""

    instant: int
    tuples: list[Arrival] = field(default_factory=list)
    came: dict[Tuples, Row] = field(default_factory=dict)
    left: dict[Tuples, Row] = field(default_factory=dict)
    # The partitions of windows of one tuple that get a tuple which is in no row.
    unseen: list[Partition] = field(default_factory=list)

    def apply(self, changes: Iterable[RowChange]) -> None:
        """Note rows that come and go. One that does both at one instant has not changed."""
        for row, sign in changes:
            here, there = (self.came, self.left) if sign > 0 else (self.left, self.came)
            if there.pop(row.tuples, None) is None:
                here[row.tuples] = row


@dataclass
class MovingRelation:
    """The contents of all windows, their rows, and the instants so far.

    `groups` is None if the relation has no groups. `limits` bounds what all windows hold together,
    and `rows` has limits of its own. A tuple that is beyond a limit is not taken, and `withheld`
    counts it.
    """

    contents: Sequence[WindowContent]
    change: Change
    rows: Rows
    groups: Grouping | None
    limits: HeldLimits
    # Of UPSERT: for each value of a row whether it belongs to the key.
    keys: tuple[bool, ...] = ()
    withheld: int = 0
    _done: int | None = None

    def take(self, arrivals: Iterable[Arrival], side: int = 0) -> None:
        """Take tuples of a window, in any order. A tuple whose instant is over is withheld."""
        content = self.contents[side]
        size = sum(each.size for each in self.contents)
        characters = sum(each.characters for each in self.contents)
        for each in arrivals:
            if content.window.never_holds(each.time):
                continue
            longer = characters + each.characters
            too_much = size >= self.limits.tuples or longer > self.limits.characters
            if self.is_over(each.time) or too_much:
                self.withheld += 1
                continue
            size, characters = size + 1, longer
            content.wait(each)

    def is_over(self, time: int) -> bool:
        """Whether the results of this instant are known already."""
        return self._done is not None and time <= self._done

    def until(self, time: int) -> Iterator[Result]:
        """The results of all instants up to and including `time`, which are complete."""
        while (instant := self.next_instant()) is not None and instant <= time:
            changes = self._changes(instant)
            yield from self._step(changes)
            for side, partition in changes.unseen:
                self.contents[side].forget(partition)
        self._done = time if self._done is None else max(self._done, time)

    def standing(self, instant: int) -> Iterator[Result]:
        """Of UPSERT: the rows of all groups, as if this instant had changed each of them.

        All instants up to it must be over.
        """
        rows = self._standing() if self.change is Change.UPSERT else ()
        return iter(_numbered(instant, sorted((_kept(text), label) for text, label in rows)))

    def _standing(self) -> Iterator[Labelled]:
        if self.groups is None:
            for row in self.rows.all([content.held() for content in self.contents]):
                yield row.text, united((row.label, *self._deciding(partitions_of(row))))
        elif isinstance(self.groups, Groups | Totals):
            for each in self.groups.standing():
                if each.new is not None:
                    around = self._deciding(each.partitions)
                    yield each.new.text, united((each.new.label, *around))

    def next_instant(self) -> int | None:
        """The next instant at which a tuple arrives or leaves, or None."""
        times = (each.next_instant() for each in self.contents)
        return min((time for time in times if time is not None), default=None)

    def _step(self, changes: _Changes) -> list[Result]:
        instant = changes.instant
        if self.change is Change.RSTREAM:
            return self._whole(changes)
        if self.groups is None and self.change is Change.UPSERT:
            return _numbered(instant, self._rows_of_keys(changes))
        if self.groups is not None and self.change is Change.UPSERT:
            return _numbered(instant, self._rows_of_groups(self.groups, changes))
        if self.groups is not None:
            return self._differences(instant, *self._regrouped(self.groups, changes))
        added = [(row.text, self._added_label(row, instant)) for row in changes.came.values()]
        return self._differences(instant, added, self._taken(changes, {row for row, _ in added}))

    def _changes(self, instant: int) -> _Changes:
        changes = _Changes(instant)
        came: list[list[Arrival]] = []
        for side, content in enumerate(self.contents):
            came.append([])
            for each in content.arriving(instant):
                if not (self.rows.has_room(side, each) and self._has_group(each)):
                    self.withheld += 1
                    continue
                content.hold(each)
                came[side].append(each)
                if content.window.rows == 1 and not each.passes and self._forgets:
                    changes.unseen.append((side, each.partition))
                changes.apply(self.rows.place(side, each, wanted=self._follows_rows()))
        for side, content in enumerate(self.contents):
            left = content.leaving(instant, came[side])
            for each in left:
                changes.apply(self.rows.remove(side, each, wanted=self._follows_leaving(changes)))
            changes.tuples += [*came[side], *left]
        return changes

    @property
    def _forgets(self) -> bool:
        """Whether tuples that are in no row need not be kept. A row of RSTREAM has their labels."""
        return self.change is not Change.RSTREAM

    def _has_group(self, each: Arrival) -> bool:
        """Whether the tuple has a group, or one may open for it."""
        if not isinstance(self.groups, Totals) or not each.passes:
            return True
        return self.groups.has_room(each.row, each.arguments)

    def _follows_rows(self) -> bool:
        """Whether it matters which rows come and leave."""
        return self.groups is not None or self.change is not Change.RSTREAM

    def _follows_leaving(self, changes: _Changes) -> bool:
        """Whether it matters which rows come and leave because a tuple leaves.

        Without groups, ISTREAM asks for rows that leave only where equal ones come.
        """
        only_new = self.groups is None and self.change is Change.ISTREAM
        come = bool(changes.came) or self.rows.come_of_absence
        return self._follows_rows() and (come or not only_new)

    def _deciding(self, partitions: Iterable[Partition]) -> Iterator[Words]:
        """The labels of all that decides who is in these partitions of windows of rows."""
        for side, name in partitions:
            yield from self.contents[side].deciding(name)

    def _added_label(self, row: Row, instant: int) -> Words:
        """The label of a row that is there because a tuple came, and the others had stayed."""
        if len(self.contents) == 1:
            return row.label
        stayed = [
            (side, each.partition)
            for side, each in enumerate(row.tuples)
            if each is not None and self.contents[side].window.comes_at(each.time) < instant
        ]
        return united((row.label, *self._deciding(stayed)))

    def _taken(self, changes: _Changes, added: set[str]) -> list[Labelled]:
        """The rows that leave. ISTREAM asks only for rows that come as well."""
        all_of_them = self.change is Change.DSTREAM
        return [
            (row.text, united((row.label, *self._deciding(partitions_of(row)))))
            for row in changes.left.values()
            if all_of_them or row.text in added
        ]

    def _regrouped(
        self, groups: Grouping, changes: _Changes
    ) -> tuple[list[Labelled], list[Labelled]]:
        """The changed rows, now and before."""
        added, taken = [], []
        for each in groups.apply(changes.left.values(), changes.came.values()):
            around = [*self._deciding(each.partitions)]
            new = () if each.new is None else (each.new.label,)
            if each.old is not None:
                taken.append((each.old.text, united((each.old.label, *new, *around))))
            if each.new is not None:
                added.append((each.new.text, united((*new, *around))))
        return added, taken

    def _rows_of_keys(self, changes: _Changes) -> list[Labelled]:
        """The new row of each key that changes, in a window of one tuple for each key.

        A key without a row gives itself alone, with the label of the tuple that came in its place.
        """
        came, left = (
            {partitions_of(row)[0]: row for row in rows.values()}
            for rows in (changes.came, changes.left)
        )
        found = []
        for partition in sorted({*came, *left}):
            row = came.get(partition)
            text = _kept(row.text) if row is not None else self._gone(left[partition].text)
            label = (row or left[partition]).label
            found.append((text, united((label, *self._deciding([partition])))))
        return found

    def _rows_of_groups(self, groups: Grouping, changes: _Changes) -> list[Labelled]:
        """The new row of each group that changes. A group that ends gives its key alone."""
        found = []
        for each in groups.apply(changes.left.values(), changes.came.values()):
            around = [*self._deciding(each.partitions)]
            if each.new is not None:
                text, label = _kept(each.new.text), each.new.label
            elif each.old is not None:
                text, label = self._gone(each.old.text), each.old.label
            else:
                continue
            found.append((text, united((label, *around))))
        return found

    def _gone(self, row: str) -> str:
        """A deletion of a row: nothing but its key."""
        values = zip(self.keys, row.split(SEPARATOR), strict=True)
        return SEPARATOR.join(["true", *(text if key else NULL_MARK for key, text in values)])

    def _whole(self, changes: _Changes) -> list[Result]:
        """The whole relation. All of its rows carry all labels, because any change sends them.

        They also carry what each of them tells by absence.
        """
        if not changes.tuples:
            return []
        held = [content.held() for content in self.contents]
        every = (each for several in (*held, changes.tuples) for each in several)
        label = united(each.label for each in every)
        if self.groups is None:
            rows = [(row.text, row.absent) for row in self.rows.all(held)]
        else:
            for _ in self.groups.apply(changes.left.values(), changes.came.values()):
                pass
            rows = [(each.text, each.label) for each in self.groups.rows()]
        labelled = [(row, united((label, own)) if own else label) for row, own in sorted(rows)]
        return _numbered(changes.instant, labelled)

    def _differences(
        self, instant: int, added: Sequence[Labelled], taken: Sequence[Labelled]
    ) -> list[Result]:
        """What is left of the rows that came and went after equal ones are cancelled."""
        inserted = self.change is Change.ISTREAM
        mine, others = (added, taken) if inserted else (taken, added)
        labels, opposite = _by_row(mine), _by_row(others)
        found: list[Labelled] = []
        for row in sorted(labels):
            cancelled = opposite.get(row, [])
            kept = labels[row][len(cancelled) :]
            if cancelled:
                all_of_them = united((*labels[row], *cancelled))
                kept = [all_of_them] * len(kept)
            found += [(row, label) for label in kept]
        return _numbered(instant, found)

    def to_text(self) -> str:
        """The state, with the version of its form."""
        windows = [content.state() for content in self.contents]
        groups = self.groups.state() if isinstance(self.groups, Totals) else []
        state = {"form": _FORM, "done": self._done, "windows": windows, "groups": groups}
        return json.dumps(state, separators=(",", ":"))

    def restore(self, text: str) -> None:
        """Go on with a state that `to_text` gave. Raises ValueError for another form."""
        state = json.loads(text)
        windows = [state] if state.get("form") == _ONE_WINDOW else state.get("windows")
        if state.get("form") not in (_ONE_WINDOW, _NO_TOTALS, _FORM):
            raise ValueError("the state of a moving window has another form")
        self._done = state["done"]
        for content, stored in zip(self.contents, windows, strict=True):
            content.restore(stored)
        if isinstance(self.groups, Totals):
            self._restore_totals(self.groups, state, windows)
            return
        held = [content.held() for content in self.contents]
        for side, several in enumerate(held):
            for each in several:
                self.rows.place(side, each, wanted=False)
        if self.groups is not None:
            for _ in self.groups.apply((), [*self.rows.all(held)]):
                pass

    def _restore_totals(
        self, groups: Totals, state: Mapping[str, Any], windows: Sequence[Mapping[str, Any]]
    ) -> None:
        groups.restore(state.get("groups", []))
        # Older forms kept the tuples in place of totals.
        held = [[Arrival.from_list(values) for values in each["held"]] for each in windows]
        for _ in groups.apply((), [*self.rows.all(held)]):
            pass


def _kept(row: str) -> str:
    """An upsert: a row that is no deletion."""
    return f"false{SEPARATOR}{row}"


def _by_row(rows: Iterable[Labelled]) -> Mapping[str, list[Words]]:
    found: dict[str, list[Words]] = defaultdict(list)
    for row, label in rows:
        found[row].append(label)
    return found


def _numbered(instant: int, rows: Iterable[Labelled]) -> list[Result]:
    return [Result(instant, number, row, label) for number, (row, label) in enumerate(rows)]
