"""Changing relations of moving windows, and the stream of their changes (CQL; 001 §3, §4).

This module needs no Spark. It computes instant by instant. At an instant tuples come into a window,
or leave it. The changing relation, here called the relation, is a bag of rows: tuples of a window,
rows of a join, or one row for each group of these. What an instant adds to the bag, and what it
takes away, becomes a stream.

The labels (catalog/SPEC.md has the reasons):

- A row carries the labels of the tuples from which it is derived. A row that reveals the absence
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
from dataclasses import dataclass, field, replace
from typing import Any

from catalog.plan import Change
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.moving_groups import Grouping, Groups, Partition, partitions_of
from secfilter.moving_rows import Row, Rows
from secfilter.moving_stages import OwnRows, Stage
from secfilter.moving_window import Arrival, HeldLimits, WindowContent, Words, united
from secfilter.pair_values import rewritten

MOST_TOLD = 100
"""Subscribers get records of so many tuples that a batch leaves out. The others are counted."""
_FORM = 4
# A form in which rows in an order were made of the tuples that a window held.
_NO_FIRST_ROWS = 3
# A form without totals: groups were made of the tuples that a window held.
_NO_TOTALS = 2
# A form of one window, whose content is the state itself.
_ONE_WINDOW = 1
# The places of numbers in the row and in the arguments of a window's tuples.
Doubles = tuple[tuple[int, ...], tuple[int, ...]]
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
    """What an instant does: tuples come into windows, or leave them."""

    instant: int
    tuples: list[Arrival] = field(default_factory=list)
    # The partitions of windows of one tuple that get a tuple which is in no row.
    unseen: list[Partition] = field(default_factory=list)


@dataclass
class MovingRelation:
    """The contents of all windows, the relation that is made of them, and the instants so far.

    `root` makes the rows of the relation. `limits` bounds what all windows hold together, and rows
    have limits of their own. A tuple that is beyond a limit is not taken, and `withheld` counts it.
    `doubles` has the windows of whose tuples some numbers are written anew.
    """

    contents: Sequence[WindowContent]
    change: Change
    root: Stage
    limits: HeldLimits
    # Of UPSERT: for each value of a row whether it belongs to the key.
    keys: tuple[bool, ...] = ()
    withheld: int = 0
    # The first ones of the tuples that were not taken because there is no room, each with the
    # number of its window. Those that come after their instant are not among them.
    left_out: list[tuple[int, Arrival]] = field(default_factory=list)
    doubles: Mapping[int, Doubles] = field(default_factory=dict)
    _done: int | None = None
    # What each row carries besides its own labels: before this instant, and now.
    _before: Words = ()
    _now: Words = ()

    def __post_init__(self) -> None:
        self._nested = len([*self.root.stages()]) > 1
        places = {
            id(side): (stage, number)
            for stage in self.root.stages()
            for number, side in enumerate(stage.sides)
        }
        self._places = [places[id(content)] for content in self.contents]

    @property
    def rows(self) -> Rows:
        """The rows below the groups of the relation."""
        return self.root.rows

    @property
    def groups(self) -> Grouping | None:
        """The groups of the relation, or None if it has none."""
        return self.root.groups

    @property
    def more_characters(self) -> int:
        """How much its stages hold besides what windows hold: about, in characters."""
        return sum(stage.more_characters for stage in self.root.stages())

    def begin_batch(self) -> None:
        """Count what this batch leaves out, and nothing before."""
        self.withheld, self.left_out = 0, []

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
            if self.is_over(each.time):
                self.withheld += 1
                continue
            if too_much:
                self._leave_out(side, each)
                continue
            size, characters = size + 1, longer
            content.wait(self._written(each, side))

    def _leave_out(self, side: int, each: Arrival) -> None:
        self.withheld += 1
        if len(self.left_out) < MOST_TOLD:
            self.left_out.append((side, each))

    def _written(self, each: Arrival, side: int) -> Arrival:
        if side not in self.doubles:
            return each
        row, arguments = self.doubles[side]
        return replace(
            each, row=rewritten(each.row, row), arguments=rewritten(each.arguments, arguments)
        )

    def is_over(self, time: int) -> bool:
        """Whether the results of this instant are known already."""
        return self._done is not None and time <= self._done

    def until(self, time: int) -> Iterator[Result]:
        """The results of all instants up to and including `time`, which are complete."""
        while (instant := self.next_instant()) is not None and instant <= time:
            changes = self._changes(instant)
            yield from self._step(changes)
            self.root.finish()
            for side, partition in changes.unseen:
                self.contents[side].forget(partition)
        self._done = time if self._done is None else max(self._done, time)

    def standing(self, instant: int) -> Iterator[Result]:
        """Of UPSERT: the rows of all groups, as if this instant had changed each of them.

        All instants up to it must be over.
        """
        rows = self._standing() if self.change is Change.UPSERT else ()
        labelled = [(_kept(text), self._with(label, self._now)) for text, label in rows]
        return iter(_numbered(instant, sorted(labelled)))

    def _standing(self) -> Iterator[Labelled]:
        if self.groups is None:
            for row in self.rows.all(self.root.held()):
                yield row.text, united((row.label, *self._deciding(partitions_of(row))))
        else:
            for each in self.groups.standing():
                if each.new is not None:
                    around = self._deciding(each.partitions)
                    yield each.new.text, united((each.new.label, *around))

    def _with(self, label: Words, *others: Words) -> Words:
        """The label with those that each row carries (see `Stage.around_all`)."""
        known = [each for each in others if each]
        return united((label, *known)) if known else label

    def next_instant(self) -> int | None:
        """The next instant at which a tuple arrives or leaves, or None."""
        times = (each.next_instant() for each in self.contents)
        return min((time for time in times if time is not None), default=None)

    def _step(self, changes: _Changes) -> list[Result]:
        if self.change is Change.RSTREAM:
            return self._whole(changes)
        added, taken = self._differing(changes.instant)
        if self._nested:
            added = [(text, self._with(label, self._now)) for text, label in added]
            taken = [(text, self._with(label, self._before, self._now)) for text, label in taken]
        if self.change is Change.UPSERT:
            return _numbered(changes.instant, self._upserts(added, taken))
        return self._differences(changes.instant, added, taken)

    def _differing(self, instant: int) -> tuple[list[Labelled], list[Labelled]]:
        """The rows that come at an instant, and those that go."""
        if self.groups is not None:
            return self._regrouped(instant)
        added = [(row.text, self._added_label(row, instant)) for row in self.root.came.values()]
        return added, self._taken({row for row, _ in added})

    def _changes(self, instant: int) -> _Changes:
        changes = _Changes(instant)
        came: list[list[Arrival]] = []
        for window, content in enumerate(self.contents):
            came.append([])
            stage, side = self._places[window]
            wanted = self._follows_rows(stage)
            for each in content.arriving(instant):
                if not (stage.rows.has_room(side, each) and _has_group(stage, each)):
                    self._leave_out(window, each)
                    continue
                content.hold(each)
                came[window].append(each)
                if content.window.rows == 1 and not each.passes and self._forgets:
                    changes.unseen.append((window, each.partition))
                stage.note(stage.rows.place(side, each, wanted=wanted))
        for window, content in enumerate(self.contents):
            stage, side = self._places[window]
            left = content.leaving(instant, came[window])
            for each in left:
                wanted = self._follows_leaving(stage)
                stage.note(stage.rows.remove(side, each, wanted=wanted))
            changes.tuples += [*came[window], *left]
        if self._nested:
            self.withheld += self.root.settle()
            self._before, self._now = self._now, united(self.root.around_all())
        return changes

    @property
    def _forgets(self) -> bool:
        """Whether tuples that are in no row need not be kept. A row of RSTREAM has their labels."""
        return self.change is not Change.RSTREAM

    def _follows_rows(self, stage: Stage) -> bool:
        """Whether it matters which rows of a stage come and leave."""
        inner = stage is not self.root or stage.groups is not None
        return inner or self.change is not Change.RSTREAM

    def _follows_leaving(self, stage: Stage) -> bool:
        """Whether it matters which rows come and leave because a tuple leaves.

        Without groups, ISTREAM asks for rows that leave only where equal ones come.
        """
        only_new = not self._nested and stage.groups is None and self.change is Change.ISTREAM
        come = bool(stage.came) or stage.rows.come_of_absence
        return self._follows_rows(stage) and (come or not only_new)

    def _deciding(self, partitions: Iterable[Partition]) -> Iterator[Words]:
        """The labels of all that decides who is in these partitions of windows of rows."""
        return self.root.deciding(partitions)

    def _added_label(self, row: Row, instant: int) -> Words:
        """The label of a row that is there because a tuple came, and the others had stayed."""
        sides = self.root.sides
        if len(sides) == 1 and not self._nested:
            return row.label
        stayed = [
            (side, each.partition)
            for side, each in enumerate(row.tuples)
            if each is not None and sides[side].stayed(each, instant)
        ]
        return united((row.label, *self._deciding(stayed)))

    def _taken(self, added: set[str]) -> list[Labelled]:
        """The rows that leave. ISTREAM asks only for rows that come as well."""
        all_of_them = self.change is not Change.ISTREAM
        return [
            (row.text, united((row.label, *self._deciding(partitions_of(row)))))
            for row in self.root.left.values()
            if all_of_them or row.text in added
        ]

    def _regrouped(self, instant: int) -> tuple[list[Labelled], list[Labelled]]:
        """The changed rows, now and before."""
        added, taken = [], []
        single: dict[str, Row] = {}
        if isinstance(self.groups, Groups):
            single = self.groups.without_witness(self.root.came.values())
        for each in self.root.replace():
            around = [*self._deciding(each.partitions)]
            new = () if each.new is None else (each.new.label,)
            if each.old is not None:
                taken.append((each.old.text, united((each.old.label, *new, *around))))
            if each.key in single:
                row = single[each.key]
                added.append((row.text, self._added_label(row, instant)))
            elif each.new is not None:
                added.append((each.new.text, united((*new, *around))))
        return added, taken

    def _upserts(self, added: Sequence[Labelled], taken: Sequence[Labelled]) -> list[Labelled]:
        """The new row of each key that has one, and a deletion of each key that has none now."""
        found = {self._key(text): (_kept(text), label) for text, label in added}
        for text, label in taken:
            found.setdefault(self._key(text), (self._gone(text), label))
        return [found[key] for key in sorted(found)]

    def _key(self, row: str) -> tuple[str, ...]:
        """The texts of a row's key."""
        values = zip(self.keys, row.split(SEPARATOR), strict=True)
        return tuple(text for key, text in values if key)

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
        if self.groups is not None:
            for _ in self.root.replace():
                pass
        held = (content.held() for content in self.contents)
        every = (each for several in (*held, changes.tuples) for each in several)
        label = self._with(united(each.label for each in every), self._now)
        rows = sorted((each.text, each.label) for each in self.root.labelled())
        labelled = [(row, united((label, own))) for row, own in rows]
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
        groups = self.groups.state() if isinstance(self.groups, OwnRows) else []
        state = {"form": _FORM, "done": self._done, "windows": windows, "groups": groups}
        if self._nested:
            state["below"] = self.root.own_rows()
        return json.dumps(state, separators=(",", ":"))

    def restore(self, text: str) -> None:
        """Go on with a state that `to_text` gave. Raises ValueError for another form."""
        state = json.loads(text)
        windows = [state] if state.get("form") == _ONE_WINDOW else state.get("windows")
        if state.get("form") not in (_ONE_WINDOW, _NO_TOTALS, _NO_FIRST_ROWS, _FORM):
            raise ValueError("the state of a moving window has another form")
        self._done = state["done"]
        for content, stored in zip(self.contents, windows, strict=True):
            content.restore(stored)
        several = [*state.get("below", []), state.get("groups", [])]
        for stage, own in zip(self.root.stages(), several, strict=True):
            if isinstance(stage.groups, OwnRows):
                self._restore_rows(stage, stage.groups, own, windows)
        self.root.rebuild()
        self._now = united(self.root.around_all())

    def _restore_rows(
        self, stage: Stage, groups: OwnRows, own: Sequence[Any], windows: Sequence[Any]
    ) -> None:
        groups.restore(own)
        # In older forms the windows kept the tuples.
        held: list[list[Arrival]] = [[] for _ in stage.sides]
        for (of, side), stored in zip(self._places, windows, strict=True):
            if of is stage:
                held[side] = [Arrival.from_list(values) for values in stored["held"]]
        for _ in groups.apply((), [*stage.rows.all(held)]):
            pass


def _has_group(stage: Stage, each: Arrival) -> bool:
    """Whether a tuple has a group, or one may open for it."""
    if not isinstance(stage.groups, OwnRows) or not each.passes:
        return True
    return stage.groups.has_room(each)


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
